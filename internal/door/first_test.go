package door_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/dev/testkit/certstest"
	"blobtail/internal/door"
)

// lines is a log that a test reads while a server writes it.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// heard starts a server on a listener that looks at first bytes. It answers with the body of each
// request.
func heard(t *testing.T, sealed *tls.Config) (address string, log *lines) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log, address = new(lines), l.Addr().String()
	l = door.FirstBytes(l, sealed != nil, zerolog.New(log))
	if sealed != nil {
		l = tls.NewListener(l, sealed)
	}
	srv := door.NewReads(door.ReadsOptions{Guard: door.New(door.Options{}), Route: func(string) door.Route { return door.Route{} }}).NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }), zerolog.New(log))
	done := make(chan struct{})
	go func() {
		_ = srv.Serve(l)
		close(done)
	}()
	t.Cleanup(func() {
		_ = srv.Close()
		<-done
	})
	return address, log
}

// spoken sends bytes, some at a time, and returns the answer.
func spoken(t *testing.T, address, text string, step int) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	for len(text) > 0 {
		n := min(step, len(text))
		if _, err := io.WriteString(c, text[:n]); err != nil {
			break // it was answered before
		}
		if text = text[n:]; step < 100 {
			time.Sleep(time.Millisecond)
		}
	}
	answer, _ := io.ReadAll(c) // the server may close with bytes unread
	return string(answer)
}

const request = "POST /ingest/web HTTP/1.1\r\nHost: logs.example:8514\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"

// A client with another protocol is told so, and so is the operator.
func TestFirstBytes(t *testing.T) {
	address, log := heard(t, nil)
	for text, want := range map[string]string{
		request:                              "\r\n\r\nhi",
		"\x16\x03\x01\x02\x00\x01\x00\x01":   "use http:// in the client, or start this program with --tls-cert and --tls-key",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":   "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"<13>1 2026-11-20T10:00:00Z h a -":   "syslog has a listener of its own, --syslog",
		"46 <13>1 2026-11-20T10:00:00Z h -":  "syslog has a listener of its own, --syslog",
		"2W\x00\x00\x00\x01":                 "output.elasticsearch",
		`{"msg":"x"}` + "\n":                 "send records with POST to /ingest/{service}",
		"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n": "the PROXY protocol is not taken",
		"GET /\r\n\r\n":                      "these bytes are no request",
		"hello\r\n":                          "these bytes are no request",
	} {
		if got := spoken(t, address, text, 1000); !strings.Contains(got, want) || strings.Contains(got, "\r\n\r\n400 Bad Request") {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := spoken(t, address, request, 1); !strings.HasSuffix(got, "\r\n\r\nhi") {
		t.Errorf("byte by byte: %q", got)
	}
	if n := strings.Count(log.String(), "a client spoke no HTTP: "); n == 0 || n > 8 {
		t.Errorf("%d lines in the log:\n%s", n, log)
	}
}

// A request without TLS is told the URL with it, also behind a long body.
func TestFirstBytesSealed(t *testing.T) {
	authority := certstest.New(t)
	address, log := heard(t, &tls.Config{Certificates: []tls.Certificate{authority.Server("127.0.0.1", time.Hour)}, MinVersion: tls.VersionTLS12})
	const want = "Client sent an HTTP request to an HTTPS server. Use https://logs.example:8514\n"
	for _, step := range []int{1, 7, 1000} {
		if got := spoken(t, address, request, step); !strings.HasPrefix(got, "HTTP/1.1 400 ") || !strings.HasSuffix(got, want) {
			t.Errorf("%d bytes at a time: %q", step, got)
		}
	}
	for _, host := range []string{"", "a b", "<x>", strings.Repeat("a", 400)} {
		if got := spoken(t, address, strings.Replace(request, "logs.example:8514", host, 1), 10_000); !strings.HasSuffix(got, "server. Use https://\n") {
			t.Errorf("host %.20q: %q", host, got)
		}
	}
	resp, err := http.Post("http://"+address+"/ingest/web", "text/plain", strings.NewReader(strings.Repeat("x", 4<<20)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 400 || !strings.Contains(string(body), "Use https://"+address) {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
	if !strings.Contains(log.String(), "the client sent HTTP to a listener with TLS: it has to use https://") {
		t.Errorf("the log:\n%s", log)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Pool()}}}
	defer client.CloseIdleConnections()
	resp, err = client.Post("https://"+address+"/", "text/plain", strings.NewReader("hi"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "hi" {
		t.Errorf("%q", body)
	}
}
