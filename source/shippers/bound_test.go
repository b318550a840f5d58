package shippers_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"blobtail/record"
	"blobtail/source/body"
	"blobtail/source/httpsource"
	"blobtail/source/shippers"
)

// kept counts the bytes of lines that are appended to the log.
type kept struct{ bytes, lines int }

func (k *kept) Accept(_ context.Context, r *record.Request) (record.Receipt, error) {
	k.bytes += len(r.Data)
	k.lines += len(r.Lines)
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}, nil
}

// payer is a sender that may send everything but the services that begin with "no".
type payer struct{ bytes int64 }

func (p *payer) Admit(*http.Request) (httpsource.Sender, error) { return p, nil }
func (p *payer) ID() string                                     { return "payer" }
func (p *payer) Charge(n int64)                                 { p.bytes += n }
func (p *payer) Open(_ string, n int64, _ time.Duration) (time.Duration, error) {
	p.bytes += n
	return 0, nil
}

func (p *payer) Allow(service string) (string, bool) {
	if strings.HasPrefix(service, "no") {
		return service + " is not for this token", true
	}
	return "", false
}

// A body that becomes too many bytes of lines is refused at each door, early, with nothing of it
// kept, and its sender pays for the lines. The dense part of a body may be its end.
func TestBoundOfLines(t *testing.T) {
	const dense, entries = 4_500_000, 2_200_000
	label := strings.Repeat("x", 45)
	for name, c := range map[string]struct{ path, form, body string }{
		"text":              {"/ingest/web", "text/plain", strings.Repeat("a\n", dense)},
		"text, at the end":  {"/ingest/web", "text/plain", strings.Repeat(strings.Repeat("some words ", 10)+"\n", 100_000) + strings.Repeat("a\n", dense)},
		"rejected elements": {"/ingest/web", "application/json", "[" + strings.Repeat("0,", dense) + "0]"},
		"not allowed":       {"/ingest", "application/x-ndjson", strings.Repeat(`{"service":"no-1"}`+"\n", entries)},
		"Loki": {"/loki/api/v1/push", "application/json", `{"streams":[{"stream":{"service_name":"web","label":"` + label + `"},"values":[` +
			strings.TrimSuffix(strings.Repeat(`["1795500000000000000","a"],`, entries), ",") + `]}]}`},
		"OTLP": {"/v1/logs", "application/json", `{"resourceLogs":[{"resource":{"attributes":[{"key":"label","value":{"stringValue":"` + label + `"}}]},"scopeLogs":[{"logRecords":[` +
			strings.TrimSuffix(strings.Repeat(`{"body":{"stringValue":"a"}},`, entries), ",") + `]}]}]}`},
		"Datadog": {"/api/v2/logs", "application/json", "[" + strings.Repeat("{},", dense) + "{}]"},
	} {
		t.Run(name, func(t *testing.T) {
			var wire bytes.Buffer
			z, _ := gzip.NewWriterLevel(&wire, gzip.BestSpeed)
			fmt.Fprint(z, c.body)
			z.Close()
			k, guard := &kept{}, &payer{}
			s := httpsource.New(httpsource.Options{Accept: k, Guard: guard, Protocols: shippers.Protocols(shippers.Options{})})
			r := httptest.NewRequest(http.MethodPost, c.path, &wire)
			r.Header.Set("Content-Type", c.form)
			r.Header.Set("Content-Encoding", "gzip")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			figure := fmt.Sprintf("more than %d MiB of lines", body.MaxLines>>20)
			if text := w.Body.String(); w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(text, figure) || !strings.Contains(text, "send them in several, smaller ones") {
				t.Errorf("%d %.500s", w.Code, text)
			}
			if k.lines > 0 {
				t.Errorf("%d lines of it are kept", k.lines)
			}
			if most, least := int64(len(c.body)+2*body.MaxLines), int64(body.MaxLines-7*len(c.body)-1<<20); guard.bytes > most || guard.bytes < least {
				t.Errorf("%d bytes are charged for %d", guard.bytes, len(c.body))
			}
		})
	}
}

// The longest bodies of usual lines are taken.
func TestLongBodies(t *testing.T) {
	for name, c := range map[string]struct{ form, line string }{
		"text":    {"text/plain", "GET /basket 200 in 12 ms for user 4711\n"},
		"objects": {"application/x-ndjson", `{"time":"2026-11-20T11:04:05.1Z","level":"info","msg":"GET /basket","status":200}` + "\n"},
	} {
		k := &kept{}
		s := httpsource.New(httpsource.Options{Accept: k})
		n := body.MaxDecoded / len(c.line)
		r := httptest.NewRequest(http.MethodPost, "/ingest/web", strings.NewReader(strings.Repeat(c.line, n)))
		r.Header.Set("Content-Type", c.form)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != http.StatusOK || k.lines != n {
			t.Errorf("%s: %d %.300s; %d lines of %d, %d bytes", name, w.Code, w.Body, k.lines, n, k.bytes)
		}
	}
}
