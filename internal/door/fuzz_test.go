package door_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"blobtail/internal/door"
)

// No header of a stranger makes the guard panic, and none opens a door: a request that gets
// through has a name of the server, and no origin but its own.
func FuzzDoors(f *testing.F) {
	f.Add("localhost", "", "", "gzip")
	f.Add("logs.example:443", "http://logs.example:443", "same-origin", "zstd;q=1")
	f.Add("evil.example", "http://evil.example", "cross-site", "*")
	f.Add("[::1]:8516", "null", "none", "gzip;q=,zstd;;q=2")
	guard := door.NewReads(door.ReadsOptions{Guard: door.New(door.Options{Hosts: []string{"logs.example"}}), Route: routes})
	f.Fuzz(func(t *testing.T, host, origin, site, accept string) {
		through := false
		h := guard.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			through = true
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(make([]byte, 2000))
		}))
		r := httptest.NewRequest("GET", "/q", nil)
		r.Host = host
		for name, value := range map[string]string{"Origin": origin, "Sec-Fetch-Site": site, "Accept-Encoding": accept} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if !through {
			if w.Code != 421 && w.Code != 403 {
				t.Errorf("refused with %d", w.Code)
			}
			return
		}
		name := strings.ToLower(host)
		if !strings.Contains(name, "localhost") && !strings.Contains(name, "logs.example") && !strings.Contains(name, "127.") && !strings.Contains(name, ":") {
			t.Errorf("Host %q got through", host)
		}
		if origin != "" && !strings.HasSuffix(strings.ToLower(origin), strings.ToLower(host)) && !strings.Contains(origin, "/") {
			t.Errorf("Origin %q got through at Host %q", origin, host)
		}
		if site == "cross-site" {
			t.Error("another site got through")
		}
		if w.Header().Get("Content-Encoding") == "zstd" && !strings.Contains(strings.ToLower(accept), "zstd") {
			t.Errorf("zstd for %q", accept)
		}
	})
}
