package loki

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"blobtail/internal/door"
	"blobtail/logql"
	"blobtail/reading"
)

const (
	// pingAfter is how long a connection may be silent. Proxies close those that are for longer.
	pingAfter = 10 * time.Second
	// writeWait is how long a client may take to read a frame.
	writeWait = 30 * time.Second
	// troubleWait is how long an ingester may be away. It restarts within that, and then its
	// records come.
	troubleWait = 30 * time.Second
	// mostDelay is the longest delay that a client may ask for.
	mostDelay = 5 * time.Second
)

// tail sends lines over a WebSocket as they are acknowledged.
//
// The protocol has no place for a note of missing records. So a tail is broken off without a
// closing frame if it cannot go on without a loss, or if its server ends: clients then come again.
func (c *call) tail() error {
	e, err := c.parse()
	if err != nil {
		return err
	}
	log, ok := e.(*logql.LogExpr)
	if !ok {
		return refused("tail takes a query for lines, and this one has numbers as its result")
	}
	o, err := c.followOptions(log)
	if err != nil {
		return err
	}
	delay, err := c.span("delay_for", 0)
	if err != nil {
		return err
	}
	if delay < 0 || delay > mostDelay {
		return refused("delay_for can't be greater than 5")
	}
	if !strings.EqualFold(c.r.Header.Get("Upgrade"), "websocket") {
		return door.Refuse(http.StatusUpgradeRequired, "tail needs a WebSocket: the request has no Upgrade")
	}
	// The guard has checked the origin.
	conn, err := websocket.Accept(c.w, c.r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return nil // it has been answered
	}
	defer func() { _ = conn.CloseNow() }() // without a closing frame
	newTailer(c, conn, o, delay).run()
	return nil
}

// followOptions says which lines a tail has. It begins with the newest ones since a time, or
// with none.
func (c *call) followOptions(e *logql.LogExpr) (o *tailing, err error) {
	o = &tailing{}
	rng := reading.Always()
	if c.form.Get("start") != "" {
		if rng.From, err = c.instant("start", 0); err != nil {
			return nil, err
		}
		if o.limit, err = c.limit(); err != nil {
			return nil, err
		}
	}
	if o.chosen, err = c.choose(e, rng); err != nil {
		return nil, err
	}
	o.ask.Limit = o.limit
	return o, nil
}

// tailing is a query for lines that goes on.
type tailing struct {
	*chosen
	limit int // lines to begin with
}

// A tailer sends the lines of one tail. One goroutine follows, another one sends. The first waits
// for the second, so a client that reads slowly slows down its own tail, and nothing is left out.
type tailer struct {
	c     *call
	conn  *websocket.Conn
	o     *tailing
	delay time.Duration

	lines   chan []byte   // to be sent; valid until taken receives
	taken   chan struct{} // they have been
	stop    context.CancelCauseFunc
	trouble *time.Timer // ends the tail, while an ingester is away; nil: none is
}

func newTailer(c *call, conn *websocket.Conn, o *tailing, delay time.Duration) *tailer {
	return &tailer{c: c, conn: conn, o: o, delay: delay, lines: make(chan []byte), taken: make(chan struct{})}
}

// errLacks ends a tail.
var errLacks = errors.New("records are missing")

// run sends lines. It ends when the client goes away, the server ends, or something is missing.
func (t *tailer) run() {
	ctx, cancel := context.WithCancelCause(t.conn.CloseRead(t.c.ctx()))
	t.stop = cancel
	defer cancel(nil)
	var sending sync.WaitGroup
	sending.Go(func() { cancel(t.send(ctx)) })
	cancel(t.follow(ctx))
	if t.trouble != nil {
		t.trouble.Stop()
	}
	sending.Wait()
}

// follow emits the lines. Services that come later are among those that an expression matches.
func (t *tailer) follow(ctx context.Context) error {
	_, err := t.c.store.Follow(ctx, t.o.ask, reading.FollowOptions{
		Emit:   func(lines []byte) error { return t.hand(ctx, lines) },
		Report: t.judge,
	})
	return err
}

// hand passes lines to the sender and waits until it has them.
func (t *tailer) hand(ctx context.Context, lines []byte) error {
	select {
	case t.lines <- lines:
	case <-ctx.Done():
		return ctx.Err()
	}
	<-t.taken
	return nil
}

// judge ends the tail if records are missing. An ingester that is away for a moment has them when
// it comes back.
func (t *tailer) judge(r *reading.Report) {
	out := r.Outcome(nil)
	switch {
	case len(out.Gaps) > 0, !out.Complete() && !r.Passing():
		t.stop(errLacks)
	case !out.Complete() && t.trouble == nil:
		t.trouble = time.AfterFunc(troubleWait, func() { t.stop(errLacks) })
	}
	if r.Well && t.trouble != nil {
		t.trouble.Stop()
		t.trouble = nil
	}
}

// send sends frames until the context ends or a frame cannot be sent.
func (t *tailer) send(ctx context.Context) error {
	f := frames{budget: t.c.budget(), sorts: t.c.sorts, delay: t.delay}
	sent := time.Now() // the last frame or ping
	timer := time.NewTimer(0)
	defer timer.Stop()
	var pinging sync.WaitGroup
	defer pinging.Wait()
	for {
		in := t.lines
		if f.full() {
			in = nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case lines := <-in:
			err := t.load(ctx, &f, lines)
			t.taken <- struct{}{}
			if err != nil {
				return err
			}
		case <-timer.C:
		}
		now := time.Now()
		for f.due(now) {
			if err := t.write(ctx, f.next(now)); err != nil {
				return err
			}
			now = time.Now()
			f.last = now
		}
		if f.last.After(sent) {
			sent = f.last
		}
		if now.Sub(sent) >= pingAfter {
			sent = now
			pinging.Go(func() { t.ping(ctx) })
		}
		timer.Reset(min(f.wait(now), sent.Add(pingAfter).Sub(now)))
	}
}

// ping keeps proxies from closing a silent connection. Nobody cares for its answer.
func (t *tailer) ping(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pingAfter/2)
	defer cancel()
	_ = t.conn.Ping(ctx)
}

// load takes lines into frames, and sends those that are full.
func (t *tailer) load(ctx context.Context, f *frames, lines []byte) error {
	now := time.Now()
	for line := range bytes.Lines(lines) {
		if !t.o.pipe.Entry(line, &f.entry) {
			continue
		}
		for len(f.held) > 0 && !f.fits() { // those that wait make room
			if err := t.write(ctx, f.next(now.Add(f.delay))); err != nil {
				return err
			}
		}
		if err := f.add(now); err != nil {
			return err
		}
		for f.delay == 0 && f.ready() || len(f.held) > 1 && f.full() { // then lines do not wait for older ones
			if err := t.write(ctx, f.next(now.Add(f.delay))); err != nil {
				return err
			}
			f.last = time.Now()
		}
	}
	return t.c.budget().Err()
}

func (t *tailer) write(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	return t.conn.Write(ctx, websocket.MessageText, frame)
}
