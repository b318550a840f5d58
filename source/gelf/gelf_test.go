package gelf_test

import (
	"bytes"
	"compress/flate"
	"slices"
	"strings"
	"testing"

	"blobtail/record"
	"blobtail/source/gelf"
	"blobtail/source/sourcetest"
)

func TestMessages(t *testing.T) {
	for _, row := range []struct{ name, body, want string }{
		{"of the specification", `{"version":"1.1","host":"example.org","short_message":"A short message","full_message":"Backtrace here\n\nmore stuff","timestamp":1795519265.702,"level":1,"_user_id":9001,"_some_info":"foo"}`,
			`"critical","service":"example.org","msg":"A short message","host":"example.org","full_message":"Backtrace here\n\nmore stuff","user_id":9001,"some_info":"foo"}`},
		{"a first line", `{"host":"h","short_message":"panic","full_message":"panic\n at x","timestamp":1795519265.702,"level":3}`, `"error","service":"h","msg":"panic\n at x","host":"h"}`},
		{"a service", `{"host":"h","short_message":"m","timestamp":1795519265.702,"level":"6","_app":"a","_service":"Shop","_host":"other"}`,
			`"info","service":"shop","msg":"m","host":"h","app":"a","host.2":"other","service.name":"Shop"}`},
		{"a message in place of a short one", `{"host":"h","message":"only","timestamp":1795519265.702,"level":3}`, `"error","service":"h","msg":"only","host":"h"}`},
		{"a message beside a short one", `{"host":"h","message":"m","short_message":"s","timestamp":1795519265.702,"level":3}`, `"error","service":"h","msg":"s","host":"h","message":"m"}`},
		{"a message and an empty short one", `{"host":"h","short_message":"","message":"m","full_message":"m\nx","timestamp":1795519265.702,"level":3}`, `"error","service":"h","msg":"m\nx","host":"h"}`},
		{"a facility", `{"host":"h","short_message":"ERROR: x","timestamp":"1795519265.702","facility":"cron"}`, `"error","service":"cron","msg":"ERROR: x","host":"h","facility":"cron"}`},
	} {
		for _, encoding := range []string{"", "gzip", "zstd", "deflate", "snappy"} {
			var log sourcetest.Log
			s := log.Source(gelf.New())
			b := sourcetest.Encode(t, encoding, []byte(row.body))
			for range 2 {
				if w := sourcetest.Send(s, "POST", "/gelf", bytes.NewReader(b), "Content-Encoding", encoding); w.Code != 202 || w.Body.Len() > 0 {
					t.Fatalf("%s: %d %s", row.name, w.Code, w.Body)
				}
			}
			want := `{"ts":"2026-11-24T11:21:05.702000000Z","level":` + row.want
			if got := log.Lines(); !slices.Equal(got, []string{want, want}) || log.Identities() != 1 {
				t.Errorf("%s\n%s\nwant %s", row.name, strings.Join(got, "\n"), want)
			}
		}
	}
}

// A client may say another compression than it uses, or several: the first bytes decide.
func TestCompression(t *testing.T) {
	const text = `{"version":"1.1","host":"h","_app":"a","short_message":"m","timestamp":1795519265.702}`
	var raw bytes.Buffer
	z, err := flate.NewWriter(&raw, 5)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write([]byte(text)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	bodies := map[string][]byte{"plain": []byte(" " + text), "BOM": []byte("\xef\xbb\xbf" + text), "raw deflate": raw.Bytes()}
	for _, encoding := range []string{"gzip", "deflate", "zstd"} {
		bodies[encoding] = sourcetest.Encode(t, encoding, []byte(text))
	}
	for _, header := range []string{"", "identity", "gzip", "x-gzip", "gzip,deflate", "GZIP, Deflate", "deflate", "zstd", "gzip, zstd", "br", "gzip, br", "snappy"} {
		for kind, b := range bodies {
			var log sourcetest.Log
			w := sourcetest.Send(log.Source(gelf.New()), "POST", "/gelf", bytes.NewReader(b), "Content-Encoding", header)
			want, lines := 202, 1
			switch {
			case strings.Contains(header, "br"):
				want, lines = 415, 0
			case header == "snappy":
				continue
			case kind == "raw deflate" && header != "deflate":
				want, lines = 400, 0 // nothing tells it
			}
			if kind == "raw deflate" && (header == "" || header == "identity") { // it is read as lines
				lines = len(log.Lines())
			}
			if w.Code != want || len(log.Lines()) != lines || want == 202 && !strings.HasSuffix(log.Lines()[0], `"service":"a","msg":"m","host":"h","app":"a"}`) {
				t.Errorf("%s as %q: %d %s %q", kind, header, w.Code, w.Body, log.Lines())
			}
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, row := range []struct {
		name, method, body string
		err                error
		status             int
		text               string
		lines, rejected    int
	}{
		{"several", "POST", `{"short_message":"a"}` + "\n" + `{"short_message":"b"}` + "\nx\n", nil, 202, "", 3, 1},
		{"no JSON", "POST", "hello", nil, 400, "nothing in the body could be read", 1, 1},
		{"a time that is none", "POST", `{"short_message":"a","timestamp":"soon"}`, nil, 202, "", 1, 0},
		{"a full log", "POST", `{"short_message":"a"}`, record.ErrFull, 429, "the log is full", 0, 0},
		{"GET", "GET", "", nil, 405, "with POST", 0, 0},
	} {
		log := sourcetest.Log{Err: row.err}
		w := sourcetest.Send(log.Source(gelf.New()), row.method, "/gelf", strings.NewReader(row.body))
		if w.Code != row.status || !strings.Contains(w.Body.String(), row.text) || len(log.Lines()) != row.lines || log.Rejected() != row.rejected {
			t.Errorf("%s: %d %s\n%s", row.name, w.Code, w.Body, strings.Join(log.Lines(), "\n"))
		}
	}
}

func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"version":"1.1","host":"h","short_message":"m","timestamp":1.5,"level":1,"_a":{"b":[1]}}`))
	f.Add([]byte(`{"_":1,"__":"","_service":null,"host":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var log sourcetest.Log
		if w := sourcetest.Send(log.Source(gelf.New()), "POST", "/gelf", bytes.NewReader(b)); w.Code != 202 && w.Code != 400 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		log.Valid(t)
	})
}
