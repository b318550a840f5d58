package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"blobtail/internal/dev/bench/result"
	"blobtail/internal/dev/bench/rig"
)

// hubRecord is a record of a log of loghub.
type hubRecord struct {
	at                      time.Time
	service, level, message string
	rest                    []byte        // the other members, each with a comma before
	shift                   time.Duration // from the start of a repetition
}

// repeat writes logs several times, each time shifted to the next part of six hours. The times
// of a log are scaled so that it fills the part, because the logs are of minutes or of weeks.
func repeat(file string, logs []string, repeats int) (result.Corpus, error) {
	made := result.Corpus{Name: "loghub", Made: fmt.Sprintf("%d logs of loghub, %d times one after another, "+
		"with times scaled and shifted to 6 hours. A copy of a line is nearer than in a log that grew.", len(logs), repeats)}
	part := rig.Hours * time.Hour / time.Duration(repeats)
	var all []hubRecord
	for _, name := range logs {
		records, err := readHub(name)
		if err != nil {
			return made, fmt.Errorf("%s: %w", name, err)
		}
		older := func(a, b hubRecord) int { return a.at.Compare(b.at) }
		first, last := slices.MinFunc(records, older).at, slices.MaxFunc(records, older).at
		scale := float64(part-time.Millisecond) / float64(max(1, last.Sub(first)))
		for i := range records {
			records[i].shift = time.Duration(float64(records[i].at.Sub(first)) * scale)
		}
		all = append(all, records...)
	}
	slices.SortStableFunc(all, func(a, b hubRecord) int { return cmp.Compare(a.shift, b.shift) })
	f, err := os.Create(file)
	if err != nil {
		return made, err
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	var line []byte
	for k := range repeats {
		for _, r := range all {
			ts := rig.Start.Add(time.Duration(k)*part + r.shift).Truncate(time.Microsecond)
			line = fmt.Appendf(line[:0], `{"ts":%q,"level":%q,"service":%q%s,"msg":%s}`+"\n", ts.Format(time.RFC3339Nano), r.level, r.service, r.rest, quote(r.message))
			out.Write(line)
			made.Records++
			made.Bytes += int64(len(line))
		}
	}
	return made, errors.Join(out.Flush(), f.Close())
}

// readHub reads a log. Levels become those five that both sides show alike.
func readHub(name string) (all []hubRecord, err error) {
	for line, err := range rig.Lines(name) {
		r := hubRecord{level: "info"}
		if err == nil {
			err = rig.Members(line, func(name, value []byte, _ bool) (err error) {
				switch string(name) {
				case "time":
					r.at, err = time.Parse(time.RFC3339Nano, string(value))
				case "service":
					r.service = string(value)
				case "level":
					r.level, err = level(string(value))
				case "message":
					r.message = string(value)
				default:
					r.rest = fmt.Appendf(r.rest, ",%q:%s", name, quote(string(value)))
				}
				return err
			})
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		return nil, errors.New("it has no records")
	}
	return all, nil
}

// quote is a text as JSON, without the escapes that HTML needs.
func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a text has JSON, and the buffer takes it
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// level names a level of any of the logs. A record without one is of info.
func level(of string) (string, error) {
	for name, words := range map[string]string{"debug": "v d debug trace", "info": "i info notice", "warn": "w warn warning", "error": "e error", "critical": "f a fatal critical"} {
		if slices.Contains(strings.Fields(words), strings.ToLower(of)) {
			return name, nil
		}
	}
	if of == "" {
		return "info", nil
	}
	return "", fmt.Errorf("what is the level %q?", of)
}
