package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"blobtail/internal/config"
)

// The fields, counters and rules that operators copy, of the configuration file and of the pages for
// operators, are sound.
func TestExamples(t *testing.T) {
	comment := regexp.MustCompile(`(?m)^#  ( .*)?$`)
	found := 0
	for file, form := range map[string]string{
		"../../configs/blobtail.yaml":   `(?m)^#   (?:fields: {.*|(?:fields|counters|rules):\n(?:#    .*\n)+)`,
		"../../docs/operate/metrics.md": "(?m)^counters:\n(?:  .*\n)+",
		"../../docs/operate/rules.md":   "(?m)^(?:fields|rules):\n(?:  .*\n)+",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, example := range regexp.MustCompile(form).FindAllString(string(text), -1) {
			found++
			if strings.HasPrefix(example, "#") {
				example = comment.ReplaceAllString(example, "$1")
			}
			example = regexp.MustCompile(`(?m)^ (fields|counters|rules):`).ReplaceAllString(example, "$1:")
			path := filepath.Join(t.TempDir(), "example.yaml")
			if err := os.WriteFile(path, []byte(example), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := config.Load(path)
			if err == nil {
				err = c.Validate()
			}
			if err == nil {
				_, err = compile(c)
			}
			if err != nil || len(c.Counters)+len(c.Rules) < 2 && len(c.Fields) == 0 {
				t.Errorf("%s: %v\n%s", file, err, example)
			}
		}
	}
	if found != 8 {
		t.Errorf("%d examples", found)
	}
}
