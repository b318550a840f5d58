package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// An ingester believes the header of a proxy only if it was told of one.
func TestForwarded(t *testing.T) {
	for proxy, want := range map[bool]string{true: "10.0.0.7:0", false: "192.0.2.1:1234"} {
		var got string
		s := &security{proxy: proxy}
		h := s.addressed(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr }))
		r := httptest.NewRequest("POST", "/ingest/web", nil)
		r.Header.Set("X-Forwarded-For", "10.0.0.7")
		h.ServeHTTP(httptest.NewRecorder(), r)
		if got != want {
			t.Errorf("proxy %v: %q, want %q", proxy, got, want)
		}
	}
}
