package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/internal/config"
)

// elsewhere are verbs that people write here, and other commands have.
func elsewhere() map[string]string {
	return map[string]string{
		"tail": "logquery tail", "read": "logquery", "query": "logquery", "ls": "logquery ls", "list": "logquery ls", "verify": "logquery verify",
		"ingesters": "logquery ingesters", "status": "logquery ingesters", "apply": "retention apply",
		"plan": "retention plan", "compact": "retention compact", "drop": "retention drop", "tokens": "ingest token list", "version": "ingest --version", "help": "ingest --help",
		"validate": "ingest check-config", "configtest": "ingest check-config", "test": "ingest check", "doctor": "ingest check", "stop": "ingest drain", "config": "ingest print-config", "flush": "curl -X POST http://ADMIN/flush, with the address of --admin",
	}
}

// otherTokens are the words of other programs for the verbs of ingest token.
func otherTokens() map[string]string {
	return map[string]string{
		"create": "new ID", "add": "new ID", "make": "new ID", "issue": "new ID", "rotate": "new ID", "ls": "list", "show": "list", "get": "list",
		"rm": "revoke ID", "remove": "revoke ID", "delete": "revoke ID", "del": "revoke ID", "disable": "revoke ID",
	}
}

// otherFlags are flags of other programs, with what to write here. Those that are for verbs of tokens
// alone begin with the name of that verb.
func otherFlags() map[string]string {
	return map[string]string{
		"token --name": "the id stands without a flag: ingest token new ID", "token --id": "the id stands without a flag: ingest token new ID", "token --user": "the id stands without a flag: ingest token new ID",
		"token --ttl": "for its end: --expires 90d", "token --expiry": "for its end: --expires 90d", "token --expire": "for its end: --expires 90d", "token --valid": "for its end: --expires 90d", "token --days": "for its end: --expires 90d", "token --until": "for its end: --expires 2027-06-01",
		"--syslog-listen": "for senders of syslog: --syslog 127.0.0.1:6514", "--syslog-addr": "for senders of syslog: --syslog 127.0.0.1:6514", "--syslog-port": "for senders of syslog: --syslog 127.0.0.1:6514",
		"--cert": "for TLS: --tls-cert FILE and --tls-key FILE", "--key": "for TLS: --tls-cert FILE and --tls-key FILE", "--tls": "for TLS: --tls-cert FILE and --tls-key FILE", "--ssl-cert": "for TLS: --tls-cert FILE and --tls-key FILE",
		"--data": "for a directory: --store dir:PATH", "--data-dir": "for a directory: --store dir:PATH", "--dir": "for a directory: --store dir:PATH",
	}
}

// meantFlag returns what to write for an unknown flag of the verb that was chosen; "": not known.
func meantFlag(flag string, verb *kong.Node) string {
	for v := verb; v != nil; v = v.Parent {
		if hint := otherFlags()[v.Name+" "+flag]; hint != "" {
			return hint
		}
	}
	return cmp.Or(otherFlags()[flag], cli.MeantVersion(flag), cli.MeantListen(flag, config.Default().Ingest.Listen))
}

// meantVerb returns the words for an argument that is no verb here; "": not known.
func meantVerb(word string, verb *kong.Node) string {
	switch {
	case verb == nil:
		return elsewhere()[word]
	case verb.Name == "token" && otherTokens()[word] != "":
		return "ingest token " + otherTokens()[word]
	}
	return ""
}

// misread explains an error of the parser. People write a verb such as start or serve,
// because other servers have one.
func misread(app *kong.Application, err error) error {
	err = cli.WithoutValue(err)
	parse, ok := errors.AsType[*kong.ParseError](err)
	word, argument := strings.CutPrefix(err.Error(), "unexpected argument ")
	unknown, flag := strings.CutPrefix(err.Error(), "unknown flag ")
	name, _, _ := strings.Cut(unknown, ",")
	var verb *kong.Node
	if ok {
		verb = parse.Context.Selected()
	}
	if flag && ok {
		if err := signposts().Elsewhere(app, verb, name); err != nil {
			return err
		}
	}
	first, _, _ := strings.Cut(word, ",")
	if other := meantVerb(first, verb); argument && ok && other != "" {
		return fmt.Errorf("there is no verb %s; for that: %s", first, other)
	}
	meant, shell := meantFlag(name, verb), cli.MeantShell("ingest", err)
	switch {
	case shell != "":
		return errors.New(shell)
	case argument && verb != nil && verb.Name == "drain":
		return fmt.Errorf("unexpected argument %s; the ingester is named by its admin listener: ingest drain --admin %s", first, config.Default().Ingest.Admin)
	case flag && meant != "":
		return fmt.Errorf("unknown flag %s; %s", name, meant)
	case !argument && !strings.HasPrefix(err.Error(), "unknown flag "):
		return err // it is about a value, and says which there are
	case !ok || !argument || strings.Contains(word, "did you mean") || verb != nil:
		return fmt.Errorf("%w; see ingest --help", err)
	}
	var verbs []string
	for _, n := range app.Children {
		if !n.Hidden && n.Name != "run" {
			verbs = append(verbs, n.Name)
		}
	}
	return fmt.Errorf("there is no verb %s; ingest takes records without one, and its verbs are %s; see ingest --help", word, strings.Join(verbs, ", "))
}
