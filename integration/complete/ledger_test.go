package complete_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/record/origin"
)

// sent is a record that was sent, with the answers its sender got.
type sent struct {
	name, service, level string
	time                 int64
	stores               map[*store]bool // stores it was sent to
	acks                 []ack
}

// ack is one acknowledgement of a record.
type ack struct {
	by *ingester
	to *store
	at uint64
	// weak says that it was on the disk of an ingester alone, whose log others adopt.
	weak bool
}

// request is a sender's request, which may be sent several times.
type request struct {
	r    record.Request
	all  []*sent
	name string
	to   *store // first store it was sent to; nil: none yet
}

var services = []string{"a", "b", "c"}

// compose makes a request of a few lines, and notes them.
func (w *world) compose(rng *rand.Rand) *request {
	most := 3
	if w.crew != nil { // parts have several
		most = []int{3, 12, 80}[rng.IntN(3)]
	}
	return w.composeOf(rng, 1+rng.IntN(most), 200, ages)
}

// ages are how old records are when they come. Most have the current time. Some came late, and
// some clocks are ahead.
var ages = []time.Duration{0, 0, 0, time.Second, time.Minute, 2 * time.Hour, 30 * time.Hour, -5 * time.Minute}

// closedAges are those of records of days that can be closed, and of one that cannot: the world begins
// at midnight.
var closedAges = []time.Duration{
	30 * time.Hour, 50 * time.Hour, 51 * time.Hour, 51 * time.Hour, 60 * time.Hour,
	74 * time.Hour, 75 * time.Hour, 98 * time.Hour, 99 * time.Hour,
}

// closedRange draws a range of these days, which may be open.
func closedRange(rng *rand.Rand) blobs.Range {
	from := time.Now().Truncate(24 * time.Hour).Add(-time.Duration(24+rng.IntN(96)) * time.Hour)
	length := []time.Duration{time.Hour, 6 * time.Hour, 24 * time.Hour, 50 * time.Hour}[rng.IntN(4)]
	r := blobs.Range{From: from.UnixNano(), To: from.Add(length).UnixNano()}
	switch rng.IntN(8) {
	case 0:
		r.From = blobs.Oldest
	case 1:
		r.To = blobs.Newest
	}
	return r
}

// service draws the service of a record.
func (w *world) service(rng *rand.Rand) string {
	if w.p.Begins && rng.IntN(4) == 0 {
		return fmt.Sprint("new", len(w.requests)/3)
	}
	return services[rng.IntN(len(services))]
}

// composeOf makes a request of so many lines of some ages, each with up to so many bytes of text.
func (w *world) composeOf(rng *rand.Rand, lines, text int, ages []time.Duration) *request {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := &request{name: fmt.Sprint("q", len(w.requests))}
	w.requests = append(w.requests, q)
	index := map[string]uint32{}
	for range lines {
		s := &sent{service: w.service(rng), level: []string{"info", "info", "error"}[rng.IntN(3)], stores: map[*store]bool{}}
		s.name = fmt.Sprint("r", len(w.records))
		w.records[s.name] = s
		q.all = append(q.all, s)
		age := ages[rng.IntN(len(ages))]
		if w.p.Begins && rng.IntN(16) == 0 {
			age = 20 * 24 * time.Hour
		}
		if w.p.Closed && rng.IntN(4) > 0 {
			age = closedAges[rng.IntN(len(closedAges))]
		}
		s.time = time.Now().Add(-age).UnixNano() - rng.Int64N(int64(time.Second))
		service, ok := index[s.service]
		if !ok {
			service = uint32(len(q.r.Services))
			index[s.service] = service
			q.r.Services = append(q.r.Services, s.service)
		}
		off := len(q.r.Data)
		q.r.Data = append(q.r.Data, `{"ts":"`...)
		q.r.Data = record.AppendTime(q.r.Data, s.time)
		q.r.Data = fmt.Appendf(q.r.Data, `","level":"%s","service":"%s","msg":"%s %s"}`+"\n", s.level, s.service, s.name, strings.Repeat("x", rng.IntN(text)))
		q.r.Lines = append(q.r.Lines, record.Line{Time: s.time, Off: uint32(off), Len: uint32(len(q.r.Data) - off), Service: service})
	}
	q.r.Origin = origin.OfBody("", "/ingest", 0, q.r.Data, q.all[0].time)
	return q
}

// reading is the part of a request that an ingester accepts: all of it, or now and then
// less, as when another clock or another decoder rejects the rest.
func (q *request) reading(rng *rand.Rand) *request {
	part := &request{r: q.r, name: q.name}
	part.r.Lines, part.r.Outcome.Sum = nil, 1
	partly := rng.IntN(6) == 0
	for i, l := range q.r.Lines {
		if partly && i > 0 && rng.IntN(2) == 0 {
			continue
		}
		l.Shift = int32(i - len(part.r.Lines))
		part.r.Lines = append(part.r.Lines, l)
		part.all = append(part.all, q.all[i])
		part.r.Outcome.Sum += 1 << (i + 1)
	}
	part.r.Outcome.Accepted, part.r.Outcome.Rejected = uint32(len(part.all)), uint32(len(q.all)-len(part.all))
	return part
}

// toward notes that a request may get into a store.
func (w *world) toward(q *request, s *store) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q.to = s
	for _, r := range q.all {
		r.stores[s] = true
	}
}

// acknowledged notes that a request was acknowledged to its sender.
func (w *world) acknowledged(q *request, by *ingester, to *store, weak bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.totals.Acked++
	at := w.tickLocked()
	for _, r := range q.all {
		r.acks = append(r.acks, ack{by, to, at, weak})
	}
}

// nameOf returns the record's name from the message of a line.
func nameOf(line []byte) string {
	_, rest, _ := bytes.Cut(line, []byte(`"msg":"`))
	name, _, _ := bytes.Cut(rest, []byte(" "))
	return string(name)
}

// absence is a period in which reads may be complete without an ingester's records.
type absence struct {
	from, until uint64 // until is 0 while it lasts
	id          string
	// dropped: the table was removed. This excuses a read only while nobody can know
	// which row is missing. If false, an operator forgot the ingester.
	dropped bool
	weak    bool // only what was acknowledged on a disk alone may lack
}

// absent notes that an operator gave up the row of an ingester. It affects all
// ingesters that have this id or had it.
func (w *world) absent(id string, dropped bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.tickLocked()
	for _, in := range w.all {
		if in.ids[id] {
			in.absences = append(in.absences, &absence{from: at, id: id, dropped: dropped})
		}
	}
}

// wrote notes that a row was written.
func (w *world) wrote(id, process string, was, is *registered) {
	if is.forgotten && !was.forgotten {
		w.absent(id, false)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if was.state != is.state {
		switch is.state {
		case "idle":
			w.totals.Idle++
		case "holding":
			w.totals.Holding++
		case "stopped":
			w.totals.Stopped++
		}
	}
	in := w.processes[process]
	if in == nil || is.forgotten {
		return
	}
	if w.turned++; was.state == "holding" && is.state != "holding" && !w.p.Calm && w.turned%3 == 0 {
		select {
		case w.turning <- in:
		default:
		}
	}
	in.ids[id] = true
	for _, a := range in.absences {
		if a.until == 0 && (!a.weak || is.state == "holding") { // or the operator's word wrote it
			a.until = w.tickLocked()
		}
	}
}

// writer returns the ingester of a process, or nil if the world did not start it.
func (w *world) writer(process string) *ingester {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.processes[process]
}

// excused reports whether a read may lack a record that an ingester has acknowledged.
// It may if the ingester accepts records without its row, or if an operator had given
// up the ingester during the read.
func (w *world) excused(a ack, begin, end uint64) bool {
	if a.by.bestEffort || a.weak && a.by.given > a.at && a.by.given < end {
		return true
	}
	for _, x := range a.by.absences {
		if x.from > end || x.until != 0 && x.until < begin || x.weak && !a.weak {
			continue
		}
		until := end
		if x.until != 0 {
			until = min(until, x.until)
		}
		if !x.dropped || a.to.tables.quiet(x.id, max(begin, x.from), until) {
			return true
		}
	}
	return false
}

// tick returns the next moment of the world. Moments differ even while time stands
// still.
func (w *world) tick() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tickLocked()
}

func (w *world) tickLocked() uint64 {
	w.moment++
	return w.moment
}
