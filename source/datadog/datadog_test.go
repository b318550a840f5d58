package datadog_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"blobtail/record"
	"blobtail/source/datadog"
	"blobtail/source/sourcetest"
)

const path = "/api/v2/logs"

func TestItems(t *testing.T) {
	for _, row := range []struct{ name, body, want string }{
		{"of an agent", `[{"message":"GET /","ddsource":"nginx","ddtags":"env:prod, team:a:b,canary","hostname":"h","service":"Web","status":"warn","timestamp":1795519265702}]`,
			`"warn","service":"web","msg":"GET /","ddsource":"nginx","hostname":"h","env":"prod","team":"a:b","canary":true,"service.name":"Web"}`},
		{"JSON in the message", `[{"message":"{\"level\":30,\"date\":1795519265702,\"msg\":\"x\"}","service":"a"}]`, `"info","service":"a","msg":"{\"level\":30,\"date\":1795519265702,\"msg\":\"x\"}"}`},
		{"without a service", `{"message":"ERROR: x","ddsource":"nginx","timestamp":1795519265702,"http":{"status":500}}`, `"error","service":"nginx","msg":"ERROR: x","ddsource":"nginx","http":{"status":500}}`},
		{"a tag with the name of an attribute", `{"message":"x","service":"a","host":"h","ddtags":"host:t","timestamp":"2026-11-24T11:21:05.702Z","level":"info","status":"error"}`,
			`"info","service":"a","msg":"x","host":"h","status":"error","host.2":"t"}`},
	} {
		for _, encoding := range []string{"", "gzip", "zstd", "deflate", "snappy"} {
			var log sourcetest.Log
			s := log.Source(datadog.New())
			b := sourcetest.Encode(t, encoding, []byte(row.body))
			for range 2 {
				if w := sourcetest.Send(s, "POST", path, bytes.NewReader(b), "Content-Encoding", encoding, "Content-Type", "application/json"); w.Code != 202 || w.Body.String() != "{}" {
					t.Fatalf("%s: %d %s", row.name, w.Code, w.Body)
				}
			}
			want := `{"ts":"2026-11-24T11:21:05.702000000Z","level":` + row.want
			if got := log.Lines(); !slices.Equal(got, []string{want, want}) || log.Identities() != 1 {
				t.Errorf("%s\n%s\nwant %s", row.name, strings.Join(got, "\n"), want)
			}
		}
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
		{"one bad item", "POST", "/v1/input", `[{"message":"a"},2,{"message":"b","message":"c"}]`, nil, 202, "{}", 3, 1},
		{"no JSON", "POST", path, "hello", nil, 400, `{"errors":["nothing`, 1, 1},
		{"nothing", "POST", path, "", nil, 202, "{}", 0, 0},
		{"a full log", "POST", path, `[{"message":"a"}]`, record.ErrFull, 429, `{"errors":["the log is full`, 0, 0},
		{"GET", "GET", path, "", nil, 405, `{"errors":["GET`, 0, 0},
		{"the key", "GET", "/api/v1/validate", "", nil, 200, `{"valid":true}`, 0, 0},
	} {
		log := sourcetest.Log{Err: row.err}
		w := sourcetest.Send(log.Source(datadog.New()), row.method, row.path, strings.NewReader(row.body))
		if w.Code != row.status || !strings.HasPrefix(w.Body.String(), row.answer) || len(log.Lines()) != row.lines || log.Rejected() != row.rejected {
			t.Errorf("%s: %d %s\n%s", row.name, w.Code, w.Body, strings.Join(log.Lines(), "\n"))
		}
	}
	// The time of the agent's header is that of an item without one.
	var log sourcetest.Log
	sourcetest.Send(log.Source(datadog.New()), "POST", path, strings.NewReader(`{"message":"a"}`), "Dd-Message-Timestamp", "1795519265702")
	if got := log.Lines(); len(got) != 1 || !strings.Contains(got[0], "11:21:05.702") {
		t.Errorf("%s", got)
	}
}

func FuzzItems(f *testing.F) {
	f.Add([]byte(`[{"message":"m","ddtags":"a:b,c,,:d","status":3,"timestamp":{}}]`))
	f.Add([]byte(`{"ddtags":null,"service":[],"ts":1,"msg":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var log sourcetest.Log
		if w := sourcetest.Send(log.Source(datadog.New()), "POST", path, bytes.NewReader(b)); w.Code != 202 && w.Code != 400 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		log.Valid(t)
	})
}
