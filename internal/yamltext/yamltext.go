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
	var next any
	if err := d.Decode(&next); !errors.Is(err, io.EOF) {
		return errors.New("there is a line --- with more behind it; want one document")
	}
	return nil
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
