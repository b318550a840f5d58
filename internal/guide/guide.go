// Package guide leads people through a command, by kong's model of its command line: help with only
// the flags that a verb uses, the manual page, and the completion of a shell.
//
// Flags of the whole command may stand in front of a verb, so kong accepts each of them for each
// verb. A [Guide] knows which of them a verb uses. [Guide.Help] shows no other one, and
// [Guide.Misplaced] refuses it.
package guide

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// A Guide is what kong's model of a command does not say.
type Guide struct {
	// Uses has the flags of the whole command that a verb uses, by the verb's name, as "token" or
	// "token new". A verb that is not in it has the flags of the verb above it, and all flags if that
	// is not in it either. Help and the version need no mention.
	Uses map[string][]string
	// Default is the verb that is meant if none is named; "" if one must be.
	Default string
	// Exits are the exit codes with their meanings, for the manual.
	Exits []Exit
	// Environment are variables beside those of flags, with their meanings, for the manual.
	Environment [][2]string
}

// An Exit is an exit code.
type Exit struct {
	Code    int
	Meaning string
}

// Help makes kong print help with the flags that the selected verb uses.
func (g *Guide) Help() kong.Option {
	return kong.Help(func(o kong.HelpOptions, ctx *kong.Context) error {
		if verb := ctx.Selected(); verb != nil {
			for _, f := range ctx.Model.Flags {
				f.Hidden = f.Hidden || !g.uses(verb, f)
			}
		}
		return kong.DefaultHelpPrinter(o, ctx)
	})
}

// Flags are the flags that a verb shows: those of the whole command that it uses, and its own.
func (g *Guide) Flags(verb *kong.Node) (all []*kong.Flag) {
	for _, level := range verb.AllFlags(true) {
		for _, f := range level {
			if g.uses(verb, f) {
				all = append(all, f)
			}
		}
	}
	return all
}

// uses reports whether a flag has an effect on a verb.
func (g *Guide) uses(verb *kong.Node, f *kong.Flag) bool {
	if f.Name == "help" || f.Name == "version" || !slices.Contains(root(verb).Flags, f) {
		return true
	}
	used, limited := g.limits(verb)
	return !limited || slices.Contains(used, f.Name)
}

// limits are the flags of the whole command that a verb uses; limited is false if it uses all.
func (g *Guide) limits(verb *kong.Node) (used []string, limited bool) {
	for n := verb; n != nil && n.Type != kong.ApplicationNode; n = n.Parent {
		if used, limited = g.Uses[name(n)]; limited {
			return used, true
		}
	}
	return nil, false
}

// Misplaced returns an error for a flag on the command line that the selected verb does not use;
// nil if there is none. The error names the verbs that use it.
func (g *Guide) Misplaced(ctx *kong.Context) error {
	verb := ctx.Selected()
	for _, p := range ctx.Path {
		if p.Flag != nil && !p.Resolved && verb != nil && !p.Flag.Hidden && !g.uses(verb, p.Flag) {
			return fmt.Errorf("%s %s has no %s; these have: %s", ctx.Model.Name, name(verb), FlagName(p.Flag), strings.Join(g.Owners(ctx.Model, p.Flag.Name), ", "))
		}
	}
	return nil
}

// Elsewhere explains an unknown flag, such as "--timeout", that other verbs have. verb is nil if none
// is selected. It returns nil if no verb has the flag.
func (g *Guide) Elsewhere(app *kong.Application, verb *kong.Node, flag string) error {
	var owners []string
	for _, n := range verbs(app.Node) {
		if slices.ContainsFunc(n.Flags, func(f *kong.Flag) bool { return is(f, flag) }) {
			owners = append(owners, name(n))
		}
	}
	switch {
	case len(owners) == 0:
		return nil
	case verb == nil:
		return fmt.Errorf("%s without a verb has no %s; these verbs have it, and it stands behind them: %s", app.Name, flag, strings.Join(owners, ", "))
	}
	return fmt.Errorf("%s %s has no %s; these have: %s", app.Name, name(verb), flag, strings.Join(owners, ", "))
}

// Owners are the names of the verbs that use a flag of a name.
func (g *Guide) Owners(app *kong.Application, flag string) (owners []string) {
	for _, n := range verbs(app.Node) {
		if len(n.Children) == 0 && slices.ContainsFunc(g.Flags(n), func(f *kong.Flag) bool { return f.Name == flag }) {
			owners = append(owners, name(n))
		}
	}
	return owners
}

// FlagName is how a person may have written a flag.
func FlagName(f *kong.Flag) string {
	if f.Short != 0 {
		return "-" + string(f.Short) + " (--" + f.Name + ")"
	}
	return "--" + f.Name
}

// is reports whether a person may write a flag so.
func is(f *kong.Flag, written string) bool {
	return written == "--"+f.Name || f.Short != 0 && written == "-"+string(f.Short) || slices.Contains(f.Aliases, strings.TrimPrefix(written, "--"))
}

// verbs are the verbs below a node that are not hidden, each in front of those below it.
func verbs(n *kong.Node) (all []*kong.Node) {
	for _, verb := range n.Children {
		if !verb.Hidden {
			all = append(append(all, verb), verbs(verb)...)
		}
	}
	return all
}

// name is the name of a verb, behind that of the verb above it.
func name(verb *kong.Node) string {
	if verb.Parent == nil || verb.Parent.Type == kong.ApplicationNode {
		return verb.Name
	}
	return name(verb.Parent) + " " + verb.Name
}

func root(n *kong.Node) *kong.Node {
	for n.Parent != nil {
		n = n.Parent
	}
	return n
}
