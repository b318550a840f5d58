package httpsource

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	"blobtail/record"
	"blobtail/record/ack"
	"blobtail/source/body"
)

// A Stream decodes a body of any length while it comes. It passes records to the sink until
// the body ends, or the sink returns false. The raw slices must not change until the next
// part. The error is that of r, or a reason why no more can be read.
type Stream func(r *bufio.Reader, to StreamSink) error

// A StreamSink accepts the records of a stream.
type StreamSink interface {
	body.Sink
	// Part ends a part and begins the next one with the record that comes. That has a text
	// of its own in the stream, and a time in Unix nanoseconds. Both are the identity of the
	// part, with the sender: so a stream that is sent again must have the same parts. Each
	// part takes memory until its end: it should have at most [StreamPart] bytes. False stops
	// the decoder.
	Part(text []byte, ns int64) bool
}

// StreamPart is the size in bytes at which a decoder of a stream should begin another part.
const StreamPart = 2 << 20

const (
	// streamHold is the memory that a stream holds from its beginning: buffers for reading, and a
	// part.
	streamHold = 2*StreamPart + 128<<10
	// streamWindow is added for a compressed stream.
	streamWindow = 9 << 20
	// streamWaits is how many parts may wait for the disk.
	streamWaits = 16
	// streamKept is how many bytes the receipts of a stream may have that wait for blobs: those of
	// about a thousand parts. A receipt has perReceipt, and perBatch for each batch of its part.
	streamKept           = 1 << 20
	perReceipt, perBatch = 256, 32
	// streamPatience is how long a stream waits for a full log. A client that is cut off sends
	// all of it again, so the limit is long.
	streamPatience = 5 * time.Minute
)

// A partID identifies a part of a stream by its first record.
type partID struct {
	record []byte
	time   int64
}

// stream appends a body while it comes, and returns when all of it is durable, or stored if the
// sender asks for that.
func (s *Source) stream(w http.ResponseWriter, r *http.Request, in Intake, who Sender) (Result, error) {
	if err := open(r, who, in.Service, 0, s.o.Patience); err != nil {
		return Result{}, err
	}
	h, err := s.budget.enter(r.Context(), s.o.Patience)
	if err != nil {
		return Result{}, err
	}
	defer h.release()
	wire := &streamWire{s: s, r: r, pace: newPace(w, s.o.ReadGrace), hold: h}
	need := int64(streamHold)
	if in.ack > ack.Disk {
		need += streamKept
	}
	if in.Form.Encoding != body.Plain {
		need += streamWindow
		err = h.leave(r.Context(), s.o.Patience)
	}
	if err := cmp.Or(err, h.atLeast(need)); err != nil {
		return Result{}, err
	}
	text, err := body.NewReader(in.Form.Encoding, wire)
	if err != nil {
		return Result{}, wire.explain(err)
	}
	defer text.Close()
	b := s.builders.Get().(*builder)
	defer func() {
		b.forget()
		s.builders.Put(b)
	}()
	if err := b.begin(s, r, in, who, h, nil); err != nil {
		return Result{}, err
	}
	sink := &streamSink{builder: b, who: who, level: in.ack, least: ack.Stored}
	b.After = sink.after
	b.id = new(partID)
	err = in.Stream(bufio.NewReaderSize(text, 64<<10), sink)
	if err = cmp.Or(b.err, wire.full, wire.err, err); err != nil {
		return b.answer, wire.explain(err)
	}
	wire.pace.done()
	if err = b.end(); err == nil {
		err = b.answer.await(r.Context(), b.receipts, sink.level)
		b.answer.reached = min(b.answer.reached, sink.least)
	}
	return b.answer, err
}

// streamSink makes parts of a stream.
type streamSink struct {
	*builder
	who   Sender
	level ack.Level // of the strictest part so far
	least ack.Level // of the parts that are not waited for any more
	kept  []int     // bytes of the builder's receipts
	all   int       // their sum
}

// Part implements [StreamSink].
func (s *streamSink) Part(text []byte, ns int64) bool {
	b := s.builder
	size, kept := int64(len(b.Req.Data)), receiptSize(&b.Req)
	if b.err != nil || !b.flush(0) {
		return false
	}
	if s.who != nil && size > 0 {
		s.who.Charge(size)
		if b.err = open(b.request, s.who, "", 0, streamPatience); b.err != nil {
			return false
		}
	}
	b.patience = time.Time{}
	b.id.record, b.id.time = append(b.id.record[:0], text...), ns
	if len(b.receipts) > len(s.kept) {
		b.err = s.await(kept)
	}
	return b.err == nil
}

// await waits until all parts but the last ones are durable. n is the size of the newest receipt. If
// the sender waits for the store, receipts are kept until the end. When they have too many bytes, all
// of these parts are waited for. That cuts open batches if they have to be stored: so it costs a blob in
// about a thousand parts.
func (s *streamSink) await(n int) error {
	b, ctx := s.builder, s.request.Context()
	s.kept, s.all = append(s.kept, n), s.all+n
	if level := b.receipts[len(b.receipts)-1].Ack; level > s.level {
		if s.level == ack.Disk {
			b.held += streamKept
		}
		if s.level = level; !s.after(0) {
			return b.err
		}
	}
	done := 0
	if last := len(b.receipts) - streamWaits; last > 0 {
		if err := b.receipts[last-1].Wait(ctx, false); err != nil {
			return err
		}
		if s.level == ack.Disk {
			done, s.least = last, ack.Disk
		}
	}
	if s.level > ack.Disk && s.all > streamKept {
		if err := b.answer.await(ctx, b.receipts, s.level); err != nil {
			return err
		}
		done, s.least = len(b.receipts), min(s.least, b.answer.reached)
	}
	for _, n := range s.kept[:done] {
		s.all -= n
	}
	s.kept, b.receipts = slices.Delete(s.kept, 0, done), slices.Delete(b.receipts, 0, done)
	return nil
}

// receiptSize is about how many bytes the receipt of a request has: a part may have a batch for each
// of its services and hours.
func receiptSize(r *record.Request) int {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range r.Lines {
		first, last = min(first, r.Lines[i].Time), max(last, r.Lines[i].Time)
	}
	hours := 1 + max(0, float64(last)-float64(first))/float64(time.Hour)
	return perReceipt + perBatch*int(min(float64(len(r.Lines)), float64(len(r.Services)+1)*hours))
}

// after counts the memory of the part.
func (s *streamSink) after(int) bool { return s.count(s.Accepted + len(s.Rejected)) }

// streamWire reads a body off the wire at no less than the minimum rate. Beyond [smallBody] the body
// counts among the large ones.
type streamWire struct {
	s    *Source
	r    *http.Request
	pace *pace
	hold *hold
	n    int
	full error // there is no room among the large ones
	err  error // of the body, except io.EOF
}

// Read implements [io.Reader].
func (w *streamWire) Read(p []byte) (int, error) {
	if w.n > smallBody {
		if w.full = w.hold.leave(w.r.Context(), w.s.o.Patience); w.full != nil {
			return 0, w.full
		}
	}
	w.pace.extend(w.n)
	n, err := w.r.Body.Read(p)
	w.n += n
	w.s.metrics.wire.Add(int64(n))
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}

// explain returns the refusal for a stream that broke off.
func (w *streamWire) explain(err error) error {
	if w.err == nil {
		return err
	}
	f, _ := errors.AsType[*Refusal](readFailed(w.err, w.n))
	f.Reason += "; a stream is taken in parts: the ones before may be stored, and are recognised when they come again"
	return f
}
