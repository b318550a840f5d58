package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/internal/guide"
)

// arrange puts an argument list as people write it into a form that the parser always
// accepts: the verb first, then flags in their long form with their values joined by "=",
// then the other arguments. So flags may stand anywhere, and a value may begin with "-", as
// in --from -2h.
//
// The verb is the first argument that is not a flag, if it is a verb; otherwise the verb
// is read. "help" before a verb is the flag --help behind it. Unknown flags stay
// unchanged, and the parser reports them.
func arrange(app *kong.Application, args []string) []string {
	known := guide.FlagsOf(app)
	var flags, bare, rest []string
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
		f := known[name]
		switch {
		case f != nil:
		case len(arg) > 1 && arg[0] == '-':
			flags = append(flags, arg)
			continue
		case len(bare) == 0 && !help && arg == "help":
			help = true
			continue
		default:
			bare = append(bare, arg)
			continue
		}
		long := "--" + f.Name
		switch {
		case f.IsBool() && name[1] != '-' && strings.HasPrefix(arg[len(name):], "="): // -q=false
		case f.IsBool() && joined && name[1] != '-':
			joined, args = false, append([]string{"-" + arg[len(name):]}, args...)
		case !f.IsBool() && !joined && len(args) > 0:
			joined, value, args = true, args[0], args[1:]
		}
		if joined {
			long += "=" + value
		}
		switch {
		case f.Name == "help":
			help = true
		case !f.IsBool() && !joined:
			rest = []string{long} // the end, where its value is missing
		default:
			flags = append(flags, long)
		}
	}
	verb := "read"
	switch {
	case len(bare) > 0 && verbOf(app, bare[0]) != nil:
		verb, bare = bare[0], bare[1:]
	case len(bare) == 0 && help:
		return []string{"--help"} // of all verbs
	}
	if help {
		flags = append(flags, "--help")
	}
	return slices.Concat([]string{verb}, flags, bare, rest, args) // the parser accepts "--" and all behind it unchanged
}

// verbOf returns the verb of a name, or nil.
func verbOf(app *kong.Application, name string) *kong.Node { return guide.Verb(app.Node, name) }

// mistake finds a mistake in an arranged list, and its likely meaning. A flag without a
// value, as from --level "$UNSET", must not count as absent, and neither must an empty argument.
// A flag of one value must not be given twice. Repeatable flags check their values themselves.
func (a *app) mistake(app *kong.Application, args []string) error {
	if args[0] != "complete" && slices.Contains(args[1:], "") { // completion has empty words
		return cli.Usagef("an argument is empty: give its value, or leave it out; is a variable of the shell not set?")
	}
	if err := a.mistyped(); err != nil && args[0] != "complete" {
		return err
	}
	flags, given := guide.FlagsOf(app), make(map[*kong.Flag]bool)
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
			if digits := strings.TrimLeft(arg, "-"); len(digits) > 1 && strings.TrimLeft(digits, "0123456789") == "f" {
				return cli.Usagef("there is no %s; for so many of the newest: -n %s -f", arg, strings.TrimSuffix(digits, "f"))
			}
			continue
		}
		if !joined && !f.IsBool() {
			return cli.Usagef("%s needs a value, such as %s %s", guide.FlagName(f), strings.Fields(guide.FlagName(f))[0], strings.Trim(f.FormatPlaceHolder(), `"`))
		}
		verbs := signposts().Owners(app, f.Name)
		if v := verbOf(app, args[0]); f.Hidden || v != nil && v.Hidden || f.Name == "server" {
			verbs = nil // a verb that reads the store itself says where it can run
		}
		single := joined && !f.IsBool() && !f.IsCumulative()
		switch {
		case len(verbs) > 0 && !slices.Contains(verbs, args[0]):
			return cli.Usagef("logquery %s has no %s; these have: %s%s", args[0], guide.FlagName(f), strings.Join(verbs, ", "), a.otherPlace(args[0], f))
		case single && value == "":
			return cli.Usagef("%s is given without a value; give one, or leave it out", guide.FlagName(f))
		case single && given[f]:
			hint := "leave one out"
			if f.Name == "level" || f.Name == "not-level" {
				hint = "several levels are one list, as in --" + f.Name + " error,warn"
			}
			return cli.Usagef("%s is given twice; %s", guide.FlagName(f), hint)
		}
		given[f] = true
	}
	return nil
}

// number is how many records a flag asks for.
type number int

// UnmarshalText reads a number, and refuses separators with the number that is meant. One that is too
// large is the largest.
func (n *number) UnmarshalText(text []byte) error {
	v, err := strconv.Atoi(string(text))
	if err == nil || errors.Is(err, strconv.ErrRange) {
		*n = number(v)
		return nil
	}
	if plain := strings.NewReplacer(",", "", "_", "", "'", "", " ", "").Replace(string(text)); plain != "" && strings.Trim(plain, "0123456789") == "" && len(plain) < len(text) {
		return fmt.Errorf("%q is no number; write %s", text, plain)
	}
	if strings.EqualFold(string(text), "all") {
		return fmt.Errorf("%q is no number; for all records it is 0", text)
	}
	return fmt.Errorf("%q is no number; want one such as 100", text)
}
