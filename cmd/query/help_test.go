package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"blobtail/internal/cli"
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
			a.model, a.env.args = parser.Model, words[1:]
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

// The manual page has each flag and each verb, and no line that troff would misread.
func TestManual(t *testing.T) {
	a := &app{Console: cli.Console{Name: "logquery"}}
	parser, err := a.all()
	if err != nil {
		t.Fatal(err)
	}
	page := string(manual(parser.Model))
	for _, verb := range parser.Model.Children {
		if strings.Contains(page, ".SS "+verb.Name+"\n") == verb.Hidden {
			t.Errorf("%s: hidden %v", verb.Name, verb.Hidden)
		}
		for _, f := range verb.Flags {
			if !f.Hidden && !strings.Contains(page, troff("--"+f.Name)) {
				t.Errorf("--%s is missing", f.Name)
			}
		}
	}
	macros := []string{".TH", ".SH", ".SS", ".TP", ".B", ".PP", ".nf", ".fi"}
	for line := range strings.Lines(page) {
		if first, _, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(line, ".") && !slices.Contains(macros, first) || strings.HasPrefix(line, "'") {
			t.Errorf("misread: %s", line)
		}
	}
}
