// Package yamltext decodes the files that operators write, and words the errors of the YAML library for
// them. It knows no keys: those are explained where they are known.
package yamltext

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
)

// Decode decodes a text over a value, which stays as it is if the text has nothing. An unknown key is
// an error, and so is a second document: who writes one expects it to count.
func Decode(text []byte, to any) error {
	d := yaml.NewDecoder(bytes.NewReader(text), yaml.DisallowUnknownField())
	if err := d.Decode(to); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if more(text) {
		return errors.New("there is a line --- with more behind it; want one document")
	}
	return nil
}

// more reports whether a text has content behind its first document, which may be empty. The library
// tells nothing of content behind an empty document. A line of YAML that begins with --- at the margin
// begins a document, always.
func more(text []byte) bool {
	begun, ended := false, false
	for line := range bytes.Lines(text) {
		content := bytes.TrimSpace(line)
		for _, mark := range []string{"---", "..."} {
			if rest, ok := bytes.CutPrefix(line, []byte(mark)); ok && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n")) {
				ended = ended || begun
				begun = begun || mark == "---"
				content = bytes.TrimSpace(rest)
			}
		}
		if len(content) == 0 || content[0] == '#' || line[0] == '%' {
			continue // nothing, a comment or a directive
		}
		if ended {
			return true
		}
		begun = true
	}
	return false
}

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
