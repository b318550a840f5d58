package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tools are the generator, the sender and the yardstick of the shared bench directory.
type tools struct{ gen, send, yard string }

// buildTools compiles them into a directory.
func buildTools(ctx context.Context, from, to string) (tools, error) {
	t := tools{gen: filepath.Join(to, "gen"), send: filepath.Join(to, "send"), yard: filepath.Join(to, "yard")}
	for _, b := range []struct{ dir, out, pkg string }{{from, t.gen, "./gen"}, {from, t.send, "./send"}, {filepath.Join(from, "yard"), t.yard, "."}} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", b.out, b.pkg)
		cmd.Dir = b.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return t, fmt.Errorf("build %s of %s: %w\n%s", b.pkg, b.dir, err, out)
		}
	}
	return t, nil
}

// plan is a corpus to generate.
type plan struct {
	records, services int
	seed              uint64
	from, to          time.Time
}

// referenceRecords is the size of the reference corpus.
const referenceRecords = 2_000_000

// referenceStart is the time of the first record of the reference corpus, which is that of
// the generator's defaults.
var referenceStart = time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)

// chunk returns the k-th six hours of the reference load. The first is the reference corpus.
func chunk(k, records int) plan {
	from := referenceStart.Add(time.Duration(k) * 6 * time.Hour)
	return plan{records: records, services: 8, seed: 42 + uint64(k), from: from, to: from.Add(6 * time.Hour)}
}

// corpus is a generated corpus.
type corpus struct {
	plan
	file string
	known
}

// known are the generator's answers, as far as they are used here.
type known struct {
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

// generate makes the corpus of a plan in a directory.
func (t tools) generate(ctx context.Context, p plan, dir, name string) (*corpus, error) {
	c := &corpus{plan: p, file: filepath.Join(dir, name+".ndjson")}
	answers := filepath.Join(dir, name+".answers")
	out, err := os.Create(c.file)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, t.gen, "-n", strconv.Itoa(p.records), "-seed", strconv.FormatUint(p.seed, 10), "-services", strconv.Itoa(p.services),
		"-from", p.from.Format(time.RFC3339), "-to", p.to.Format(time.RFC3339), "-answers", answers)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := errors.Join(cmd.Run(), out.Close()); err != nil {
		return nil, fmt.Errorf("gen: %w", err)
	}
	text, err := os.ReadFile(answers)
	if err != nil {
		return nil, err
	}
	return c, json.Unmarshal(text, &c.known)
}

// window returns a window of the answers: 2m or 1h.
func (c *corpus) window(name string) (from, to string, err error) {
	for _, w := range c.Windows {
		if w.Name == name {
			return w.From, w.To, nil
		}
	}
	return "", "", fmt.Errorf("the generator's answers have no window %s", name)
}

// sent is the sender's view of a corpus that was accepted.
type sent struct {
	Records   int     `json:"records"`
	Non2xx    int     `json:"non_2xx"`
	Errors    int     `json:"errors"`
	FirstBad  string  `json:"first_bad"`
	PerSecond float64 `json:"records_per_s"`
	P50MS     float64 `json:"p50_ms"` // of a request
	P99MS     float64 `json:"p99_ms"`
}

// post sends a corpus and checks that all of it was accepted.
func (t tools) post(ctx context.Context, file, url string, perRequest, records int) (s sent, err error) {
	out, err := exec.CommandContext(ctx, t.send, "-url", url, "-file", file, "-c", "8", "-b", strconv.Itoa(perRequest), "-json").Output()
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

// yardstick returns the CPU seconds of the yardstick for a million lines of a file, the
// median of n runs.
func (t tools) yardstick(ctx context.Context, file string, n int) (float64, error) {
	out, err := exec.CommandContext(ctx, t.yard, "-n", strconv.Itoa(n), file).Output()
	if err != nil {
		return 0, fmt.Errorf("yard: %w", err)
	}
	first, _, _ := strings.Cut(string(out), " ")
	return strconv.ParseFloat(first, 64)
}

// excerpt copies the first lines of a file.
func excerpt(from, to string, size int64) error {
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
