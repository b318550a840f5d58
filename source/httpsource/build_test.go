package httpsource_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"blobtail/internal/dev/testkit"
	"blobtail/record/origin"
	"blobtail/source/httpsource"
)

const (
	uuid1 = "019aa1a0-0000-7000-8000-000000000001"
	uuid2 = "019aa1a0-0000-7000-8000-000000000002"
)

// When is a repeated request recognised? Every case sends body, then again.
func TestDuplicates(t *testing.T) {
	timed := `{"ts":"2026-11-20T10:00:00Z","msg":"a"}` + "\n"
	fraction := `{"ts":"2026-11-20T10:00:00.5Z","msg":"a"}` + "\n"
	for _, tt := range []struct {
		name, key string
		dedupe    httpsource.Dedupe
		body      string
		duplicate bool
	}{
		{"key", uuid1, "", "no time", true},
		{"any key", "order 66", "", "no time", true},
		{"key, dedupe key", uuid1, httpsource.DedupeKey, "no time", true},
		{"key, dedupe off", uuid1, httpsource.DedupeOff, timed + timed, false},
		{"no time", "", "", "no time", false},
		{"one whole second", "", "", timed, false},
		{"one with a fraction", "", "", fraction, true},
		{"two whole seconds", "", "", timed + timed, true},
		{"one of two without", "", "", timed + "{}", false},
		{"rejected ones do not count", "", "", timed + timed + "x", true},
		{"one accepted, one rejected", "", "", timed + "x", false},
		{"dedupe key, no key", "", httpsource.DedupeKey, timed + timed, false},
		{"dedupe off", "", httpsource.DedupeOff, timed + timed, false},
		{"dedupe body", "", httpsource.DedupeBody, timed + timed, true},
	} {
		m := &memory{}
		s := newSource(m, func(o *httpsource.Options) { o.Dedupe = tt.dedupe })
		header := []string{"Content-Type", ndjson}
		if strings.HasPrefix(tt.body, "no") {
			header[1] = text
		}
		if tt.key != "" {
			header = append(header, "Idempotency-Key", tt.key)
		}
		first := send(t, s, "/ingest/web", tt.body, header...)
		again := send(t, s, "/ingest/web", tt.body, header...)
		if first.Status != 200 || again.Status != 200 || first.Duplicate {
			t.Errorf("%s: %+v, %+v", tt.name, first, again)
		}
		if again.Duplicate != tt.duplicate || again.Accepted != first.Accepted || again.Rejected != first.Rejected {
			t.Errorf("%s: again %+v", tt.name, again)
		}
		if zero := m.requests[0].Origin.IsZero(); zero == tt.duplicate {
			t.Errorf("%s: origin %v", tt.name, m.requests[0].Origin)
		}
		if sum := m.requests[0].Sum; (sum != 0) != (tt.key != "" && tt.dedupe != httpsource.DedupeOff) {
			t.Errorf("%s: sum %d", tt.name, sum)
		}
	}
}

// The path is part of a body's identity. The method, a query and the encoding are
// not.
func TestBodyOrigin(t *testing.T) {
	body := "{\"ts\":1700000001.5}\n{\"ts\":1700000002.5}"
	m := &memory{}
	s := newSource(m)
	if a := send(t, s, "/ingest/web", body); a.Duplicate {
		t.Error("the first one")
	}
	if a := send(t, s, "/ingest/shop", body); a.Duplicate {
		t.Error("another path")
	}
	if a := send(t, s, "/ingest/web?x=1", body); !a.Duplicate {
		t.Error("with a query it is another")
	}
	if a := send(t, s, "/ingest/web", compress(t, "gzip", body), "Content-Encoding", "gzip"); !a.Duplicate {
		t.Error("compressed it is another")
	}
	if got, want := m.origins()[0], origin.OfBody("192.0.2.1", "/ingest/web", 0, []byte(body), 1_700_000_001_500_000_000); got != want {
		t.Errorf("origin %v, want %v", got, want)
	}
}

func TestKeys(t *testing.T) {
	m := &memory{}
	s := newSource(m)
	key := func(k string) []string { return []string{"Idempotency-Key", k} }
	if a := send(t, s, "/ingest/web", "{}", key(uuid1)...); a.Status != 200 {
		t.Errorf("%+v", a)
	}
	if a := send(t, s, "/ingest/web", "{}", key("  "+uuid1+" ")...); !a.Duplicate {
		t.Errorf("not trimmed: %+v", a)
	}
	wantStatus(t, send(t, s, "/ingest/web", "{ }", key(uuid1)...), 422, "used with another body")
	if a := send(t, s, "/ingest/web", "{}", key(uuid2)...); a.Status != 200 || a.Duplicate {
		t.Errorf("%+v", a)
	}
	wantStatus(t, send(t, s, "/ingest/web2", "{}", key(uuid1)...), 422, "each path")
	wantStatus(t, send(t, s, "/ingest", "{}", key(uuid1)...), 422, "each path")
	if got, want := m.requests[0].Sum, xxh3.HashString("/ingest/web\x00{}"); got != want {
		t.Errorf("sum %x, want %x", got, want)
	}
	for _, bad := range []string{"", " ", "a\x01b", "ä", strings.Repeat("k", 256)} {
		wantStatus(t, send(t, s, "/ingest/web", "{}", key(bad)...), 400, "Idempotency-Key")
	}
	wantStatus(t, send(t, s, "/ingest/web", "{}", "Idempotency-Key", "a", "Idempotency-Key", "b"), 400, "one value")
	if a := send(t, s, "/ingest/web", "{}", key(strings.Repeat("k", 255))...); a.Status != 200 {
		t.Errorf("255 bytes: %+v", a)
	}
	if got, want := m.origins()[0], origin.OfKey("", uuid1, 0, 0, false); got != want {
		t.Errorf("origin %v, want %v", got, want)
	}
}

// A long body is appended in parts of 8 MiB, each cut at the end of the record at the
// limit, and each with an identity of its own.
func TestParts(t *testing.T) {
	testkit.FullOnly(t, "many MiB in one goroutine")
	var body strings.Builder
	n := 0
	for ; body.Len() < 20<<20; n++ {
		fmt.Fprintf(&body, `{"ts":%d.25,"msg":"record %d","pad":"%s"}`+"\n", 1_700_000_000+n, n, strings.Repeat("p", 20_000+n%20_000))
	}
	for _, contentType := range []string{ndjson, jsonCT} {
		m := &memory{}
		s := newSource(m)
		a := send(t, s, "/ingest/web", body.String(), "Content-Type", contentType)
		if a.Accepted != n || a.Duplicate {
			t.Fatalf("%d of %d accepted", a.Accepted, n)
		}
		for i, l := range m.lines(t) {
			if want := fmt.Sprintf("record %d", i); l["msg"] != want {
				t.Fatalf("line %d is %v", i, l["msg"])
			}
		}
		checkCuts(t, body.String(), m)
		first := m.origins()
		if len(first) != 3 || first[0] == first[1] || first[1] == first[2] {
			t.Fatalf("origins %v", first)
		}
		// The same body elsewhere has the same identities; here it is a duplicate.
		m2 := &memory{}
		send(t, newSource(m2), "/ingest/web", body.String(), "Content-Type", contentType)
		if !slices.Equal(m2.origins(), first) {
			t.Error("not reproducible")
		}
		if a := send(t, s, "/ingest/web", body.String(), "Content-Type", contentType); !a.Duplicate || a.Accepted != n {
			t.Errorf("again: %+v", a)
		}
	}
}

// checkCuts calculates the ends of the parts: the records are lines of known length.
func checkCuts(t *testing.T, body string, m *memory) {
	t.Helper()
	part, from, at, count := 0, 0, 0, 0
	for line := range strings.Lines(body) {
		at += len(line)
		count++
		if at-1-from >= 8<<20 {
			if got := len(m.requests[part].Lines); got != count {
				t.Errorf("part %d has %d lines, want %d", part, got, count)
			}
			part, from, count = part+1, at-1, 0
		}
	}
	if got := len(m.requests[part].Lines); got != count {
		t.Errorf("the last part has %d lines, want %d", got, count)
	}
}

// A retry after some parts were accepted is a duplicate only in these.
func TestPartsHalfTaken(t *testing.T) {
	body := strings.Repeat(`{"ts":1.5,"msg":"`+strings.Repeat("x", 99_000)+`"}`+"\n", 170)
	m := &memory{refuse: func(n int) error {
		if n == 2 {
			return fmt.Errorf("disk")
		}
		return nil
	}}
	s := newSource(m)
	if a := send(t, s, "/ingest/web", body, "Idempotency-Key", uuid1); a.Status != 503 {
		t.Fatalf("%+v", a)
	}
	a := send(t, s, "/ingest/web", body, "Idempotency-Key", uuid1)
	if a.Status != 200 || a.Duplicate || a.Accepted != 170 {
		t.Errorf("%+v", a)
	}
	if n := len(m.lines(t)); n != 170 {
		t.Errorf("%d lines, want each once", n)
	}
}

// Records of two bytes make parts of at most 100,000.
func TestPartsOfTinyRecords(t *testing.T) {
	m := &memory{}
	a := send(t, newSource(m), "/ingest/web", strings.Repeat("{}\nx\n", 120_000), "Content-Type", ndjson)
	if a.Accepted != 120_000 || a.Rejected != 120_000 || len(a.Errors) != 100 {
		t.Fatalf("%d accepted, %d rejected", a.Accepted, a.Rejected)
	}
	var lines []int
	for _, r := range m.requests {
		lines = append(lines, len(r.Lines))
	}
	if !slices.Equal(lines, []int{100_000, 100_000, 40_000}) {
		t.Errorf("parts of %v", lines)
	}
}

// Leftovers of one request in reused memory must not show up in the next.
func TestReuse(t *testing.T) {
	m := &memory{}
	s := newSource(m)
	for i := range 20 {
		body := fmt.Sprintf(`{"msg":"m%d","service":"s%d"}`, i, i)
		if i%3 == 0 {
			body += "\nx"
		}
		send(t, s, "/ingest", body, "Content-Type", ndjson)
		m.mu.Lock()
		m.requests = m.requests[len(m.requests)-1:]
		m.mu.Unlock()
		l := m.lines(t)
		if l[0]["msg"] != fmt.Sprintf("m%d", i) || l[0]["service"] != fmt.Sprintf("s%d", i) || len(l) != 1+(20-i%3)/20 {
			t.Fatalf("request %d: %v", i, l)
		}
	}
}
