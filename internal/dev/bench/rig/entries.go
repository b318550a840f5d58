package rig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// An Entry is a record of the corpus, by its parts.
type Entry struct {
	Line                []byte
	Time                time.Time
	Level, Service, Msg string
	Fields              []Member
}

// A Member is a field: Text is its string, or its JSON if it is none.
type Member struct {
	Name, Text string
	String     bool
}

// ReadEntries reads the first records of a corpus.
func ReadEntries(file string, n int) ([]Entry, error) {
	var out []Entry
	for line, err := range Lines(file) {
		if err != nil {
			return nil, err
		}
		e, err := parseEntry(bytes.Clone(line))
		if err != nil {
			return nil, err
		}
		if out = append(out, e); len(out) == n {
			return out, nil
		}
	}
	return nil, fmt.Errorf("%s has less than %d records", file, n)
}

func parseEntry(line []byte) (e Entry, err error) {
	e.Line = line
	d := json.NewDecoder(bytes.NewReader(line))
	if _, err := d.Token(); err != nil {
		return e, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return e, err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return e, err
		}
		m := Member{Text: string(raw)}
		m.Name, _ = key.(string)
		if raw[0] == '"' {
			m.String = true
			err = json.Unmarshal(raw, &m.Text)
		}
		switch m.Name {
		case "ts", "time", "timestamp":
			e.Time, err = time.Parse(time.RFC3339Nano, m.Text)
		case "level":
			e.Level = m.Text
		case "service":
			e.Service = m.Text
		case "msg":
			e.Msg = m.Text
		default:
			e.Fields = append(e.Fields, m)
		}
		if err != nil {
			return e, err
		}
	}
	if e.Time.IsZero() {
		return e, errors.New("a record without a time")
	}
	return e, nil
}
