package natssource

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"blobtail/record"
	"blobtail/source/body"
)

const (
	// maxAhead is how far a record may be in the future of its message.
	maxAhead = 24 * time.Hour
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
	tooFew bool // room for the lines
}

func newReader() *reader {
	return &reader{Gatherer: body.NewGatherer(), unpack: body.NewDecompressor(1)}
}

// request makes the request of a message; it is valid until the next call. It has no
// lines when the message is empty or only white space. unreadable is the reason that
// the message is kept unchanged.
//
// All of it is a function of the message alone, so that a second delivery has the
// same result: the clock of this host has no influence.
func (r *reader) request(m *nats.Msg, p place, stream record.Origin) (req *record.Request, unreadable error) {
	r.Forget(len(m.Data) > keptBuffer)
	r.tooFew = false
	r.Defaults = record.Defaults{Service: serviceOf(m), Time: p.sent}
	r.Latest, r.Clock = p.sent+maxAhead.Nanoseconds(), "its message"
	r.Source = "nats " + body.Short(m.Subject)
	key := m.Header.Get(nats.MsgIdHdr)
	r.Keyed = key != ""
	if ms, ok := record.KeyTime(key); ok && ms <= r.Latest/int64(time.Millisecond) {
		r.Defaults.Time = ms * int64(time.Millisecond)
	}
	identified := m.Data
	if decoded, err := r.read(m); err == nil {
		identified = decoded
	} else {
		unreadable = err
		r.Clear()
		r.Gatherer.Reject(body.Rejected{Raw: m.Data, Reason: err.Error()})
	}
	r.identify(stream)
	if key != "" {
		r.Req.Origin = record.KeyOrigin("", key, 0, r.EarliestOwn, r.AnyOwn)
		r.Req.Sum = r.Sum(m.Subject, identified)
		r.Req.Outcome, r.Req.DefaultTime = r.Outcome(), r.Defaults.Time
	}
	// From here on only the count of lines can be wrong, and it has been checked.
	_ = r.AddRejected(nil)
	r.Req.Reply = m.Reply
	return &r.Req, unreadable
}

// identify gives the request its place in the stream as its identity. The outcome is
// a function of that.
func (r *reader) identify(stream record.Origin) {
	r.Req.Origin, r.Req.Sum, r.Req.Outcome, r.Req.DefaultTime = stream, 0, record.Outcome{}, 0
}

// asBefore gives the message the times of its first delivery, if err has them.
func (r *reader) asBefore(err error) bool {
	var first *record.EarlierError
	if !errors.As(err, &first) {
		return false
	}
	r.Retime(first.DefaultTime)
	r.Req.Origin, r.Req.DefaultTime, r.Req.Outcome = first.Origin, first.DefaultTime, r.Outcome()
	_ = r.AddRejected(nil)
	return true
}

// read finds the records. An error is the reason that the message cannot be read.
func (r *reader) read(m *nats.Msg) (decoded []byte, err error) {
	decode, sniffed, err := body.DecoderFor(m.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	enc, err := body.ParseEncoding(m.Header.Values("Content-Encoding"))
	if err != nil {
		return nil, err
	}
	if int64(len(m.Data)) > enc.WireLimit() {
		return nil, enc.TooLarge()
	}
	decoded = m.Data
	if enc != body.Plain && len(m.Data) > 0 {
		decoded, err = r.unpack.Decompress(context.Background(), enc, m.Data, r.grow)
		if r.buffer = decoded[:0]; cap(r.buffer) > keptBuffer {
			r.buffer = nil
		}
		if err != nil {
			return nil, err
		}
	} else if sniffed {
		if err := body.LooksCompressed(decoded); err != nil {
			return nil, err
		}
	}
	if err := body.LooksUTF16(decoded); err != nil {
		return nil, err
	}
	decode(decoded, r)
	if r.tooFew {
		return nil, errTooManyRecords
	}
	return decoded, nil
}

var errTooManyRecords = errors.New("the message holds too many records; send it in several")

// grow returns the buffer of the previous message, or a larger one.
func (r *reader) grow(buf []byte, n int) ([]byte, error) {
	if buf == nil && cap(r.buffer) >= n {
		return r.buffer[:0], nil
	}
	return append(make([]byte, 0, n), buf...), nil
}

// Object accepts the object scanned last.
func (r *reader) Object(raw []byte, end int) bool {
	if why, ok := r.Gatherer.Object(raw); !ok {
		return r.Reject(raw, why, end)
	}
	return r.counted()
}

// Record accepts the record begun last.
func (r *reader) Record(raw []byte, end int) bool {
	if why, ok := r.Gatherer.Record(raw); !ok {
		return r.Reject(raw, why, end)
	}
	return r.counted()
}

// Reject accepts an invalid record.
func (r *reader) Reject(raw []byte, why body.Rejection, _ int) bool {
	r.Gatherer.Reject(body.Rejected{Raw: raw, Reason: why.Reason, Index: r.Places, Line: why.Line})
	return r.counted()
}

// counted limits the number of lines. A rejected record becomes a line with some
// hundred bytes of overhead.
func (r *reader) counted() bool {
	r.tooFew = len(r.Req.Data)+len(r.Rejected)*512 > maxLines
	return !r.tooFew
}

// serviceOf is the service of a message: the header, for names with dots in them,
// otherwise the token after logs. The rest of the subject is free for the publisher.
func serviceOf(m *nats.Msg) string {
	if name := m.Header.Get("Blobtail-Service"); name != "" {
		return record.FoldService(name)
	}
	_, rest, _ := strings.Cut(m.Subject, ".")
	name, _, _ := strings.Cut(rest, ".")
	return record.FoldService(name)
}
