package httpsource_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A typing error must not weaken the promise of an acknowledgement.
func TestAckUnknown(t *testing.T) {
	m := &memory{}
	for _, ack := range []string{"store", "durable", "log", "true", "stored;q=1", "stored, stored"} {
		wantStatus(t, send(t, newSource(m), "/ingest/web", "{}", "Ack", ack), 400, "send stored")
	}
	wantStatus(t, send(t, newSource(m), "/ingest/web", "{}", "Ack", "stored", "Ack", "x"), 400, "header Ack: x")
	if m.calls != 0 {
		t.Errorf("%d requests appended", m.calls)
	}
}

// A path that is not clean is not redirected: curl treats a redirect that it does not
// follow as success.
func TestNoRedirect(t *testing.T) {
	m := &memory{}
	s := newSource(m)
	for _, path := range []string{"/ingest//x", "//ingest/x", "/ingest/../x", "/ingest/./x", "/ingest/.", "/ingest/x/..", "/ingest/x//",
		"/a/../ingest/x", "/ingest/", "/ingest/x/", "http://x", "http://x//ingest/x"} {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader("{}"))
		a := serve(t, s, r)
		wantStatus(t, a, 404, "/ingest/{service}")
		if l := a.Header.Get("Location"); l != "" {
			t.Errorf("%s: sent on to %s", path, l)
		}
	}
	if m.calls != 0 {
		t.Errorf("%d requests appended", m.calls)
	}
	for _, path := range []string{"/ingest/%2e%2e", "/ingest/a%2F%2Fb", "/ingest/a..b", "/ingest/..a?x=//"} {
		if a := send(t, s, path, "{}"); a.Accepted != 1 {
			t.Errorf("%s: %+v", path, a)
		}
	}
}
