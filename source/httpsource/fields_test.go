package httpsource_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"blobtail/record/meaning"
	"blobtail/source/httpsource"
)

// The names of a request come before those of the operator, part by part.
func TestNamedFields(t *testing.T) {
	m := &memory{}
	s := httpsource.New(httpsource.Options{Accept: m, Fields: meaning.NewMapping([]meaning.Naming{{Names: meaning.Names{Time: []string{"at"}, Level: []string{"prio"}}}})})
	send := func(query, key, body string) (int, string) {
		r := httptest.NewRequest(http.MethodPost, "/ingest"+query, strings.NewReader(body))
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	const src = `{"at":"2020-01-01T00:00:00.5Z","prio":"W","when":"2020-01-02T00:00:00.5Z","grade":"E","w, x":"m","team":"a"}`
	for _, row := range []struct{ query, want string }{
		{"", `{"ts":"2020-01-01T00:00:00.500000000Z","level":"warn","service":"unknown","msg":""`},
		{"?_level=none,+Grade+,prio", `{"ts":"2020-01-01T00:00:00.500000000Z","level":"error","service":"unknown","msg":""`},
		{"?_time=when&_level=&_service=team", `{"ts":"2020-01-02T00:00:00.500000000Z","level":"warn","service":"a","msg":""`},
		{"?_time=x&_time=when", `{"ts":"2020-01-02T00:00:00.500000000Z","level":"warn"`},
	} {
		before := len(m.requests)
		code, answer := send(row.query, "", src)
		if code != 200 || len(m.requests) != before+1 || !strings.HasPrefix(string(m.requests[before].Data), row.want) {
			t.Errorf("%s: %d %s %s; want %s", row.query, code, answer, m.requests[len(m.requests)-1].Data, row.want)
		}
	}
	// The same body under other names is another request; under the same ones it is a repeat.
	if _, answer := send("?_time=when&_level=&_service=team", "", src); !strings.Contains(answer, `"duplicate":true`) {
		t.Error(answer)
	}
	if code, answer := send("", "k", src); code != 200 {
		t.Error(code, answer)
	}
	if code, answer := send("?_level=grade", "k", src); code != http.StatusUnprocessableEntity {
		t.Error(code, answer)
	}
	for query, want := range map[string]string{
		"?_time=" + strings.Repeat("x", 256):          "query parameter _time: want names of fields of at most 255 bytes",
		"?_message=a" + strings.Repeat(",a", 32):      "name 33 fields; want at most 32",
		"?_time=a&_level=" + strings.Repeat("b,", 32): "name 33 fields",
	} {
		if code, answer := send(query, "", src); code != http.StatusBadRequest || !strings.Contains(answer, want) {
			t.Errorf("%s: %d %s", query, code, answer)
		}
	}
	for query, want := range map[string]string{
		"?_msg=a": "did you mean _message?", "?_lvl=a": "did you mean _level?", "?_tme=a": "did you mean _time?", "?_time_field=a": "did you mean _time?",
		"?_app=a": "did you mean _service?", "?service=a": "here (service); _time,", "?_time=at&b=1": "these query parameters have no effect here (b); _time,",
	} {
		if _, answer := send(query, "", src); !strings.Contains(answer, want) {
			t.Errorf("%s: %s", query, answer)
		}
	}
}
