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
