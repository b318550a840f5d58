package testenv

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// Telltale serves a storage service that repeats each request in its answer, as Azure does in
// a refusal. way is how it fails: refused, nonsense, missing, hung up, or nobody listens.
func Telltale(t testing.TB, way string) (endpoint string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		plain, _ := url.QueryUnescape(r.URL.RawQuery)
		said := fmt.Sprintf("%s %s %s Authorization: %s", r.URL, r.URL.RawQuery, plain, r.Header.Get("Authorization"))
		switch way {
		case "refused":
			w.Header().Set("x-ms-error-code", "AuthenticationFailed")
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><Error><Code>AuthenticationFailed</Code><Message>%s</Message><AuthenticationErrorDetail>%s</AuthenticationErrorDetail></Error>`, said, said)
		case "nonsense":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<html>%s", said)
		case "missing":
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, said)
		case "hung up":
			panic(http.ErrAbortHandler)
		}
	}))
	server.Config.ErrorLog = nil
	if way == "nobody" {
		server.Close()
	} else {
		t.Cleanup(server.Close)
	}
	return server.URL
}
