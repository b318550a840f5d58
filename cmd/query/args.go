package main

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
)

// arrange puts an argument list as people write it into a form that the parser always
// accepts: the verb first, then flags in their long form with their values joined by "=",
// and services in between. So flags may come before the verb, and a value may begin with
// "-", as in --from -2h.
//
// The verb is the first argument that is not a flag, if it is a verb; otherwise the verb
// is read. Unknown flags stay unchanged, and the parser reports them.
func arrange(app *kong.Application, args []string) []string {
	flags := flagsOf(app)
	var out []string
	bare := -1 // place in out of the first argument that is not a flag
	help := false
	for len(args) > 0 && args[0] != "--" {
		arg := args[0]
		args = args[1:]
		name, value, joined := strings.Cut(arg, "=")
		if len(arg) > 2 && arg[0] == '-' && arg[1] != '-' {
			// A row of letters. The first one with a value has the rest of the row.
			_, size := utf8.DecodeRuneInString(arg[1:])
			name, value, joined = arg[:1+size], strings.TrimPrefix(arg[1+size:], "="), true
		}
		f := flags[name]
		if f == nil {
			if bare < 0 && (len(arg) < 2 || arg[0] != '-') {
				bare = len(out)
			}
			out = append(out, arg)
			continue
		}
		long := "--" + f.Name
		switch {
		case f.IsBool() && joined && name != long:
			joined, args = false, append([]string{"-" + arg[len(name):]}, args...)
		case !f.IsBool() && !joined && len(args) > 0:
			joined, value, args = true, args[0], args[1:]
		}
		if joined {
			long += "=" + value
		}
		out = append(out, long)
		help = help || f.Name == "help"
	}
	out = append(out, args...) // the parser accepts "--" and all behind it unchanged
	verb := "read"
	if bare >= 0 && slices.ContainsFunc(app.Children, func(n *kong.Node) bool { return n.Name == out[bare] }) {
		verb = out[bare]
		out = slices.Delete(out, bare, bare+1)
	} else if bare < 0 && help {
		return out // a flag of all verbs
	}
	return append([]string{verb}, out...)
}

// flagsOf returns the flags of all verbs, as they may be written.
func flagsOf(app *kong.Application) map[string]*kong.Flag {
	flags := make(map[string]*kong.Flag)
	for _, n := range append([]*kong.Node{app.Node}, app.Children...) {
		for _, f := range n.Flags {
			flags["--"+f.Name] = f
			if f.Short != 0 {
				flags["-"+string(f.Short)] = f
			}
		}
	}
	return flags
}

// mistake finds a mistake in an arranged list, and its likely meaning. A flag without a
// value, as from --level "$UNSET", must not count as absent. A flag of one value must not
// be given twice. Repeatable flags check their values themselves.
func mistake(app *kong.Application, args []string) error {
	flags, given := flagsOf(app), make(map[*kong.Flag]bool)
	for _, arg := range args[1:] {
		if arg == "--" {
			break
		}
		name, value, joined := strings.Cut(arg, "=")
		f := flags[name]
		if f == nil {
			if len(arg) > 1 && arg[0] == '-' && strings.Trim(arg[1:], "0123456789") == "" {
				return cli.Usagef("there is no %s; for so many of the newest: -n %s", arg, arg[1:])
			}
			continue
		}
		var verbs []string
		for _, n := range app.Children {
			if slices.ContainsFunc(n.Flags, func(of *kong.Flag) bool { return of.Name == f.Name }) {
				verbs = append(verbs, n.Name)
			}
		}
		single := joined && !f.IsBool() && !f.IsCumulative()
		switch {
		case len(verbs) > 0 && !slices.Contains(verbs, args[0]):
			return cli.Usagef("logquery %s has no %s; these have: %s", args[0], flagName(f), strings.Join(verbs, ", "))
		case single && value == "":
			return cli.Usagef("%s is given without a value; give one, or leave it out", flagName(f))
		case single && given[f]:
			return cli.Usagef("%s is given twice; leave one out", flagName(f))
		}
		given[f] = true
	}
	return nil
}

// flagName is how a person may have written a flag.
func flagName(f *kong.Flag) string {
	if f.Short != 0 {
		return "-" + string(f.Short) + " (--" + f.Name + ")"
	}
	return "--" + f.Name
}
