package integration_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/corpus"
	"blobtail/record"
)

// Reads must count and find a known corpus exactly: as a whole, by service and level,
// in a window, and in parts. Several connections send the corpus, and it is cut into
// blobs of all sizes.
func TestCorpus(t *testing.T) {
	t.Parallel()
	records, size := 80_000, "1MiB"
	if _, long := torture(t); long {
		records, size = 200_000, "2MiB"
	}
	from := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	all, window := corpus.Counts{}, corpus.NewWindow("", from.Add(184*time.Minute), 2*time.Minute)
	inWindow := map[string]bool{}

	at, _ := dirStore(t)
	p := start(t, at, t.TempDir(), "--flush-size", size)
	bodies := make(chan []byte)
	var senders sync.WaitGroup
	for range 3 {
		senders.Go(func() {
			for b := range bodies {
				if code, a, _, err := p.post("/ingest", b); err != nil || code != 200 || a.Rejected > 0 {
					t.Errorf("POST: %d %+v, %v", code, a, err)
				}
			}
		})
	}
	var b []byte
	for r := range (corpus.Options{Seed: 42, Records: records, From: from, Odd: true}).All() {
		all.Add(r)
		if window.Add(r) {
			inWindow[r.ID] = true
		}
		if b = append(b, r.Line...); len(b) > 300<<10 {
			bodies <- slices.Clone(b)
			b = b[:0]
		}
	}
	bodies <- b
	close(bodies)
	senders.Wait()
	p.mustFlush()

	t.Run("counts", func(t *testing.T) { t.Parallel(); checkCounts(t, at, all) })
	t.Run("window", func(t *testing.T) { t.Parallel(); checkWindow(t, at, window, inWindow) })
	t.Run("parts", func(t *testing.T) { t.Parallel(); checkParts(t, at, records, from) })
}

// checkCounts compares counts by service and level.
func checkCounts(t *testing.T, at place, all corpus.Counts) {
	if n := count(t, at, "*"); n != all.Of() {
		t.Errorf("%d records in all, want %d", n, all.Of())
	}
	for service, counts := range all {
		total := 0
		for level, want := range counts {
			total += want
			if n := count(t, at, service, "--level", level); n != want {
				t.Errorf("%s, level %v: %d records, want %d", service, level, n, want)
			}
		}
		if n := count(t, at, service); n != total {
			t.Errorf("%s: %d records, want %d", service, n, total)
		}
	}
}

// checkWindow compares the records of two minutes one by one.
func checkWindow(t *testing.T, at place, want *corpus.Window, ids map[string]bool) {
	got := corpus.Counts{}
	left := len(ids)
	for line := range bytes.Lines(query(t, at, "--from", want.From, "--to", want.To, "*", "-o", "json")) {
		text := string(line)
		_, service, _ := strings.Cut(text, `"service":"`)
		service, _, _ = strings.Cut(service, `"`)
		_, id, _ := strings.Cut(text, `"request_id":"`)
		id, _, _ = strings.Cut(id, `"`)
		if !ids[id] {
			t.Fatalf("not of this window, or twice: %s", line)
		}
		delete(ids, id)
		got.Add(corpus.Record{Service: service, Level: record.LineLevel(line)})
	}
	if len(ids) > 0 || left == 0 {
		t.Errorf("%d of %d records of the window are missing", len(ids), left)
	}
	for service, counts := range want.Counts {
		if !maps.Equal(got[service], counts) {
			t.Errorf("%s: counts by level %v, want %v", service, got[service], counts)
		}
		errors := counts["error"] + counts["critical"]
		if n := count(t, at, "--from", want.From, "--to", want.To, service, "--level", "error,critical"); n != errors {
			t.Errorf("%s: %d errors and worse in the window, want %d", service, n, errors)
		}
	}
}

// checkParts reads the whole range at once, in random parts, and backwards. The parts
// must add up to the same bytes.
func checkParts(t *testing.T, at place, records int, from time.Time) {
	whole := query(t, at, "*", "-o", "json")
	if n := bytes.Count(whole, []byte("\n")); n != records {
		t.Fatalf("%d records, want %d", n, records)
	}
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	cuts := []int64{from.UnixNano(), from.Add(6 * time.Hour).UnixNano()}
	for range 9 {
		// Half of the cuts are at a record, so that a record is exactly at a bound.
		cut := from.UnixNano() + r.Int64N(int64(6*time.Hour))
		if r.IntN(2) == 0 {
			line := whole[r.IntN(len(whole)*9/10):]
			line = line[bytes.IndexByte(line, '\n')+1:]
			if ns, ok := record.LineTime(line); ok {
				cut = ns
			}
		}
		cuts = append(cuts, cut)
	}
	slices.Sort(cuts)
	var parts []byte
	for i := range cuts[1:] {
		if cuts[i] == cuts[i+1] {
			continue
		}
		out, errs, code := answered(t, at, "--from", fmt.Sprint(cuts[i]), "--to", fmt.Sprint(cuts[i+1]), "*", "-o", "json")
		if code > 1 {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		parts = append(parts, out...)
	}
	if !bytes.Equal(parts, whole) {
		t.Errorf("seed %d: the parts cut at %v differ from the whole: %s", seed, cuts, difference(parts, whole))
	}
	const last = 1000
	tail := lastLines(whole, last)
	if out := query(t, at, "*", "-o", "json", "-n", fmt.Sprint(last)); !bytes.Equal(out, bytes.Join(tail, nil)) {
		t.Error("-n does not print the end of the whole")
	}
	slices.Reverse(tail)
	if out := query(t, at, "*", "-o", "json", "-r", "-n", fmt.Sprint(last)); !bytes.Equal(out, bytes.Join(tail, nil)) {
		t.Error("-r does not print the end of the whole backwards")
	}
}

func lastLines(b []byte, n int) [][]byte {
	lines := bytes.SplitAfter(b, []byte("\n"))
	lines = lines[:len(lines)-1] // the empty one at the end
	return lines[len(lines)-n:]
}

// difference shows the first difference between two outputs.
func difference(a, b []byte) string {
	la, lb := bytes.SplitAfter(a, []byte("\n")), bytes.SplitAfter(b, []byte("\n"))
	for i := range min(len(la), len(lb)) {
		if !bytes.Equal(la[i], lb[i]) {
			return fmt.Sprintf("line %d: %.200s, not %.200s", i+1, la[i], lb[i])
		}
	}
	return fmt.Sprintf("%d lines, not %d", len(la)-1, len(lb)-1)
}
