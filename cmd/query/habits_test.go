package main

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"blobtail/internal/cli"
	"blobtail/storage/dir"
)

// logquery --search finds what the table of package search says, and so do hist, top, patterns and tail.
// A mistake is one line on standard error, with what to type.
func TestHabits(t *testing.T) {
	text, err := os.ReadFile("../../reading/search/testdata/records.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	number, of, at := map[string]int{}, map[string]string{}, 0
	for line := range strings.Lines(string(text)) {
		var r struct{ Service string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		at++
		number[line] = at
		of[r.Service] += line
	}
	path := t.TempDir() + "/data"
	store, err := dir.Open(path, dir.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range of {
		at++
		if err := addBlob(store, []byte(service), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	query := func(args ...string) (stdout, stderr string, code int) {
		var out, errs strings.Builder
		code = run(t.Context(), environment{
			args: append([]string{"--store", "dir:" + path}, args...), stdout: &out, stderr: &errs,
			isFile: func(string) bool { return false }, getenv: func(string) string { return "" },
			now: time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC), local: time.UTC,
		})
		return out.String(), errs.String(), code
	}
	if _, said, _ := query("*", "--search", "tags=retry"); !strings.Contains(said, `tags is a list; write where:("retry" in tags)`) {
		t.Errorf("a list: %s", said)
	}
	if text, err = os.ReadFile("../../reading/search/testdata/habits.jsonl"); err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		var c struct {
			Of, Q, Say  string
			Fold, Found bool
			Want        []int
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		n++
		search := []string{"*", "--search", c.Q}
		if c.Fold {
			search = append(search, "-i")
		}
		stdout, stderr, code := query(search...)
		if !c.Found {
			if code != cli.Usage || stdout != "" || !strings.Contains(stderr, c.Say) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s: exit %d, %s, want %s", c.Q, code, stderr, c.Say)
			}
			continue
		}
		var got []int
		for line := range strings.Lines(stdout) {
			got = append(got, number[line])
		}
		ends := cli.OK
		if len(c.Want) == 0 {
			ends = cli.Nothing
		}
		if slices.Sort(got); code != ends || !slices.Equal(got, c.Want) {
			t.Errorf("%s: %s: exit %d, records %v, want %v: %s", c.Of, c.Q, code, got, c.Want, stderr)
		}
		if c.Say != "" && len(got) == 0 && !strings.Contains(stderr, c.Say) {
			t.Errorf("%s: %s, want %s", c.Q, stderr, c.Say)
		}
		if n%8 != 0 {
			continue
		}
		for verb, args := range map[string][]string{"hist": nil, "top": {"service"}, "patterns": {"--top", "1000"}} {
			stdout, stderr, code := query(slices.Concat([]string{verb}, args, search, []string{"-q", "-o", "csv"})...)
			total := 0
			for i, line := range slices.Collect(strings.Lines(stdout)) {
				if i > 0 {
					n, _ := strconv.Atoi(strings.Split(strings.TrimSpace(line), ",")[1])
					total += n
				}
			}
			if code != ends || total != len(c.Want) {
				t.Errorf("%s %s: exit %d, %d records, want %d: %s%s", verb, c.Q, code, total, len(c.Want), stdout, stderr)
			}
		}
		stdout, stderr, code = query(slices.Concat([]string{"tail", "-n", "1000", "-q"}, search)...)
		if code != ends || strings.Count(stdout, "\n") != len(c.Want) {
			t.Errorf("tail %s: exit %d, %d records, want %d: %s", c.Q, code, strings.Count(stdout, "\n"), len(c.Want), stderr)
		}
	}
	if n < 150 {
		t.Errorf("%d searches", n)
	}
}
