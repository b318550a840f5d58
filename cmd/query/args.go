package main

import (
	"strings"

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
	flags, shorts, verbs := flagsOf(app)
	a := arranger{flags: flags, shorts: shorts, args: args}
	a.run()
	verb := "read"
	if a.bare > 0 && verbs[a.out[a.firstBare]] {
		verb = a.out[a.firstBare]
		a.out = append(a.out[:a.firstBare], a.out[a.firstBare+1:]...)
	} else if a.bare == 0 && a.version {
		verb = "version"
	} else if a.bare == 0 && a.help {
		return a.out // a flag of all verbs
	}
	return append([]string{verb}, a.out...)
}

// flagsOf returns the flags of all verbs, by name and by letter, and the verbs.
func flagsOf(app *kong.Application) (flags map[string]*kong.Flag, shorts map[rune]*kong.Flag, verbs map[string]bool) {
	flags, shorts, verbs = make(map[string]*kong.Flag), make(map[rune]*kong.Flag), make(map[string]bool)
	collect := func(n *kong.Node) {
		for _, f := range n.Flags {
			flags[f.Name] = f
			for _, alias := range f.Aliases {
				flags[alias] = f
			}
			if f.Short != 0 {
				shorts[f.Short] = f
			}
		}
	}
	collect(app.Node)
	for _, child := range app.Children {
		verbs[child.Name] = true
		collect(child)
	}
	return flags, shorts, verbs
}

type arranger struct {
	flags  map[string]*kong.Flag
	shorts map[rune]*kong.Flag
	args   []string

	out       []string
	bare      int // number of arguments that are not flags
	firstBare int // in out
	help      bool
	version   bool
}

func (a *arranger) run() {
	for len(a.args) > 0 {
		arg := a.args[0]
		a.args = a.args[1:]
		switch {
		case arg == "--":
			// The parser accepts the rest unchanged.
			a.out = append(append(a.out, arg), a.args...)
			return
		case strings.HasPrefix(arg, "--"):
			a.long(arg)
		case len(arg) > 1 && arg[0] == '-':
			a.short(arg)
		default:
			if a.bare == 0 {
				a.firstBare = len(a.out)
			}
			a.bare++
			a.out = append(a.out, arg)
		}
	}
}

func (a *arranger) long(arg string) {
	name, _, joined := strings.Cut(arg[2:], "=")
	f := a.flags[name]
	if f == nil || joined || !takesValue(f) {
		a.help = a.help || f != nil && name == "help"
		a.version = a.version || f != nil && name == "version"
		a.out = append(a.out, arg)
		return
	}
	if len(a.args) > 0 {
		arg += "=" + a.args[0]
		a.args = a.args[1:]
	}
	a.out = append(a.out, arg)
}

// short splits a row of one-letter flags. The first one with a value gets the rest of the
// row, or the next argument.
func (a *arranger) short(arg string) {
	row := arg[1:]
	for i, letter := range row {
		f := a.shorts[letter]
		if f == nil {
			a.out = append(a.out, "-"+row[i:])
			return
		}
		if !takesValue(f) {
			a.long("--" + f.Name)
			continue
		}
		if value := row[i+len(string(letter)):]; value != "" {
			a.out = append(a.out, "--"+f.Name+"="+strings.TrimPrefix(value, "="))
		} else {
			a.long("--" + f.Name)
		}
		return
	}
}

func takesValue(f *kong.Flag) bool { return !f.IsBool() && !f.IsCounter() }

// checkFlags finds mistakes in an arranged list. A flag without a value, as from --level
// "$UNSET", must not count as absent. A flag of one value must not be given twice.
// Repeatable flags check their values themselves.
func checkFlags(app *kong.Application, args []string) error {
	flags, _, _ := flagsOf(app)
	given := make(map[*kong.Flag]bool)
	for _, arg := range args {
		if arg == "--" {
			return nil
		}
		name, value, joined := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		f := flags[name]
		if f == nil || !joined || !strings.HasPrefix(arg, "--") || !takesValue(f) || f.IsCumulative() {
			continue
		}
		if value == "" {
			return cli.Usagef("%s is given without a value; give one, or leave it out", flagName(f))
		}
		if given[f] {
			return cli.Usagef("%s is given twice; leave one out", flagName(f))
		}
		given[f] = true
	}
	return nil
}

// mistake explains an argument list that the parser refuses, with the likely meaning.
func mistake(app *kong.Application, args []string, err error) error {
	taken := make(map[string]bool)
	verbs := make(map[string][]string) // by flag
	for _, child := range app.Children {
		for _, f := range child.Flags {
			verbs[f.Name] = append(verbs[f.Name], child.Name)
			taken[f.Name] = taken[f.Name] || child.Name == args[0]
		}
	}
	for _, arg := range args[1:] {
		if arg == "--" {
			break
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		switch {
		case strings.HasPrefix(arg, "--") && len(verbs[name]) > 0 && !taken[name]:
			flags, _, _ := flagsOf(app)
			return cli.Usagef("logquery %s has no %s; these have: %s", args[0], flagName(flags[name]), strings.Join(verbs[name], ", "))
		case len(arg) > 1 && arg[0] == '-' && strings.Trim(arg[1:], "0123456789") == "":
			return cli.Usagef("there is no %s; for so many of the newest: -n %s", arg, arg[1:])
		}
	}
	return cli.Usagef("%w; see logquery --help", err)
}

// flagName is how a person may have written a flag.
func flagName(f *kong.Flag) string {
	if f.Short != 0 {
		return "-" + string(f.Short) + " (--" + f.Name + ")"
	}
	return "--" + f.Name
}
