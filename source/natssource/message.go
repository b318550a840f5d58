package natssource

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/source/body"
)

const (
	// maxLines bounds the lines of a message, since its records may be two bytes each.
	maxLines = 128 << 20
	// keptBuffer is the largest buffer that is used again.
	keptBuffer = 2 << 20
)

// A reader makes requests of messages, one at a time.
type reader struct {
	*body.Gatherer
	unpack *body.Decompressor
	buffer []byte
	size   int              // of the decoded message
	full   error            // there is no room for more lines
	fields *meaning.Mapping // of the options
	allow  func(service string) (reason string, forbidden bool)
}

func newReader(fields *meaning.Mapping, allow func(service string) string) *reader {
	return &reader{Gatherer: body.NewGatherer(), unpack: body.NewDecompressor(1), fields: fields, allow: body.ForNow(allow)}
}

// Read makes the request of a message as a [Source] does, for people that try theirs. sent is when
// the stream received it, and fields is that of the options. watch is told of each record.
// unreadable is the reason that the message would be kept unchanged.
func Read(m *nats.Msg, sent time.Time, fields *meaning.Mapping, watch body.Watch) (req *record.Request, unreadable error) {
	r := newReader(fields, nil)
	r.Watch = watch
	return r.request(m, place{sent: sent.UnixNano()}, record.Origin{})
}

// request makes the request of a message; it is valid until the next call. It has no
// lines when the message is empty or only white space. unreadable is the reason that
// the message is kept unchanged.
//
// All of it is a function of the message alone, so that a second delivery has the
// same result: the clock of this host has no influence. Only the limit of new services may decide
// otherwise the next time: a record may then be in _rejected and in its service.
func (r *reader) request(m *nats.Msg, p place, stream record.Origin) (req *record.Request, unreadable error) {
	watch := r.Watch
	r.Forget(len(m.Data) > keptBuffer)
	r.full, r.After, r.Watch = nil, r.hasRoom, watch
	key := m.Header.Get(nats.MsgIdHdr)
	subject := plain(m.Subject) // a message that is published again may get a partition
	r.Arrive(body.Arrival{Source: "nats " + body.Short(subject), Service: serviceOf(m.Header, subject), Time: p.sent, Clock: "its message", Key: key, Fields: r.fields, Allow: r.allow})
	identified, unreadable := r.read(m)
	if unreadable != nil {
		identified = m.Data
		r.Clear()
		r.Reject(m.Data, body.Rejection{Reason: unreadable.Error()}, 0)
	}
	r.Identify(stream) // the outcome is a function of the place in the stream
	if key != "" {
		r.IdentifyByKey(subject, 0, identified)
	}
	// From here on only the count of lines can be wrong, and it has been checked.
	_ = r.AddRejected(nil)
	r.Req.Reply = m.Reply
	return &r.Req, unreadable
}

// read finds the records. An error is the reason that the message cannot be read.
func (r *reader) read(m *nats.Msg) (decoded []byte, err error) {
	form, err := body.ParseForm(m.Header.Get("Content-Type"), m.Header.Values("Content-Encoding"))
	if err != nil {
		return nil, err
	}
	if int64(len(m.Data)) > form.Encoding.WireLimit() {
		return nil, form.Encoding.TooLarge()
	}
	decoded = m.Data
	if form.Encoding != body.Plain && len(m.Data) > 0 {
		decoded, err = r.unpack.Decompress(context.Background(), form.Encoding, m.Data, r.grow)
		if r.buffer = decoded[:0]; cap(r.buffer) > keptBuffer {
			r.buffer = nil
		}
		if err != nil {
			return nil, err
		}
	}
	r.size = len(decoded)
	if err := form.Decode(decoded, r.Gatherer); err != nil {
		return nil, err
	}
	return decoded, r.full
}

// grow returns the buffer of the previous message, or a larger one.
func (r *reader) grow(buf []byte, n int) ([]byte, error) {
	if buf == nil && cap(r.buffer) >= n {
		return r.buffer[:0], nil
	}
	return append(make([]byte, 0, n), buf...), nil
}

// hasRoom limits the number of lines. A rejected record becomes a line with some
// hundred bytes of overhead.
func (r *reader) hasRoom(end int) bool {
	if made := len(r.Req.Data) + len(r.Rejected)*512; made > maxLines {
		r.full = body.TooManyLines(made, end, r.size, maxLines)
	}
	return r.full == nil
}

// serviceOf is the service of a message that was published to a subject: the header, for names
// with dots in them, otherwise the token after logs. The rest of the subject is free for the
// publisher.
func serviceOf(header nats.Header, subject string) string {
	if name := header.Get("Blobtail-Service"); name != "" {
		return record.FoldService(name)
	}
	_, rest, _ := strings.Cut(subject, ".")
	name, _, _ := strings.Cut(rest, ".")
	return record.FoldService(name)
}
