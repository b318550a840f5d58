package remote

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"blobtail/reading"
	"blobtail/reading/form"
)

const (
	// settleWait is how long an interrupted follower waits for the cursor of the records that
	// it has passed on. A server sends one every second.
	settleWait = 1500 * time.Millisecond
	// A follower asks again after a pause that grows between these.
	leastPause = 200 * time.Millisecond
	// mostUnsettled bounds the identities that a follower remembers.
	mostUnsettled = 1_000_000
)

// Follow implements [reading.Source]. Once the server has answered, it asks again after each
// failure, by the cursor that it got last: it misses nothing and emits nothing twice, if the server
// is restarted or another one takes its place.
//
// It returns the cursor behind the last record that it emitted, with the error of ctx or of
// Emit, or the reason why the server refuses.
func (c *Client) Follow(ctx context.Context, a reading.Ask, o reading.FollowOptions) (reading.Cursor, error) {
	if o.Visit != nil || o.Mark != nil {
		return reading.Cursor{}, errors.ErrUnsupported
	}
	text, err := c.follow(ctx, &a, &o)
	cursor, cerr := reading.ParseCursor(text)
	if text != "" && cerr != nil && err == nil {
		err = fmt.Errorf("the cursor of the server %s cannot be read: %w", c, cerr)
	}
	return cursor, failure(a.Services, err)
}

// follow is Follow with the text of the cursor.
func (c *Client) follow(ctx context.Context, a *reading.Ask, o *reading.FollowOptions) (cursor string, err error) {
	f := &follower{c: c, a: a, o: o, unsettled: map[string]bool{}, earlier: map[string]bool{}}
	if o.After != nil {
		f.cursor = o.After.String()
	}
	f.emit = o.Emit
	pause := leastPause
	for {
		begun := time.Now()
		err := f.connect(ctx)
		var stopped *emitError
		switch {
		case errors.As(err, &stopped):
			return f.cursor, stopped.err
		case ctx.Err() != nil:
			return f.cursor, ctx.Err()
		case err == nil:
			return f.cursor, nil
		case !f.answered || isFinal(err):
			return f.cursor, err
		}
		if time.Since(begun) > mostPause {
			pause = leastPause
		}
		if !f.away {
			f.away = true
			if broken, ok := errors.AsType[*BrokenError](err); ok { // nothing is missing in the end
				err = fmt.Errorf("the server %s broke off its answer: %w", c, broken.Err)
			}
			f.tell(&form.Event{Note: fmt.Sprintf("%v; it is asked again until it answers", err)})
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return f.cursor, ctx.Err()
		}
		pause = min(2*pause, mostPause)
	}
}

// isFinal reports whether asking again is of no use.
func isFinal(err error) bool {
	refused, ok := errors.AsType[*Error](err)
	return ok && refused.Status < 500 && refused.Status != http.StatusTooManyRequests && refused.Status != http.StatusRequestTimeout
}

// follower is one call of Follow.
type follower struct {
	c *Client
	a *reading.Ask
	o *reading.FollowOptions
	emitter

	answered bool // at least once
	away     bool // since the last answer

	mu     sync.Mutex
	cursor string
	// unsettled are the identities of the records that came since the cursor from the present
	// answer, and earlier those that were emitted and have not come again since the server was
	// asked again: they will, in any order, and a cursor may be between them.
	unsettled, earlier map[string]bool
	came               int64 // records of the present answer
}

// tell passes on an event that is no record.
func (f *follower) tell(ev *form.Event) {
	if f.o.Report != nil {
		f.o.Report(report(ev))
	}
}

func (f *follower) params() url.Values {
	p := f.a.Values()
	p.Del("to") // a follower has no end
	if f.cursor != "" {
		p.Del("from")
		p.Set("after", f.cursor)
	} else {
		p.Set("n", strconv.Itoa(f.a.Limit))
	}
	if f.o.Once {
		p.Set("once", "1")
	}
	return p
}

// connect asks once and passes on the events of the answer. After the end of ctx it goes on
// for a moment, until it knows the cursor of the records that it has emitted.
func (f *follower) connect(ctx context.Context) error {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		f.mu.Lock()
		settled := len(f.unsettled) == 0
		f.mu.Unlock()
		if !settled {
			select {
			case <-time.After(settleWait):
			case <-running.Done():
			}
		}
		cancel()
	})
	defer stop()
	b, _, err := f.c.open(running, request{path: "tail", params: f.params(), kind: form.SSE})
	if err != nil {
		return err
	}
	defer b.Close()
	f.came = 0
	f.mu.Lock()
	if len(f.earlier)+len(f.unsettled) > mostUnsettled {
		clear(f.earlier) // most will never come
	}
	maps.Copy(f.earlier, f.unsettled)
	clear(f.unsettled)
	f.mu.Unlock()
	if f.answered = true; f.away {
		f.away = false
		f.tell(&form.Event{Note: fmt.Sprintf("the server %s answers again", f.c)})
	}
	err = f.events(ctx, &lines{from: bufio.NewReaderSize(b, batchOf)})
	if perr := f.pass(); perr != nil {
		return perr
	}
	switch {
	case err == errEnd:
		return nil
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	if stopped := (*emitError)(nil); errors.As(err, &stopped) {
		return err
	}
	return &BrokenError{f.c.String(), err}
}

// errEnd is the end of a stream by its last event.
var errEnd = errors.New("the stream has ended")

// events reads events of an answer until it ends.
func (f *follower) events(ctx context.Context, from *lines) error {
	var id string
	for {
		line, err := from.next()
		if err != nil {
			return err
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "id":
			id = string(value)
		case "data":
			if err := f.event(value); err != nil {
				return err
			}
		case "":
			if len(line) == 0 && id != "" { // the event is complete
				if err := f.settle(id); err != nil {
					return err
				}
				if id = ""; ctx.Err() != nil {
					return ctx.Err()
				}
			}
		}
		if len(f.out) >= batchOf || from.from.Buffered() == 0 {
			if err := f.pass(); err != nil {
				return err
			}
		}
	}
}

// event handles the data of an event.
func (f *follower) event(data []byte) error {
	id, line, ok := storedRecord(data)
	if !ok {
		var ev form.Event
		switch err := json.Unmarshal(data, &ev); {
		case err != nil:
			return fmt.Errorf("an event cannot be read: %w", err)
		case ev.End != nil:
			return cmp.Or(whole(data, f.came), errEnd)
		case ev.Record == nil:
			if err := f.pass(); err != nil {
				return err
			}
			f.tell(&ev)
			return nil
		}
		if id, line = []byte(ev.Record.ID), ev.Record.Line; len(line) == 0 {
			return errNoLine
		}
	}
	f.came++
	f.mu.Lock()
	again := f.unsettled[string(id)] || f.earlier[string(id)]
	delete(f.earlier, string(id))
	f.unsettled[string(id)] = true
	many := len(f.unsettled) > mostUnsettled
	f.mu.Unlock()
	if many {
		return fmt.Errorf("it sends %d records and no cursor", mostUnsettled)
	}
	if !again {
		f.add(line)
	}
	return nil
}

// settle notes the cursor behind the records so far.
func (f *follower) settle(cursor string) error {
	if err := f.pass(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cursor = cursor
	clear(f.unsettled)
	return nil
}
