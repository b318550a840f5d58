package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testkit"
)

// An ingester hangs: its host takes connections and answers nothing. Live views go on with the
// records of the others. Only the first reads wait for it, for two seconds, and all reads name it.
// When it is back, each of its records is shown once.
func TestHungIngester(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	h := newHouse(t, at, 3, config(t, small))
	s := serve(t, h.read)
	named := h.read
	named.env = append(slices.Clone(at.env), "BLOBTAIL_LIVE="+h.p(0).listen)
	views := map[string]*printed{"tail -f": {}, "tail -f with BLOBTAIL_LIVE": {}, "server-sent events": {}, "WebSocket": {}}
	follow(t, h.read, views["tail -f"].line, "tail", "-f", "web")
	follow(t, named, views["tail -f with BLOBTAIL_LIVE"].line, "tail", "-f", "web")
	s.events(t, "service=web&n=0", views["server-sent events"].line)
	s.frames(t, `query={service_name="web"}`, views["WebSocket"].line)
	probe(t, h.p(0), "web", func() bool {
		for _, v := range views {
			if !v.probed.Load() {
				return false
			}
		}
		return true
	})
	var want []told
	put := func(i int, id string) {
		now := time.Now().UnixNano()
		h.p(i).mustPost("/ingest/web", appendRecord(nil, now, id, "is what happened"))
		want = append(want, told{id: id, service: "web", at: now})
	}
	shown := func(within time.Duration) {
		t.Helper()
		begun := time.Now()
		for name, v := range views {
			testkit.Until(t, want[len(want)-1].id+" is shown by "+name, func() bool { return v.has(want, 0) })
			if took := time.Since(begun); h.p(0).late(took, within) {
				t.Errorf("%s is shown by %s after %v", want[len(want)-1].id, name, took)
			}
		}
	}
	put(1, "before")
	shown(6 * time.Second)

	hung := h.p(1)
	hung.Signal(syscall.SIGSTOP)
	t.Cleanup(func() { hung.Signal(syscall.SIGCONT) })
	put(0, "beside")
	shown(6 * time.Second)
	put(2, "later")
	shown(6 * time.Second)
	for _, limit := range []time.Duration{2500 * time.Millisecond, time.Second} {
		var asking sync.WaitGroup
		for range 16 {
			asking.Go(func() {
				begun := time.Now()
				body := string(s.mustGet("/api/v1/records?service=web&form=events"))
				if took := time.Since(begun); h.p(0).late(took, limit) {
					t.Errorf("a read takes %v, want %v", took, limit)
				}
				if !strings.Contains(body, `"complete":false`) || !strings.Contains(body, "sign of life since") || !strings.Contains(body, "beside") {
					t.Errorf("the read does not tell of the hang: %s", body)
				}
			})
		}
		asking.Wait()
	}

	hung.Signal(syscall.SIGCONT)
	testkit.Until(t, "reads are complete again", func() bool {
		return strings.Contains(string(s.mustGet("/api/v1/records?service=web&form=events")), `"complete":true`)
	})
	put(1, "after")
	shown(6 * time.Second)
	time.Sleep(time.Second) // for what comes twice
	for name, v := range views {
		counts := map[string]int{}
		v.mu.Lock()
		for _, line := range v.lines {
			counts[check.ID(line)]++
		}
		v.mu.Unlock()
		if fmt.Sprint(counts) != "map[after:1 before:1 beside:1 later:1]" {
			t.Errorf("%s: %v", name, counts)
		}
	}
}
