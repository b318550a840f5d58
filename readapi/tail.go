package readapi

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"blobtail/internal/budget"
	"blobtail/newest"
	"blobtail/query"
	"blobtail/readapi/form"
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
	told   query.Outcome // of a tail that ends
}

// tail answers with new records as Server-Sent Events.
func (c *call) tail() error {
	o, err := c.following()
	if err != nil {
		return err
	}
	if err := c.known(o.Query.Services, o.Once); err != nil {
		return err
	}
	t := &tailing{call: c, once: o.Once, wrote: time.Now()}
	t.stream = newStream(c.w, func(h http.Header) {
		h.Set("Content-Type", form.SSE)
		h.Set("X-Accel-Buffering", "no")
	}, t.beat)
	o.Visit, o.Mark, o.Report = t.record, t.mark, t.report
	err = t.write("retry: 1000\n\n")
	cursor := newest.Cursor{}
	switch {
	case err != nil:
	case c.wanted != nil: // also services that come later
		cursor, err = c.client.FollowAll(c.r.Context(), o, c.wanted)
	default:
		cursor, err = c.client.Follow(c.r.Context(), o)
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
		t.event(form.Event{End: t.end()})
	}
	t.stream.halt()
	if t.stream.flush(); t.stream.err != nil {
		t.stream.cut()
	}
	return nil
}

// end is the last event of a tail that ends.
func (t *tailing) end() *form.End {
	out := form.Outcome{
		Complete: t.told.Complete(), Problems: texts(t.told.Problems()), Warnings: texts(t.told.Warnings), Notes: []string{}, Gaps: []form.Gap{},
	}
	for _, none := range t.told.Absent {
		out.Absent = append(out.Absent, none.Name)
	}
	return &form.End{Outcome: out, Records: t.lines}
}

// following reads the parameters of a tail.
func (c *call) following() (o newest.FollowOptions, err error) {
	var mode newest.Mode
	if o.Query, mode, err = c.query(); err != nil {
		return o, err
	}
	o.Query.MaxRaw = 0
	if mode != newest.Auto {
		return o, badRequest("live=%s: a tail is of records in blobs and of those that are in none; leave it out", c.params.get("live"))
	}
	missing := chosenTail
	if o.Query.Range.From != query.Oldest {
		missing = 0
	}
	if o.Query.Limit, err = c.params.number("n", missing, 0, mostTail); err != nil {
		return o, err
	}
	if o.Once, err = c.params.flag("once"); err != nil {
		return o, err
	}
	name, after := "Last-Event-ID", c.r.Header.Get("Last-Event-ID") // newer than the URL, if a browser connects again
	if after == "" {
		name, after = "after", c.params.get("after")
	}
	if after == "" {
		return o, nil
	}
	cursor, err := newest.ParseCursor(after)
	if err != nil {
		return o, badRequest("%s: %.60q is no cursor of a tail; each id of an event is one: %w", name, after, err)
	}
	o.After = &cursor
	o.Query.Limit, o.Query.Range = 0, query.Always()
	return o, nil
}

// known refuses names of services of which the client may read none. A tail that goes on waits
// for services to appear; one that ends refuses names and globs of which none is there yet.
func (c *call) known(names []string, once bool) error {
	if once {
		if _, err := c.client.Services(c.r.Context()); err != nil {
			return err
		}
		if c.client.Unmatched(c.r.Context(), names, &query.Outcome{}) == nil {
			return nil
		}
		return c.exist(names)
	}
	if slices.ContainsFunc(names, func(name string) bool { return !record.ValidStored(name) || c.client.May(name) }) {
		return nil
	}
	return &query.NoServiceError{Name: names[0]}
}

// exist returns the error for names and globs of services if they surely mean none. The list of
// services may be some seconds old, and lacks those of an ingester that cannot be asked. So it
// alone does not decide.
func (c *call) exist(names []string) error {
	_, err := c.run(query.Query{Services: names, Range: query.Always()}, newest.Auto, func(blobs *query.Reader, q query.Query) (query.Summary, error) {
		_, err := blobs.Plan(c.r.Context(), q)
		return query.Summary{}, err
	})
	return err
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
func (t *tailing) mark(c newest.Cursor) error { return t.write("id: ", c.String(), "\n\n") }

// report writes what is missing or late. A write that fails fails the next record too.
func (t *tailing) report(r *newest.Report) {
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
		of := gap(g)
		t.event(form.Event{Gap: &of})
	}
}

func (t *tailing) event(e form.Event) {
	line, err := json.Marshal(e)
	if err == nil {
		_ = t.write("data: ", string(line), "\n\n")
	}
}
