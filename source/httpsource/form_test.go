package httpsource_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"blobtail/source/body"
	"blobtail/source/gelf"
	"blobtail/source/sourcetest"
)

// Forms are read as fields: those of Python's HTTPHandler, in the query of a GET or in a body. Other
// bodies of the type are what they look like.
func TestForms(t *testing.T) {
	const python = "name=shop.db&msg=disk+%26+cpu+90%25+%3D+full+%C3%A9&args=%28%29&levelname=WARNING&levelno=30" +
		"&filename=py.py&exc_text=None" +
		"&funcName=%3Cmodule%3E&created=1795176005.0120553&msecs=12.0&thread=140001358891904&user.id=7"
	const fields = `{"ts":"2026-11-20T12:00:05.012055300Z","level":"warn","service":"web","msg":"disk & cpu 90% = full é",` +
		`"name":"shop.db","args":"()",` +
		`"levelno":30,"filename":"py.py","exc_text":"None","funcName":"<module>","msecs":12.0,"thread":140001358891904,"user.id":7}`
	const noon = `{"ts":"2026-11-24T12:00:00.000000000Z","level":`
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/ingest/web", python, fields},
		{"GET", "/ingest/web?" + python, "", fields},
		{"POST", "/ingest", "app=Pay&level=error&msg=a%0Ab%zz&n=007&n=-1.5&e=",
			noon + `"error","service":"pay","msg":"a%0Ab%zz","service.name":"Pay","n":"007","n.2":-1.5,"e":""}`},
		{"POST", "/ingest/web", "level=error msg=x&y=2", noon + `"error","service":"web","msg":"level=error msg=x&y=2"}`},
		{"POST", "/ingest/web", `{"msg":"a=b&c=d"}`, noon + `"","service":"web","msg":"a=b&c=d"}`},
	} {
		var log sourcetest.Log
		w := sourcetest.Send(log.Source(gelf.New()), c.method, c.path, strings.NewReader(c.body), "Content-Type", "application/x-www-form-urlencoded")
		if got := strings.Join(log.Lines(), "\n"); w.Code != http.StatusOK || got != c.want {
			t.Errorf("%s %.30s: %d %s\n%s\nwant %s", c.method, c.path, w.Code, w.Body, got, c.want)
		}
	}
	for _, path := range []string{"/ingest/web", "/ingest/web?_time=when", "/ingest/web?a=b+c+d"} {
		w := httptest.NewRecorder()
		newSource(&memory{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
		}
	}
}

// The events of Serilog's sink, and of seq-logging of Node, have their fields, level and time.
func TestSeq(t *testing.T) {
	const clef = "application/vnd.serilog.clef; charset=utf-8"
	const seconds = `{"ts":"2026-11-24T11:21:05.`
	for _, c := range []struct{ name, path, contentType, body, want string }{
		{"Serilog", "/api/events/raw", clef,
			"{\"@t\":\"2026-11-24T11:21:05.7020000Z\",\"@mt\":\"User {Name} in\",\"Name\":\"ann\",\"Application\":\"Shop\"}\r\n" +
				"{\"@t\":\"2026-11-24T11:21:05.0000000Z\",\"@mt\":\"no\",\"@l\":\"Fatal\",\"@x\":\"System.E: x\\r\\n   at A.B()\"}\r\n",
			seconds + `702000000Z","level":"info","service":"shop","msg":"User {Name} in","Name":"ann","Application":"Shop"}` + "\n" +
				seconds + `000000000Z","level":"critical","service":"unknown","msg":"no","@x":"System.E: x\r\n   at A.B()"}`},
		{"the newer path", "/ingest/clef", clef, `{"@t":"2026-11-24T11:21:05Z","@m":"a","@l":"Warning"}`,
			seconds + `000000000Z","level":"warn","service":"unknown","msg":"a"}`},
		{"seq-logging", "/api/events/raw", "application/json",
			`{"Events":[{"Timestamp":"2026-11-24T11:21:05.702Z","Level":"Error","MessageTemplate":"{disk}","Properties":{"disk":"sda"}},
				{"Timestamp":"2026-11-24T11:21:05Z","Level":"Warning","MessageTemplate":"a","Properties":{"Application":"Shop"}}]}`,
			seconds + `702000000Z","level":"error","service":"unknown","msg":"{disk}","Properties":{"disk":"sda"}}` + "\n" +
				seconds + `000000000Z","level":"warn","service":"shop","msg":"a","Properties":{"Application":"Shop"}}`},
		{"a service called clef", "/ingest/clef", "application/json", `{"@t":"2026-11-24T11:21:05Z","@m":"a"}`,
			seconds + `000000000Z","level":"info","service":"clef","msg":"a"}`},
	} {
		var log sourcetest.Log
		w := sourcetest.Send(log.Source(gelf.New()), "POST", c.path, strings.NewReader(c.body), "Content-Type", c.contentType)
		if got := strings.Join(log.Lines(), "\n"); got != c.want || w.Code != http.StatusOK {
			t.Errorf("%s: %d %s\n%s\nwant %s", c.name, w.Code, w.Body, got, c.want)
		}
	}
	var log sourcetest.Log
	w := sourcetest.Send(log.Source(gelf.New()), "POST", "/api/events/raw", strings.NewReader("hello"), "Content-Type", clef)
	if w.Code != http.StatusBadRequest || log.Rejected() != 1 {
		t.Errorf("no event: %d %s, %d rejected", w.Code, w.Body, log.Rejected())
	}
}

// FuzzForms sends any bytes as a form: each is stored, or rejected with a reason.
func FuzzForms(f *testing.F) {
	for _, seed := range []string{"level=error&msg=a+b%0a", "a=1&a=-1.5e3&b=%zz&c=", "a=b&a=b&%61=c", "{}", "a=b"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var log sourcetest.Log
		w := sourcetest.Send(log.Source(gelf.New()), "POST", "/ingest", bytes.NewReader(b), "Content-Type", body.URLForm)
		if n := len(log.Lines()) + log.Rejected(); w.Code == http.StatusOK && body.IsURLForm(b) && n != 1 {
			t.Errorf("%d records of %q: %d %s", n, b, w.Code, w.Body)
		}
		log.Valid(t)
	})
}
