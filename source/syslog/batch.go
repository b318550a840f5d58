package syslog

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/names"
	"blobtail/record/text"
	"blobtail/record/times"
	"blobtail/source/body"
)

const (
	// batchBytes and batchRecords limit a batch.
	batchBytes   = 1 << 20
	batchRecords = 1000
	// batchAge is how long a batch waits for more records. No sender waits for an answer, and a
	// request to the log of one record costs as much as one of hundreds.
	batchAge = 10 * time.Millisecond
	// mostInFlight is how many batches may be appended and not durable yet.
	mostInFlight = 64
	// noName is the service of a message without an application's name.
	noName = "syslog"
	// mostParams is how many parameters become fields of their own. The rest of the
	// structured data is one field.
	mostParams = 64
)

// A batch gathers the records of all connections, so that a thousand devices with a message
// a second make a hundred requests a second. Appending is one after the other, so that the
// messages of a connection keep their order.
type batch struct {
	s       *Source
	lasting context.Context // of appending; set by Run
	begun   chan struct{}   // a batch has its first record
	waiting chan record.Receipt

	turn   chan struct{} // holds the goroutine that uses the rest
	g      *body.Gatherer
	parser parser
	inner  *meaning.Reader // of a message that is an object
	rest   []names.Pair    // its members that are fields
	names  body.Names      // of the fields of parameters
	name   []byte
	may    map[string]bool // services by the names of applications
	value  []byte
	digit  [1]byte
}

func newBatch(s *Source) *batch {
	return &batch{
		s: s, begun: make(chan struct{}, 1), turn: make(chan struct{}, 1), waiting: make(chan record.Receipt, mostInFlight),
		g: body.NewGatherer(), inner: meaning.NewReader(), parser: parser{times: times.Reader{Zone: s.o.Zone}},
		names: body.Names{}, may: make(map[string]bool),
	}
}

// take adds the messages of a buffer that came from a peer, and returns how many bytes they
// have. The buffer may be changed when it has returned.
func (b *batch) take(f *framer, buf []byte, from *peer) (used int) {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	b.arrive(from)
	for used < len(buf) && from.badStarts < mostBadStarts {
		m, n := f.next(buf[used:])
		if n == 0 {
			break
		}
		used += n
		b.add(m, from)
	}
	b.end()
	return used
}

// last adds the unfinished message of a connection that has ended.
func (b *batch) last(m frame, from *peer) {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	b.arrive(from)
	b.add(m, from)
	b.end()
}

// arrive prepares the gatherer for messages of a peer.
func (b *batch) arrive(from *peer) {
	now := b.s.o.Now()
	b.parser.arrive(now)
	b.g.After, b.g.Watch = func(int) bool { return true }, b.s.o.Watch
	a := body.Arrival{Source: from.source, Service: b.s.o.Service, Time: now.UnixNano(), Clock: "this host's clock", Fields: b.s.o.Fields}
	if b.s.o.AllowService != nil || len(b.s.o.Services) > 0 && a.Fields.Named() != nil {
		a.Allow = b.allow // a field may have the service
	}
	b.g.Arrive(a)
	b.parser.times.Guess = b.g.Arrival().Guess
	b.g.Fallback(noName)
	b.g.Past = from.messages - b.g.Places
}

// add adds a message, and appends the batch if it is full.
func (b *batch) add(m frame, from *peer) {
	if len(m.msg) == 0 && m.bad == "" {
		return
	}
	if m.bad != "" {
		b.g.Reject(m.msg, body.Rejection{Reason: m.bad}, 0)
	} else {
		b.record(m.msg, from)
	}
	from.messages++
	if len(b.g.Req.Data) >= batchBytes || b.g.Places >= batchRecords {
		b.flush()
		b.arrive(from)
	}
}

// end ends the messages of a buffer. A rejected message is a part of the buffer until it is
// appended.
func (b *batch) end() {
	switch {
	case len(b.g.Rejected) > 0:
		b.s.refusals.Warn().Str("source", b.g.Source()).Int("rejected", len(b.g.Rejected)).
			Str("reason", body.Short(b.g.Rejected[0].Reason)).Msg("records rejected")
		b.flush()
	case b.g.Accepted > 0:
		select {
		case b.begun <- struct{}{}:
		default:
		}
	}
}

// record adds the record of a message.
func (b *batch) record(raw []byte, from *peer) {
	m := b.parser.parse(raw)
	if from.known = from.known || !m.plain || m.priority >= 0 || from.badStarts == 0 && !isBadStart(raw); !from.known {
		from.badStarts++
		b.g.Reject(raw, body.Rejection{Reason: badStart}, 0)
		return
	}
	var h meaning.Head
	object := false
	if b.rest = b.rest[:0]; m.plain || m.app == nil {
		if h, object = b.object(&m); !object && m.plain {
			b.s.metrics.plain.Inc()
			m.time, _ = text.Time(&b.parser.times, m.msg) // FortiGate has it in pairs
		}
	}
	if b.s.o.Fields.Named() == nil && !b.mayWrite(m.app) {
		b.g.Reject(raw, body.Rejection{Reason: notAllowed(b.serviceOf(m.app))}, 0)
		return
	}
	h.Service, h.Time, h.Renames = m.app, cmp.Or(h.Time, m.time), true
	if !object {
		h.Msg, h.Why = m.msg, b.why(&m)
	}
	// A device's clock may be wrong, and the device does not send its messages again.
	wrong := h.Time > b.parser.times.Now+record.MaxAhead.Nanoseconds()
	if wrong {
		h.Time, h.Unread = 0, true
		h.Why.Time().Pass("ts", m.stamp, meaning.TooFarAhead)
	}
	if m.priority >= 0 && len(h.Level) == 0 {
		b.digit[0] = '0' + byte(m.priority%8)
		h.Level, h.Assumed = b.digit[:], true // files of rsyslog, and logger, have all under notice or info
	}
	parts := b.g.Begin(h)
	parts.AddAll(b.rest)
	host := m.host
	if host == nil {
		host = from.host
	}
	member(parts, "host", host)
	if m.priority >= 0 {
		member(parts, "facility", facility(m.priority/8))
	}
	if wrong {
		member(parts, "ts", m.stamp)
	}
	member(parts, "service", m.own)
	member(parts, "procid", m.procID)
	member(parts, "msgid", m.msgID)
	member(parts, "seq", m.sequence)
	member(parts, "node", m.node)
	b.data(parts, m.data)
	b.g.Record(raw, 1, 0)
}

// object returns the head of a message without a header, or without an application, whose text is an
// object, as loggers of JSON write to a socket, and leaves its other members in rest. ok is false for
// another. Its service is that of the tag, of the object, or its name.
func (b *batch) object(m *message) (h meaning.Head, ok bool) {
	object := bytes.TrimSpace(m.msg)
	if !bytes.HasPrefix(object, []byte("{")) {
		return h, false
	}
	if n, err := b.inner.Scan(object); err != nil || n < len(object) {
		return h, false
	}
	h, b.rest = body.HeadOf(b.g, b.inner, b.rest)
	name := h.Service
	for i := range b.rest {
		if p := &b.rest[i]; p.Name == "name" && len(name) == 0 && record.IsString(p.Value) {
			name = p.Text()
			h.Why.Service().Note(meaning.FromField, "name")
		}
	}
	if len(m.app) == 0 {
		m.app = name
	} else {
		if h.Why.Service().Note(meaning.FromProtocol, "the application's name"); !bytes.Equal(h.Service, m.app) {
			m.own = h.Service
		}
	}
	return h, true
}

// why explains the head of a message.
func (b *batch) why(m *message) *meaning.Why {
	w := b.g.Why()
	w.Named("the header of syslog", "the priority of syslog", "the text behind the header", "the application's name")
	if m.plain {
		w.Time().Note(meaning.FromText, "")
		w.Message().Note(meaning.FromProtocol, "all of the message: it has no header that could be read")
	}
	return w
}

func member(parts *meaning.Parts, key string, value []byte) {
	if len(value) > 0 {
		parts.Text(key, value)
	}
}

// facility is the name of a facility, a part of one text.
func facility(n int) []byte {
	const width = len("authpriv")
	const all = "kern    user    mail    daemon  auth    syslog  lpr     news    " +
		"uucp    cron    authprivftp     ntp     audit   alert   clock   " +
		"local0  local1  local2  local3  local4  local5  local6  local7  "
	name := all[n*width : (n+1)*width]
	for name[len(name)-1] == ' ' {
		name = name[:len(name)-1]
	}
	return []byte(name)
}

// mayWrite reports whether the service of an application may be written.
func (b *batch) mayWrite(app []byte) bool {
	const most, longest = 1024, 256
	if len(b.s.o.Services) == 0 {
		return true
	}
	if may, known := b.may[string(app)]; known {
		return may
	}
	may := b.s.o.allows(b.serviceOf(app))
	if len(b.may) >= most {
		clear(b.may)
	}
	if len(app) <= longest {
		b.may[string(app)] = may
	}
	return may
}

// allows reports whether a service may be written.
func (o *Options) allows(service string) bool {
	return len(o.Services) == 0 || slices.ContainsFunc(o.Services, func(p string) bool { return record.MatchService(p, service) })
}

// allow is the Allow of an arrival.
func (b *batch) allow(service string) (reason string, forbidden bool) {
	switch {
	case !b.s.o.allows(service):
		return notAllowed(service), true
	case b.s.o.AllowService != nil:
		return b.s.o.AllowService(service), false
	}
	return "", false
}

func notAllowed(service string) string {
	return fmt.Sprintf("the service %s is none of those that syslog.services allows", service)
}

// serviceOf is the service of an application's records.
func (b *batch) serviceOf(app []byte) string {
	switch {
	case b.s.o.Service != "":
		return b.s.o.Service
	case len(app) == 0:
		return noName
	}
	return record.FoldService(string(app))
}

// data adds the parameters of structured data as fields, named by their element and
// themselves. An element without parameters is a value of the field sd.
func (b *batch) data(parts *meaning.Parts, data []byte) {
	for params := 0; len(data) > 0; data = data[1:] {
		whole := data
		id := data[1 : 1+nameLen(data[1:])]
		data = data[1+len(id):]
		if data[0] == ']' {
			parts.Text("sd", id)
		}
		for data[0] == ' ' {
			if data = data[1:]; data[0] == ' ' || data[0] == ']' {
				continue
			}
			if params++; params > mostParams {
				parts.Text("sd.rest", whole)
				return
			}
			n := nameLen(data)
			b.name = append(append(append(b.name[:0], id...), '.'), data[:n]...)
			key := b.names.Of(b.name)
			data = data[n+2:]
			n = quotedLen(data)
			b.value = appendValue(b.value[:0], data[:n])
			parts.Text(key, b.value)
			data = data[n+1:]
		}
	}
}

// flush appends the batch, however long that takes.
func (b *batch) flush() {
	_ = b.g.AddRejected(nil)
	defer b.g.Forget(cap(b.g.Req.Data) > 4*batchBytes)
	if len(b.g.Req.Lines) == 0 {
		return
	}
	b.g.Identify(record.Origin{})
	accepted, rejected := int64(b.g.Accepted), int64(len(b.g.Rejected))
	const first, longest = 20 * time.Millisecond, 500 * time.Millisecond
	for wait := first; ; wait = min(2*wait, longest) {
		receipt, err := b.g.Append(b.lasting, b.s.o.Accept, nil)
		if err == nil {
			b.s.metrics.accepted.Add(accepted - int64(receipt.Expired))
			b.s.metrics.rejected.Add(rejected)
			b.waiting <- receipt
			return
		}
		if b.lasting.Err() != nil {
			b.s.metrics.lost.Add(accepted + rejected)
			b.s.o.Log.Error().Err(err).Int("records", len(b.g.Req.Lines)).Msg("records of syslog are lost: they could not be appended before the end")
			return
		}
		b.s.metrics.full.Inc()
		b.s.failures.Warn().Err(err).Msg("senders of syslog wait: nothing more is read")
		pause(b.lasting, wait)
	}
}

// flushLate appends batches that have waited for more records, until ctx ends.
func (b *batch) flushLate(ctx context.Context) {
	for {
		select {
		case <-b.begun:
		case <-ctx.Done():
			return
		}
		pause(ctx, batchAge)
		b.turn <- struct{}{}
		b.flush()
		<-b.turn
	}
}

// await makes the appended batches durable, until the batch is closed. One fsync covers all
// that were appended before it. While many are not durable, flush waits.
func (b *batch) await() {
	for receipt := range b.waiting {
		if err := receipt.Wait(b.lasting, false); err != nil && b.lasting.Err() == nil {
			b.s.failures.Error().Err(err).Msg("records of syslog may not be durable")
		}
	}
}

// close appends the rest. No other method may be called any more.
func (b *batch) close() {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	b.flush()
	close(b.waiting)
}
