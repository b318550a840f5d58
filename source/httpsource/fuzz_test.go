package httpsource

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"blobtail/record"
)

// A ledger is a sink that notes which bytes of a body it was handed.
type ledger struct {
	t        *testing.T
	parser   *record.Parser
	body     []byte
	seen     []bool
	reach    int
	accepted int
	rejected int
}

func (l *ledger) scan(src []byte) (int, error) { return l.parser.Scan(src) }

func (l *ledger) object(raw []byte, end int) bool {
	if !json.Valid(raw) && json.Valid(bytes.ToValidUTF8(raw, nil)) {
		l.t.Errorf("no JSON: %q", raw)
	}
	l.accepted++
	return l.note(raw, end)
}

func (l *ledger) text(raw []byte, end int) bool {
	if len(raw) == 0 || bytes.IndexByte(raw, '\n') >= 0 {
		l.t.Errorf("no line: %q", raw)
	}
	l.accepted++
	return l.note(raw, end)
}

func (l *ledger) reject(raw []byte, why rejection, end int) bool {
	if why.reason == "" {
		l.t.Errorf("no reason for %q", raw)
	}
	l.rejected++
	return l.note(raw, end)
}

// note finds where raw stands in the body by what its array has left.
func (l *ledger) note(raw []byte, end int) bool {
	from := cap(l.body) - cap(raw)
	if from < l.reach || end < from+len(raw) || end > len(l.body) {
		l.t.Fatalf("record at %d..%d with end %d, the last one reached to %d", from, from+len(raw), end, l.reach)
	}
	for i := from; i < from+len(raw); i++ {
		l.seen[i] = true
	}
	l.reach = from + len(raw)
	return true
}

type shape struct {
	name      string
	decode    decoder
	structure string // bytes that belong to no record
}

func shapes() []shape {
	return []shape{
		{"lines", decodeLines, " \t\r\n"},
		{"json", decodeJSON, " \t\r\n[],"},
		{"sniffed", decodeSniffed, " \t\r\n[],"},
		{"text", func(b []byte, to sink) { decodeText(b, bom(b), to) }, "\r\n"},
	}
}

// Every byte of a body that is not white space or the frame of an array comes
// out in exactly one record or reject, in order, whatever the input.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{
		"{\"a\":1}\n{\"b\":2}\r\n\n{\"c\":", `[{"a":1},2,"x",[3],{"b":2}] tail`, "[error] x\r\n[1,2] y\n", "{\"a\":[1,\n{\"b\":2}\n{\"c\":3}",
		"\xef\xbb\xbf{} {}\n{}x", "{\n \"a\": {\n \"b\": [\n 1 ] } }\n{\"a\":1,\"a\":2}{}", `[{"a":"\ud800\xff"},{"a":`, "\x00\n\xff\n",
	} {
		f.Add([]byte(s))
	}
	c := &counter{}
	s := New(Options{Accept: c, Now: func() time.Time { return time.Unix(1e9, 0) }})
	f.Fuzz(func(t *testing.T, body []byte) {
		body = slices.Clip(body)
		for _, sh := range shapes() {
			l := &ledger{t: t, parser: record.NewParser(), body: body, seen: make([]bool, len(body))}
			sh.decode(body, l)
			for i := bom(body); i < len(body); i++ {
				if !l.seen[i] && !bytes.ContainsRune([]byte(sh.structure), rune(body[i])) {
					t.Fatalf("%s: byte %d of %q is lost", sh.name, i, body)
				}
			}
		}
		checkAnswers(t, s, c, body)
	})
}

type counter struct{ lines, newlines int }

func (c *counter) Accept(_ context.Context, r *record.Request) (record.Receipt, error) {
	c.lines += len(r.Lines)
	c.newlines += bytes.Count(r.Data, []byte("\n"))
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}, nil
}

// checkAnswers sends a body as each type; what is answered is what is appended.
func checkAnswers(t *testing.T, s *Source, c *counter, body []byte) {
	for _, contentType := range []string{"application/x-ndjson", "application/json", ""} {
		*c = counter{}
		r := httptest.NewRequest(http.MethodPost, "/ingest", bytes.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		var a answer
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		if n := a.Accepted + a.Rejected; n != c.lines || n != c.newlines {
			t.Errorf("%s: %d records, %d lines, %d newlines", contentType, n, c.lines, c.newlines)
		}
		if (w.Code == http.StatusOK) != (a.Error == "") || w.Code != http.StatusOK && w.Code != http.StatusBadRequest && (w.Code != http.StatusUnsupportedMediaType || looksCompressed(body) == nil) {
			t.Errorf("%s: %d %+v", contentType, w.Code, a)
		}
		if bad := a.Rejected > len(a.Errors) && len(a.Errors) < maxErrors; bad {
			t.Errorf("%s: %d errors for %d rejected", contentType, len(a.Errors), a.Rejected)
		}
	}
}

// FuzzDecompress feeds damaged bodies to the decompressors.
func FuzzDecompress(f *testing.F) {
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xaa\xae\x05\x00\x43\xbf\xa6\xa3\x02\x00\x00\x00"))
	f.Add([]byte("\x28\xb5\x2f\xfd\x04\x00\x11\x00\x00\x7b\x7d\xd4\xbc\x23\xb1"))
	f.Add([]byte("\x02\x04\x7b\x7d"))
	f.Add([]byte(snappyStream + "\x01\x06\x00\x00\x00\x00\x00\x00{}"))
	f.Add([]byte("\x78\x9c\xab\xae\x05\x00\x01\x75\x00\xf9"))
	s := New(Options{Accept: &counter{}})
	f.Fuzz(func(t *testing.T, wire []byte) {
		for _, enc := range []encoding{gzipped, zstandard, deflated, snappy} {
			h, err := s.budget.enter(t.Context(), int64(len(wire)), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			out, err := s.decompress(t.Context(), enc, wire, h)
			s.buffers.put(out)
			h.release()
			if limit := min(maxDecoded, 1<<20+maxRatio*len(wire)); err == nil && len(out) > limit {
				t.Errorf("%s: %d bytes of %d", enc, len(out), len(wire))
			}
		}
		if n := s.budget.inUse(); n != 0 {
			t.Errorf("%d bytes stay in flight", n)
		}
	})
}
