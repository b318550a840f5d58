package elastic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"blobtail/record"
	"blobtail/source/elastic"
	"blobtail/source/httpsource"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is the clock of the tests.
var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// A memory is an Accepter that keeps the lines and the origins of its requests.
type memory struct {
	mu      sync.Mutex
	lines   []string
	origins []record.Origin
	err     error
}

func (m *memory) Accept(_ context.Context, r *record.Request) (record.Receipt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return record.Receipt{}, m.err
	}
	for _, l := range r.Lines {
		m.lines = append(m.lines, string(r.Data[l.Off:l.Off+l.Len]))
	}
	m.origins = append(m.origins, r.Origin)
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}, nil
}

// stored returns the fields of the lines, without the time.
func (m *memory) stored(t *testing.T) (all []map[string]any) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, line := range m.lines {
		v := map[string]any{}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, v)
	}
	return all
}

// newSource makes a source with this protocol.
func newSource(m *memory) *httpsource.Source {
	return httpsource.New(httpsource.Options{
		Accept: m, Now: func() time.Time { return noon }, Patience: time.Millisecond,
		Protocols: []httpsource.Protocol{elastic.New(elastic.Options{})},
	})
}

// do sends a request with header lines "Name: value".
func do(t *testing.T, s http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
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
