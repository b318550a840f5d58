package loggen_test

import (
	"bytes"
	"encoding/json"
	"hash/crc32"
	"testing"
	"time"

	"blobtail/internal/dev/loggen"
	"blobtail/record"
)

func corpus(o loggen.Options) []byte {
	var b []byte
	for g := loggen.New(o); g.Next(); {
		b = append(b, g.Line()...)
	}
	return b
}

// The same options must give the same bytes forever: recorded measurements use them.
func TestGolden(t *testing.T) {
	b := corpus(loggen.Options{Seed: 42, Records: 1000})
	const size, sum = 276342, 0x2e2e6f
	if got := crc32.ChecksumIEEE(b); len(b) != size || got != sum {
		t.Errorf("got %d bytes, checksum %#x; want %d, %#x", len(b), got, size, uint32(sum))
	}
	if bytes.Equal(b, corpus(loggen.Options{Seed: 43, Records: 1000})) {
		t.Error("the seed changes nothing")
	}
}

// Record must return the fields that a parser finds in Line.
func TestRecord(t *testing.T) {
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	p := record.NewParser()
	seen := map[string]bool{}
	var all, window loggen.Tally
	window.From, window.To = from.Add(time.Minute).UnixNano(), from.Add(2*time.Minute).UnixNano()
	inWindow := 0
	for g := loggen.New(loggen.Options{Seed: 7, Records: 5000, Services: 3, From: from, Span: 10 * time.Minute}); g.Next(); {
		r := g.Record()
		if !json.Valid(g.Line()) || bytes.Count(g.Line(), []byte("\n")) != 1 {
			t.Fatalf("not one line of JSON: %s", g.Line())
		}
		if _, err := p.Scan(g.Line()); err != nil {
			t.Fatal(err)
		}
		_, got := p.AppendLine(nil, &record.Defaults{})
		if got.Time != r.Time || got.Service != r.Service || got.Level != r.Level {
			t.Fatalf("%s says %v, the generator says %v", g.Line(), got, r)
		}
		if seen[r.ID] || !bytes.Contains(g.Line(), []byte(`"`+r.ID+`"`)) {
			t.Fatalf("id %s: seen before, or not in %s", r.ID, g.Line())
		}
		seen[r.ID] = true
		if r.Time < from.UnixNano() || r.Time >= from.Add(10*time.Minute).UnixNano() {
			t.Fatalf("%s is outside the range", g.Line())
		}
		if r.Time >= window.From && r.Time < window.To {
			inWindow++
		}
		all.Add(r)
		window.Add(r)
	}
	if all.Total != 5000 || len(all.Counts) != 3 || window.Total != inWindow || inWindow == 0 {
		t.Errorf("%d in all of %d services, %d in the window; want 5000, 3, %d", all.Total, len(all.Counts), window.Total, inWindow)
	}
}
