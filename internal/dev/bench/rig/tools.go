// Package rig has the parts that measurements of the commands share: the corpus and its
// answers, the processes and their cost, the protocols of senders, the machine.
package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Tools are the generator, the sender and the yardstick of the shared bench directory.
type Tools struct{ Gen, Send, Yard string }

// BuildTools compiles them into a directory.
func BuildTools(ctx context.Context, from, to string) (Tools, error) {
	t := Tools{Gen: filepath.Join(to, "gen"), Send: filepath.Join(to, "send"), Yard: filepath.Join(to, "yard")}
	for _, b := range []struct{ dir, out, pkg string }{{from, t.Gen, "./gen"}, {from, t.Send, "./send"}, {filepath.Join(from, "yard"), t.Yard, "."}} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", b.out, b.pkg)
		cmd.Dir = b.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return t, fmt.Errorf("build %s of %s: %w\n%s", b.pkg, b.dir, err, out)
		}
	}
	return t, nil
}

// Plan is a corpus to generate.
type Plan struct {
	Records, ServiceCount int
	Seed                  uint64
	From, To              time.Time
}

// ReferenceRecords is the size of the reference corpus.
const ReferenceRecords = 2_000_000

// ReferenceStart is the time of the first record of the reference corpus, which is that of
// the generator's defaults.
var ReferenceStart = time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)

// Chunk returns the k-th six hours of the reference load. The first is the reference corpus.
func Chunk(k, records int) Plan {
	from := ReferenceStart.Add(time.Duration(k) * 6 * time.Hour)
	return Plan{Records: records, ServiceCount: 8, Seed: 42 + uint64(k), From: from, To: from.Add(6 * time.Hour)}
}

// Corpus is a generated corpus.
type Corpus struct {
	Plan
	File string
	Known
}

// Known are the generator's answers, as far as they are used here.
type Known struct {
	Bytes    int64          `json:"bytes"`
	Per      map[string]int `json:"per_service"`
	Services []string       `json:"services"`
	Windows  []struct {
		Name, From, To string
		Counts         map[string]map[string]int
	} `json:"windows"`
	Regex        string   `json:"regex"`
	RegexService string   `json:"regex_service"`
	RegexMatches int      `json:"regex_matches"`
	LastService  string   `json:"last_service"`
	Last         []string `json:"last_100_request_ids"` // newest first
	Needles      []struct {
		Token string
		Count int
	} `json:"needles"`
	PerMinute map[string][5]int `json:"per_minute"` // debug to critical
}

// Generate makes the corpus of a plan in a directory.
func (t Tools) Generate(ctx context.Context, p Plan, dir, name string) (*Corpus, error) {
	c := &Corpus{Plan: p, File: filepath.Join(dir, name+".ndjson")}
	answers := filepath.Join(dir, name+".answers")
	out, err := os.Create(c.File)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, t.Gen, "-n", strconv.Itoa(p.Records), "-seed", strconv.FormatUint(p.Seed, 10), "-services", strconv.Itoa(p.ServiceCount),
		"-from", p.From.Format(time.RFC3339), "-to", p.To.Format(time.RFC3339), "-answers", answers)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := errors.Join(cmd.Run(), out.Close()); err != nil {
		return nil, fmt.Errorf("gen: %w", err)
	}
	text, err := os.ReadFile(answers)
	if err != nil {
		return nil, err
	}
	return c, json.Unmarshal(text, &c.Known)
}

// Window returns a window of the answers: 2m or 1h.
func (c *Corpus) Window(name string) (from, to string, err error) {
	for _, w := range c.Windows {
		if w.Name == name {
			return w.From, w.To, nil
		}
	}
	return "", "", fmt.Errorf("the generator's answers have no window %s", name)
}

// Sent is the sender's view of a corpus that was accepted.
type Sent struct {
	Records   int     `json:"records"`
	Non2xx    int     `json:"non_2xx"`
	Errors    int     `json:"errors"`
	FirstBad  string  `json:"first_bad"`
	PerSecond float64 `json:"records_per_s"`
	P50MS     float64 `json:"p50_ms"` // of a request
	P99MS     float64 `json:"p99_ms"`
}

// Post sends a corpus and checks that all of it was accepted.
func (t Tools) Post(ctx context.Context, file, url string, perRequest, records int) (s Sent, err error) {
	out, err := exec.CommandContext(ctx, t.Send, "-url", url, "-file", file, "-c", "8", "-b", strconv.Itoa(perRequest), "-json").Output()
	if err != nil {
		return s, fmt.Errorf("send: %w", err)
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("send: %w", err)
	}
	if s.Non2xx+s.Errors > 0 || s.Records != records {
		return s, fmt.Errorf("sent %d of %d records; %d requests refused, %d without an answer: %s", s.Records, records, s.Non2xx, s.Errors, s.FirstBad)
	}
	return s, nil
}

// Yardstick returns the CPU seconds of the yardstick for a million lines of a file, the
// median of n runs.
func (t Tools) Yardstick(ctx context.Context, file string, n int) (float64, error) {
	out, err := exec.CommandContext(ctx, t.Yard, "-n", strconv.Itoa(n), file).Output()
	if err != nil {
		return 0, fmt.Errorf("yard: %w", err)
	}
	first, _, _ := strings.Cut(string(out), " ")
	return strconv.ParseFloat(first, 64)
}

// Excerpt copies the first lines of a file.
func Excerpt(from, to string, size int64) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, size))
	if err != nil {
		return err
	}
	return os.WriteFile(to, text[:strings.LastIndexByte(string(text), '\n')+1], 0o600)
}

// Span is the range of the corpus in ns, from the minute of its first record to the end of the
// minute of its last one.
func (c *Corpus) Span() (from, to string, err error) {
	minutes := make([]string, 0, len(c.PerMinute))
	for m := range c.PerMinute {
		minutes = append(minutes, m)
	}
	first, err := time.Parse(time.RFC3339, slices.Min(minutes))
	if err != nil {
		return "", "", err
	}
	last, err := time.Parse(time.RFC3339, slices.Max(minutes))
	return strconv.FormatInt(first.UnixNano(), 10), strconv.FormatInt(last.Add(time.Minute).UnixNano(), 10), err
}
