package body

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/zeebo/xxh3"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/origin"
)

// A Gatherer is a [Sink] that makes canonical lines of records, one after the other in
// Req. It allocates no memory for a single record: [Gatherer.Clear] makes its memory
// ready for the next request. It belongs to one goroutine.
type Gatherer struct {
	// After is called after each record, with its end in the body. False ends the
	// decoding. The source sets it before the first record.
	After func(end int) bool
	// Watch is told of each record of the body. Nil: nobody is. The source sets it with After.
	Watch Watch
	// Past is how many places the earlier requests of the same body have.
	Past int

	// The gatherer counts these; Clear resets all of them.

	Req      record.Request
	Rejected []Rejected // not in Req before AddRejected
	Broken   int        // of them, those that are not even well formed

	Forbidden int          // of Rejected, those that their sender may not send
	Accepted  int          // lines in Req
	Owned     int          // of them, those with their own time
	Lacks     record.Lacks // of them; Req.Lacks has them by service
	Places    int          // of the records so far; the next one has this place
	// Made is how many bytes the lines of all records had, also of those rejected for their
	// time or service. It depends on the body alone before AddRejected, which adds its lines.
	Made int
	// These depend on the body alone: the number of its records, rejected ones too, and
	// the earliest time among them.
	Found       int
	EarliestOwn int64
	AnyOwn      bool

	arrival  Arrival
	defaults meaning.Defaults
	earliest int64 // time of an accepted line
	longest  int   // bytes of a record of the body, as received
	parser   *meaning.Reader
	parts    *meaning.Parts // begun last
	why      meaning.Why    // of the record added last, for a Watch
	hash     *xxh3.Hasher
	services map[string]uint32
	last     uint32 // service of the previous line
	near     *near
	checked  verdict  // of the service that was checked last
	untimed  []uint32 // of a keyed body, the accepted lines without a time
}

// Rejected is an invalid record. It waits for the end of its request, because it gets
// the time of the earliest record there.
type Rejected struct {
	Reason string
	Index  int // among the records of the body

	raw   []byte
	place int
}

// An Arrival is the knowledge of a body before its records are read.
type Arrival struct {
	Source  string // for rejected lines; must be the same on a retry
	Service string // folded; "" leaves it to each record
	Time    int64  // Unix nanoseconds; records may be at most 24 h later
	Clock   string // the owner of the clock, for the reason of a rejection
	Key     string // an idempotency key; "" for none
	// Client is the id of the sender, by which keys are kept apart; "" for none.
	Client string
	// Allow returns the reason why records of a service are rejected, "" if they are not.
	// forbidden says that the reason does not pass with time. Nil: all are accepted.
	Allow func(service string) (reason string, forbidden bool)
	// Fields has names of fields that are tried before the known ones. Nil: there are none.
	Fields *meaning.Mapping
}

// ForNow makes an Allow of a function with reasons that pass with time; nil of nil.
func ForNow(allow func(service string) (reason string)) func(service string) (reason string, forbidden bool) {
	if allow == nil {
		return nil
	}
	return func(service string) (string, bool) { return allow(service), false }
}

// verdict is a result of Arrival.Allow.
type verdict struct {
	service, reason string
	forbidden       bool
}

// Arrive begins a body. Records without a time get that of the key, if it has one, else
// the arrival. If the time of a key is too far ahead, all records would be rejected.
func (g *Gatherer) Arrive(a Arrival) {
	g.arrival, g.checked = a, verdict{}
	g.defaults = meaning.Defaults{Service: a.Service, Time: a.Time, Arrived: a.Time, Seeks: true, Explains: g.Watch != nil, Mapping: a.Fields.Named()}
	if ms, ok := origin.KeyTime(a.Key); ok && ms <= g.latest()/int64(time.Millisecond) {
		g.defaults.Time = ms * int64(time.Millisecond)
	}
	g.near.arrive(a, g.defaults.Time)
	g.defaults.Guess = g.near.judge.Guess
}

// Source is that of the arrival.
func (g *Gatherer) Source() string { return g.arrival.Source }

func (g *Gatherer) latest() int64 { return g.arrival.Time + record.MaxAhead.Nanoseconds() }

// NewGatherer makes a Gatherer.
func NewGatherer() *Gatherer {
	return &Gatherer{parser: meaning.NewReader(), near: &near{}, services: make(map[string]uint32), hash: xxh3.New()}
}

// Arrived is the time of the arrival, as in [Sink].
func (g *Gatherer) Arrived() int64 { return g.arrival.Time }

// Scan checks an object, as in [Sink].
func (g *Gatherer) Scan(src []byte) (int, error) { return g.parser.Scan(src) }

// Object adds the object scanned last.
func (g *Gatherer) Object(raw []byte, end int) bool {
	data, stamp := g.parser.AppendLine(g.Req.Data, &g.defaults)
	if g.Watch != nil {
		g.why = g.parser.Why(&g.defaults, data[len(g.Req.Data):])
	}
	return g.line(data, &stamp, raw, 1, end)
}

// Scanned returns the time of the object scanned last, as in [Sink].
func (g *Gatherer) Scanned() (ns int64, own bool) {
	data, stamp := g.parser.AppendLine(g.Req.Data, &g.defaults)
	g.Req.Data, g.near.dated = data[:len(g.Req.Data)], false
	return stamp.Time, stamp.OwnTime
}

// Last returns the time of the last record of the body, as in [Sink].
func (g *Gatherer) Last() (ns int64, own, any bool) {
	return g.near.before.Time, g.near.before.OwnTime, g.near.begun
}

// Fallback names the service of records that name none, as in [Sink].
func (g *Gatherer) Fallback(service string) { g.defaults.Fallback = service }

// Begin begins a record by parts, as in [Sink].
func (g *Gatherer) Begin(h meaning.Head) *meaning.Parts {
	g.parts = g.parser.Begin(g.Req.Data, h, &g.defaults)
	return g.parts
}

// Record adds the record begun last.
func (g *Gatherer) Record(raw []byte, places, end int) bool {
	data, stamp, err := g.parts.End()
	if err != nil {
		why, _ := rejectionOf(err)
		return g.reject(raw, why, places, end)
	}
	if g.Watch != nil {
		g.why = g.parts.Why()
	}
	return g.line(data, &stamp, raw, places, end)
}

// line accepts the canonical line that data has beyond g.Req.Data.
func (g *Gatherer) line(data []byte, stamp *record.Stamp, raw []byte, places, end int) bool {
	g.found(stamp)
	g.Made += len(data) - len(g.Req.Data)
	if g.defaults.Mapping != nil {
		if why := g.parser.Refused(); why != "" {
			return g.reject(raw, Rejection{Reason: why}, places, end)
		}
	}
	if stamp.Time > g.latest() {
		return g.reject(raw, Rejection{Reason: fmt.Sprintf("time %s is more than 24h ahead of %s",
			record.AppendTime(nil, stamp.Time), g.arrival.Clock)}, places, end)
	}
	if g.arrival.Allow != nil && !g.allowed(stamp.Service) {
		if g.checked.forbidden {
			g.Forbidden++
		}
		return g.reject(raw, Rejection{Reason: g.checked.reason}, places, end)
	}
	g.longest = max(g.longest, len(raw))
	if g.Watch != nil {
		g.Watch(Seen{Place: g.Places, Line: data[len(g.Req.Data):], Stamp: *stamp, Why: g.why, Raw: raw})
	}
	if stamp.OwnTime {
		g.Owned++
	} else if g.arrival.Key != "" {
		g.untimed = append(g.untimed, uint32(len(g.Req.Lines)))
	}
	g.add(data, stamp.Time, stamp.Service, g.Places)
	if !stamp.OwnTime || stamp.TimeUnread || stamp.LevelUnread {
		g.countLacks(stamp)
	}
	g.Places += places
	if g.Accepted == 0 || stamp.Time < g.earliest {
		g.earliest = stamp.Time
	}
	g.Accepted++
	return g.After(end)
}

// countLacks counts the line that was added last.
func (g *Gatherer) countLacks(stamp *record.Stamp) {
	for len(g.Req.Lacks) <= int(g.last) {
		g.Req.Lacks = append(g.Req.Lacks, record.Lacks{})
	}
	g.Req.Lacks[g.last].Count(stamp)
	g.Lacks.Count(stamp)
}

// allowed reports whether the sender may send records of a service: the request has some
// already, or Allow says so.
func (g *Gatherer) allowed(service string) bool {
	if g.has(service) {
		return true
	}
	if g.checked.service != service {
		reason, forbidden := g.arrival.Allow(service)
		g.checked = verdict{service, reason, forbidden}
	}
	return g.checked.reason == ""
}

// found counts a record, accepted or not.
func (g *Gatherer) found(stamp *record.Stamp) {
	g.Found++
	g.near.add(stamp)
	if stamp.OwnTime && (!g.AnyOwn || stamp.Time < g.EarliestOwn) {
		g.EarliestOwn, g.AnyOwn = stamp.Time, true
	}
}

func (g *Gatherer) add(data []byte, t int64, service string, place int) {
	off := len(g.Req.Data)
	g.Req.Data = data
	g.Req.Lines = append(g.Req.Lines, record.Line{
		Time: t, Off: uint32(off), Len: uint32(len(data) - off), Service: g.service(service),
		Shift: int32(place - len(g.Req.Lines))})
}

// has reports whether the request has accepted records of a service.
func (g *Gatherer) has(name string) bool {
	if len(g.Req.Services) > 0 && g.Req.Services[g.last] == name {
		return true
	}
	if len(g.Req.Services) <= fewServices {
		return slices.Contains(g.Req.Services, name)
	}
	_, ok := g.services[name]
	return ok
}

// fewServices are quicker to compare than to hash: their names are the same strings each
// time.
const fewServices = 16

// service returns the number of a service in this request.
func (g *Gatherer) service(name string) uint32 {
	if len(g.Req.Services) > 0 && g.Req.Services[g.last] == name {
		return g.last
	}
	if len(g.Req.Services) <= fewServices {
		if i := slices.Index(g.Req.Services, name); i >= 0 {
			g.last = uint32(i)
			return g.last
		}
	}
	n, ok := g.services[name]
	if !ok {
		n = uint32(len(g.Req.Services))
		g.Req.Services = append(g.Req.Services, name)
		g.services[name] = n
	}
	g.last = n
	return n
}

// Reject keeps an invalid record for AddRejected. It has one place in the body. A
// rejected line has as many places as the lenient reading finds records in it. So the
// records after it have the same place in both readings.
func (g *Gatherer) Reject(raw []byte, why Rejection, end int) bool {
	return g.reject(raw, why, 1, end)
}

func (g *Gatherer) reject(raw []byte, why Rejection, places, end int) bool {
	g.longest = max(g.longest, len(raw))
	r := Rejected{Reason: why.Reason, Index: g.Past + g.Places, raw: raw, place: g.Places}
	if why.Line {
		decodeObjects(raw, 0, lenient{g})
	}
	if why.Syntax {
		g.Broken++
	}
	if g.Watch != nil {
		g.Watch(Seen{Place: r.place, Raw: raw, Rejected: why.Reason})
	}
	g.Places = max(g.Places, r.place+places)
	g.Rejected = append(g.Rejected, r)
	return g.After(end)
}

// lenient is a sink for objects that keeps none, and notes their places and times.
type lenient struct{ *Gatherer }

func (l lenient) Object([]byte, int) bool {
	data, stamp := l.parser.AppendLine(l.Req.Data, &l.defaults)
	l.Req.Data = data[:len(l.Req.Data)]
	l.found(&stamp)
	l.Places++
	return true
}

func (l lenient) Reject([]byte, Rejection, int) bool {
	l.Places++
	return true
}

// AddRejected adds a line of the service _rejected for each invalid record. It has
// the time of the earliest accepted one, so that a retry adds the same lines. more is
// called after each line, and its error ends the adding.
func (g *Gatherer) AddRejected(more func() error) error {
	t := g.defaults.Time
	if g.Accepted > 0 {
		t = g.earliest
	}
	for i := range g.Rejected {
		r, before := &g.Rejected[i], len(g.Req.Data)
		g.add(g.parser.AppendRejected(g.Req.Data, meaning.Rejected{
			Raw: r.raw, Reason: r.Reason, Source: g.arrival.Source, Line: r.Index, Time: t, Service: g.defaults.Service,
		}), t, record.RejectedService, r.place)
		g.Made += len(g.Req.Data) - before
		if more != nil {
			if err := more(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Identify gives the request an origin that covers its outcome.
func (g *Gatherer) Identify(o record.Origin) {
	g.Req.Origin, g.Req.Sum, g.Req.Outcome, g.Req.DefaultTime = o, 0, record.Outcome{}, 0
}

// IdentifyByKey gives the request the identity of the key. It is called before
// AddRejected. body is the request's part of the body, and path the place to which it
// was sent: the same body sent to another service has different records.
func (g *Gatherer) IdentifyByKey(path string, part int, body []byte) {
	g.hash.Reset()
	// A hash never fails.
	_, _ = g.hash.WriteString(path)
	_, _ = g.hash.WriteString("\x00")
	_, _ = g.hash.Write(body)
	g.Req.Sum = max(g.hash.Sum64(), 1)
	g.Req.Origin = origin.OfKey(g.arrival.Client, g.arrival.Key, part, g.EarliestOwn, g.AnyOwn)
	g.Req.Outcome, g.Req.DefaultTime = g.Outcome(), g.defaults.Time
}

// outcomeLine is the number of bytes that a line adds to the input of an outcome.
const outcomeLine = 20

// Outcome is the [record.Request.Outcome] of the gathered lines. It is called before
// AddRejected. The bytes of the lines do not count: they follow from the body, which
// the origin covers, and from how it was read, which shows in the times, lengths,
// services and places. With a guessed time it is left zero: another arrival may find another time.
func (g *Gatherer) Outcome() record.Outcome {
	if g.near.judged {
		return record.Outcome{}
	}
	g.hash.Reset()
	services := uint32(0) // of the lines: an earlier attempt may have added the one of rejected lines
	var buf [128 * outcomeLine]byte
	b := buf[:0]
	for i := range g.Req.Lines {
		l := &g.Req.Lines[i]
		services = max(services, l.Service+1)
		b = binary.LittleEndian.AppendUint64(b, uint64(l.Time))
		b = binary.LittleEndian.AppendUint32(b, l.Len)
		b = binary.LittleEndian.AppendUint32(b, l.Service)
		b = binary.LittleEndian.AppendUint32(b, uint32(l.Shift))
		if len(b) == len(buf) {
			_, _ = g.hash.Write(b)
			b = buf[:0]
		}
	}
	_, _ = g.hash.Write(b)
	for _, name := range g.Req.Services[:services] {
		_, _ = g.hash.WriteString(name)
		_, _ = g.hash.WriteString("\x00")
	}
	return record.Outcome{Accepted: uint32(g.Accepted), Rejected: uint32(len(g.Rejected)), Sum: max(g.hash.Sum64(), 1)}
}

// OutcomeOfLines is [Gatherer.Outcome] for an origin that covers only the first record: the
// bytes of the lines count too.
func (g *Gatherer) OutcomeOfLines() record.Outcome {
	o := g.Outcome()
	g.hash.Reset()
	_, _ = g.hash.Write(binary.LittleEndian.AppendUint64(nil, o.Sum))
	_, _ = g.hash.Write(g.Req.Data)
	o.Sum = max(g.hash.Sum64(), 1)
	return o
}

// Clear forgets the records and keeps the memory.
func (g *Gatherer) Clear() {
	g.Req.Lines, g.Req.Data = g.Req.Lines[:0], g.Req.Data[:0]
	clear(g.Req.Services)
	g.Req.Services, g.Req.Lacks = g.Req.Services[:0], g.Req.Lacks[:0]
	clear(g.services)
	clear(g.Rejected)
	g.Rejected, g.untimed = g.Rejected[:0], g.untimed[:0]
	g.last, g.Accepted, g.Owned, g.Lacks = 0, 0, 0, record.Lacks{}
	g.earliest, g.Places, g.Broken, g.Forbidden = 0, 0, 0, 0
	g.Found, g.Made, g.EarliestOwn, g.AnyOwn, g.near.judged = 0, 0, 0, false, false
}

// Forget makes the gatherer ready for another body and releases the memory of an unusual
// one. long says that the body was long.
func (g *Gatherer) Forget(long bool) {
	const keptLines, keptServices, keptData, usual = 32 << 10, 1 << 10, 2 << 20, 64 << 10
	if long || g.longest > usual || cap(g.Req.Data) > keptData || cap(g.Req.Lines) > keptLines ||
		max(cap(g.Rejected), cap(g.Req.Services)) > keptServices {
		*g = *NewGatherer()
		return
	}
	g.Clear()
	*g = Gatherer{
		parser: g.parser, near: g.near, hash: g.hash, services: g.services,
		Req: g.Req, Rejected: g.Rejected, untimed: g.untimed,
	}
}
