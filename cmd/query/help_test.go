package main

import (
	"regexp"
	"strings"
	"testing"

	"blobtail/internal/cli"
	"blobtail/internal/guide/guidetest"
)

// word is a word of a shell's command line, with quotes or without.
var word = regexp.MustCompile(`'[^']*'|"[^"]*"|[^ '"]+`)

// Each verb's help has three examples. Those of logquery itself parse.
func TestExamples(t *testing.T) {
	a := &app{Console: cli.Console{Name: "logquery"}}
	parser, err := a.all()
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range parser.Model.Children {
		if verb.Hidden || verb.Name == "version" {
			continue
		}
		examples := 0
		for line := range strings.Lines(verb.Detail) {
			line, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "  ")
			if !indented {
				continue
			}
			examples++
			line, _, _ = strings.Cut(line, " > ")
			line, _, _ = strings.Cut(line, " | ")
			line = strings.TrimSuffix(strings.TrimPrefix(line, "source <("), ")")
			words := word.FindAllString(line, -1)
			for i, w := range words {
				words[i] = strings.Trim(w, `'"`)
			}
			args := arrange(parser.Model, words[1:])
			a.model, a.env.args, a.args = parser.Model, words[1:], args
			if err := a.mistake(parser.Model, args); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			if k, err := parser.Parse(args); err != nil {
				t.Errorf("%s: %v", line, err)
			} else if got := k.Selected().Name; got != verb.Name && verb.Name != "context" && verb.Name != "ingesters" {
				t.Errorf("%s is of %s", line, got)
			}
		}
		if examples != 3 {
			t.Errorf("%s has %d examples", verb.Name, examples)
		}
	}
}

// Each verb has the flags that it uses and no others; manual and completion have all.
func TestGuide(t *testing.T) {
	a := &app{Console: cli.Console{Name: "logquery"}}
	parser, err := a.all()
	if err != nil {
		t.Fatal(err)
	}
	guidetest.Check(t, parser.Model, signposts(), "read", "tail", "hist", "top", "fields", "patterns", "new", "ls")
}
