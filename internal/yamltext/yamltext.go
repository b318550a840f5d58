// Package yamltext words the errors of the YAML library for the people who wrote the file. All files
// that operators write go through it. It knows no keys: those are explained where they are known.
package yamltext

import (
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
)

// Error is the text of an error of the library; around adds the lines around the mistake, which may
// hold a secret.
func Error(err error, around bool) string {
	shown := strings.TrimSpace(yaml.FormatError(err, false, around))
	first, lines, _ := strings.Cut(shown, "\n")
	place := regexp.MustCompile(`^\[([0-9]+):[0-9]+\] `).FindStringSubmatch(first)
	if place != nil && (strings.Contains(first, "'\t'") || strings.Contains(first, "tab character")) {
		first = "line " + place[1] + " has a tab; indent with blanks, since YAML takes no tabs there"
	}
	if !around || lines == "" {
		return first
	}
	return first + "\n" + lines
}
