package api_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/reading/readingtest"
	"blobtail/serve/api"
	"blobtail/storage/storagetest"
)

// A stream of events over a store that takes long sends its header and its progress
// meanwhile. A tail that has nothing to say sends a comment every 10 s.
func TestSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := readingtest.New(t, 1)
		fill(h, 0, "web", then, 20)
		h.Flush()
		handler := api.New(api.Options{Reader: h.Reader()})
		h.Faults(func(op storagetest.Op, key string) storagetest.Fault {
			if op == storagetest.Get && strings.HasSuffix(key, ".log") {
				time.Sleep(5 * time.Second)
			}
			return storagetest.Fault{}
		})
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/records?service=web&form=events&live=off", http.NoBody))
		kinds := map[string]int{}
		for lines := bufio.NewScanner(w.Body); lines.Scan(); {
			kind, _, _ := strings.Cut(lines.Text(), ":")
			kinds[kind]++
		}
		if kinds[`{"record"`] != 20 || kinds[`{"progress"`] < 3 || kinds[`{"end"`] != 1 || !w.Flushed {
			t.Errorf("%v", kinds)
		}
		h.Faults(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 65*time.Second)
		defer cancel()
		w = httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/tail?service=web&n=0", http.NoBody).WithContext(ctx))
		if beats := strings.Count(w.Body.String(), "\n:\n"); beats < 1 || strings.Count(w.Body.String(), "\nid: ")+beats < 5 {
			t.Errorf("%d beats: %q", beats, w.Body)
		}
		h.Kill(0)
	})
}
