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

// habits are words of other programs and of other commands of ours, behind what is written here for them.
// A word of ingest token begins with token/.
const habits = `
ingest token list < token/ls token/show token/get
ingest token new ID < token/create token/add token/make token/issue token/rotate
ingest token revoke ID < token/rm token/remove token/delete token/del token/disable
the id stands without a flag: ingest token new ID < token/--name token/--id token/--user
for its end: --expires 90d < token/--ttl token/--expiry token/--expire token/--valid token/--days token/--until
logquery tail < tail
logquery < read query
logquery ls < ls list
logquery verify < verify
logquery ingesters < ingesters status
retention apply < apply
retention plan < plan
retention compact < compact
retention drop < drop
ingest token list < tokens
ingest --version < version
ingest --help < help
ingest check-config < validate configtest
ingest check < test doctor
ingest drain < stop
ingest print-config < config
curl -X POST http://ADMIN/flush, with the address of --admin < flush
for senders of syslog: --syslog 127.0.0.1:6514 < --syslog-listen --syslog-addr --syslog-port
for TLS: --tls-cert FILE and --tls-key FILE < --cert --key --tls --ssl-cert
for a directory: --store dir:PATH < --data --data-dir --dir`

// meantBy returns what to write for a verb or a flag that a verb does not have; "": not known.
func meantBy(word string, verb *kong.Node) string {
	for ; verb != nil && verb.Name != "token"; verb = verb.Parent {
	}
	for line := range strings.Lines(habits) {
		ours, words, _ := strings.Cut(line, " < ")
		for theirs := range strings.FieldsSeq(words) {
			if theirs == word || verb != nil && theirs == "token/"+word {
				return ours
			}
		}
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
	if other := meantBy(first, verb); argument && ok && other != "" && (verb == nil || verb.Name == "token") {
		return fmt.Errorf("there is no verb %s; for that: %s", first, other)
	}
	meant, shell := cmp.Or(meantBy(name, verb), cli.MeantVersion(name), cli.MeantListen(name, config.Default().Ingest.Listen)), cli.MeantShell("ingest", err)
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
