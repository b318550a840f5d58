// Package check keeps account of the answers that clients received and compares the
// output of a read with it.
//
// A client that sends records calls [Ledger.Sent] before the request leaves, then
// [Ledger.Acked] or [Ledger.Rejected] when there is an answer. Without an answer it
// calls nothing: the state of such a record is unknown. At the end the whole output
// of logquery goes through [Ledger.Verify]. It must have every acknowledged record
// once and every unknown one at most once. It must have no rejected record and none
// that was never sent, and all must be in order of time.
//
// A record is identified by the first word of its message, so ids hold no space, no
// quote and no backslash. The package knows neither processes nor stores.
package check

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"blobtail/record"
)

// maxShown is the greatest number of examples that an error names for each kind of
// fault.
const maxShown = 5

// state is the state of a record as its client knows it.
type state uint8

const (
	unknown state = iota
	acked
	rejected
)

type entry struct {
	time    int64
	service string
	state   state
	seen    int
}

// Ledger is the account of all clients of a test. Any number of goroutines may call
// its methods.
type Ledger struct {
	mu      sync.Mutex
	records map[string]*entry
}

// Sent notes that a record is about to be sent. Sending it again changes nothing.
func (l *Ledger) Sent(id, service string, time int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.records == nil {
		l.records = map[string]*entry{}
	}
	if l.records[id] == nil {
		l.records[id] = &entry{time: time, service: service}
	}
}

// Acked notes that records were acknowledged. No later answer undoes that.
func (l *Ledger) Acked(ids ...string) { l.set(acked, ids) }

// Rejected notes that the answer rejected the records.
func (l *Ledger) Rejected(ids ...string) { l.set(rejected, ids) }

func (l *Ledger) set(s state, ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if e := l.records[id]; e != nil && e.state != acked {
			e.state = s
		}
	}
}

// Report counts the records that a Verify compared.
type Report struct {
	Sent, Acked, Rejected, Unknown int // records by the state that their clients know
	Found                          int // lines of the output
	FoundUnknown                   int // of them, those that no client got an answer for
}

// String returns the report in one line.
func (r Report) String() string {
	return fmt.Sprintf("%d sent, %d acknowledged, %d rejected, %d unknown; %d found, %d of them unknown",
		r.Sent, r.Acked, r.Rejected, r.Unknown, r.Found, r.FoundUnknown)
}

// Verify reads canonical lines, as logquery -o json prints them, and returns their
// faults as an error. All clients must have finished.
func (l *Ledger) Verify(output io.Reader) (Report, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var r Report
	var bad faults
	for _, e := range l.records {
		e.seen = 0
	}
	in := bufio.NewReaderSize(output, 64<<10)
	last := int64(-1 << 63)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			break
		}
		if err != nil {
			return r, fmt.Errorf("line %d of the output: %w", r.Found+1, err)
		}
		r.Found++
		last = l.line(line, r.Found, last, &bad)
	}
	l.totals(&r, &bad)
	return r, bad.err()
}

// line checks one line and returns its time.
func (l *Ledger) line(line []byte, n int, last int64, bad *faults) int64 {
	t, ok := record.LineTime(line)
	if !ok {
		bad.add("no canonical line", "line %d: %.100s", n, line)
		return last
	}
	if t < last {
		bad.add("out of order", "line %d: %.100s", n, line)
	}
	id := ID(line)
	e := l.records[id]
	if e == nil {
		bad.add("never sent", "line %d: %.150s", n, line)
		return t
	}
	e.seen++
	if e.time != t {
		bad.add("another time than it was sent with", "%s: %.100s", id, line)
	}
	if !bytes.Contains(line, []byte(`,"service":"`+e.service+`",`)) {
		bad.add("another service than it was sent to", "%s: %.150s", id, line)
	}
	return t
}

func (l *Ledger) totals(r *Report, bad *faults) {
	r.Sent = len(l.records)
	for id, e := range l.records {
		switch e.state {
		case acked:
			r.Acked++
			if e.seen == 0 {
				bad.add("acknowledged and lost", "%s of %s", id, e.service)
			}
		case rejected:
			r.Rejected++
			if e.seen > 0 {
				bad.add("rejected and stored", "%s of %s", id, e.service)
			}
		case unknown:
			r.Unknown++
			r.FoundUnknown += min(e.seen, 1)
		}
		if e.seen > 1 {
			bad.add("shown more than once", "%s of %s: %d times", id, e.service, e.seen)
		}
	}
}

// ID returns the first word of a canonical line's message, "" if it has none.
func ID(line []byte) string {
	off, ok := record.LineMsg(line)
	if !ok {
		return ""
	}
	if end := bytes.IndexAny(line[off:], ` "`); end >= 0 {
		return string(line[off : off+end])
	}
	return ""
}

// faults gathers examples by kind.
type faults struct {
	kinds    []string
	count    map[string]int
	examples map[string][]string
}

func (f *faults) add(kind, format string, a ...any) {
	if f.count == nil {
		f.count, f.examples = map[string]int{}, map[string][]string{}
	}
	if f.count[kind]++; f.count[kind] == 1 {
		f.kinds = append(f.kinds, kind)
	}
	if len(f.examples[kind]) < maxShown {
		f.examples[kind] = append(f.examples[kind], fmt.Sprintf(format, a...))
	}
}

func (f *faults) err() error {
	var errs []error
	for _, kind := range f.kinds {
		slices.Sort(f.examples[kind])
		errs = append(errs, fmt.Errorf("%d %s, such as %q", f.count[kind], kind, f.examples[kind]))
	}
	return errors.Join(errs...)
}
