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
	"blobtail/source/body"
)

// FuzzAnswers sends a body as each type; the answer must agree with the appended
// records.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{
		"{\"a\":1}\n{\"b\":2}\r\n\n{\"c\":", `[{"a":1},2,"x",[3],{"b":2}] tail`, "[error] x\r\n[1,2] y\n", "\xef\xbb\xbf{} {}\n{}x", "\x00\n\xff\n",
	} {
		f.Add([]byte(s))
	}
	c := &counter{}
	s := New(Options{Accept: c, Now: func() time.Time { return time.Unix(1e9, 0) }})
	f.Fuzz(func(t *testing.T, body []byte) { checkAnswers(t, s, c, body) })
}

type counter struct{ lines, newlines int }

func (c *counter) Accept(_ context.Context, r *record.Request) (record.Receipt, error) {
	c.lines += len(r.Lines)
	c.newlines += bytes.Count(r.Data, []byte("\n"))
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}, nil
}

// checkAnswers sends a body as each type.
func checkAnswers(t *testing.T, s *Source, c *counter, sent []byte) {
	for _, contentType := range []string{"application/x-ndjson", "application/json", ""} {
		*c = counter{}
		r := httptest.NewRequest(http.MethodPost, "/ingest", bytes.NewReader(sent))
		r.Header.Set("Content-Type", contentType)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		var a Result
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		if n := a.Accepted + a.Rejected; n != c.lines || n != c.newlines {
			t.Errorf("%s: %d records, %d lines, %d newlines", contentType, n, c.lines, c.newlines)
		}
		if (w.Code == http.StatusOK) != (a.Error == "") || w.Code != http.StatusOK && w.Code != http.StatusBadRequest && (w.Code != http.StatusUnsupportedMediaType || !isNoise(sent)) {
			t.Errorf("%s: %d %+v", contentType, w.Code, a)
		}
		if bad := a.Rejected > len(a.Errors) && len(a.Errors) < maxErrors; bad {
			t.Errorf("%s: %d errors for %d rejected", contentType, len(a.Errors), a.Rejected)
		}
	}
}

// isNoise reports whether a body begins like one that is compressed, or UTF-16.
func isNoise(sent []byte) bool {
	return slices.ContainsFunc([]string{"\x1f\x8b", "\x28\xb5\x2f\xfd", "\xff\xfe", "\xfe\xff"},
		func(magic string) bool { return bytes.HasPrefix(sent, []byte(magic)) })
}

// FuzzDecompress feeds damaged bodies to the decompressors.
func FuzzDecompress(f *testing.F) {
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xaa\xae\x05\x00\x43\xbf\xa6\xa3\x02\x00\x00\x00"))
	f.Add([]byte("\x28\xb5\x2f\xfd\x04\x00\x11\x00\x00\x7b\x7d\xd4\xbc\x23\xb1"))
	f.Add([]byte("\x02\x04\x7b\x7d"))
	f.Add([]byte("\xff\x06\x00\x00sNaPpY" + "\x01\x06\x00\x00\x00\x00\x00\x00{}"))
	f.Add([]byte("\x78\x9c\xab\xae\x05\x00\x01\x75\x00\xf9"))
	s := New(Options{Accept: &counter{}})
	f.Fuzz(func(t *testing.T, wire []byte) {
		for _, enc := range []body.Encoding{body.Gzip, body.Zstd, body.Deflate, body.Snappy} {
			h, err := s.budget.enter(t.Context(), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			out, err := s.decompress(t.Context(), enc, wire, h)
			s.buffers.put(out)
			h.release()
			if limit := min(body.MaxDecoded, 1<<20+body.MaxRatio*len(wire)); err == nil && len(out) > limit {
				t.Errorf("%s: %d bytes of %d", enc, len(out), len(wire))
			}
		}
		if n := s.budget.inUse(); n != 0 {
			t.Errorf("%d bytes stay in flight", n)
		}
	})
}
