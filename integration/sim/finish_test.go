package sim_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// finish starts every ingester once more, without faults. It waits until everything
// left in logs, clients and the stream is stored.
func (w *world) finish() {
	var procs []*process
	for i := range w.disks {
		w.disks[i].SetFault(nil)
		p, err := w.open(i, nil, w.fate("last life", i))
		if err != nil {
			w.violation("the last start: %v", err)
			return
		}
		procs = append(procs, p)
	}
	rng := w.fate("finish")
	pending := w.pending
	w.pending = nil
	for _, s := range pending {
		if rng.IntN(3) > 0 { // the other clients have given up
			w.send(procs[rng.IntN(len(procs))], attempt{request: s, waits: true})
		}
	}
	w.drain(procs, rng)
	var wg sync.WaitGroup
	for _, p := range procs {
		wg.Go(func() { w.lastFlush(p) })
	}
	wg.Wait()
	w.store.late.Wait()
}

// drain lets the stream deliver until every message is acknowledged.
func (w *world) drain(procs []*process, rng *rand.Rand) {
	for until := time.Now().Add(3 * time.Hour); w.stream.left() > 0; {
		if time.Now().After(until) {
			w.violation("%d messages are never acknowledged", w.stream.left())
			return
		}
		w.pull(procs[rng.IntN(len(procs))], rng)
		time.Sleep(time.Second)
	}
}

func (w *world) lastFlush(p *process) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if left, err := p.buf.Flush(ctx); err != nil {
		w.violation("the last flush: %v, left %+v", err, left)
	}
	time.Sleep(5 * time.Second) // segments are deleted after the last commit
	if front, active := p.log.Front(), p.log.Active(); front != active {
		w.violation("all is stored, but the log keeps segments %d to %d", front, active)
	}
	if n := p.metric("blobtail_buffer_messages"); n > 0 {
		w.violation("all is stored, but %d messages are kept account of", n)
	}
	p.kill()
}

// verify reads everything back and compares it with the ledger.
func (w *world) verify() {
	if w.expiry != nil {
		w.expiry.settle()
	}
	var out bytes.Buffer
	now := time.Now
	if w.compaction != nil { // by whose clock days are closed
		now = w.compaction.now
	}
	if err := readAll(w.store, now, &out); err != nil {
		w.violation("read: %v", err)
		return
	}
	if report, err := w.ledger.Verify(&out); err != nil {
		w.violation("%v (%v)", err, report)
	}
}
