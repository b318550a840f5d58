package integration_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"blobtail/internal/dev/check"
)

// Two ingesters that write the same services and periods at once must not disturb
// each other. The test runs them on different lanes, and on one lane by mistake,
// where they compete for every name.
func TestLanes(t *testing.T) {
	t.Parallel()
	all := map[string]func(t *testing.T){}
	for name, lanes := range map[string][2]string{"own": {"1", "2"}, "same": {"5", "5"}} {
		all[name] = func(t *testing.T) {
			stores(t, func(t *testing.T, at place) {
				foreign := contest(t, at, lanes)
				if (name == "same") != (foreign > 0) {
					t.Errorf("%v names were found taken by another", foreign)
				}
			})
		}
	}
	beside(t, all)
}

// contest lets two ingesters write at once with many flushes, checks that all records
// are there, and returns how many names were already taken.
func contest(t *testing.T, at place, lanes [2]string) (foreign float64) {
	const clients, flushes = 2, 12
	ledger := &check.Ledger{}
	var ps [2]*ingester
	for i, lane := range lanes {
		ps[i] = start(t, at, t.TempDir(), "--lane", lane)
	}
	var sending, flushing sync.WaitGroup
	stop := make(chan struct{})
	for i, p := range ps {
		var target atomic.Pointer[ingester]
		target.Store(p)
		for _, c := range newClients(clients, ledger, &target, uint64(i)) {
			c.name += strconv.Itoa(i)
			c.hours = 1 // one period of three services
			sending.Go(func() { c.run(stop) })
		}
		flushing.Go(func() {
			for range flushes {
				if code, f, err := p.flush("?timeout=60s"); err != nil || code != 200 {
					t.Errorf("flush: %d %+v %v", code, f, err)
					return
				}
			}
		})
	}
	flushing.Wait()
	close(stop)
	sending.Wait()
	written, stored := 0.0, 0.0
	for _, p := range ps {
		p.mustFlush()
		written += p.metric("blobtail_blob_written_total")
		stored += p.metric("blobtail_blob_records_total")
		foreign += p.metric("blobtail_blob_foreign_total")
	}
	rep := verifyLedger(t, at, ledger)
	if rep.Unknown != 0 || rep.Found != rep.Acked || int(stored) != rep.Acked {
		t.Errorf("%v, %v stored; nothing failed, so all must be known", rep, stored)
	}
	if n := countBlobs(t, at); n != int(written) {
		t.Errorf("%d blobs are there, %v were written: one was overwritten or lost", n, written)
	}
	return foreign
}

// countBlobs adds up the blob counts that logquery ls prints for the services.
func countBlobs(t testing.TB, at place) int {
	t.Helper()
	n := 0
	for line := range bytes.Lines(query(t, at, "ls")) {
		var name string
		var blobs int
		if _, err := fmt.Sscanf(strings.ReplaceAll(string(line), "\t", " "), "%s %d", &name, &blobs); err != nil {
			t.Fatalf("ls: %q: %v", line, err)
		}
		n += blobs
	}
	return n
}
