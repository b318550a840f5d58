package api

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"blobtail/internal/budget"
	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/reading/survey"
	"blobtail/record"
)

// chosenRecords is how many records an answer has unless more are asked for.
const chosenRecords = 1000

// recording is an answer of records.
type recording struct {
	*call
	asked   reading.Ask
	form    string // lines, events or csv
	partial bool

	stream  *stream
	made    *budget.Budget
	keys    [][]byte // of the fields
	buf     []byte
	told    time.Time                 // when progress was last written
	last    int64                     // the time of the last record
	emitted int64                     // records
	bytes   int64                     // of their lines
	absent  []*reading.NoServiceError // to be told before the first record
}

func (c *call) records() error {
	rec := &recording{call: c, made: budget.Of(c.r.Context())}
	var err error
	if rec.asked, err = c.ask(); err != nil {
		return err
	}
	if err := rec.limits(); err != nil {
		return err
	}
	if err := rec.shape(); err != nil {
		return err
	}
	header, err := rec.headers()
	if err != nil {
		return err
	}
	rec.asked.Here.Absent = func(names []*reading.NoServiceError) { rec.absent = append(rec.absent, names...) }
	idle := rec.progress
	if rec.form != "events" {
		idle = nil
	}
	rec.told = time.Now()
	rec.stream = newStream(c.w, header, idle)
	rec.stream.start()
	out, err := rec.read()
	if begun := rec.stream.halt(); err != nil && !begun {
		return err
	}
	rec.end(out, err)
	return nil
}

// limits reads the parameters of number and order, and the fields.
func (rec *recording) limits() error {
	a := &rec.asked
	if err := a.ReadOrder(rec.params, chosenRecords); err != nil {
		return err
	}
	switch {
	case a.Limit > form.MostHeld && !a.Reverse:
		return badRequest("limit=%d: more than the newest %d come with order=desc only; for all records limit=0", a.Limit, form.MostHeld)
	case a.First > form.MostHeld && a.Reverse:
		return badRequest("first=%d: more than the oldest %d come with order=asc only; for all records limit=0", a.First, form.MostHeld)
	}
	return nil
}

// shape reads the parameters of the form.
func (rec *recording) shape() (err error) {
	missing := "lines"
	if strings.Contains(rec.r.Header.Get("Accept"), "text/csv") {
		missing = "csv"
	}
	if rec.form, err = rec.params.Word("form", missing, "lines", "events", "csv"); err != nil {
		return err
	}
	if rec.partial, err = rec.params.Flag("partial"); err != nil {
		return err
	}
	rec.keys = keysOf(rec.asked.Fields)
	if rec.form == "csv" && len(rec.asked.Fields) == 0 {
		return badRequest("which columns? CSV needs fields, such as fields=ts,level,msg")
	}
	if rec.form != "events" && !rec.partial && !rec.r.ProtoAtLeast(1, 1) {
		return badRequest("in HTTP/1.0 a part of an answer looks like all of it: use HTTP/1.1 (in nginx proxy_http_version 1.1), form=events, or partial=1")
	}
	return nil
}

// headers returns the function that sets the header of the answer.
func (rec *recording) headers() (func(http.Header), error) {
	download, err := rec.params.Flag("download")
	if err != nil {
		return nil, err
	}
	kind, suffix := form.Lines, ".ndjson"
	if rec.form == "csv" {
		kind, suffix = form.CSV, ".csv"
	}
	return func(h http.Header) {
		h.Set("Content-Type", kind)
		h.Set("X-Accel-Buffering", "no")
		declare(h)
		if download {
			h.Set("Content-Disposition", `attachment; filename="`+fileName(&rec.asked)+suffix+`"`)
		}
		if rec.form == "csv" { // also if there is no record
			_ = csv.NewWriter(rec.stream.buf).Write(rec.asked.Fields) // its error comes again
		}
	}, nil
}

// fileName is a name for a file with the records of a question, of its service and times only.
func fileName(a *reading.Ask) string {
	name := "logs"
	if len(a.Services) == 1 && record.ValidStored(a.Services[0]) {
		name = a.Services[0]
	}
	for _, ns := range []int64{a.Range.From, a.Range.To} {
		if ns != reading.Oldest && ns != reading.Newest {
			name += "-" + time.Unix(0, ns).UTC().Format("20060102T150405Z")
		}
	}
	return name
}

// read reads the records.
func (rec *recording) read() (*reading.Outcome, error) {
	switch {
	case rec.form == "events" && rec.asked.Here.Part == nil: // a part has its lines between the events as they are
		return rec.store.Entries(rec.r.Context(), rec.asked, rec.event)
	case rec.form == "csv":
		return rec.store.Records(rec.r.Context(), rec.asked, rec.rows)
	}
	return rec.store.Records(rec.r.Context(), rec.asked, rec.lines)
}

// raw writes a text that is in its form already.
func (rec *recording) raw(text []byte) error {
	return rec.stream.write(func(to *bufio.Writer) error {
		_, err := to.Write(text)
		return err
	})
}

// lines writes lines, as they are stored or with some fields only.
func (rec *recording) lines(lines []byte) error {
	if len(rec.asked.Fields) == 0 {
		return rec.raw(lines)
	}
	return rec.each(lines, func(to *bufio.Writer, line []byte) error {
		rec.some(to, line)
		return to.WriteByte('\n')
	})
}

// each writes lines in a form with some fields. Only the buffer of the stream holds text that is
// not written yet, so a long line takes no memory, however many fields have it.
func (rec *recording) each(lines []byte, write func(to *bufio.Writer, line []byte) error) error {
	for line := range bytes.Lines(lines) {
		if err := rec.fits(line); err != nil {
			return err
		}
	}
	return rec.stream.write(func(to *bufio.Writer) error {
		for line := range bytes.Lines(lines) {
			if err := rec.made.Err(); err != nil {
				return err
			}
			if err := write(to, line); err != nil {
				return err
			}
		}
		return nil
	})
}

// fits refuses a record if its fields are more than a query may make: a field may be asked for many
// times.
func (rec *recording) fits(line []byte) error {
	const few = 4 << 20
	if len(rec.asked.Fields)*len(line) <= few {
		return nil
	}
	size := 0
	for _, name := range rec.asked.Fields {
		value, _ := record.Lookup(line, name)
		size += len(name) + len(value)
		if err := rec.made.Fits(int64(size)); err != nil {
			return err
		}
	}
	return nil
}

// some writes an object with some fields of a line, in their order. Those that the line lacks are
// left out. The writer keeps its error.
func (rec *recording) some(to *bufio.Writer, line []byte) {
	_ = to.WriteByte('{')
	first := true
	for i, name := range rec.asked.Fields {
		value, ok := record.Lookup(line, name)
		if !ok {
			continue
		}
		if !first {
			_ = to.WriteByte(',')
		}
		first = false
		_, _ = to.Write(rec.keys[i])
		_, _ = to.Write(value)
	}
	_ = to.WriteByte('}')
}

// keysOf are the names of fields as an object has them.
func keysOf(fields []string) [][]byte {
	keys := make([][]byte, len(fields))
	for i, name := range fields {
		keys[i] = append(record.AppendEscaped([]byte{'"'}, []byte(name)), `":`...)
	}
	return keys
}

// rows writes lines as rows of CSV.
func (rec *recording) rows(lines []byte) error {
	row := make([]string, len(rec.asked.Fields))
	known := map[string]string{} // a field may be asked for many times
	return rec.each(lines, func(to *bufio.Writer, line []byte) error {
		clear(known)
		for i, name := range rec.asked.Fields {
			text, ok := known[name]
			if !ok {
				value, _ := record.Lookup(line, name)
				text = survey.Plain(value)
				known[name] = text
			}
			row[i] = text
		}
		return csv.NewWriter(to).Write(row) // which has no buffer beside that of to
	})
}

// event writes a record with its identity.
func (rec *recording) event(e *record.Entry) error {
	if err := rec.fits(e.Line); err != nil {
		return err
	}
	return rec.stream.write(func(to *bufio.Writer) error {
		for _, none := range rec.absent {
			_ = json.NewEncoder(to).Encode(form.Event{Absent: none.Name}) // its error comes again
		}
		rec.absent = nil
		rec.last = e.Time
		rec.emitted++
		rec.bytes += int64(len(e.Line))
		rec.buf = beginRecord(rec.buf[:0], e)
		_, _ = to.Write(rec.buf) // its error comes again
		if len(rec.asked.Fields) > 0 {
			rec.some(to, e.Line)
		} else {
			_, _ = to.Write(bytes.TrimSuffix(e.Line, []byte("\n")))
		}
		_, err := to.WriteString("}}\n")
		return err
	})
}

// progressEvery is how often a stream of events tells its progress.
const progressEvery = time.Second

// progress writes how far the read has come, if it is due.
func (rec *recording) progress() error {
	if time.Since(rec.told) < progressEvery {
		return nil
	}
	rec.told = time.Now()
	p := form.Progress{Records: rec.emitted, Bytes: rec.bytes}
	if rec.emitted > 0 {
		p.Read = form.Stamp(rec.last)
	}
	line, err := json.Marshal(form.Event{Progress: &p})
	if err == nil {
		_, err = rec.stream.buf.Write(append(line, '\n'))
	}
	return err
}

// end writes the end of the stream, or breaks it off.
func (rec *recording) end(out *reading.Outcome, err error) {
	if err != nil {
		out.Lack(errors.New(rec.explain(err).Reason))
	}
	end := form.EndOf(out)
	end.Range = rec.rangeOf(&rec.asked)
	if rec.stream.err != nil || !end.Complete && !rec.partial && rec.form != "events" {
		rec.stream.cut()
	}
	if rec.form == "events" {
		line, err := json.Marshal(form.Event{End: end})
		if err != nil {
			rec.stream.cut()
		}
		_ = rec.stream.write(func(to *bufio.Writer) error {
			_, err := to.Write(append(line, '\n'))
			return err
		})
	}
	rec.stream.end(end)
}

// beginRecord appends the begin of the event of a record, up to its line.
func beginRecord(dst []byte, e *record.Entry) []byte {
	at := e.Key()
	dst = at.Append(append(dst, `{"record":{"id":"`...))
	return append(dst, `","line":`...)
}

// appendRecord appends the event of a record, with its newline.
func appendRecord(dst []byte, e *record.Entry, anchor bool) []byte {
	dst = append(beginRecord(dst, e), bytes.TrimSuffix(e.Line, []byte("\n"))...)
	if anchor {
		dst = append(dst, `,"anchor":true`...)
	}
	return append(dst, "}}\n"...)
}
