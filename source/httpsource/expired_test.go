package httpsource_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"blobtail/internal/count"
	"blobtail/record"
	"blobtail/source/httpsource"
)

// olds counts the lines that report themselves as old.
func olds(r *record.Request) (n int) {
	for _, l := range r.Lines {
		if r.Services[l.Service] != record.RejectedService && bytes.Contains(r.Data[l.Off:l.Off+l.Len], []byte(`"msg":"old"`)) {
			n++
		}
	}
	return n
}

// The answer has the number of expired records, if there are any. They are neither
// accepted nor rejected, and are no error of the client.
func TestExpired(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{`{"ts":"2026-11-20T11:00:00Z","msg":"new"}`, `{"accepted":1,"rejected":0}`},
		{`{"ts":"2026-11-20T11:00:00Z","msg":"new"}` + "\n" + `{"ts":"2026-11-20T11:00:00Z","msg":"old"}` + "\n" + `{"ts":"2026-11-20T11:00:00Z","msg":"old"}`, `{"accepted":1,"rejected":0,"expired":2}`},
		{`{"ts":"2026-11-20T11:00:00Z","msg":"old"}`, `{"accepted":0,"rejected":0,"expired":1}`},
		{`{"ts":"2026-11-20T11:00:00Z","msg":"old"}` + "\n" + `{"msg":`, `{"accepted":0,"rejected":1,"expired":1,"errors":[{"index":1,`},
	} {
		w := httptest.NewRecorder()
		newSource(&memory{expired: olds}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/ingest/web", strings.NewReader(tt.body)))
		if w.Code != 200 || !strings.HasPrefix(w.Body.String(), tt.want) {
			t.Errorf("%s: %d %s, want %s", tt.body, w.Code, w.Body, tt.want)
		}
	}
}

// The answer counts all parts of a body. A rejected record is reported by its number
// in the body, also after expired ones.
func TestExpiredInParts(t *testing.T) {
	var body strings.Builder
	const n = 150_000
	for i := range n {
		if i%3 == 0 {
			body.WriteString("{\"msg\":\"old\"}\n")
		} else {
			body.WriteString("{\"msg\":\"new\"}\n")
		}
	}
	body.WriteString(`{"`)
	reg := new(count.Registry)
	s := newSource(&memory{expired: olds}, func(o *httpsource.Options) { o.Metrics = reg })
	a := send(t, s, "/ingest/web", body.String())
	if a.Accepted != n/3*2 || a.Expired != n/3 || a.Rejected != 1 || len(a.Errors) != 1 || a.Errors[0].Index != n {
		t.Errorf("%+v", a)
	}
	want := fmt.Sprintf(`# HELP blobtail_http_records_total Records of HTTP requests that were appended to the log, by result; rejected ones go to the service _rejected.
# TYPE blobtail_http_records_total counter
blobtail_http_records_total{result="accepted"} %d
blobtail_http_records_total{result="duplicate"} 0
blobtail_http_records_total{result="rejected"} 1
`, n/3*2)
	if page := string(reg.Page()); !strings.Contains(page, want) {
		t.Error(page)
	}
}
