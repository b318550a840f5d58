package live_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"blobtail/reading/unflushed/live"
)

// One reader that takes nothing of its answers keeps no other reader away, and no ingester either,
// also if it asks as one.
func TestPlacesOfReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network{}
		log := &journal{pause: make(chan struct{})}
		log.add(entry(1, 1, 0, "web"))
		h := live.NewHandler(live.Options{Self: selfOf("aaaaaaaa"), Journal: log, Guard: func(r *http.Request) (live.Reader, error) {
			return live.Reader{Name: r.Header.Get("Name"), All: true}, nil
		}})
		n.serve(t, "aaaaaaaa", h)
		client := n.http(t)
		ask := func(name, path string) int {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://aaaaaaaa"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Name", name)
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { resp.Body.Close() })
			return resp.StatusCode
		}
		for path, most := range map[string]int{"/live/web": 64, "/live/web?peers=no": 256} {
			for i := range most + 10 {
				if status := ask("hog", path); (status == http.StatusOK) != (i < most) {
					t.Fatalf("%s: answer %d of one reader: %d", path, i, status)
				}
			}
			if status := ask("other", path); status != http.StatusOK {
				t.Errorf("%s: another reader: %d", path, status)
			}
		}
		h.Stop()
		close(log.pause)
	})
}
