package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"blobtail/reading/form"
	"blobtail/reading/readingtest"
	"blobtail/serve/api"
)

// Any URL of a stranger gets an answer of the API: an error names the mistake, and no record is in
// an answer that has none of the services.
func FuzzRequest(f *testing.F) {
	h := readingtest.New(f, 1)
	fill(h, 0, "web", then, 20)
	h.Flush()
	handler := api.New(api.Options{Reader: h.Reader()})
	for _, seed := range routes(h, "1795176000000000000-01a20ee7bb09c529edd5b5997044effb-2") {
		path, query, _ := strings.Cut(seed, "?")
		f.Add(path, query)
	}
	f.Add("records", "service=web&from=-1y&to=now&level=warn%2B&text=%00&expr=(a|b)*&where=status+%3E+1&not=1&fold=1")
	f.Add("histogram", "service=web&by=1ns")
	f.Add("count", "logql=%7Bservice%3D%22web%22%7D+%7C+json+%7C+status+%3E+200")
	f.Fuzz(func(t *testing.T, path, query string) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // a tail has no end
		defer cancel()
		begun := time.Now()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/", http.NoBody)
		r.URL = &url.URL{Path: api.Prefix + path, RawQuery: query}
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if p := recover(); p != nil && p != http.ErrAbortHandler {
					panic(p)
				}
			}()
			handler.ServeHTTP(w, r)
		}()
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		switch kind := w.Header().Get("Content-Type"); {
		case w.Code >= 400:
			var p form.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || kind != form.Trouble || p.Status != w.Code || p.Detail == "" {
				t.Errorf("%d %s %v: %s", w.Code, kind, err, w.Body)
			}
			if w.Code >= 500 && ctx.Err() == nil {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
		case kind == form.JSON && !json.Valid(w.Body.Bytes()):
			t.Errorf("no JSON: %s", w.Body)
		}
	})
}
