package fan

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"blobtail/reading"
	"blobtail/reading/blobs"
	"blobtail/storage/fanout"
)

// mostHere is how many parts that no worker answers are read here at once.
const mostHere = 2

// share is one question that is shared.
type share struct {
	crew  *Crew
	d     *reading.Division
	store string // its id

	mu      sync.Mutex
	changed *sync.Cond
	ctx     context.Context
	parts   []part
	head    int // the part whose lines are shown
	window  int // how many parts from the head on may have begun
	here    int // parts that no worker answers, being read here
	ends    int // the parts before it have the answer
	shown   int64
	more    bool  // there may be lines behind the limit
	fetched int64 // by the parts before the head, and before all of them
	decoded int64
}

// Share implements [reading.Sharing]. This process begins at once, and does not wait for workers.
func (c *Crew) Share(ctx context.Context, d *reading.Division, emit func(lines []byte) error) (blobs.Summary, bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &share{crew: c, d: d, ctx: ctx, parts: make([]part, len(d.Parts)), window: len(d.Parts), fetched: d.Fetched}
	s.changed = sync.NewCond(&s.mu)
	for i := range s.parts {
		s.parts[i].Part, s.parts[i].number, s.parts[i].back = d.Parts[i], i, d.Reverse
	}
	if d.Joint == nil || !d.Joint.Count { // lines and answers wait
		s.window = 4
	}
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})()
	var work fanout.Crew
	work.Go(func() {
		for p := s.take(nil); p != nil; p = s.take(nil) {
			s.read(p, nil)
		}
	})
	work.Go(func() { s.gather(&work) })
	err := s.give(emit)
	cancel()
	work.Wait()
	sum, others := s.joined()
	return sum, others, err
}

// gather begins with the workers, and with those that come later. Up to a limit it does once a part may
// begin beside the one whose lines are shown.
func (s *share) gather(work *fanout.Crew) {
	s.mu.Lock()
	for s.d.Limit > 0 && s.ctx.Err() == nil && !(s.head+1 < len(s.parts) && s.may(s.head+1)) {
		s.changed.Wait()
	}
	s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	var err error
	if s.store, err = s.d.StoreID(s.ctx); err != nil || s.store == "" {
		return // nobody could tell whether a worker reads the same store
	}
	if begins := s.crew.o.Begins; begins != nil && s.d.Limit == 0 {
		begins(s.d, s.crew.Workers(s.ctx))
	}
	known := map[*worker]bool{}
	for s.ctx.Err() == nil {
		for _, w := range s.crew.workers(s.ctx) {
			if known[w] {
				continue
			}
			known[w] = true
			s.mu.Lock()
			s.window += 2
			s.mu.Unlock()
			work.Go(func() { s.work(w) })
		}
		s.pause(lookEvery)
	}
}

func (s *share) pause(d time.Duration) {
	select {
	case <-s.ctx.Done():
	case <-time.After(d):
	}
}

// work has a worker read parts as long as there are any.
func (s *share) work(w *worker) {
	for {
		for rest := w.resting(); rest > 0 && s.ctx.Err() == nil; rest = w.resting() {
			s.pause(rest)
		}
		p := s.take(w)
		if p == nil {
			return
		}
		s.read(p, w)
	}
}

// take returns the first part that nobody has begun and that a worker may read; nil: this process. It
// returns nil if there is none left.
func (s *share) take(w *worker) *part {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.ctx.Err() == nil {
		left := false
		for i := s.head; i < len(s.parts); i++ {
			p := &s.parts[i]
			if p.taken || w != nil && p.Held {
				continue
			}
			if left = true; s.may(i) {
				if p.taken = true; s.d.Limit > 0 {
					p.limit = s.d.Limit - int(s.shown)
				}
				return p
			}
			if i >= s.head+s.window {
				break
			}
		}
		if !left {
			return nil
		}
		s.changed.Wait()
	}
	return nil
}

// may reports whether a part may begin. Up to a limit those that have begun, whose lines are perhaps not
// wanted, have no more bytes than one process has to read for certain: the parts before them. One with
// unflushed records begins once it is known how many lines are wanted.
func (s *share) may(i int) bool {
	if s.d.Limit == 0 || i == s.head || i >= s.head+s.window {
		return i < s.head+s.window && (s.d.Limit == 0 || s.shown < int64(s.d.Limit))
	}
	begun := s.parts[i].Bytes
	for j := s.head; j < min(s.head+s.window, len(s.parts)); j++ {
		if s.parts[j].taken {
			begun += s.parts[j].Bytes
		}
	}
	return begun+begun/2 <= s.fetched && !s.parts[i].Held && s.shown < int64(s.d.Limit)
}

// read reads a part: by a worker, by another one if it fails, and then here.
func (s *share) read(p *part, w *worker) {
	here := false // counted by enter
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if p.done = true; here {
			s.here--
		}
		s.changed.Broadcast()
	}()
	if w != nil {
		if s.ask(p, w) {
			return
		}
		if w = s.other(w); w != nil && s.ask(p, w) {
			return
		}
		s.enter(p)
		here = true
	}
	rng, limit, left := p.left()
	if !left {
		p.err = s.took(p, reading.Answer{}, false)
		return
	}
	ans, err := s.d.Here(s.ctx, rng, limit, func(lines []byte) error { return s.put(p, lines, false) })
	p.err = cmp.Or(err, s.took(p, ans, false))
}

// ask has a worker read a part, or the rest of it. It reports whether there is nothing left to read.
func (s *share) ask(p *part, w *worker) bool {
	rng, limit, left := p.left()
	if !left {
		return false
	}
	begun := time.Now()
	ans, err := w.answer(s.ctx, s.d, s.d.Elsewhere(rng, limit, s.store), func(lines []byte) error { return s.put(p, lines, true) })
	if s.ctx.Err() != nil {
		p.err = s.ctx.Err()
		return true
	}
	blameless := errors.Is(err, errCrowded) || errors.As(err, new(*reading.AskError)) // this process tells what is wrong
	if err != nil {
		rest := s.crew.o.Rest
		if hung := time.Since(begun); hung >= s.crew.o.Patience { // it is not asked at once again
			rest = hung
		}
		if !blameless && w.note(err, rest) {
			s.crew.o.Failed(w.name, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		p.broken()
		return false
	}
	w.note(nil, 0)
	p.err = s.took(p, ans, true)
	return true
}

// other is a worker that does not rest, beside one that was tried; nil: there is none.
func (s *share) other(tried *worker) *worker {
	for _, w := range s.crew.workers(s.ctx) {
		if w.resting() <= 0 && w != tried {
			return w
		}
	}
	return nil
}

// enter waits until a part may be read here that no worker answers. That whose lines are shown does not
// wait.
func (s *share) enter(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.here >= mostHere && p.number != s.head && s.ctx.Err() == nil {
		s.changed.Wait()
	}
	s.here++
}

// took adds the answer of the last try of a part.
func (s *share) took(p *part, ans reading.Answer, elsewhere bool) error {
	if p.kept.lines > 0 { // lines of tries that broke off
		rng, limit, sum := p.came(), 0, uint32(0)
		if p.limit > 0 {
			limit = int(p.kept.lines) + 1
		}
		there, err := s.d.Here(s.ctx, rng, limit, func(lines []byte) error {
			sum = sumOf(sum, lines)
			return nil
		})
		if err != nil {
			return err
		}
		if there.Records != p.kept.lines || sum != p.kept.sum {
			const lacks = "a worker failed that read %d records %s, and there are %d, or others; ask again"
			there.Lack(fmt.Errorf(lacks, p.kept.lines, span(rng), there.Records))
		}
		there.Records = p.kept.lines
		ans.Join(&there.Summary)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.release(len(p.buf))
	p.answer, p.elsewhere = ans, elsewhere
	return nil
}

// give passes on the lines of the parts in their order, up to the limit.
func (s *share) give(emit func(lines []byte) error) error {
	var spare []byte
	for i := range s.parts {
		p, before := &s.parts[i], s.shown
		s.ends = i + 1
		for {
			lines, err := s.next(p, spare)
			if err != nil {
				return err
			}
			if len(lines) == 0 {
				break
			}
			if wanted := s.wanted(lines); len(wanted) > 0 {
				if err := emit(wanted); err != nil {
					return err
				}
			}
			spare = lines
		}
		if p.err == nil && s.d.Joint != nil {
			p.err = s.d.Join(s.ctx, &p.answer)
			p.answer.Part = nil
		}
		if p.err != nil {
			return p.err
		}
		s.decoded += p.answer.Decoded
		if err := s.d.TooLarge(s.decoded); err != nil {
			return err
		}
		if limit := int64(s.d.Limit); limit > 0 && s.shown == limit {
			s.more = p.shown.lines > limit-before || p.answer.More ||
				slices.ContainsFunc(s.parts[s.ends:], func(p part) bool { return p.Bytes > 0 || p.Held })
			return nil
		}
	}
	return nil
}

// wanted are the first of some lines, up to the limit.
func (s *share) wanted(lines []byte) []byte {
	if s.d.Limit == 0 {
		return lines
	}
	n := int64(bytes.Count(lines, []byte("\n")))
	s.mu.Lock()
	defer s.mu.Unlock()
	for left := int64(s.d.Limit) - s.shown; n > left; n-- {
		lines = lines[:lastLine(lines)]
	}
	s.shown += n
	return lines
}

// next takes the lines of the first part that may be shown. None are left once it is over. Its other
// lines move to spare memory.
func (s *share) next(p *part, spare []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head = p.number
	s.changed.Broadcast()
	for p.safe == 0 && !p.done && s.ctx.Err() == nil {
		s.changed.Wait()
	}
	if p.safe == 0 && p.done {
		s.fetched += p.answer.Fetched
		return nil, nil
	}
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	lines := p.buf[:p.safe]
	p.buf, p.safe = append(spare[:0], p.buf[p.safe:]...), 0
	return lines, nil
}

// joined joins the answers of the parts. others have read some of them.
func (s *share) joined() (all blobs.Summary, others bool) {
	for i := range s.parts[:s.ends] {
		p := &s.parts[i]
		all.Join(&p.answer.Summary)
		if others = others || p.elsewhere || p.kept.lines > 0; p.elsewhere {
			s.d.Hear(p.answer.Notes)
		}
	}
	if s.d.Limit > 0 {
		all.Records, all.More = s.shown, s.more
	}
	return all, others
}
