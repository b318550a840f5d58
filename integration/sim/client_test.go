package sim_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"blobtail/record"
	"blobtail/record/origin"
)

// epoch is on the day on which virtual time begins: a horizon at a later day would be ignored.
var epoch = time.Date(2000, 1, 1, 15, 0, 0, 0, time.UTC)

// request is a client's request, or the contents of a message.
type request struct {
	r     record.Request
	ids   []string
	tries int
}

// reading is the part of a request that this try accepts: all of it, or now and then
// less, as when another clock or another decoder rejects the rest. It draws nothing
// from the world's chance, so the rest of the story stays the same.
func (s *request) reading() *request {
	all := len(s.r.Lines)
	if s.r.Origin.IsZero() || s.r.Reply != "" {
		return s
	}
	s.tries++
	part := &request{r: s.r}
	part.r.Outcome.Sum = 1
	rng := rand.New(rand.NewPCG(binary.BigEndian.Uint64(s.r.Origin[8:]), uint64(s.tries)))
	partly := rng.IntN(4) == 0
	part.r.Lines = nil
	for i, l := range s.r.Lines {
		if partly && rng.IntN(2) == 0 {
			continue
		}
		l.Shift = int32(i - len(part.r.Lines))
		part.r.Lines = append(part.r.Lines, l)
		part.r.Outcome.Sum += 1 << (i + 1)
		part.ids = append(part.ids, s.ids[i])
	}
	if len(part.ids) == 0 {
		return s.whole()
	}
	part.r.Outcome.Accepted, part.r.Outcome.Rejected = uint32(len(part.ids)), uint32(all-len(part.ids))
	return part
}

// whole is the reading that rejects nothing.
func (s *request) whole() *request {
	all := *s
	all.r.Outcome = record.Outcome{Accepted: uint32(len(s.ids)), Sum: 1<<(len(s.ids)+1) - 1}
	return &all
}

// compose makes a request of a few lines, known by name.
func (w *world) compose(name string, rng *rand.Rand) *request {
	s := &request{r: record.Request{Services: []string{"a", "b", "c"}[:w.p.Services]}}
	for j := range 1 + rng.IntN(6) {
		service := rng.IntN(w.p.Services)
		if service == 0 && w.p.Rare > 0 && rng.IntN(w.p.Rare) > 0 {
			service = 1
		}
		// Few different times, so that records of several blobs have the same time.
		at := epoch.UnixNano() + int64(rng.IntN(w.p.Periods*60))*int64(time.Minute)
		if w.expiry != nil {
			at -= int64(rng.IntN(oldDays)) * 24 * int64(time.Hour)
		}
		id := fmt.Sprintf("%s-%d", name, j)
		off := len(s.r.Data)
		s.r.Data = append(s.r.Data, `{"ts":"`...)
		s.r.Data = record.AppendTime(s.r.Data, at)
		s.r.Data = fmt.Appendf(s.r.Data, `","level":"info","service":"%s","msg":"%s %0100d"}`+"\n", s.r.Services[service], id, j)
		s.r.Lines = append(s.r.Lines, record.Line{Time: at, Off: uint32(off), Len: uint32(len(s.r.Data) - off), Service: uint32(service)})
		s.ids = append(s.ids, id)
		w.ledger.Sent(id, s.r.Services[service], at)
		if w.expiry != nil {
			w.expiry.composed(id, s.r.Services[service], at)
		}
	}
	return s
}

// next returns a request that was not acknowledged, or a new one.
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
		s.r.Origin = origin.OfBody("", "/ingest", 0, fmt.Append(nil, w.seed, name), epoch.UnixNano())
	}
	return s
}

// client sends requests, both new and unacknowledged ones, until the process is gone.
func (w *world) client(p *process, rng *rand.Rand) {
	for {
		select {
		case <-p.dead:
			return
		case <-p.ended:
			return
		case <-time.After(time.Duration(rng.IntN(w.p.Gap)) * time.Millisecond):
		}
		w.send(p, attempt{request: w.next(rng), waits: true, stored: rng.IntN(8) == 0, lost: rng.IntN(12) == 0})
	}
}

// attempt is one try to send a request.
type attempt struct {
	*request
	waits  bool // waits for an answer; if not, the connection breaks before it
	stored bool // waits until it is stored
	lost   bool // the answer is lost
}

// send makes one try, and notes the client's answer.
func (w *world) send(p *process, a attempt) {
	w.count(&w.totals.sent)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	reading := a.reading()
	receipt, err := w.accept(ctx, p, reading)
	switch {
	case err == nil && a.waits:
		err = receipt.Wait(ctx, a.stored)
	case err == nil:
		err = errLost
	}
	if err == nil {
		if a.stored {
			w.store.mustHold("acknowledged as stored", reading.ids)
		}
		w.acknowledged(reading.ids)
	}
	// A request without an origin is not sent again: nothing would recognise the copy.
	// And such a request tells the most about double storage.
	if (err != nil || a.lost || len(reading.ids) < len(a.ids)) && !a.r.Origin.IsZero() {
		w.mu.Lock()
		w.pending = append(w.pending, a.request)
		w.mu.Unlock()
	}
}

// accept hands a request over. It counts the request before it may be in the log: no
// more copies may be stored than were accepted.
func (w *world) accept(ctx context.Context, p *process, s *request) (record.Receipt, error) {
	w.mu.Lock()
	if !s.r.Origin.IsZero() {
		w.taken[s.r.Origin]++
	}
	w.mu.Unlock()
	receipt, err := p.buf.Accept(ctx, &s.r)
	w.mu.Lock()
	defer w.mu.Unlock()
	// The log cuts off a write that a full disk interrupted, and a power cut may undo
	// that.
	mayBe := errors.Is(err, syscall.ENOSPC)
	if receipt.Duplicate || errors.Is(err, record.ErrFull) && !mayBe || errors.Is(err, record.ErrKeyReused) {
		w.taken[s.r.Origin]--
	}
	w.totals.expired += receipt.Expired
	switch {
	case receipt.Duplicate:
		w.totals.repeats++
	case errors.Is(err, record.ErrFull):
		w.totals.refused++
	case errors.Is(err, record.ErrKeyReused):
		w.violations = append(w.violations, fmt.Sprintf("%s: %v", s.ids[0], err))
	}
	return receipt, err
}
