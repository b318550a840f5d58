package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/reading"
	"blobtail/record"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// shells are the scripts that make a shell ask "logquery complete". Its arguments are the
// words up to the cursor, and it prints a candidate a line.
var shells = map[string]string{
	"bash": `_logquery() {
	local IFS=$'\n'
	COMPREPLY=($(logquery complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
	if [[ ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
}
complete -o default -F _logquery logquery
`,
	"zsh": `#compdef logquery
_logquery() {
	local -a found
	found=("${(@f)$(logquery complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n $found ]]; then compadd -a found; else _files; fi
}
if [[ $funcstack[1] == _logquery ]]; then _logquery "$@"; else compdef _logquery logquery; fi
`,
	"fish": `complete -c logquery -f -a '(logquery complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
}

func (c *completionCmd) run(_ context.Context, a *app) (int, error) {
	_, err := a.out.Write([]byte(shells[c.Shell]))
	return cli.OK, err
}

// completeCmd prints the completions of the last word.
type completeCmd struct {
	Words []string `arg:"" optional:""`
}

// completionPatience is how long a store may take for services or fields.
const completionPatience = 2 * time.Second

func (c *completeCmd) run(ctx context.Context, a *app) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	words := c.Words
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	for _, candidate := range a.candidates(ctx, words[:len(words)-1], last) {
		if strings.HasPrefix(candidate, last) {
			fmt.Fprintln(a.out, candidate)
		}
	}
	return cli.OK, nil
}

// candidates are the words that may stand behind others, in place of one that is begun.
func (a *app) candidates(ctx context.Context, before []string, begun string) []string {
	known := flagsOf(a.model)
	verb, bare := a.placeOf(known, before)
	if len(before) > 0 {
		if f := known[before[len(before)-1]]; f != nil && !f.IsBool() {
			return a.valuesOf(ctx, verb, f.Name)
		}
	}
	if name, _, joined := strings.Cut(begun, "="); joined && known[name] != nil {
		var out []string
		for _, value := range a.valuesOf(ctx, verb, known[name].Name) {
			out = append(out, name+"="+value)
		}
		return out
	}
	switch {
	case strings.HasPrefix(begun, "-"):
		return flagNames(a.model.Node, verb)
	case verb.Name == "top" && len(bare) == 0:
		return a.fieldNames(ctx)
	case verb.Name == "context" && len(bare) == 0:
		return []string{"ls", "add", "use", "rm"}
	case verb.Name == "context":
		return a.contexts.Names()
	case verb.Name == "completion":
		return []string{"bash", "zsh", "fish"}
	case len(bare) == 0 && !slices.Contains(before, verb.Name):
		var verbs []string
		for _, n := range a.model.Children {
			if !n.Hidden {
				verbs = append(verbs, n.Name)
			}
		}
		return append(verbs, a.serviceList(ctx)...)
	}
	return a.serviceList(ctx)
}

// placeOf finds the verb of words, and the words that are neither it nor flags. It uses the
// store that they name.
func (a *app) placeOf(known map[string]*kong.Flag, words []string) (verb *kong.Node, bare []string) {
	for i := 0; i < len(words); i++ {
		name, value, joined := strings.Cut(words[i], "=")
		f := known[name]
		switch {
		case f != nil && !f.IsBool() && !joined && i+1 < len(words):
			i++
			value = words[i]
			fallthrough
		case f != nil:
			a.useFlag(f.Name, value)
		case !strings.HasPrefix(words[i], "-"):
			bare = append(bare, words[i])
		}
	}
	if len(bare) > 0 {
		if verb = verbOf(a.model, bare[0]); verb != nil {
			return verb, bare[1:]
		}
	}
	return verbOf(a.model, "read"), bare
}

// useFlag uses a flag of the words. A mistake in it is found when the command runs.
func (a *app) useFlag(name, value string) {
	switch name {
	case "store":
		_ = a.flags.Store.UnmarshalText([]byte(value))
		a.config.Store = a.flags.Store
		a.flags.Server = ""
	case "server":
		a.flags.Server = value
	case "token-file":
		a.flags.TokenFile = value
	case "ca":
		a.flags.CA = value
	case "server-name":
		a.flags.ServerName = value
	case "context":
		if of, err := a.contexts.Get(value); err == nil {
			f := &a.flags
			_ = a.config.Store.UnmarshalText([]byte(of.Store))
			f.Server, f.TokenFile, f.PlainHTTP, f.CA, f.ServerName = of.Server, of.TokenFile, of.PlainHTTP, of.CA, of.ServerName
		}
	case "config":
		if c, err := config.Load(value); err == nil {
			a.config = c
		}
	}
}

func flagNames(nodes ...*kong.Node) (out []string) {
	for _, n := range nodes {
		for _, f := range n.Flags {
			switch {
			case f.Hidden:
			case f.IsBool():
				out = append(out, "--"+f.Name)
			default:
				out = append(out, "--"+f.Name+"=")
			}
		}
	}
	slices.Sort(out)
	return out
}

// valuesOf are the values of a flag, if they are few.
func (a *app) valuesOf(ctx context.Context, verb *kong.Node, flag string) []string {
	switch flag {
	case "level", "not-level":
		return []string{"trace", "debug", "info", "warn", "error", "critical", "debug+", "info+", "warn+", "error+"}
	case "output":
		return []string{"pretty", "json", "raw", "csv", "logfmt"}
	case "color":
		return []string{"auto", "always", "never"}
	case "live":
		return []string{"auto", "off", "only"}
	case "context":
		return a.contexts.Names()
	case "day", "from", "to", "since":
		return []string{"today", "yesterday"}
	case "by":
		if verb.Name == "bill" {
			return []string{"service", "day"}
		}
		return []string{"1m", "5m", "1h", "1d"}
	case "parse":
		return []string{"json", "logfmt"}
	case "fields":
		return a.fieldNames(ctx)
	}
	return nil
}

func (a *app) serviceList(ctx context.Context) []string {
	from, err := a.open(ctx, false)
	if err != nil {
		return nil
	}
	names, _ := from.Names(ctx)
	return names
}

// fieldNames are the fields of the newest records.
func (a *app) fieldNames(ctx context.Context) (names []string) {
	from, err := a.open(ctx, false)
	if err != nil {
		return nil
	}
	ask := reading.Ask{Services: []string{"*"}, Range: reading.Always(), Live: reading.Off, Limit: 1000}
	_, err = from.Records(ctx, ask, func(lines []byte) error {
		for line := range bytes.Lines(lines) {
			for key := range record.Fields(line) {
				if name := named(string(key)); !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return names
}
