package otlp_test

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"blobtail/record"
	"blobtail/source/sourcetest"
)

// FuzzProtobuf compares the lines of a body with those that the reference makes of the
// library's form of it, and the same as JSON.
func FuzzProtobuf(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		f.Add(inProtobuf(f, randomLogs(r)))
	}
	f.Add(ofRecord(message(5, deepProtobuf(500))))
	f.Add(message(1, message(1000, message(2, []byte("\x10\x09\x7b\x08\x01\x7c")))))
	f.Fuzz(func(t *testing.T, body []byte) {
		rec := checkBody(t, protobuf, body)
		logs, err := unmarshal(protobuf, body)
		// Two things are not compared: old libraries, which the library forgets, and bodies that
		// only the library takes for protobuf.
		if err != nil || bytes.Contains(body, []byte("\xc2\x3e")) || !rejectedByLimits(t, rec) {
			return
		}
		if n := compare(t, rec.Lines(), logs); n != rec.Rejected() {
			t.Fatalf("%d rejected, want %d", rec.Rejected(), n)
		}
		text := inJSON(t, logs)
		if logs, err = unmarshal(jsonType, text); err != nil {
			return // an id in a list of bytes, say
		}
		rec = checkBody(t, jsonType, text)
		if n := compare(t, rec.Lines(), logs); n != rec.Rejected() {
			t.Fatalf("%d rejected, want %d, in %s", rec.Rejected(), n, text)
		}
	})
}

// FuzzJSON checks that any body becomes lines and rejects.
func FuzzJSON(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		f.Add(inJSON(f, randomLogs(r)))
	}
	js, err := os.ReadFile("testdata/otel-js.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(js)
	f.Add([]byte(`{"resource_logs":[{"scope_logs":[{"scope":{},"log_records":[null,{"body":[1,{"a":2}],"traceId":"x","severityNumber":"SEVERITY_NUMBER_WARN3"}],"scope":1}],"resource":{"attributes":[{"value":{"kvlistValue":{"values":[{"value":"v","key":"k"}]}},"key":"\ud800"}]}}]} {}`))
	f.Fuzz(func(t *testing.T, body []byte) { checkBody(t, jsonType, body) })
}

// checkBody sends a body twice. Both times it becomes the same lines, each of them
// canonical, and the answer agrees with them.
func checkBody(t *testing.T, contentType string, body []byte) *sourcetest.Log {
	t.Helper()
	first, w := send(contentType, body)
	again, _ := send(contentType, body)
	if !slices.Equal(first.Lines(), again.Lines()) {
		t.Fatal("not the same lines again")
	}
	first.Valid(t)
	for _, l := range first.Lines() {
		if !utf8.ValidString(l) || strings.Contains(l, "\n") {
			t.Fatalf("%q is no line", l)
		}
	}
	rejected := first.Rejected()
	full := w.Code == http.StatusOK && (w.Body.Len() == 0 || w.Body.String() == "{}")
	if full != (rejected == 0) || w.Code != http.StatusOK && (w.Code != http.StatusBadRequest || rejected != len(first.Lines())) {
		t.Fatalf("%d %q with %d of %d lines rejected", w.Code, w.Body, rejected, len(first.Lines()))
	}
	return first
}

// rejectedByLimits reports whether all rejects are records beyond a limit of ours.
func rejectedByLimits(t *testing.T, r *sourcetest.Log) bool {
	for _, m := range rejected(t, r) {
		reason, _ := m["reason"].(string)
		if !strings.Contains(reason, "nested deeper") && !strings.Contains(reason, "256 fields") && !strings.Contains(reason, "ahead of") {
			return false
		}
	}
	return len(r.Lines()) < record.MaxFields
}
