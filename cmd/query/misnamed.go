package main

import (
	"bytes"
	"slices"
	"strings"

	"blobtail/internal/cli"
	"blobtail/record"
)

// doubtful are the names of --fields that hardly name one field: they have a blank or another sign
// where people mean a comma, a sign in front, or are a pattern. A record may have a field of such a
// name nevertheless. So the rows of records without any of the fields are held back, and it is a
// mistake if no record had them.
type doubtful struct {
	// parts has, by a doubtful name, the fields of records among the words of it.
	parts  map[string][]string
	fields []string // all names
	// all says that each name is doubtful: the rows are blank until one of the fields comes.
	all bool
	// first is the first line that is held back, and held how many are. Their rows are equal.
	first []byte
	held  int
}

// separators are what people write between names in place of a comma.
const separators = " \t;|+"

// wordsOf are the names in a doubtful one, without the signs that other programs write before a field.
func wordsOf(name string) []string {
	words := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(separators, r) })
	for i, word := range words {
		words[i] = strings.Trim(word, ".${}%")
	}
	return words
}

func doubt(fields []string) doubtful {
	d := doubtful{parts: map[string][]string{}, fields: slices.Clone(fields), all: len(fields) > 0}
	for _, name := range fields {
		if strings.ContainsAny(name, separators+"*") || name == "all" || len(wordsOf(name)) == 1 && wordsOf(name)[0] != name {
			d.parts[name] = nil
		} else {
			d.all = false
		}
	}
	return d
}

// look notes the words of the names that are fields of the lines.
func (d *doubtful) look(lines []byte, unseen []string) {
	for _, name := range unseen {
		words := wordsOf(name)
		if _, doubtful := d.parts[name]; !doubtful || len(d.parts[name]) == len(words) {
			continue
		}
		for line := range bytes.Lines(lines) {
			for _, word := range words {
				if _, ok := record.Lookup(line, word); ok && !slices.Contains(d.parts[name], word) {
					d.parts[name] = append(d.parts[name], word)
				}
			}
		}
	}
}

// holds reports whether it holds lines back.
func (d *doubtful) holds(lines []byte) bool {
	if len(d.parts) == 0 || !d.all {
		return false
	}
	if d.held == 0 {
		first, _, _ := bytes.Cut(lines, []byte("\n"))
		d.first = append(bytes.Clone(first), '\n')
	}
	d.held += bytes.Count(lines, []byte("\n"))
	return true
}

// mistake is the one in the names that no record had, with the fix; nil: none is known.
func (d *doubtful) mistake(unseen []string) error {
	for _, name := range unseen {
		parts, doubtful := d.parts[name]
		switch {
		case !doubtful:
		case strings.TrimSpace(name) == "*" || name == "all":
			return cli.Usagef("--fields %s: no record has a field of that name; for all fields leave --fields out; logquery fields lists them", cli.ShellWords(strings.TrimSpace(name)))
		case strings.Contains(name, "*"):
			return cli.Usagef("--fields %s: no record has a field of that name, and patterns are not taken; name each field; logquery fields lists them", cli.ShellWords(name))
		case len(parts) > 0 && len(wordsOf(name)) == 1:
			return cli.Usagef("--fields %s: no record has a field of that name; a name has no sign before it: --fields %s", cli.ShellWords(name), cli.ShellWords(d.right()))
		case len(parts) > 0:
			return cli.Usagef("--fields %s: no record has a field of that name; several stand with commas: --fields %s", cli.ShellWords(name), cli.ShellWords(d.right()))
		}
	}
	return nil
}

// right are the names with commas between them.
func (d *doubtful) right() string {
	var words []string
	for _, name := range d.fields {
		words = append(words, wordsOf(name)...)
	}
	return strings.Join(words, ",")
}
