package door_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"blobtail/internal/door"
)

// Behind a proxy a sender has the address of the last entry, with or without a port. Entries
// that cannot be read keep hosts apart.
func TestForwarded(t *testing.T) {
	for name, c := range map[string]struct {
		entries []string
		want    string
	}{
		"none":               {nil, "192.0.2.1:1234"},
		"empty":              {[]string{""}, "192.0.2.1:1234"},
		"an address":         {[]string{"10.0.0.7"}, "10.0.0.7:0"},
		"the last":           {[]string{"10.0.0.6", "10.0.0.8, 10.0.0.7"}, "10.0.0.7:0"},
		"with a port":        {[]string{"10.0.0.8:1, 10.0.0.7:61234"}, "10.0.0.7:0"},
		"IPv6":               {[]string{"2001:db8::7"}, "[2001:db8::7]:0"},
		"IPv6 with brackets": {[]string{"[2001:db8::7]"}, "[2001:db8::7]:0"},
		"IPv6 with a port":   {[]string{"[2001:DB8::7]:443"}, "[2001:db8::7]:0"},
		"a name":             {[]string{"host-7"}, "host-7:0"},
		"hidden":             {[]string{"_SEVKISEK:47011"}, "[_SEVKISEK:47011]:0"},
		"long":               {[]string{strings.Repeat("x", 500)}, strings.Repeat("x", 64) + ":0"},
	} {
		var got string
		h := door.Addressed(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr }))
		r := httptest.NewRequest("POST", "/ingest/web", nil)
		r.Header["X-Forwarded-For"] = c.entries
		h.ServeHTTP(httptest.NewRecorder(), r)
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
