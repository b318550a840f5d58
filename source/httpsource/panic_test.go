package httpsource_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"blobtail/internal/count"
	"blobtail/source/httpsource"
)

// A panic in one request ends that request: its connection is closed without an
// answer, so nothing is acknowledged. It keeps no memory, and other requests go on.
func TestPanic(t *testing.T) {
	reg := new(count.Registry)
	m := &memory{refuse: func(n int) error {
		if n == 1 {
			panic("a mistake of ours")
		}
		return nil
	}}
	var log strings.Builder
	source := httpsource.New(httpsource.Options{Accept: m, Metrics: reg})
	server := httptest.NewUnstartedServer(nil)
	server.Config = httpsource.NewServer(source, zerolog.New(&log))
	server.Start()
	defer server.Close()
	body := `{"time":"2026-11-20T12:00:00.5Z","msg":"x"}` + "\n"
	if resp, err := http.Post(server.URL+"/ingest/web", "", strings.NewReader(body)); err == nil {
		t.Errorf("answered %d", resp.StatusCode)
		resp.Body.Close()
	}
	resp, err := http.Post(server.URL+"/ingest/web", "", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || len(m.requests) != 1 {
		t.Errorf("the next request: %d, %d accepted", resp.StatusCode, len(m.requests))
	}
	if n := inFlight(t, reg); n != 0 {
		t.Errorf("%v bytes are still held", n)
	}
	server.Close() // the log is written until then
	if !strings.Contains(log.String(), "a mistake of ours") {
		t.Errorf("the log says nothing of it: %s", log.String())
	}
}
