package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/compare/canon"
	"blobtail/internal/dev/compare/result"
)

// corpus is a log that both sides store, as lines of NDJSON with the times of six hours.
type corpus struct {
	result.Corpus
	file string
	from time.Time
	all  expected
}

// hours is the length of each corpus.
const hours = 6

// reference makes the reference corpus of the generator.
func (c *comparison) reference(ctx context.Context) (*corpus, *rig.Corpus, error) {
	n := c.o.size.records
	c.say("make the reference corpus of %d records", n)
	known, err := c.tools.Generate(ctx, rig.Chunk(0, n), c.work, "reference")
	if err != nil {
		return nil, nil, err
	}
	made := &corpus{file: known.File, from: rig.ReferenceStart, Corpus: result.Corpus{Name: "reference", Records: n, Bytes: known.Bytes,
		Made: fmt.Sprintf("`gen -n %d -seed 42`: 8 services, 6 hours.", n)}}
	made.all, err = expect(c.canon, made.file, n)
	return made, known, err
}

// loghub makes the second corpus.
func (c *comparison) loghub() (*corpus, error) {
	c.say("make the corpus of loghub")
	made := &corpus{file: filepath.Join(c.work, "loghub.ndjson"), from: rig.ReferenceStart}
	logs, err := filepath.Glob(filepath.Join(c.o.loghub, "*.ndjson"))
	if err == nil && len(logs) == 0 {
		err = fmt.Errorf("%s has no logs", c.o.loghub)
	}
	if err != nil {
		return nil, err
	}
	made.Corpus, err = repeat(made.file, logs, c.o.size.repeats, made.from)
	if err != nil {
		return nil, err
	}
	made.all, err = expect(c.canon, made.file, made.Records)
	return made, err
}

// hub is a record of a log of loghub.
type hub struct {
	Time    time.Time `json:"time"`
	Service string    `json:"service"`
	Level   string    `json:"level"`
	Message string    `json:"message"`
	rest    []byte    // the other members, each with a comma before
}

// repeat writes logs several times, each time shifted to the next part of six hours. The times
// of a log are scaled so that it fills the part, because the logs are of minutes or of weeks.
func repeat(file string, logs []string, repeats int, from time.Time) (result.Corpus, error) {
	made := result.Corpus{Name: "loghub", Made: fmt.Sprintf("%d logs of loghub, %d times one after another, with times scaled and shifted to 6 hours. A copy of a line is nearer than in a log that grew.", len(logs), repeats)}
	type at struct {
		ns  int64 // from the start of a repetition
		hub hub
	}
	part := hours * time.Hour / time.Duration(repeats)
	var all []at
	for _, name := range logs {
		records, err := readHub(name)
		if err != nil {
			return made, err
		}
		older := func(a, b hub) int { return a.Time.Compare(b.Time) }
		first, last := slices.MinFunc(records, older).Time, slices.MaxFunc(records, older).Time
		scale := float64(part-time.Millisecond) / float64(max(1, last.Sub(first)))
		for _, r := range records {
			all = append(all, at{int64(float64(r.Time.Sub(first)) * scale), r})
		}
	}
	slices.SortStableFunc(all, func(a, b at) int { return cmp.Compare(a.ns, b.ns) })
	f, err := os.Create(file)
	if err != nil {
		return made, err
	}
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	var line []byte
	for k := range repeats {
		for _, r := range all {
			ts := from.Add(time.Duration(k)*part + time.Duration(r.ns)).Truncate(time.Microsecond)
			line = fmt.Appendf(line[:0], `{"ts":%q,"level":%q,"service":%q`, ts.Format(time.RFC3339Nano), r.hub.Level, r.hub.Service)
			line = append(append(line, r.hub.rest...), `,"msg":`...)
			line = append(append(line, quote(r.hub.Message)...), "}\n"...)
			out.Write(line)
			made.Records++
			made.Bytes += int64(len(line))
		}
	}
	return made, errors.Join(out.Flush(), f.Close())
}

// readHub reads a log. Levels become those five that both sides show alike.
func readHub(name string) (all []hub, err error) {
	for line, err := range rig.Lines(name) {
		if err != nil {
			return nil, err
		}
		var r hub
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s: %w: %.300s", name, err, line)
		}
		if r.Level, err = level(r.Level); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		err = canon.Members(line, func(name, value []byte) error {
			switch string(name) {
			case "time", "service", "level", "message":
				return nil
			}
			r.rest = append(fmt.Appendf(r.rest, ",%q:", name), quote(string(value))...)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no records", name)
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
	switch strings.ToLower(of) {
	case "v", "d", "debug", "trace":
		return "debug", nil
	case "", "i", "info", "notice":
		return "info", nil
	case "w", "warn", "warning":
		return "warn", nil
	case "e", "error":
		return "error", nil
	case "f", "a", "fatal", "critical":
		return "critical", nil
	}
	return "", fmt.Errorf("what is the level %q?", of)
}
