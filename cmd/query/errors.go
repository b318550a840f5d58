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
	"blobtail/reading/search"
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
		message := err.Error()
		if expr := valueOf(a.env.args, "-g"); expr != "" && strings.HasSuffix(message, " -F") {
			message += " " + cli.ShellWords(expr)
		}
		return cli.Usage, message
	case errors.As(err, &much):
		return cli.Usage, fmt.Sprintf("this would read %s of blobs, more than --max-bytes %s; give --from or --since, -n, or a larger --max-bytes",
			bytesText(much.Bytes), config.Size(much.Limit))
	case errors.As(err, &service) && a.mistaken(ctx, service.Name):
		return cli.Usage, a.noService(ctx, service)
	case service != nil:
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

// noService says that there is no such service, or where it is, and makes a suggestion.
func (a *app) noService(ctx context.Context, e *reading.NoServiceError) string {
	if slices.Contains(a.services(ctx), e.Name) {
		return fmt.Sprintf("%s has no blob yet; ingesters have its records: logquery %s", e.Name, e.Name)
	}
	if e.Name == record.RejectedService {
		return "no record was rejected, or none that you may read"
	}
	if every, err := a.all(); err == nil {
		a.model = every.Model // the name may be meant as any verb
	}
	named := *e
	named.Near = cmp.Or(e.Near, spelling.Near(record.FoldService(e.Name), a.services(ctx))) // of those that ingesters have too
	e = &named
	typed := typedAs(a.env.args, e.Name)
	if first := a.env.args[0]; !a.isService(ctx, e, first) {
		if meant := a.verbMeant(first); meant != "" {
			other := *e
			other.Name = first
			return fmt.Sprintf("%v; for that: logquery %s%s", &other, meant, a.thereAre(ctx, e))
		}
	}
	return fmt.Sprintf("%v; %s%s", e, a.nameMeant(ctx, e, typed), a.thereAre(ctx, e))
}

// mistaken reports whether a name without records is a mistake: not with --if-any, nor in a selector,
// nor a glob. Of the service for rejected lines it means that none was rejected.
func (a *app) mistaken(ctx context.Context, name string) bool {
	return !a.flags.IfAny && !a.given("logql") && !strings.ContainsAny(name, `*?[\`) && name != record.RejectedService &&
		!slices.Contains(a.services(ctx), name)
}

// nameMeant is what was probably meant by a name that is no service.
func (a *app) nameMeant(ctx context.Context, e *reading.NoServiceError, typed string) string {
	level := record.ParseLevel([]byte(e.Name))
	begin := beginning(e)
	switch verb := verbOf(a.model, e.Name); {
	case a.env.isFile(e.Name):
		return "a file has that name: if the shell made it of *, quote that: '*'"
	case a.topMeant(ctx, e) != "":
		return a.topMeant(ctx, e)
	case len(begin) > 1:
		return fmt.Sprintf("%d services begin so: '%s*'", len(begin), e.Name)
	case e.Name == "help" || e.Name == "all":
		return map[string]string{"help": "for help write it first: logquery help tail", "all": "for all services: '*'"}[e.Name]
	case strings.HasPrefix(typed, "{") || strings.HasPrefix(typed, "|=") || strings.HasPrefix(typed, "|~"):
		return "for LogQL: logquery --logql " + cli.ShellWords(cmp.Or(logqlMeant(typed), typed))
	case search.Meant(typed) != "":
		return a.argMeant(typed)
	case strings.Contains(e.Name, ".*"):
		return "names are globs, and no regular expressions: " + cli.ShellWords(strings.ReplaceAll(e.Name, ".*", "*"))
	case strings.Contains(typed, "/") && a.isService(ctx, e, serviceIn(typed)):
		return "a service has no kind before it: logquery " + cli.ShellWords(serviceIn(typed))
	case e.Near != "":
		return fmt.Sprintf("there is %q", e.Near)
	case strings.ContainsAny(e.Name, `*?[\`):
	case verb != nil:
		words := slices.DeleteFunc(a.bare(), func(word string) bool { return word == e.Name })
		if len(words) > 1 && e.Name == "top" && slices.Contains(e.Stored, words[0]) {
			words = append(words[1:], words[0])
		}
		if len(words) == 0 {
			words = []string{"SERVICE"}
		}
		return fmt.Sprintf("for the verb write it first: logquery %s %s", e.Name, strings.Join(words, " "))
	case a.argMeant(typed) != "":
		return a.argMeant(typed)
	case a.given("logql") || !hasFlag(a.model, a.verb.Name, "fixed") || !slices.Contains(a.env.args, typed):
	case level != record.Other:
		return "for the level: " + a.line([]string{typed}, "--level", level.String())
	default:
		return "to search text: " + a.line([]string{typed}, "-F", typed)
	}
	return "logquery ls lists them"
}

// isService reports whether a text is for services: a name, several with commas, or a glob.
func (a *app) isService(ctx context.Context, e *reading.NoServiceError, text string) bool {
	all := slices.Concat(e.Stored, a.services(ctx))
	return strings.ContainsAny(text, "*?") || slices.ContainsFunc(strings.Split(text, ","), func(name string) bool { return slices.Contains(all, name) })
}

// topMeant is the command that was probably meant by fields of top that stand behind or among services.
func (a *app) topMeant(ctx context.Context, e *reading.NoServiceError) string {
	words := append([]string{a.verbs.Top.Field}, a.verbs.Top.Services...)
	is := func(word string) bool { return a.isService(ctx, e, word) }
	services := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return !is(word) })
	if a.verb.Name != "top" || len(services) == 0 || !is(words[0]) && !is(words[len(words)-1]) {
		return ""
	}
	fields := strings.Join(slices.DeleteFunc(words, is), ",")
	return "fields come first, with commas: logquery top " + cli.ShellWords(slices.Insert(services, 0, fields)...)
}

// typedAs is the argument behind a service's name, such as one with blanks.
func typedAs(args []string, name string) string {
	for _, arg := range args {
		if names := serviceNames([]string{arg}); len(names) == 1 && names[0] == name {
			return arg
		}
	}
	return name
}

// verbMeant is the command that was probably meant by the first argument, which is neither a
// verb nor a service; "" if there is none. It has the other arguments.
func (a *app) verbMeant(first string) string {
	if a.verb.Name != "read" || strings.HasPrefix(first, "-") {
		return ""
	}
	rest := slices.DeleteFunc(slices.Clone(a.env.args[1:]), func(arg string) bool { return !slices.Contains(a.bare(), cli.ShellWords(arg)) })
	line := func(without ...string) string {
		text := strings.TrimPrefix(a.line(append(without, first)), "logquery ")
		for _, word := range rest {
			if strings.IndexByte(word, '/') > 0 { // a kind is before it
				text = strings.ReplaceAll(text, word, serviceIn(word))
			}
		}
		return text
	}
	if text := spelling.First(first, spelling.Habits(habits, "verb")); text != "" {
		one, query := "TEXT", "QUERY"
		if len(rest) > 0 {
			one, query = rest[0], cmp.Or(logqlMeant(rest[0]), rest[0])
		}
		if strings.Contains(text, "{1}") {
			return strings.NewReplacer("{1}", cli.ShellWords(one), "{*}", line(one)).Replace(text)
		}
		all := line(slices.DeleteFunc(slices.Clone(rest), func(arg string) bool { return !strings.HasPrefix(arg, "{") })...)
		return strings.NewReplacer("{q}", cli.ShellWords(query), "{*}", all).Replace(text)
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
		verb += " " + line()
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
			return cli.Usagef("%w. For a service called %s: logquery read %s", errWhich(a.line(nil)), verb, verb)
		}
		return errWhich(a.line(nil))
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
			if name == "--token" {
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

// errWhich is a command line without a service. all is that of all services.
func errWhich(all string) error {
	return cli.Usagef("which service? For all of them: %s; logquery ls lists them", all)
}
