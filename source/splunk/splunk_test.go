package splunk_test

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"blobtail/record"
	"blobtail/source/sourcetest"
	"blobtail/source/splunk"
)

const path = "/services/collector/event/1.0"

func TestEvents(t *testing.T) {
	for _, row := range []struct{ name, query, body, want string }{
		{"text", "", `{"time":1795519265.702,"host":"h","source":"/var/log/x","sourcetype":"nginx","index":"main","event":"ERROR: no"}`,
			`"error","service":"nginx","msg":"ERROR: no","host":"h","source":"/var/log/x","sourcetype":"nginx","index":"main"}`},
		{"winston-splunk-httplogger", "", `{"time":"1795519265.702","host":"h","source":"winston","sourcetype":"_json","index":"main","event":{"message":{"msg":"a","n":1},"severity":"warn"}}`,
			`"warn","service":"winston","msg":"a","n":1,"host":"h","source":"winston","sourcetype":"_json","index":"main"}`},
		{"a message of JSON in a text", "",
			`{"time":1795519265.702,"event":{"message":" {\"app\":\"pay\",\"msg\":\"a\",\"severity\":\"x\"}","severity":"warn"}}`,
			`"warn","service":"pay","msg":"a","severity.2":"x"}`},
		{"a message that is an object among others", "", `{"time":1795519265.702,"event":{"level":"warn","message":{"class":"E"},"n":1}}`,
			`"warn","service":"unknown","msg":"{\"class\":\"E\"}","n":1}`},
		{"a message of JSON in a text, among others", "", `{"time":1795519265.702,"event":{"level":"warn","message":"{\"a\":1}","n":1}}`,
			`"warn","service":"unknown","msg":"{\"a\":1}","n":1}`},
		{"a message without members", "", `{"time":1795519265.702,"event":{"message":{ },"severity":"warn"}}`,
			`"warn","service":"unknown","msg":"{}"}`},
		{"a message of words", "", `{"time":1795519265.702,"event":{"message":"{a: b}","n":1}}`,
			`"","service":"unknown","msg":"{a: b}","n":1}`},
		{"an object", "", `{"time":1795519265.702,"event":{"message":"m","level":"warning","service":"Shop","n":1,"host":"inner"},"host":"outer"}`,
			`"warn","service":"shop","msg":"m","n":1,"host":"inner","host.2":"outer","service.name":"Shop"}`},
		{"an object in a text", "",
			`{"event":"{\"level\":\"error\",\"app\":\"Pay\",\"msg\":\"\\\"b\\\"\",\"ts\":1795519265.702}\n","source":"w"}`,
			`"error","service":"pay","msg":"\"b\"","source":"w","service.name":"Pay"}`},
		{"no object in a text", "", `{"time":1795519265.702,"event":"{\"n\":1} and {"}`, `"","service":"unknown","msg":"{\"n\":1} and {"}`},
		{"another time in a text of JSON", "",
			`{"time":1795519265.702,"event":{"message":"{\"time\":\"2026-11-24T11:21:05.7021Z\",\"service\":\"pay\",\"msg\":\"a\"}",` +
				`"service":"web"}}`,
			`"","service":"web","msg":"a","service.2":"pay","ts.original":"2026-11-24T11:21:05.702100000Z"}`},
		{"another service in a text of JSON", "",
			`{"time":1795519265.702,"event":"{\"time\":1795519265.702,\"service\":\"pay\",\"msg\":\"a\"}","fields":{"service":"web"}}`,
			`"","service":"pay","msg":"a","service.original":"web"}`},
		{"the event's own time", "", `{"event":{"message":"m","time":"2026-11-24T11:21:05.702Z"},"index":"web"}`, `"","service":"web","msg":"m","index":"web"}`},
		{"fields", "", `{"time":1795519265.702,"event":"m","fields":{"service.name":"pay","severity":"error","k":["a","b"]}}`, `"error","service":"pay","msg":"m","k":["a","b"]}`},
		{"the query", "?source=cron&host=q%22", `{"time":1795519265.702,"event":"m"}`, `"","service":"cron","msg":"m","host":"q\"","source":"cron"}`},
		{"a number", "", `{"time":1795519265.702,"event":42}`, `"","service":"unknown","msg":"42"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, encoding := range []string{"", "gzip", "zstd", "deflate", "snappy"} {
				var log sourcetest.Log
				s := log.Source(splunk.New())
				b := sourcetest.Encode(t, encoding, []byte(row.body))
				for range 2 {
					w := sourcetest.Send(s, "POST", path+row.query, bytes.NewReader(b), "Content-Encoding", encoding, "Content-Type", "application/x-www-form-urlencoded")
					if w.Code != 200 || w.Body.String() != `{"text":"Success","code":0}` {
						t.Fatalf("%d %s", w.Code, w.Body)
					}
				}
				want := `{"ts":"2026-11-24T11:21:05.702000000Z","level":` + row.want
				if got := log.Lines(); !slices.Equal(got, []string{want, want}) || log.Identities() != 1 {
					t.Errorf("%s\nwant %s", strings.Join(got, "\n"), want)
				}
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	for _, row := range []struct {
		name, method, path, body string
		err                      error
		status                   int
		answer                   string
		lines, rejected          int
	}{
		{"several", "POST", path, `{"event":"a"}{"event":"b"} [1]` + "\n" + `{"event":"c"}`, nil, 200, `{"text":"Success","code":0}`, 3, 1},
		{"no event", "POST", path, `{"time":1}{"event":""}`, nil, 200, `{"text":"Success","code":0}`, 2, 2},
		{"nothing", "POST", path, "", nil, 400, `{"text":"No data","code":5}`, 0, 0},
		{"no JSON", "POST", path, "hello", nil, 400, `{"text":"Invalid data format","code":6,"reason":`, 1, 1},
		{"raw", "POST", "/services/collector/raw?source=app", "one\ntwo\n", nil, 200, `{"text":"Success","code":0}`, 2, 0},
		{"a full log", "POST", "/services/collector", `{"event":"a"}`, record.ErrFull, 503, `{"text":"Server is busy","code":9,`, 0, 0},
		{"GET", "GET", path, "", nil, 405, `{"text":"Invalid data format","code":6,`, 0, 0},
		{"health", "GET", "/services/collector/health/1.0", "", nil, 200, `{"text":"HEC is healthy","code":17}`, 0, 0},
		{"no such path", "POST", "/services/collector/ack", "{}", nil, 404, `{"error":`, 0, 0},
	} {
		log := sourcetest.Log{Err: row.err}
		w := sourcetest.Send(log.Source(splunk.New()), row.method, row.path, strings.NewReader(row.body))
		if w.Code != row.status || !strings.HasPrefix(w.Body.String(), row.answer) || len(log.Lines()) != row.lines || log.Rejected() != row.rejected {
			t.Errorf("%s: %d %s\n%s", row.name, w.Code, w.Body, strings.Join(log.Lines(), "\n"))
		}
		if row.status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", row.name)
		}
	}
}

// Lines of text have the metadata of the query, and two hosts that send the same are two.
func TestRaw(t *testing.T) {
	var log sourcetest.Log
	s := log.Source(splunk.New())
	for _, host := range []string{"h1", "h2", "h1"} {
		sourcetest.Send(s, "POST", "/services/collector/raw?sourcetype=app&host="+host, strings.NewReader("2026-11-24T11:00:00.5Z one\n"+`{"time":"2026-11-24T11:00:01.5Z","msg":"two","level":"warn"}`))
	}
	want := []string{
		`{"ts":"2026-11-24T11:00:00.500000000Z","level":"","service":"app","msg":"2026-11-24T11:00:00.5Z one","host":"h1","sourcetype":"app"}`,
		`{"ts":"2026-11-24T11:00:01.500000000Z","level":"warn","service":"app","msg":"two","host":"h1","sourcetype":"app"}`,
	}
	if got := log.Lines(); !slices.Equal(got[:2], want) || log.Identities() != 4 {
		t.Errorf("%d identities\n%s", log.Identities(), strings.Join(got, "\n"))
	}
	log = sourcetest.Log{}
	sourcetest.Send(log.Source(splunk.New()), "POST", path+"?host="+strings.Repeat("h", 12_000), strings.NewReader(strings.Repeat(`{"event":1}`, 20_000)))
	if n, rejected := len(log.Lines()), log.Rejected(); n != 20_000 || rejected < 5_000 || rejected > 12_000 {
		t.Errorf("%d lines, %d rejected", n, rejected)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(`{"time":"1","host":"h","event":{"message":"m","level":3},"fields":{"a":1,"level":"x"}}{"event":"x"}`))
	f.Add([]byte(`{"event":{"message":"{\"a\":1}","severity":"x"}}{"event":"{\"b\":{}}"}{"event":{"message":{"c":[]}}}`))
	f.Add([]byte(`{"event":null}{"event":{},"fields":[],"time":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var log sourcetest.Log
		if w := sourcetest.Send(log.Source(splunk.New()), "POST", path, bytes.NewReader(b)); w.Code != 200 && w.Code != 400 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		log.Valid(t)
	})
}
