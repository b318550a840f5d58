package guide

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Shells are the shells that have a [Script].
func Shells() []string { return []string{"bash", "zsh", "fish"} }

// Script is a script that makes a shell ask "COMMAND complete". Its arguments are the words up to
// the cursor, and it prints a candidate a line. The script stays right when the command gets other
// verbs and flags.
func Script(shell, command string) string {
	text := map[string]string{
		"bash": `_NAME() {
	local IFS=$'\n'
	COMPREPLY=($(NAME complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
	if [[ ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
}
complete -o default -F _NAME NAME
`,
		"zsh": `#compdef NAME
_NAME() {
	local -a found
	found=("${(@f)$(NAME complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n $found ]]; then compadd -a found; else _files; fi
}
if [[ $funcstack[1] == _NAME ]]; then _NAME "$@"; else compdef _NAME NAME; fi
`,
		"fish": `complete -c NAME -f -a '(NAME complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
	}[shell]
	return strings.ReplaceAll(text, "NAME", command)
}

// A Completion finds the words that may stand in place of one that is begun.
type Completion struct {
	Guide *Guide
	App   *kong.Application
	// Values are the values of a flag beside those that the model names; nil: none are known.
	Values func(verb *kong.Node, flag string) []string
	// Arguments are the words that may stand behind others of a verb; nil: none are known.
	Arguments func(verb *kong.Node, before []string) []string
	// Given is called for each flag of the words; nil: nothing is.
	Given func(flag, value string)
}

// Of returns the candidates for the last of the words, which are those behind the command.
func (c *Completion) Of(words []string) (found []string) {
	if len(words) == 0 {
		words = []string{""}
	}
	begun := words[len(words)-1]
	for _, candidate := range c.candidates(words[:len(words)-1], begun) {
		if strings.HasPrefix(candidate, begun) {
			found = append(found, candidate)
		}
	}
	return found
}

func (c *Completion) candidates(before []string, begun string) []string {
	known := FlagsOf(c.App)
	verb, named, bare := c.place(known, before)
	if len(before) > 0 {
		if f := known[before[len(before)-1]]; f != nil && !f.IsBool() {
			return c.values(verb, f)
		}
	}
	if name, _, joined := strings.Cut(begun, "="); joined && known[name] != nil {
		values := c.values(verb, known[name])
		for i, value := range values {
			values[i] = name + "=" + value
		}
		return values
	}
	if strings.HasPrefix(begun, "-") {
		return c.flags(verb)
	}
	var all []string
	under := c.App.Node
	if named {
		under = verb
	}
	if len(bare) == 0 {
		for _, n := range under.Children {
			if !n.Hidden {
				all = append(all, n.Name)
			}
		}
	}
	if verb == nil {
		return all
	}
	if at := len(bare); at < len(verb.Positional) && verb.Positional[at].Enum != "" {
		return append(all, strings.Split(verb.Positional[at].Enum, ",")...)
	}
	if c.Arguments != nil {
		all = append(all, c.Arguments(verb, bare)...)
	}
	return all
}

// place is the verb of the words, and the arguments behind it. named is false if the verb is the
// one that is meant without one; verb is nil if there is none.
func (c *Completion) place(known map[string]*kong.Flag, words []string) (verb *kong.Node, named bool, bare []string) {
	for i := 0; i < len(words); i++ {
		name, value, joined := strings.Cut(words[i], "=")
		f := known[name]
		switch {
		case f != nil && !f.IsBool() && !joined && i+1 < len(words):
			i++
			value = words[i]
			fallthrough
		case f != nil:
			if c.Given != nil {
				c.Given(f.Name, value)
			}
		case !strings.HasPrefix(words[i], "-"):
			bare = append(bare, words[i])
		}
	}
	verb = c.App.Node
	for len(bare) > 0 && Verb(verb, bare[0]) != nil {
		verb, named, bare = Verb(verb, bare[0]), true, bare[1:]
	}
	if !named {
		verb = Verb(c.App.Node, c.Guide.Default)
	}
	return verb, named, bare
}

// flags are the flags that a verb has, in the form in which they are typed.
func (c *Completion) flags(verb *kong.Node) (names []string) {
	if verb == nil {
		verb = c.App.Node
	}
	for _, f := range c.Guide.Flags(verb) {
		if f.IsBool() {
			names = append(names, "--"+f.Name)
		} else {
			names = append(names, "--"+f.Name+"=")
		}
	}
	slices.Sort(names)
	return names
}

// values are the values of a flag, if they are few.
func (c *Completion) values(verb *kong.Node, f *kong.Flag) []string {
	if f.Enum != "" {
		return strings.Split(f.Enum, ",")
	}
	if c.Values == nil {
		return nil
	}
	return c.Values(verb, f.Name)
}

// Verb is the verb of a name below a node, or nil.
func Verb(under *kong.Node, name string) *kong.Node {
	for _, n := range under.Children {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// FlagsOf are the flags of a command and of all its verbs, by the ways to write them.
func FlagsOf(app *kong.Application) map[string]*kong.Flag {
	all := make(map[string]*kong.Flag)
	add := func(n *kong.Node) {
		for _, f := range n.Flags {
			for _, name := range append([]string{f.Name}, f.Aliases...) {
				all["--"+name] = f
			}
			if f.Short != 0 {
				all["-"+string(f.Short)] = f
			}
		}
	}
	add(app.Node)
	for _, n := range verbs(app.Node) {
		add(n)
	}
	return all
}

// Print is the output of the verb complete of a command without a Completion of its own.
func (g *Guide) Print(app *kong.Application, words []string) string {
	c := Completion{Guide: g, App: app}
	text := ""
	for _, candidate := range c.Of(words) {
		text += fmt.Sprintln(candidate)
	}
	return text
}
