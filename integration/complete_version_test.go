package integration_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
)

// One of two ingesters answers in a version of /live that no other program knows yet.
// Every read names it and its version, through either ingester, and exits with 3.
// Once its records are in blobs and it has ended, reads are complete.
func TestCompleteNewerVersion(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	p := &promises{}
	b := newStation(t, at, p, "b", "--lane", "2")
	var newer atomic.Bool
	b.flags = append(b.flags, "--advertise", inNewerVersion(t, b.base, &newer))
	b.start()
	a := newStation(t, at, p, "a", "--lane", "1").start()
	a.take()
	b.take()
	read := newAudit(t, at, p)
	byA, byB := read.by("--live-url", a.base), read.by("--live-url", b.flags[len(b.flags)-1])
	byA.whole("one version")
	byB.whole("one version, and the other one is asked")

	newer.Store(true)
	of := "ingester " + b.id() + " at " + b.flags[len(b.flags)-1] + " speaks version 3 of /live; "
	byA.names("an ingester meets it", of+"the ingester that asked it knows versions up to 2")
	byB.names("a reader meets it", of+"this program knows versions up to 2: upgrade this program")
	read.names("a reader finds them by their rows", of)

	b.rest()
	if code, _ := b.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	byA.whole("it has ended")
}

// inNewerVersion returns the URL of a proxy that raises the version of answers.
func inNewerVersion(t *testing.T, base string, newer *atomic.Bool) string {
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(u) },
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			if r.Header.Get("Blobtail-Live") != "2" {
				t.Errorf("an answer of version %q", r.Header.Get("Blobtail-Live"))
			}
			if newer.Load() {
				r.Header.Set("Blobtail-Live", "3")
			}
			return nil
		},
	})
	t.Cleanup(s.Close)
	return s.URL
}
