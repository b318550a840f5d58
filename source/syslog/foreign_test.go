package syslog_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/count"
	"blobtail/source/syslog"
)

// said is a log that a test reads while the source writes it.
type said struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// A request of HTTP and a handshake of TLS are no messages. Their senders and the log are told where
// they belong. Lines that only begin as a request are messages.
func TestForeign(t *testing.T) {
	const elsewhere = "this listener speaks syslog: HTTP goes to the listener for records, http://logs.example:8514/ingest/{service}"
	for _, row := range []struct {
		name, text string
		step       int
		answer     string
		want       []string
	}{
		{"a request", "POST /ingest/web HTTP/1.1\r\nHost: x\r\n\r\nhello\n", 1000, elsewhere, nil},
		{"a request, byte by byte", "GET /x HTTP/1.0\r\nHost: x\r\n\r\n", 1, elsewhere, nil},
		{"a long one", "PUT /x HTTP/1.1\r\n\r\n" + strings.Repeat("line\n", 100_000), 4096, elsewhere, nil},
		{"gRPC", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 1000, elsewhere, nil},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", 1000, "this listener speaks syslog without TLS", nil},
		{"TLS, byte by byte", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", 1, "this listener speaks syslog without TLS", nil},
		{"text", "GET some text\nERROR b\n<13>c\n", 1000, "", []string{"GET some text", "ERROR b", "c"}},
		{"a request later", "<13>a\nGET / HTTP/1.1\n", 3, "", []string{"a", "GET / HTTP/1.1"}},
		{"nothing", "", 1, "", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			j, log, reg := &journal{}, new(said), new(count.Registry)
			l := loopback(t)
			stop := run(t, syslog.Options{Accept: j, HTTP: "http://logs.example:8514", Log: zerolog.New(log), Metrics: reg}, l)
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			for text := row.text; len(text) > 0; text = text[min(row.step, len(text)):] {
				if _, err := io.WriteString(c, text[:min(row.step, len(text))]); err != nil {
					break // it has been answered
				}
				if row.step < 10 {
					time.Sleep(time.Millisecond)
				}
			}
			_ = c.(*net.TCPConn).CloseWrite()
			answer, _ := io.ReadAll(c) // a long sender may be cut off
			if err := stop(); err != nil {
				t.Error(err)
			}
			got, rejected := j.msgs(t)
			if !slices.Equal(got, row.want) || len(rejected) > 0 {
				t.Errorf("stored %q, rejected %q", got, rejected)
			}
			if row.answer == "" && len(answer) > 0 || !strings.Contains(string(answer), row.answer) || !strings.Contains(log.String(), row.answer) {
				t.Errorf("answer %q, log %s, want %q", answer, log, row.answer)
			}
			page := string(reg.Page())
			if told := strings.Contains(page, `blobtail_syslog_ended_total{reason="foreign"} 1`); told != (row.answer != "") {
				t.Error(page)
			}
		})
	}
}

// A listener with TLS says what its senders lack.
func TestForeignTLS(t *testing.T) {
	a := newAuthority(t)
	for text, want := range map[string]string{
		"<13>a\n": "it speaks without TLS, which the sender has to switch on",
		"POST /ingest/web HTTP/1.1\r\nHost: x\r\n\r\n": "it speaks HTTP, which goes to the listener for records (--listen of the ingester)",
	} {
		j, log := &journal{}, new(said)
		l := loopback(t)
		stop := run(t, syslog.Options{Accept: j, TLS: &tls.Config{Certificates: []tls.Certificate{a.sign(t)}, MinVersion: tls.VersionTLS12}, Log: zerolog.New(log)}, l)
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		send(t, c, text)
		_, _ = io.ReadAll(c)
		c.Close()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if !strings.Contains(log.String(), want) || len(j.all()) > 0 {
			t.Errorf("%q: %d lines, log %s", text, len(j.all()), log)
		}
	}
}

// curl and its like see the answer.
func TestForeignClient(t *testing.T) {
	l := loopback(t)
	run(t, syslog.Options{Accept: &journal{}}, l)
	resp, err := http.Post("http://"+l.Addr().String()+"/ingest/web", "text/plain", strings.NewReader(strings.Repeat("x\n", 1<<21)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 400 || !strings.Contains(string(body), "this listener speaks syslog") {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
}
