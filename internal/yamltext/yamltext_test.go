package yamltext_test

import (
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"blobtail/internal/yamltext"
)

// A tab is named with its line and the fix, wherever it stands in the indentation.
func TestTab(t *testing.T) {
	for text, line := range map[string]string{"a:\n\tb: 1\n": "2", "\ta: 1\n": "1", "a:\n  - b\n  \tc: 1\n": "3", "a:\n  b: 1\n\tc: 2\n": "3"} {
		var v any
		err := yaml.Unmarshal([]byte(text), &v)
		if err == nil {
			t.Errorf("%q is taken: %v", text, v)
			continue
		}
		got := yamltext.Error(err, true)
		if first, _, _ := strings.Cut(got, "\n"); first != "line "+line+" has a tab; indent with blanks, since YAML takes no tabs there" {
			t.Errorf("%q: %s", text, got)
		}
		if got := yamltext.Error(err, false); strings.Contains(got, "\n") {
			t.Errorf("%q: %s", text, got)
		}
	}
	if err := yaml.Unmarshal([]byte("a: [1"), new(any)); err == nil || strings.Contains(yamltext.Error(err, true), "tab") {
		t.Error(err)
	}
}

// A text has one document, beside which only empty ones may stand.
func TestOneDocument(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"# a: 0\n---\n# a: 0\n---\n":    "",
		"---\na: 1\n...\n---\n":         "1",
		"%YAML 1.2\n---\na: 1\n":        "1",
		"a: 1\r\n---\r\n# a: 2\r\n":     "1",
		"a: |\n  ---\n  1\n":            "---\n1\n",
		"--- {a: 1}\n":                  "1",
		"a: ---1\nb: 2\n":               "---1",
		"---\n---\na: 2\n":              "error",
		"# a: 0\n---\n# a\n---\na: 2\n": "error",
		"a: 1\n---\n\n---\na: 2\n":      "error",
		"a: 1\n---\na: 2\n":             "error",
		"a: 1\n--- {a: 2}\n":            "error",
		"a: 1\n---\nnull\n":             "error",
		"a: 1\n...\n---\na: 2":          "error",
	} {
		var v struct{ A, B string }
		err := yamltext.Decode([]byte(text), &v)
		if want == "error" && (err == nil || err.Error() != "there is a line --- with more behind it; want one document") || want != "error" && (err != nil || v.A != want) {
			t.Errorf("%q: %q, %v", text, v.A, err)
		}
	}
}
