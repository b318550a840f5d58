package datadog_test

import (
	"strings"
	"testing"

	"blobtail/source/datadog"
	"blobtail/source/sourcetest"
)

// The query of a request has defaults for its items, in JSON and in text.
func TestQuery(t *testing.T) {
	const text = "text/plain; charset=utf-8"
	for _, row := range []struct{ name, path, kind, body, want string }{
		{"winston, as Datadog's page says", path + "?dd-api-key=KEY&ddsource=nodejs&service=a1", "application/json", `{"level":"info","message":"it works"}`,
			`"level":"info","service":"a1","msg":"it works","ddsource":"nodejs"}`},
		{"a source alone", "/v1/input?ddtags=env:prod&hostname=h1&ddsource=B1", "application/json", `[{"message":"m"}]`,
			`"level":"","service":"b1","msg":"m","ddsource":"B1","hostname":"h1","env":"prod","service.name":"B1"}`},
		{"items that say it themselves", path + "?service=q&ddsource=q&hostname=q&ddtags=env:q,team:q", "application/json", `[{"message":"m","service":"own","ddsource":"s","hostname":"h","ddtags":"env:prod,x"}]`,
			`"level":"","service":"own","msg":"m","ddsource":"s","hostname":"h","env":"prod","x":true,"team":"q"}`},
		{"a service before the item's source", path + "?service=q", "", `{"message":"m","ddsource":"s"}`, `"level":"","service":"q","msg":"m","ddsource":"s"}`},
		{"text", path + "?service=web&ddsource=nginx&ddtags=env:prod", text, "ERROR: disk full\n", `"level":"error","service":"web","msg":"ERROR: disk full","ddsource":"nginx","env":"prod"}`},
		{"items as text, of the SDK for browsers", path + "?ddsource=browser&dd-request-id=1", text, `{"message":"m","status":"warn","service":"shop"}` + "\n", `"level":"warn","service":"shop","msg":"m","ddsource":"browser"}`},
		{"text without a query", path, text, "hello\n", `"level":"","service":"unknown","msg":"hello"}`},
	} {
		var log sourcetest.Log
		w := sourcetest.Send(log.Source(datadog.New()), "POST", row.path, strings.NewReader(row.body), "Content-Type", row.kind)
		want := `{"ts":"2026-11-24T12:00:00.000000000Z",` + row.want
		if got := strings.Join(log.Lines(), "\n"); w.Code != 202 || got != want {
			t.Errorf("%s: %d %s\n%s\nwant %s", row.name, w.Code, w.Body, got, want)
		}
		if strings.Contains(strings.Join(log.Lines(), ""), "KEY") {
			t.Errorf("%s: the key is stored", row.name)
		}
	}
}

// Requests with other defaults in their query are no repeats of each other. The key and the number
// of a request do not count.
func TestScope(t *testing.T) {
	var log sourcetest.Log
	s := log.Source(datadog.New())
	for _, query := range []string{"?service=a", "?service=b", "?service=a&dd-api-key=k", "?dd-request-id=5&service=a", "?ddsource=a"} {
		if w := sourcetest.Send(s, "POST", path+query, strings.NewReader(`{"message":"m","timestamp":1795519265702}`)); w.Code != 202 {
			t.Fatalf("%s: %d", query, w.Code)
		}
	}
	if log.Identities() != 3 {
		t.Errorf("%d different records, want 3", log.Identities())
	}
}

// A short body with a long query does not become lines without end.
func TestLongQuery(t *testing.T) {
	var log sourcetest.Log
	body := strings.Repeat(`{"message":"m"}`, 3000)
	w := sourcetest.Send(log.Source(datadog.New()), "POST", path+"?ddtags=x:"+strings.Repeat("a", 60_000), strings.NewReader(body))
	if got := log.Rejected(); w.Code != 202 || got < 700 || got > 900 {
		t.Errorf("%d, %d are rejected", w.Code, got)
	}
}
