package main

import (
	"bytes"
	"context"
	"sync"

	"blobtail/reading"
)

// mostAhead bounds the bytes that wait for a reader in a pager.
const mostAhead = 256 << 20

// ahead keeps lines for a pager. A server drops a client that takes nothing for a while, and the
// reader of a page takes nothing for minutes.
type ahead struct {
	mu     sync.Mutex
	change sync.Cond
	waits  [][]byte
	most   int
	size   int
	err    error // of emit
	over   bool
	done   chan struct{}
}

// records passes the lines of a question to emit. The outcome is never nil.
func (a *app) records(ctx context.Context, from reading.Source, ask reading.Ask, emit func(lines []byte) error) (*reading.Outcome, error) {
	finish := func() error { return nil }
	if a.flags.Server != "" && a.pages() {
		pager := newAhead(mostAhead, emit)
		emit, finish = pager.add, pager.finish
	}
	out, err := from.Records(ctx, ask, emit)
	if ferr := finish(); ferr != nil {
		err = ferr
	}
	if out == nil {
		out = &reading.Outcome{}
	}
	return out, err
}

// newAhead has emit print lines in the background, and keeps about so many bytes for it. The
// caller must call finish.
func newAhead(most int, emit func(lines []byte) error) *ahead {
	h := &ahead{most: most, done: make(chan struct{})}
	h.change.L = &h.mu
	go h.run(emit)
	return h
}

func (h *ahead) run(emit func(lines []byte) error) {
	defer close(h.done)
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		for len(h.waits) == 0 && !h.over {
			h.change.Wait()
		}
		if len(h.waits) == 0 || h.err != nil {
			return
		}
		lines := h.waits[0]
		h.waits[0], h.waits = nil, h.waits[1:]
		h.mu.Unlock()
		err := emit(lines)
		h.mu.Lock()
		h.size -= len(lines)
		h.err = err
		h.change.Broadcast()
	}
}

// add keeps lines. It waits while there are too many, and returns an error of emit.
func (h *ahead) add(lines []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.size > h.most && h.err == nil {
		h.change.Wait()
	}
	if h.err != nil {
		return h.err
	}
	h.waits = append(h.waits, bytes.Clone(lines))
	h.size += len(lines)
	h.change.Broadcast()
	return nil
}

// finish waits until all lines are printed, and returns an error of emit.
func (h *ahead) finish() error {
	h.mu.Lock()
	h.over = true
	h.change.Broadcast()
	h.mu.Unlock()
	<-h.done
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}
