package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/storeid"
	"blobtail/internal/units"
	"blobtail/record"
	"blobtail/retention"
	"blobtail/storage"
	"blobtail/storage/fsys"
)

// unconfirmed reports that a plan has to be confirmed, or that another one was, and returns
// the exit code. The command that carries it out names the store and the configuration of
// this run: a user may copy it to another shell.
func (a *app) unconfirmed(e *retention.ConfirmError, args ...string) int {
	words := append([]string{a.Name, a.verb.Name}, args...)
	words = append(words, cli.Words(a.verb, "now", "grace", "day", "keep-tail", "where", "service", "from", "to")...)
	words = append(words, cli.Words(a.verb.Parent, "config", "store")...)
	if e.Why != "" {
		words = append(words, "--confirm", e.Hash)
	}
	a.Complain("%v; nothing was done", e)
	a.Complain("if it is right: %s", cli.ShellWords(words...))
	return cli.Usage
}

// otherVerbs are the words of people for a verb, and those of other commands.
func otherVerbs() map[string]string {
	return map[string]string{
		"verify": "logquery verify", "ls": "logquery ls", "list": "logquery ls", "bill": "logquery bill", "check-config": "ingest check-config",
		"run": "retention apply", "start": "retention apply", "dry-run": "retention plan", "show": "retention plan", "expire": "retention apply",
		"unhold": "retention release NAME", "forget": "retention erase --where EXPR", "backup": "retention copy --to STORE",
		"delete": "retention drop SERVICE --day D", "rm": "retention drop SERVICE --day D", "remove": "retention drop SERVICE --day D", "version": "retention --version", "help": "retention --help",
	}
}

// otherFlags are flags of other programs, and the way to their end by verb; "" is for all others.
func otherFlags() map[string]map[string]string {
	return map[string]map[string]string{
		"--dry-run": {
			"apply": "for that: retention plan", "plan": "plan deletes nothing: leave it out", "compact": "compact has no plan; no record goes by it",
			"drop": "without --confirm drop prints its plan and deletes nothing: leave it out", "": "for that: retention plan",
			"erase": "without --confirm erase prints its plan and changes nothing: leave it out",
			"copy":  "copy has no plan; it changes nothing in the store that it copies: leave it out",
		},
		"--yes": {
			"apply":   "a plan is confirmed by its hash: --confirm HASH, as retention plan prints it",
			"drop":    "a plan is confirmed by its hash: --confirm HASH, as drop prints it without --confirm",
			"erase":   "a plan is confirmed by its hash: --confirm HASH, as erase prints it without --confirm",
			"copy":    "copy asks for no confirmation: leave it out",
			"compact": "compact asks for no confirmation: leave it out", "": "a plan is confirmed by its hash: retention apply --confirm HASH, as retention plan prints it",
		},
		"--day":   {"erase": "for one day: --from D --to D", "hold": "for one day: --from D --to D"},
		"--until": {"erase": "the last day is --to D", "hold": "the last day is --to D"},
		"--from":  {"copy": "days from one on: --since D"},
		"--grep":  {"erase": `for a text: --where 'has("text")'`},
		"--keep":  {"": "ages stand in the configuration: --config FILE, with retention.default such as 30d"},
	}
}

// instead is what a flag of another program is called here; "" if it is none.
func instead(flag string, verb *kong.Node) string {
	same := map[string]string{"-n": "--dry-run", "--dryrun": "--dry-run", "-y": "--yes", "--force": "--yes", "-f": "--yes", "--assume-yes": "--yes", "--no-confirm": "--yes",
		"--approve": "--yes", "--auto-approve": "--yes", "--what-if": "--dry-run", "--whatif": "--dry-run", "--noop": "--dry-run", "--simulate": "--dry-run", "--preview": "--dry-run", "--check": "--dry-run",
		"--default": "--keep", "--age": "--keep", "--days": "--keep", "--older-than": "--keep", "--max-age": "--keep", "--retention": "--keep"}
	if hint := cli.MeantVersion(flag); hint != "" {
		return hint
	}
	by := otherFlags()[cmp.Or(same[flag], flag)]
	if verb == nil || by[verb.Name] == "" {
		return by[""]
	}
	return by[verb.Name]
}

// misread explains an error of the parser. People write the day of drop without its flag.
func misread(app *kong.Application, err error) error {
	var verb *kong.Node
	if parse, ok := errors.AsType[*kong.ParseError](err); ok {
		verb = parse.Context.Selected()
	}
	word, argument := strings.CutPrefix(err.Error(), "unexpected argument ")
	if _, derr := parseDay(word, time.Now()); argument && derr == nil {
		return cli.Usagef("unexpected argument %s; a day is given with its flag: --day %s", word, cli.ShellWords(word))
	}
	first, _, _ := strings.Cut(word, ",")
	if argument && verb != nil && slices.Contains([]string{"erase", "hold", "compact"}, verb.Name) {
		return cli.Usagef("unexpected argument %s; a service is given with its flag: --service %s", first, cli.ShellWords(first))
	}
	if other := otherVerbs()[first]; argument && verb == nil && other != "" {
		return cli.Usagef("there is no verb %s; for that: %s", first, other)
	}
	unknown, isFlag := strings.CutPrefix(err.Error(), "unknown flag ")
	if flag, _, _ := strings.Cut(unknown, ","); isFlag {
		if hint := instead(flag, verb); hint != "" {
			return cli.Usagef("unknown flag %s; %s", flag, hint)
		}
		if err := signposts().Elsewhere(app, verb, flag); err != nil {
			return &cli.UsageError{Err: err}
		}
	}
	if hint := cli.MeantShell("retention", err); hint != "" {
		return cli.Usagef("%s", hint)
	}
	return cli.Usagef("%w; see retention --help", err)
}

// exitCode reports an error, if there is one, and returns the exit code.
func (a *app) exitCode(err error) int {
	const role = "retention has to list, create and delete blobs and to list and delete tables: see deploy/ for its role"
	return a.ExitCode(err, a.config.Store, role, func(err error) (code int, message string) {
		if errors.As(err, new(*retention.RefusedError)) || errors.As(err, new(*storeid.CopyError)) || errors.Is(err, storeid.ErrNoCopy) {
			return cli.Usage, err.Error()
		}
		if fsys.IsFull(err) {
			// A scheduler that repeats runs after exit code 5 must not repeat this one.
			return cli.Incomplete, fmt.Sprintf("%v; nothing more was done, make some room", err)
		}
		return 0, ""
	})
}

// fold makes single names and globs of those of services, in lower case as ingesters have names.
func fold(globs *[]string) error {
	if *globs != nil {
		*globs = strings.Split(strings.ToLower(strings.Join(*globs, ",")), ",")
	}
	for _, glob := range *globs {
		switch {
		case !record.ValidPattern(glob) || strings.ContainsFunc(glob, func(r rune) bool { return r <= ' ' || r > '~' }):
			return cli.Usagef("service %q: want a name or a glob such as web-*", glob)
		case !strings.ContainsAny(glob, `*?[\`) && !record.ValidStored(glob):
			return cli.Usagef("service %s: there can be none of that name; ingesters make %s of it", glob, record.FoldService(glob))
		}
	}
	return nil
}

// verdict reports the problems of a run and returns the exit code. did says that the run
// has changed something, or only had to list.
func (a *app) verdict(problems []error, did bool) int {
	a.Problems(problems)
	allowed := func(err error) bool { return !errors.Is(err, storage.ErrUnauthorized) }
	switch {
	case len(problems) == 0:
		return cli.OK
	case did || slices.ContainsFunc(problems, allowed):
		return cli.Incomplete
	}
	return cli.Refused
}

// doubt reports a clock that apply does not trust, though it has nothing to hide.
func (a *app) doubt(p *retention.Plan) {
	if p.Doubt != "" {
		a.Complain("%s; if it is right, say so once by apply --confirm %s: until then a run that has something to hide stops and asks", p.Doubt, p.Hash)
	}
}

// sharedTables warns that other containers may use the same tables.
func (a *app) sharedTables(p *retention.Plan) {
	if len(p.Tables) > 0 && a.config.Store.Remote() {
		a.Complain("the tables are those of every container of the account that has tail.prefix %s; give each its own to keep them apart", a.config.Tail.Prefix)
	}
}

// unmatched names the rules that match no service: a mistake in one hands the logs that it is for to
// the next rule.
func (a *app) unmatched(ctx context.Context) {
	notes, err := config.Config{Retention: a.config.Retention}.Unmatched(a.store.Blobs.Dirs(ctx, ""))
	for _, note := range notes {
		a.Complain("%s", note)
	}
	if err != nil {
		a.Complain("it is not known whether each rule matches a service: %v", err)
	}
}

// foreign reports objects of other programs. They are no problem: they stay.
func (a *app) foreign(f retention.Foreign) {
	if f.Count == 0 {
		return
	}
	some := strings.Join(f.First[:min(3, len(f.First))], ", ")
	a.Complain("%s, such as %s", noBlobs(f.Count), cli.SafeLine(some))
}

// noBlobs says that so many objects are not ours.
func noBlobs(n int) string {
	return units.Count(n, "object") + units.Word(n, " is no blob of ours and stays", " are no blobs of ours and stay")
}
