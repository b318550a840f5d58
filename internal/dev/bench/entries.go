package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// An entry is a record of the corpus, by its parts.
type entry struct {
	line                []byte
	time                time.Time
	level, service, msg string
	fields              []member
}

// A member is a field: text is its string, or its JSON if it is none.
type member struct {
	name, text string
	string     bool
}

// readEntries reads the first records of a corpus.
func readEntries(file string, n int) ([]entry, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []entry
	for lines := bufio.NewScanner(f); len(out) < n && lines.Scan(); {
		e, err := parseEntry(bytes.Clone(lines.Bytes()))
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	if len(out) < n {
		return nil, fmt.Errorf("%s has less than %d records", file, n)
	}
	return out, nil
}

func parseEntry(line []byte) (e entry, err error) {
	e.line = line
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
		m := member{text: string(raw)}
		m.name, _ = key.(string)
		if raw[0] == '"' {
			m.string = true
			err = json.Unmarshal(raw, &m.text)
		}
		switch m.name {
		case "ts", "time", "timestamp":
			e.time, err = time.Parse(time.RFC3339Nano, m.text)
		case "level":
			e.level = m.text
		case "service":
			e.service = m.text
		case "msg":
			e.msg = m.text
		default:
			e.fields = append(e.fields, m)
		}
		if err != nil {
			return e, err
		}
	}
	if e.time.IsZero() {
		return e, errors.New("a record without a time")
	}
	return e, nil
}
