package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"blobtail/record"
)

var epoch = time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)

// request is what a client sends, or what a message holds.
type request struct {
	r   record.Request
	ids []string
}

// compose makes a request of a few lines, known by name.
func (w *world) compose(name string, rng *rand.Rand) *request {
	s := &request{r: record.Request{Services: []string{"a", "b", "c"}[:w.p.Services]}}
	for j := range 1 + rng.IntN(6) {
		service := rng.IntN(w.p.Services)
		if service == 0 && w.p.Rare > 0 && rng.IntN(w.p.Rare) > 0 {
			service = 1
		}
		// Few different times, so that records of several blobs have the same.
		at := epoch.UnixNano() + int64(rng.IntN(w.p.Periods*60))*int64(time.Minute)
		id := fmt.Sprintf("%s-%d", name, j)
		off := len(s.r.Data)
		s.r.Data = append(s.r.Data, `{"ts":"`...)
		s.r.Data = record.AppendTime(s.r.Data, at)
		s.r.Data = fmt.Appendf(s.r.Data, `","level":"info","service":"%s","msg":"%s %0100d"}`+"\n", s.r.Services[service], id, j)
		s.r.Lines = append(s.r.Lines, record.Line{Time: at, Off: uint32(off), Len: uint32(len(s.r.Data) - off), Service: uint32(service)})
		s.ids = append(s.ids, id)
		w.ledger.Sent(id, s.r.Services[service], at)
	}
	return s
}

// next is a request that was not acknowledged, or a new one.
func (w *world) next(rng *rand.Rand) *request {
	w.mu.Lock()
	if n := len(w.pending); n > 0 && rng.IntN(2) == 0 {
		i := rng.IntN(n)
		s := w.pending[i]
		w.pending[i] = w.pending[n-1]
		w.pending = w.pending[:n-1]
		w.mu.Unlock()
		return s
	}
	w.totals.requests++
	name := fmt.Sprintf("r%d", w.totals.requests)
	w.mu.Unlock()
	s := w.compose(name, rng)
	if rng.IntN(100) >= w.p.NoOrigin {
		s.r.Origin = record.BodyOrigin("", "/ingest", 0, fmt.Append(nil, w.seed, name), epoch.UnixNano())
	}
	return s
}

// client sends requests, new ones and those that nobody has acknowledged, until
// the process is gone.
func (w *world) client(p *process, rng *rand.Rand) {
	for {
		select {
		case <-p.dead:
			return
		case <-p.ended:
			return
		case <-time.After(time.Duration(rng.IntN(w.p.Gap)) * time.Millisecond):
		}
		s := w.next(rng)
		stored, lost := rng.IntN(8) == 0, rng.IntN(12) == 0
		w.accept(p, s, func(err error) { w.answered(s, stored, lost, err) }, stored)
	}
}

// accept hands a request over and tells what its sender waits for. Without that,
// nobody waits, as when a connection breaks.
func (w *world) accept(p *process, s *request, answer func(error), stored ...bool) {
	w.count(&w.totals.sent)
	w.handOver(p, s)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	receipt, err := p.buf.Accept(ctx, &s.r)
	w.settle(p, s, receipt, err)
	if err == nil && len(stored) > 0 {
		err = receipt.Wait(ctx, stored[0])
	}
	answer(err)
}

// handOver counts a copy of a request before it may be in the log: no more copies
// of it may be stored than that.
func (w *world) handOver(p *process, s *request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !s.r.Origin.IsZero() {
		w.taken[s.r.Origin]++
	}
}

// settle takes that back when the request was not taken as a new one.
func (w *world) settle(p *process, s *request, receipt record.Receipt, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if receipt.Duplicate || errors.Is(err, record.ErrFull) || errors.Is(err, record.ErrKeyReused) {
		w.totals.repeats++
		w.taken[s.r.Origin]--
	}
	if errors.Is(err, record.ErrKeyReused) {
		w.troubles = append(w.troubles, fmt.Sprintf("%s: %v", s.ids[0], err))
	}
}

// answered notes what a client was told.
func (w *world) answered(s *request, stored, lost bool, err error) {
	if err == nil {
		if stored {
			w.store.mustHold("acknowledged as stored", s.ids)
		}
		w.ledger.Acked(s.ids...)
	}
	// A request without an origin is not sent again: nobody would know it for a
	// copy, and it says most about what is stored twice.
	if (err != nil || lost) && !s.r.Origin.IsZero() {
		w.mu.Lock()
		w.pending = append(w.pending, s)
		w.mu.Unlock()
	}
}
