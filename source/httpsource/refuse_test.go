package httpsource_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"blobtail/source/httpsource"
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

// An accepted request gets a note if the sender may have meant something else. The bodies of other
// clients get none.
func TestNote(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	long := strings.Repeat("word ", 300)
	for _, c := range []struct{ path, contentType, body, want string }{
		{"/ingest/web?time_field=x&a=1", "", "one", "no query parameter has an effect here (a, time_field); did you mean _time? _time, _level, _message and _service name fields, or give the fields one of these names: ts,"},
		{"/ingest/web?lim.s3cret", "", "one", "no query parameter has an effect here (...); _time, _level"},
		{"/ingest/web?Api-Key_1=x&b.s3cret=1&c%0as3cret&d=1", "", "one", "has an effect here (Api-Key_1, ...); _time, _level"},
		{"/ingest/web?" + strings.Repeat("a", 33) + "&" + strings.Repeat("b", 32), "", "one", "here (..., " + strings.Repeat("b", 32) + "); _time, _level"},
		{"/ingest/web?", "", "one", ""},
		{"/ingest/web", form, "name=shop&msg=no+disk&levelname=ERROR&args=%28%29&text=" + strings.Repeat("a", 2000), ""},
		{"/ingest/web", form, "disk=full", ""},
		{"/ingest/web", form, "level=error msg=x&y=2", ""},
		{"/ingest/web", form, "2026-11-20 15:04 one2026-11-20 15:04 two", "the body is one line of 40 bytes; if the file has more lines, curl -d removed the line feeds: send it with --data-binary"},
		{"/ingest/web", form + "; charset=utf-8", "[2026-11-20] one[2026-11-20] two", "--data-binary"},
		{"/ingest/web?x=y", form, long, "service, service.name, app; the body is one line"},
		{"/ingest/web", "text/plain", long, ""},
		{"/ingest/web", "", long, ""},
		{"/ingest/web", form, "2026-11-20 15:04 one\n2026-11-20 15:04 two", ""},
		{"/ingest/web", form, "a b", ""},
		{"/ingest/web", form, "2026-11-20 15:04 a single line", ""},
		{"/ingest/web", form, `{"msg":"` + long + `"}`, ""},
		{"/ingest/web", form, `[{"msg":"` + long + `"}]`, ""},
	} {
		a := send(t, newSource(&memory{}), c.path, c.body, "Content-Type", c.contentType)
		a.Note, _, _ = strings.Cut(a.Note, "no time found in ") // none of them has one
		if a.Accepted == 0 || (c.want == "") != (a.Note == "") || !strings.Contains(a.Note, c.want) {
			t.Errorf("%s, %.40s: %d accepted, note %q; want %q", c.path, c.body, a.Accepted, a.Note, c.want)
		}
	}
}

// A request that belongs to the other listener is told its address.
func TestForOperators(t *testing.T) {
	s := newSource(&memory{}, func(o *httpsource.Options) { o.Admin = "127.0.0.1:8515" })
	for _, path := range []string{"/metrics", "/healthz", "/readyz", "/flush", "/drain", "/debug/pprof/heap"} {
		wantStatus(t, send(t, s, path, ""), 404, path+" is answered at the admin listener, 127.0.0.1:8515 (--admin of ingest)")
	}
	wantStatus(t, send(t, s, "/other", ""), 404, "no such path /other; send records to")
	wantStatus(t, send(t, newSource(&memory{}), "/metrics", ""), 404, "/metrics is answered at the admin listener, 127.0.0.1:8515 unless told otherwise (--admin of ingest)")
}
