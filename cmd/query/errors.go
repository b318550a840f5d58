package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/spelling"
	"blobtail/reading"
	"blobtail/reading/remote"
	"blobtail/record"
	"blobtail/storage"
)

// ownError knows the errors of reading.
func (a *app) ownError(ctx context.Context, err error) (code int, message string) {
	var (
		bad     *reading.BadQueryError
		much    *reading.MuchError
		service *reading.NoServiceError
		none    *reading.NoneChosenError
		blob    *reading.NoBlobError
		refused *remote.Error
		broken  *remote.BrokenError
	)
	switch {
	case errors.As(err, &refused):
		return refusal(refused)
	case errors.As(err, &broken):
		return cli.Incomplete, err.Error()
	case errors.As(err, &bad):
		return cli.Usage, err.Error()
	case errors.As(err, &much):
		return cli.Usage, fmt.Sprintf("this would read %s of blobs, more than --max-bytes %s; give --from or --since, -n, or a larger --max-bytes",
			bytesText(much.Bytes), config.Size(much.Limit))
	case errors.As(err, &service):
		return cli.Nothing, a.noService(ctx, service)
	case errors.As(err, &none):
		return cli.Nothing, fmt.Sprintf("--logql: %v; logquery ls lists them", err)
	case errors.As(err, &blob) && blob.Expired:
		return cli.Nothing, err.Error()
	case errors.As(err, &blob):
		return cli.Nothing, fmt.Sprintf("%v; logquery ls SERVICE DAY lists them", err)
	case errors.Is(err, errOutput), errors.Is(err, storage.ErrDamaged):
		return cli.Incomplete, err.Error()
	}
	return 0, ""
}

// lacking is the exit code of an answer that lacks something for some reasons.
func lacking(why ...error) int {
	if errors.Is(errors.Join(why...), storage.ErrOlder) {
		return cli.Usage
	}
	return cli.Incomplete
}

// refusal returns the exit code for a server's answer without records, and a message with advice.
func refusal(e *remote.Error) (code int, message string) {
	code, advice := cli.NoStore, ""
	switch e.Status {
	case http.StatusBadRequest, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge:
		code = cli.Usage
	case http.StatusUnauthorized:
		code, advice = cli.Refused, "; the token comes from --token-file or BLOBTAIL_TOKEN, and somebody who keeps the server's tokens makes one: ingest token new"
	case http.StatusForbidden:
		code, advice = cli.Refused, "; somebody who keeps the server's tokens can give this one more rights"
	case http.StatusNotFound:
		code = cli.Nothing
	case http.StatusMisdirectedRequest:
		advice = "; it knows itself by another name: use that one, or have it started with --host"
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		advice = "; it is busy: try again in a moment"
	case http.StatusGatewayTimeout:
		advice = "; ask for a shorter range (--since), fewer services, or fewer records (-n)"
	}
	return code, e.Error() + advice
}

// noService tells the likely meaning of a name that is no service.
func (a *app) noService(ctx context.Context, e *reading.NoServiceError) string {
	if slices.Contains(a.services(ctx), e.Name) {
		return inNoBlob(e)
	}
	return a.unknown(ctx, e)
}

// inNoBlob says that a service is in no blob, and where it is.
func inNoBlob(e *reading.NoServiceError) string {
	return fmt.Sprintf("%s has no blob yet; ingesters have its records: logquery %s", e.Name, e.Name)
}

// unknown says that there is no such service, and makes a suggestion.
func (a *app) unknown(ctx context.Context, e *reading.NoServiceError) string {
	level := record.ParseLevel([]byte(e.Name))
	has := func(flag rune) bool {
		verb := verbOf(a.model, a.verb.Name) // with all flags
		return !a.given("logql") && verb != nil && slices.ContainsFunc(verb.Flags, func(f *kong.Flag) bool { return f.Short == flag })
	}
	if every, err := a.all(); err == nil {
		a.model = every.Model // the name may be meant as any verb
	}
	hint, typed := "logquery ls lists them", a.typed(e.Name)
	meant := a.verbMeant(typed)
	begin := beginning(e)
	switch verb := verbOf(a.model, e.Name); {
	case a.env.isFile(e.Name):
		hint = "a file has that name: if the shell made it of *, quote that: '*'"
	case a.verb.Name == "top" && a.isService(ctx, e, a.verbs.Top.Field):
		hint = "the field comes first: logquery top " + cli.ShellWords(a.noServices(ctx, e, typed), a.verbs.Top.Field)
	case a.moreFields(e.Name):
		fields := a.verbs.Top.Field + "," + typed
		hint = "several fields stand with commas: logquery top " + cli.ShellWords(slices.Concat([]string{fields}, a.verbs.Top.Services[1:])...)
	case len(begin) > 1:
		hint = fmt.Sprintf("%d services begin so: '%s*'", len(begin), e.Name)
	case e.Name == "help" || e.Name == "all":
		hint = map[string]string{"help": "for help write it first: logquery help tail", "all": "for all services: '*'"}[e.Name]
	case strings.HasPrefix(typed, "{") || strings.HasPrefix(typed, "|=") || strings.HasPrefix(typed, "|~"):
		hint = "for LogQL: --logql " + cli.ShellWords(typed)
	case condition().MatchString(typed) && a.argMeant(typed) != "":
		hint = a.argMeant(typed)
	case strings.Contains(e.Name, ".*"):
		hint = "names are globs, and no regular expressions: " + cli.ShellWords(strings.ReplaceAll(e.Name, ".*", "*"))
	case e.Near != "":
		hint = fmt.Sprintf("there is %q", e.Near)
	case strings.ContainsAny(e.Name, `*?[\`):
	case verb != nil:
		hint = fmt.Sprintf("for the verb write it first: logquery %s SERVICE", e.Name)
	case meant != "":
		hint = "for that: logquery " + meant
	case a.argMeant(typed) != "":
		hint = a.argMeant(typed)
	case level != record.Other && has('l'):
		hint = fmt.Sprintf("for the level: --level %s", level)
	case has('F'):
		hint = "to search text: -F " + cli.ShellWords(typed)
	}
	return fmt.Sprintf("%v; %s%s", e, hint, a.thereAre(ctx, e))
}

// isService reports whether a text is for services: a name, several with commas, or a glob.
func (a *app) isService(ctx context.Context, e *reading.NoServiceError, text string) bool {
	all := slices.Concat(e.Stored, a.services(ctx))
	return strings.ContainsAny(text, "*?") || slices.ContainsFunc(strings.Split(text, ","), func(name string) bool { return slices.Contains(all, name) })
}

// noServices are the services of top that are none, with commas as fields have them; typed if there is
// one only.
func (a *app) noServices(ctx context.Context, e *reading.NoServiceError, typed string) string {
	names := slices.DeleteFunc(serviceNames(a.verbs.Top.Services), func(name string) bool { return a.isService(ctx, e, name) })
	if len(names) < 2 {
		return typed
	}
	return strings.Join(names, ",")
}

// moreFields reports whether an unknown service of top may be a second field: it stands before a
// service.
func (a *app) moreFields(name string) bool {
	given := a.verbs.Top.Services
	return a.verb.Name == "top" && len(given) > 1 && slices.Equal(serviceNames(given[:1]), []string{name})
}

// typed is the argument behind a service's name, such as one with blanks.
func (a *app) typed(name string) string {
	for _, arg := range a.env.args {
		if names := serviceNames([]string{arg}); len(names) == 1 && names[0] == name {
			return arg
		}
	}
	return name
}

// verbMeant is the command that was probably meant by the first argument, which is neither a
// verb nor a service; "" if there is none.
func (a *app) verbMeant(first string) string {
	if len(a.env.args) == 0 || a.env.args[0] != first || a.verb.Name != "read" {
		return ""
	}
	if other := otherVerbs()[first]; other != "" {
		return other
	}
	var verbs []string
	for _, n := range a.model.Children {
		// A word that only begins like a verb, such as readme, is no mistake.
		if long := len(first) - len(n.Name); !n.Hidden && (long == 1 || long == -1 || !strings.HasPrefix(first, n.Name) && !strings.HasPrefix(n.Name, first)) {
			verbs = append(verbs, n.Name)
		}
	}
	verb := spelling.Near(first, verbs)
	if n := verbOf(a.model, verb); n != nil && slices.ContainsFunc(n.Positional, func(p *kong.Positional) bool { return p.Name == "service" && (p.Required || n.Name == "read") }) {
		verb += " SERVICE"
	}
	return verb
}

// beginning are the services with names that begin with the unknown one.
func beginning(e *reading.NoServiceError) []string {
	return slices.DeleteFunc(slices.Clone(e.Stored), func(name string) bool { return !strings.HasPrefix(name, e.Name) })
}

// thereAre lists the services that exist, if they are few enough for a line.
func (a *app) thereAre(ctx context.Context, e *reading.NoServiceError) string {
	const most = 10
	system := func(name string) bool { return name[0] == '_' }
	names := slices.DeleteFunc(slices.Clone(e.Stored), system)
	if len(names) == 0 {
		names = slices.DeleteFunc(slices.Clone(a.services(ctx)), system)
	}
	switch {
	case len(names) == 0 || e.Near != "" || len(beginning(e)) > 1:
		return ""
	case len(names) > most:
		return fmt.Sprintf("; there are %s and %d more (logquery ls)", strings.Join(names[:most], ", "), len(names)-most)
	case len(names) == 1:
		return "; there is only " + names[0]
	}
	return "; there are " + strings.Join(names, ", ")
}

// misread explains an error of the parser in the arguments of a verb.
func (a *app) misread(verb string, err error) error {
	if strings.HasPrefix(err.Error(), `expected "<service>`) {
		if verb == "new" || verb == "patterns" { // which a service may be called
			return cli.Usagef("%w. For a service called %s: logquery read %s", errWhich(), verb, verb)
		}
		return errWhich()
	}
	if strings.HasPrefix(err.Error(), `expected "<field>`) {
		return cli.Usagef("which field, and of which service? For example: logquery top status web. For a service called top: logquery read top")
	}
	if hint := cli.MeantShell("logquery", err); hint != "" {
		return cli.Usagef("%s", hint)
	}
	see := "logquery --help"
	if verb != "" {
		see = "logquery " + verb + " --help"
	}
	if name, rest, ok := strings.Cut(err.Error(), ": bool value must be "); ok {
		hint := ""
		if _, value, _ := strings.Cut(rest, " but got "); name == "--count" && strings.Trim(value, `"0123456789`) == "" {
			hint = "; for so many of the newest: -n " + strings.Trim(value, `"`)
		}
		return cli.Usagef("%s takes no value%s", name, hint)
	}
	if unknown, ok := strings.CutPrefix(err.Error(), "unknown flag "); ok {
		name, _, _ := strings.Cut(unknown, ",")
		name = a.written(name)
		hint := a.flagMeant(name)
		if verb == "serve" {
			if hint == ofToken {
				hint = "for the tokens of readers: --tokens FILE"
			}
			hint = cmp.Or(cli.MeantListen(name, ownAddress), hint)
		}
		if hint != "" {
			return cli.Usagef("unknown flag %s; %s", name, hint)
		}
		if utf8.RuneCountInString(name) == 2 { // all short flags are near
			return cli.Usagef("unknown flag %s; see %s", name, see)
		}
	}
	return cli.Usagef("%w; see %s", err, see)
}

// errWhich is a command line without a service.
func errWhich() error {
	return cli.Usagef("which service? logquery ls lists them; all of them are '*'")
}
