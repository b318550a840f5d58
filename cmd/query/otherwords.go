package main

import (
	"cmp"
	_ "embed" // of the tables
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/internal/guide"
	"blobtail/internal/spelling"
	"blobtail/internal/when"
	"blobtail/reading"
	"blobtail/reading/search"
	"blobtail/record"
)

// People write the words of other programs, such as grep, kubectl and logcli. What is ours for them is in
// tables.
//
//go:embed habits.txt
var habits string

// other is what a table has for a word, or ""; a {NAME} in it is the value, or NAME without one.
func other(table, word, value string) string {
	text := spelling.First(word, spelling.Habits(habits, table))
	begin, end := strings.Index(text, "{"), strings.Index(text, "}")
	if begin < 0 {
		return text
	}
	if value == "" {
		value = text[begin+1 : end]
	} else {
		value = cli.ShellWords(value)
	}
	return text[:begin] + value + text[end+1:]
}

// logqlMeant is the query that was probably meant by one that is none, or that selects no record; "":
// there is none.
func logqlMeant(query string) string {
	known := func(query string) bool {
		_, err := reading.IsTable(query)
		return err == nil
	}
	meant := query
	if !known(query) {
		meant = spelling.Rewritten(query, spelling.Habits(habits, "logql"))
	}
	if meant = spelling.Rewritten(meant, spelling.Habits(habits, "labels")); meant == query || !known(meant) {
		return ""
	}
	return meant
}

// flagMeant tells what to write for an unknown flag; "": not known.
func (a *app) flagMeant(name string) string {
	if long := "-" + name; len(name) > 2 && name[1] != '-' {
		if guide.FlagsOf(a.model)[long] != nil {
			return "with two dashes: " + long
		}
		name = long
	}
	value := valueOf(a.env.args, name)
	l := record.ParseLevel([]byte(strings.TrimSuffix(value, "+")))
	if l != record.Other && strings.Contains(other("flag", name, ""), "--level ") {
		value = l.String()
		if other("flag", name, "x") != other("flag", "--levels", "x") {
			value += "+"
		}
	}
	hint := cmp.Or(other("flag", name+" "+value, value), other("flag", name, value))
	if len(name) > 2 && hint == "" {
		hint = other("flag", strings.ToLower(name), value)
	}
	switch line := search.Meant(value); {
	case line != "" && strings.HasPrefix(hint, "for a search: --search "):
		return "for a search: --search " + cli.ShellWords(line)
	case strings.Contains(hint, " -n ") && !hasFlag(a.model, a.args[0], "number"):
		return "" // it is of a verb that has no number of records
	case strings.HasPrefix(hint, "services are arguments: ") && value != "":
		hint = "services are arguments: logquery " + cli.ShellWords(serviceIn(value))
	case strings.HasSuffix(hint, "UNIT"):
		hint = strings.TrimSuffix(hint, "UNIT") + strings.TrimLeft(name, "-")[:1]
	case strings.Contains(hint, "--since "+value) && value != "":
		hint = strings.ReplaceAll(hint, value, cmp.Or(other("time", value, ""), value))
	}
	if words := strings.Join(a.bare(), " "); words != "" {
		hint = strings.ReplaceAll(hint, "SERVICE", words)
	}
	return hint
}

// serviceIn is the service in the text of a label, of a unit, or of a kind and a name.
func serviceIn(text string) string {
	return strings.TrimSuffix(strings.Trim(text[1+strings.LastIndexAny(text, "=/"):], `"'`), ".service")
}

// hasFlag reports whether a verb has a flag.
func hasFlag(app *kong.Application, verb, flag string) bool {
	v := verbOf(app, verb)
	return v != nil && slices.ContainsFunc(v.Flags, func(f *kong.Flag) bool { return f.Name == flag })
}

// written is an unknown flag as it was written: a long one with one dash is a row of short ones for
// the parser.
func (a *app) written(name string) string {
	if utf8.RuneCountInString(name) != 2 && utf8.ValidString(name) {
		return name
	}
	flags := guide.FlagsOf(a.model)
	for _, arg := range a.env.args {
		bare, _, _ := strings.Cut(arg, "=")
		if !strings.HasPrefix(bare, name) || len(bare) < 3 || bare[1] == '-' {
			continue
		}
		if long := "-" + bare; flags[long] != nil || other("flag", long, "") != "" {
			return bare
		}
		first, _ := utf8.DecodeRuneInString(arg[1:])
		return "-" + string(first)
	}
	return name
}

// valueOf is the value that was given with an unknown flag; "": none.
func valueOf(args []string, name string) string {
	for i, arg := range args {
		value, joined := strings.CutPrefix(arg, name)
		switch {
		case arg == name && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			return args[i+1]
		case joined && strings.HasPrefix(value, "="):
			return value[1:]
		case joined && value != "" && len(name) == 2 && name[1] != '-': // -p3
			return value
		}
	}
	return ""
}

// otherPlace tells what to write for a flag that another verb has; "": it is for that verb.
func (a *app) otherPlace(verb string, f *kong.Flag) string {
	words := strings.Join(a.bare(), " ")
	if words == "" {
		words = "SERVICE"
	}
	switch f.Name {
	case "follow":
		return "; to follow: logquery tail " + words + " -f"
	case "after":
		if hasFlag(a.model, verb, "from") {
			return "; for the oldest time: --from"
		}
	case "from", "to", "day":
		if verb == "tail" {
			return "; for a range leave out tail: logquery " + words + " --" + f.Name + " T"
		}
	case "bytes", "host":
		return "; " + other("flag", map[string]string{"bytes": "-m", "host": "--addr"}[f.Name], valueOf(a.env.args, "--"+f.Name))
	case "step":
		return " (for numbers of LogQL); the length of a bucket is that of hist --by 5m"
	case "by":
		if field := valueOf(a.env.args, "--by"); field != "" && strings.Trim(field, "0123456789smhdw") != "" {
			return "; to count the values of a field: logquery top " + cli.ShellWords(field) + " " + words
		}
		return "; to count by time: logquery hist " + words + " --by 5m"
	}
	return ""
}

// bare are the arguments that are services, as far as they can be told from a mistaken line.
func (a *app) bare() (words []string) {
	values := map[string]bool{} // of unknown flags
	for i, arg := range a.env.args[:max(len(a.env.args)-1, 0)] {
		name, _, joined := strings.Cut(arg, "=")
		values[a.env.args[i+1]] = len(arg) > 1 && arg[0] == '-' && !joined && guide.FlagsOf(a.model)[name] == nil && !switches(arg)
	}
	for i, arg := range a.args {
		if i > 0 && !strings.HasPrefix(arg, "-") && !values[arg] && verbOf(a.model, arg) == nil && !(len(words) == 0 && other("verb", arg, "") != "") {
			words = append(words, cli.ShellWords(arg))
		}
	}
	return words
}

// switches reports whether an unknown flag has no value.
func switches(flag string) bool {
	hint := other("flag", flag, "")
	return hint != "" && hint == other("flag", flag, "x")
}

// line is the command line with other words in place of some arguments, and with all services if it
// names none.
func (a *app) line(without []string, words ...string) string {
	args := slices.DeleteFunc(slices.Clone(a.env.args), func(arg string) bool { return slices.Contains(without, arg) })
	named := slices.DeleteFunc(a.bare(), func(word string) bool {
		return slices.ContainsFunc(without, func(arg string) bool { return cli.ShellWords(arg) == word })
	})
	at := 0
	if len(args) > 0 && verbOf(a.model, args[0]) != nil {
		at = 1
	}
	if at == 1 && args[0] == "top" && len(named) == 1 { // its field
		at, named = min(2, len(args)), nil
	}
	if len(named) == 0 {
		args = slices.Insert(args, at, "*")
	}
	return "logquery " + cli.ShellWords(append(args, words...)...)
}

// mistyped finds a flag that means something else here than in the program that the user knows,
// and a time in several words without quotes. The parser takes both.
func (a *app) mistyped() error {
	for i, arg := range a.env.args {
		name, value, joined := strings.Cut(arg, "=")
		rest := a.env.args[i+1:]
		if arg == "--" {
			break
		}
		if !joined && len(rest) > 0 {
			value, rest = rest[0], rest[1:]
		}
		if long := "-" + name; len(name) > 2 && arg[0] == '-' && arg[1] != '-' && guide.FlagsOf(a.model)[long] != nil {
			return cli.Usagef("unknown flag %s; with two dashes: %s", name, long)
		}
		if flag := strings.TrimLeft(name, "—–"); flag != name {
			return cli.Usagef("%s begins with a long dash; write --%s", name, strings.TrimLeft(flag, "-"))
		}
		switch name {
		case "--context":
			if value != "" && strings.Trim(value, "0123456789") == "" {
				return cli.Usagef("--context is a store by a name of yours; for records around each match: -C %s", value)
			}
		case "--from", "--to", "--until", "--since", "-s", "--day":
			if text := unquoted(name, value, rest, a.env.now); text != "" {
				flag := name
				if name == "--day" {
					flag = "--from"
				}
				return cli.Usagef("put the time in quotes: %s %s", flag, cli.ShellWords(text))
			}
		case "-F":
			if slices.Contains(a.env.args[:i], "tail") && !joined && len(a.bare())+len(rest) == 0 {
				return cli.Usagef("-F searches a text here, and took %s for it; to follow: logquery tail %s -f", cli.ShellWords(value), cli.ShellWords(value))
			}
		}
	}
	return nil
}

// unquoted is a time that a shell has cut into words: the value of a flag and the arguments behind
// it; "": the value is whole.
func unquoted(flag, value string, rest []string, now time.Time) string {
	const most = 3 // words, as in 2 hours ago
	if len(rest) > 1 && value == "now" && (rest[0] == "-" || rest[0] == "+") {
		return value + rest[0] + rest[1]
	}
	for n := min(most, len(rest)); n > 0; n-- {
		next := rest[0]
		if strings.HasPrefix(next, "-") || strings.Trim(next, "0123456789:.,apmAPMZ") != "" && !slices.Contains(timeWords, strings.ToLower(next)) {
			return ""
		}
		text := value + " " + strings.Join(rest[:n], " ")
		var err error
		if flag == "--since" || flag == "-s" {
			_, err = when.Since(text, now, now)
		} else {
			_, err = when.Time(text, now)
		}
		if err == nil {
			return text
		}
	}
	return ""
}

// timeWords are the words of times behind a first one.
var timeWords = []string{"ago", "second", "seconds", "minute", "minutes", "min", "hour", "hours", "day", "days", "week", "weeks", "month", "months", "year", "years", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "utc", "am", "pm"}

// argMeant tells what was probably meant by an argument that is no service: a condition, a time, or
// another field; "": not known.
func (a *app) argMeant(typed string) string {
	if at := slices.Index(a.env.args, "--fields") + 1; at > 0 && slices.Index(a.env.args, typed) > at {
		list := a.env.args[at:]
		if end := slices.IndexFunc(list, func(arg string) bool { return strings.HasPrefix(arg, "-") }); end > 0 {
			list = list[:end]
		}
		if slices.Contains(list, typed) {
			return "fields are one list: --fields " + cli.ShellWords(strings.ReplaceAll(strings.Join(list, ","), ",,", ","))
		}
	}
	instead := func(what string, words ...string) string {
		return what + ": " + a.line([]string{typed}, words...)
	}
	if line := search.Meant(typed); line != "" {
		return instead("for a search", "--search", line)
	}
	if length, ok := when.Length(typed); ok && length > 0 {
		if a.verb.Name == "hist" {
			return "for the length of a bucket: --by " + typed
		}
		return instead("for the last so long", "--since", typed)
	}
	if _, _, err := when.Day(typed, a.now); err == nil {
		return instead("for a day", "--day", typed)
	}
	if _, err := when.Time(typed, a.now); err == nil {
		return instead("for a time", "--from", typed)
	}
	return ""
}
