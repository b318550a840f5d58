package api

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"blobtail/internal/budget"
	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/record"
)

const (
	// chosenTail is how many of the newest records a tail begins with.
	chosenTail = 100
	// mostTail is the most.
	mostTail = 10_000
	// beatEvery is how often a tail says that it lives while it has nothing to say.
	beatEvery = 10 * time.Second
)

// tailing is a stream of new records.
type tailing struct {
	*call
	stream *stream
	once   bool
	buf    []byte
	wrote  time.Time // the last time
	lines  int64
	told   reading.Outcome // of a tail that ends
}

// tail answers with new records as Server-Sent Events.
func (c *call) tail() error {
	a, o, err := c.following()
	if err != nil {
		return err
	}
	if err := c.known(&a, o.Once); err != nil {
		return err
	}
	t := &tailing{call: c, once: o.Once, wrote: time.Now()}
	t.stream = newStream(c.w, func(h http.Header) {
		h.Set("Content-Type", form.SSE)
		h.Set("X-Accel-Buffering", "no")
	}, t.beat)
	t.stream.start()
	o.Visit, o.Mark, o.Report = t.record, t.mark, t.report
	cursor := reading.Cursor{}
	if err = t.write("retry: 1000\n\n"); err == nil {
		cursor, err = c.store.Follow(c.r.Context(), a, o)
	}
	switch over := budget.Of(c.r.Context()).Err(); {
	case errors.As(over, new(*budget.Error)), errors.As(over, new(*budget.BusyError)):
		t.event(form.Event{Problem: over.Error()})
	case c.r.Context().Err() == nil && err != nil:
		t.event(form.Event{Problem: c.explain(err).Reason})
	}
	if cursor.Last.Time != 0 {
		_ = t.mark(cursor) // the client can go on here when the server is back
	}
	if o.Once && err == nil {
		end := form.EndOf(&t.told)
		end.Records = t.lines
		t.event(form.Event{End: end})
	}
	t.stream.halt()
	if t.stream.flush(); t.stream.err != nil {
		t.stream.cut()
	}
	return nil
}

// following reads the parameters of a tail.
func (c *call) following() (a reading.Ask, o reading.FollowOptions, err error) {
	if a, err = c.ask(); err != nil {
		return a, o, err
	}
	if a.Live != reading.Auto {
		return a, o, badRequest("live=%s: a tail is of records in blobs and of those that are in none; leave it out", c.params.Get("live"))
	}
	missing := chosenTail
	if a.Range.From != reading.Oldest {
		missing = 0
	}
	if a.Limit, err = c.params.Number("n", missing, 0, mostTail); err != nil {
		return a, o, err
	}
	if o.Once, err = c.params.Flag("once"); err != nil {
		return a, o, err
	}
	name, after := "Last-Event-ID", c.r.Header.Get("Last-Event-ID") // newer than the URL, if a browser connects again
	if after == "" {
		name, after = "after", c.params.Get("after")
	}
	if after == "" {
		return a, o, nil
	}
	cursor, err := reading.ParseCursor(after)
	if err != nil {
		return a, o, badRequest("%s: %.60q is no cursor of a tail; each id of an event is one: %w", name, after, err)
	}
	o.After = &cursor
	a.Limit, a.Range = 0, reading.Always()
	return a, o, nil
}

// known refuses a filter with a mistake, and names of services if the client may read none of
// these. A tail that goes on waits for services to appear; one that ends refuses names and globs if
// they mean no service yet.
func (c *call) known(a *reading.Ask, once bool) error {
	if _, err := a.Matcher(budget.Of(c.r.Context())); err != nil {
		return err
	}
	if !once && slices.ContainsFunc(a.Services, func(name string) bool { return !record.ValidStored(name) || c.store.May(name) }) {
		return nil
	}
	return c.store.Exist(c.r.Context(), *a)
}

// write writes a text to the stream.
func (t *tailing) write(text ...string) error {
	return t.stream.write(func(to *bufio.Writer) (err error) {
		t.wrote = time.Now()
		for _, part := range text {
			if _, err = to.WriteString(part); err != nil {
				return err
			}
		}
		return nil
	})
}

// beat writes a comment if nothing was written for a while. It runs with the lock.
func (t *tailing) beat() error {
	if time.Since(t.wrote) < beatEvery {
		return nil
	}
	t.wrote = time.Now()
	_, err := t.stream.buf.WriteString(":\n\n")
	return err
}

// record writes a record.
func (t *tailing) record(e *record.Entry) error {
	t.lines++
	t.buf = append(appendRecord(append(t.buf[:0], "data: "...), e, false), '\n')
	return t.stream.write(func(to *bufio.Writer) error {
		t.wrote = time.Now()
		_, err := to.Write(t.buf)
		return err
	})
}

// mark writes a cursor. It is the id of an event without data, so it counts once all records
// before it have come.
func (t *tailing) mark(c reading.Cursor) error { return t.write("id: ", c.String(), "\n\n") }

// report writes notes of missing or late records. A write that fails fails the next record too.
func (t *tailing) report(r *reading.Report) {
	if t.once {
		t.told.Add(r.Outcome(nil))
	}
	for _, err := range r.Problems {
		t.event(form.Event{Problem: err.Error()})
	}
	for _, err := range r.Warnings {
		t.event(form.Event{Warning: err.Error()})
	}
	for _, none := range r.Absent {
		t.event(form.Event{Absent: none.Name})
	}
	for _, text := range r.Notes {
		t.event(form.Event{Note: text})
	}
	for _, g := range r.Gaps {
		of := form.GapOf(g)
		t.event(form.Event{Gap: &of})
	}
}

func (t *tailing) event(e form.Event) {
	line, err := json.Marshal(e)
	if err == nil {
		_ = t.write("data: ", string(line), "\n\n")
	}
}
