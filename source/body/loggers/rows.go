// Package loggers is a table of the output of loggers, and of the records that come of it. Each row
// is a file in testdata. The test sends each row through each door, and wants the same time, level,
// message and service behind all of them. [Table] prints docs/reference/loggers.md.
//
// A row is a txtar archive with three parts. about has lines NAME: VALUE:
//
//	logger, group, version  the writer of the bytes; the group is a table of its own in the page
//	source                  run DIR of the folder farm, or page URL
//	kind                    text, or json: one object a line; for people
//	arrived                 when the bytes come, for dates without a year
//	ran                     the times before and after a run; a record without a time lies between
//	note                    its peculiarities
//	not                     DOOR REASON: a door that cannot carry it; any number of these
//	raw                     doors: the bytes are a body for these alone, not lines; azurelogs: they are
//	                        a blob of Azure's own logs, as logquery and ingest import read it
//
// bytes are the output of the logger. records has an object for each record that is to come of it:
// time (null: none), level (null: none), message of an object, or of a text in a door of lines
// (missing: all lines), service, and lines, if it has more than one.
package loggers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Row is a logger, and an example of its output.
type Row struct {
	Name    string // of its file
	Logger  string
	Group   string // the language or kind, for the table
	Version string
	Source  string // how the bytes came about: run DIR of the folder farm, or page URL
	Arrived time.Time
	From    time.Time // of a run, its beginning and end; else zero
	To      time.Time
	Note    string
	Raw     string            // the doors that the bytes are a body for, "" for lines
	Not     map[string]string // the doors that cannot carry it, and the reasons
	Bytes   []byte
	Records []Record
}

// A Record is the record that has to come of one or several lines.
type Record struct {
	Time    *time.Time `json:"-"` // nil: the bytes have none
	Level   *string    `json:"level"`
	Message *string    `json:"message"` // nil: all lines
	Service string     `json:"service"`
	Lines   int        `json:"lines"`
	Text    []byte     `json:"-"` // of its lines, without the last line feed

	InRun bool `json:"-"` // the time is within the run
}

// Object reports whether the record is an object of JSON.
func (r Record) Object() bool {
	text := bytes.TrimSpace(r.Text)
	return len(text) > 0 && text[0] == '{' && json.Valid(text)
}

// Read reads the rows of a folder, in the order of their names.
func Read(dir string) ([]Row, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, fmt.Errorf("find the rows in %s: %w", dir, err)
	}
	var rows []Row
	var bad []error
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		row, err := parse(strings.TrimSuffix(filepath.Base(name), ".txtar"), text)
		if err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", filepath.Base(name), err))
			continue
		}
		rows = append(rows, row)
	}
	return rows, errors.Join(bad...)
}

// sections are those of a row.
func sections() []string { return []string{"about", "bytes", "records"} }

// parse reads a row in the form of a txtar archive.
func parse(name string, text []byte) (Row, error) {
	row := Row{Name: name, Not: map[string]string{}}
	parts := map[string][]byte{}
	at := ""
	for line := range bytes.Lines(text) {
		mark, ok := strings.CutPrefix(string(line), "-- ")
		if section, end := strings.CutSuffix(strings.TrimRight(mark, "\r\n"), " --"); ok && end && slices.Contains(sections(), section) {
			at = section
			continue
		}
		parts[at] = append(parts[at], line...)
	}
	row.Bytes = parts["bytes"]
	if err := row.about(string(parts["about"])); err != nil {
		return row, err
	}
	for line := range bytes.Lines(parts["records"]) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		r, err := recordOf(line, !row.From.IsZero())
		if err != nil {
			return row, fmt.Errorf("the record %s: %w", line, err)
		}
		row.Records = append(row.Records, r)
	}
	if row.Raw != "" {
		return row, nil
	}
	return row, row.divide()
}

// about reads the lines NAME: VALUE.
func (row *Row) about(text string) (err error) {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		if !ok {
			continue
		}
		switch key {
		case "logger":
			row.Logger = value
		case "group":
			row.Group = value
		case "version":
			row.Version = value
		case "source":
			row.Source = value
		case "kind":
			// for people: the lines themselves say it
		case "arrived":
			row.Arrived, err = time.Parse(time.RFC3339Nano, value)
		case "ran":
			from, to, _ := strings.Cut(value, " ")
			if row.From, err = time.Parse(time.RFC3339Nano, from); err == nil {
				row.To, err = time.Parse(time.RFC3339Nano, to)
			}
		case "note":
			row.Note = value
		case "raw":
			row.Raw = value
		case "not":
			door, reason, _ := strings.Cut(value, " ")
			row.Not[strings.TrimSuffix(door, ":")] = reason
		default:
			err = fmt.Errorf("about has %s, which means nothing", key)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case row.Logger == "", row.Group == "", row.Source == "":
		return errors.New("about lacks logger, group or source")
	case row.Arrived.IsZero() && row.To.IsZero():
		return errors.New("about has neither arrived nor ran")
	case row.Arrived.IsZero():
		row.Arrived = row.To
	}
	return nil
}

// recordOf reads an expected record. Without a time it is one of the run.
func recordOf(line []byte, run bool) (r Record, err error) {
	if err := json.Unmarshal(line, &r); err != nil {
		return r, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil {
		return r, err
	}
	for name := range members {
		if !slices.Contains([]string{"time", "level", "message", "service", "lines"}, name) {
			return r, fmt.Errorf("%s is no member of an expected record", name)
		}
	}
	switch text, named := members["time"]; {
	case !named && !run:
		return r, errors.New("it has no time, and the row is of no run")
	case !named:
		r.InRun = true
	case string(text) != "null":
		r.Time = new(time.Time)
		if err := json.Unmarshal(text, r.Time); err != nil {
			return r, err
		}
	}
	r.Lines = max(r.Lines, 1)
	return r, nil
}

// divide gives each record its lines. Empty lines belong to none if they are not counted.
func (row *Row) divide() error {
	all := bytes.SplitAfter(row.Bytes, []byte("\n"))
	if last := len(all) - 1; len(all[last]) == 0 {
		all = all[:last]
	}
	want := 0
	for _, r := range row.Records {
		want += r.Lines
	}
	counted := want == len(all)
	for i := range row.Records {
		r := &row.Records[i]
		for len(all) > 0 && !counted && len(bytes.TrimSpace(all[0])) == 0 {
			all = all[1:]
		}
		if len(all) < r.Lines {
			return fmt.Errorf("record %d has %d lines, and only %d are left", i+1, r.Lines, len(all))
		}
		r.Text = bytes.Trim(bytes.Join(all[:r.Lines], nil), "\r\n")
		all = all[r.Lines:]
	}
	if rest := bytes.TrimSpace(bytes.Join(all, nil)); len(rest) > 0 {
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		return fmt.Errorf("no record has the line %.80q and what is behind it", line)
	}
	return nil
}
