package elastic_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"blobtail/internal/dev/testkit"
	"blobtail/source/elastic"
	"blobtail/source/sourcetest"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// source makes a source with this protocol.
func source(l *sourcetest.Log) http.Handler { return l.Source(elastic.New(elastic.Options{})) }

// stored returns the fields of the lines of a log.
func stored(t *testing.T, l *sourcetest.Log) (all []map[string]any) {
	t.Helper()
	l.Valid(t)
	for _, line := range l.Lines() {
		v := map[string]any{}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, v)
	}
	return all
}

// do sends a request with header lines "Name: value".
func do(t *testing.T, s http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	var pairs []string
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		pairs = append(pairs, name, value)
	}
	w := sourcetest.Send(s, method, path, strings.NewReader(body), pairs...)
	if got := w.Header().Get("X-Elastic-Product"); got != "Elasticsearch" {
		t.Errorf("%s %s: X-Elastic-Product: %q", method, path, got)
	}
	return w
}

// An item is one of an answer.
type item struct {
	Index  string `json:"_index"`
	ID     string `json:"_id"`
	Status int    `json:"status"`
	action string
}

// itemsOf checks the answer of a bulk request and returns its items.
func itemsOf(t *testing.T, w *httptest.ResponseRecorder) (all []item) {
	t.Helper()
	var a struct {
		Took   *int
		Errors *bool
		Items  []map[string]item
	}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d, %v: %.300s", w.Code, err, w.Body)
	}
	if a.Took == nil || a.Errors == nil || *a.Errors || !bytes.Contains(w.Body.Bytes(), []byte(`"errors":false,"items":[`)) {
		t.Fatalf("answer %.300s", w.Body)
	}
	for _, one := range a.Items {
		if len(one) != 1 {
			t.Fatalf("item %v", one)
		}
		for action, i := range one {
			i.action = action
			all = append(all, i)
		}
	}
	return all
}
