package main

import (
	"bytes"
	"slices"
	"strings"

	"blobtail/internal/cli"
	"blobtail/record"
)

// doubtful are the names of --fields that hardly name one field: they have a blank where people mean a
// comma, or are a pattern. A record may have a field of such a name nevertheless. So the rows of records
// without any of the fields are held back, and it is a mistake if no record had them.
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

func doubt(fields []string) doubtful {
	d := doubtful{parts: map[string][]string{}, fields: slices.Clone(fields), all: len(fields) > 0}
	for _, name := range fields {
		if strings.ContainsAny(name, " \t*") {
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
		words := strings.Fields(name)
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
		case strings.TrimSpace(name) == "*":
			return cli.Usagef("--fields '*': no record has a field of that name; for all fields leave --fields out; logquery fields lists them")
		case strings.Contains(name, "*"):
			return cli.Usagef("--fields %s: no record has a field of that name, and patterns are not taken; name each field; logquery fields lists them", cli.ShellWords(name))
		case len(parts) > 0:
			return cli.Usagef("--fields %s: no record has a field of that name; several stand with commas: --fields %s", cli.ShellWords(name), cli.ShellWords(strings.Join(strings.Fields(strings.Join(d.fields, " ")), ",")))
		}
	}
	return nil
}
