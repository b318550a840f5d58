package body

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/text"
)

// A Sink accepts the records of a body in their order there. The raw slices must not
// change until the decoder has returned. end is the offset of the record's end in the
// body. The methods return false to stop the decoder, which returns then.
type Sink interface {
	// Arrived is when the body came, in Unix nanoseconds; 0: it is not known.
	Arrived() int64
	// Arrival is the arrival for a [meaning.Reader], with the judge of guessed times.
	Arrival() *meaning.Defaults
	// Why is where the parts of the next head are noted; nil if nobody asks.
	Why() *meaning.Why
	// Scan checks the JSON object at the start of src, like [meaning.Reader.Scan].
	Scan(src []byte) (n int, err error)
	// Object accepts the object scanned last.
	Object(raw []byte, end int) bool
	// Scanned returns the time of the object scanned last, and whether that is its own.
	Scanned() (ns int64, own bool)
	// Last returns the time of the last record of the body, accepted or not, and whether
	// that is its own; any is false before the first one.
	Last() (ns int64, own, any bool)
	// Fallback names the service, folded, of the records from here on that name none
	// themselves. It is that of the arrival, if there is one, all the same.
	Fallback(service string)
	// Mapped reports whether the operator or the sender has named a field for a part of the
	// head of a service's records, not folded; or objects with members that they have named.
	Mapped(service []byte, key string) bool
	// Takes reports whether records of a service, not folded, are accepted from the sender.
	Takes(service []byte) bool
	// Begin begins a record by parts; the caller adds its fields, then calls Record.
	Begin(meaning.Head) *meaning.Parts
	// Record accepts the record begun last. raw is the source of it, for a rejection. It
	// takes so many places in the body.
	Record(raw []byte, places, end int) bool
	// Reject accepts the bytes of an invalid record.
	Reject(raw []byte, why Rejection, end int) bool
}

// A Rejection is the reason that something is no record. With Syntax set it was not
// even well formed: if a body has nothing else, nothing of it could be read. With
// Line set it is a line that may have records in the lenient reading, as objects one
// after the other.
type Rejection struct {
	Reason string
	Syntax bool
	Line   bool
}

// A decoder finds the records in a decoded body from off and passes each byte that is
// not white space to the sink, as part of a record or of a reject.
type decoder func(body []byte, off int, to Sink)

// A Decoder is the decoder of a protocol. It passes records to the sink, with ends that
// rise up to the length of the body, until the sink returns false. An invalid record is a
// reject; an [*Error] is a body that cannot be accepted.
type Decoder func(body []byte, to Sink) error

// A Form is the form of a body according to its header.
type Form struct {
	Encoding Encoding
	// Inner is a second layer of compression, below Encoding. Plain: there is none.
	Inner Encoding

	decode  decoder
	own     Decoder // of a protocol, in place of decode
	sniffed bool
}

// NewForm makes the form of a protocol's body. encodings are the values of its
// Content-Encoding. The error is an [*Error].
func NewForm(d Decoder, encodings []string) (f Form, err error) {
	f.own = d
	f.Encoding, err = parseEncoding(encodings)
	return f, err
}

// NewSensedForm is NewForm for a protocol of JSON with senders that often have a wrong header: the
// first bytes of a body decide ([Encoding.Of]).
func NewSensedForm(d Decoder, encodings []string) (Form, error) {
	if e, ok := sense(encodings); ok {
		return Form{own: d, Encoding: e}, nil
	}
	return NewForm(d, encodings)
}

// JSON is the [Decoder] of an array of objects, or of objects one after the other.
func JSON(body []byte, to Sink) error {
	decodeJSON(body, bom(body), to)
	return nil
}

// ParseForm parses the Content-Type and the values of Content-Encoding. The error is an
// [*Error].
func ParseForm(contentType string, encodings []string) (f Form, err error) {
	if f.decode, f.sniffed, err = decoderFor(contentType); err == nil {
		f.Encoding, err = parseEncoding(encodings)
	}
	return f, err
}

// Decode passes the records of a decompressed body to the sink. The error is an [*Error]:
// the body would be stored as lines of noise.
func (f Form) Decode(body []byte, to Sink) error {
	if f.own != nil {
		return f.own(body, to)
	}
	if f.sniffed {
		if err := notText(body, f.Encoding != Plain); err != nil {
			return err
		}
	}
	// The byte order marks of UTF-16 and UTF-32 are not valid UTF-8.
	if bytes.HasPrefix(body, []byte("\xff\xfe")) || bytes.HasPrefix(body, []byte("\xfe\xff")) {
		return fail(ErrUnsupported, "the body begins with the byte order mark of UTF-16, which is not taken; send UTF-8")
	}
	if k, ok := to.(interface{ knows(Form, []byte) }); ok {
		k.knows(f, body)
		defer k.knows(f, nil)
	}
	f.decode(body, bom(body), to)
	return nil
}

// decoderFor chooses by Content-Type; sniffed reports that the type does not
// determine the format. curl, and many clients that set no type, send the sniffed
// types, with bodies of any format: a form is one only if it looks like one.
func decoderFor(contentType string) (d decoder, sniffed bool, err error) {
	if strings.TrimSpace(contentType) == "" {
		return decodeSniffed, true, nil
	}
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return nil, false, fail(ErrUnsupported, "Content-Type %s cannot be read: %v", Short(contentType), err)
	}
	if c := params["charset"]; c != "" && !strings.EqualFold(c, "utf-8") && !strings.EqualFold(c, "utf8") && !strings.EqualFold(c, "us-ascii") {
		return nil, false, fail(ErrUnsupported, "charset %s is not taken; send UTF-8", Short(c))
	}
	switch media {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/stream+json":
		return decodeLines, false, nil
	case "application/json", "application/vnd.serilog.clef":
		return decodeJSON, false, nil
	case "text/plain", "application/octet-stream":
		return decodeSniffed, true, nil
	case URLForm:
		return decodeURLForm, true, nil
	}
	return nil, false, fail(ErrUnsupported, "Content-Type %s is not taken here; send application/x-ndjson, "+
		"application/json (an array, or objects one after the other: json_lines of Fluent Bit), or text/plain", Short(media))
}

// Text is the [Decoder] of a body of any form: an array, objects, lines of text, or several of
// them. Its error is that of a body that is no text.
func Text(body []byte, to Sink) error {
	if err := notText(body, true); err != nil {
		return err
	}
	decodeSniffed(body, bom(body), to)
	return nil
}

// looksCompressed is an [Error] for a compressed body without a Content-Encoding.
// Neither prefix is valid UTF-8.
func looksCompressed(body []byte) error {
	for _, e := range []struct {
		name  Encoding
		magic string
	}{{Gzip, gzipMagic}, {Zstd, zstdMagic}} {
		if bytes.HasPrefix(body, []byte(e.magic)) {
			return fail(ErrUnsupported,
				"the body is compressed with %s but the header that says so is missing; send it with Content-Encoding: %s", e.name, e.name)
		}
	}
	return nil
}

// bom returns how many bytes of body are a byte order mark.
func bom(body []byte) int {
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		return 3
	}
	return 0
}

func decodeJSON(body []byte, off int, to Sink) {
	if off = text.SkipSpace(body, off); off < len(body) && body[off] == '[' {
		decodeArray(body, off, to)
		return
	}
	decodeObjects(body, off, to)
}

// decodeSniffed distinguishes JSON from text. Text lines often begin with a bracket,
// so a bracket alone is not enough.
func decodeSniffed(body []byte, off int, to Sink) {
	if from := text.SkipSpace(body, off); looksLikeArray(body[from:]) {
		decodeArray(body, from, to)
	} else {
		decodeMixed(body, off, to)
	}
}

// decodeLines expects exactly one object on each line that is not blank.
func decodeLines(body []byte, off int, to Sink) {
	o := objects{body: body, to: to}
	for off < len(body) {
		end := text.LineEnd(body, off)
		if _, more, ok := o.export(text.SkipBlanks(body[:end], off), end, true); ok {
			if off = end + 1; !more {
				return
			}
			continue
		}
		line := body[off:end]
		if end > off && (line[0] != '{' || line[len(line)-1] != '}') {
			line = bytes.Trim(line, " \t\r")
		}
		off = end + 1
		if len(line) > 0 && !oneObject(line, end, to) {
			return
		}
	}
}

func oneObject(line []byte, end int, to Sink) bool {
	n, why, _ := objectAt(line, to)
	if why.Reason == "" && text.SkipSpace(line, n) < len(line) {
		why = Rejection{Reason: fmt.Sprintf("at byte %d: text after the object; send one object on a line", n), Syntax: true}
	}
	why.Line = line[0] == '{'
	return pass(line, why, end, to)
}

// pass passes an object to the sink, or with a reason a reject.
func pass(raw []byte, why Rejection, end int, to Sink) bool {
	if why.Reason == "" {
		return to.Object(raw, end)
	}
	return to.Reject(raw, why, end)
}

// decodeObjects decodes objects one after the other, with any line breaks.
func decodeObjects(body []byte, off int, to Sink) {
	o, more := objects{body: body, to: to}, true
	for off = text.SkipSpace(body, off); more && off < len(body); off = text.SkipSpace(body, off) {
		off, more = o.next(off)
	}
}

// objects passes the objects of a body to a sink.
type objects struct {
	body   []byte
	to     Sink
	wasted int // bytes that were scanned for an end that there is not
}

// next passes the object at off, and returns its end. A broken object is rejected to the
// end of the line it begins on, so that a truncated line does not swallow the lines after
// it.
func (o *objects) next(off int) (end int, more bool) {
	// Lines that each leave an object open would be scanned to the end again and again.
	// From there on, a line has to be an object by itself.
	if o.wasted > 4*len(o.body) {
		end = text.LineEnd(o.body, off)
		return end, oneObject(bytes.Trim(o.body[off:end], " \t\r"), end, o.to)
	}
	if end, more, ok := o.export(off, len(o.body), false); ok {
		return end, more
	}
	n, why, looked := objectAt(o.body[off:], o.to)
	end = off + n
	if n > 0 && !atEnd(o.body, end) {
		if why.Reason == "" {
			why = Rejection{Reason: fmt.Sprintf("at byte %d: text after the object", n), Syntax: true}
		}
		n = 0
	}
	if n == 0 {
		end = text.LineEnd(o.body, end)
		o.wasted += looked
	}
	return end, pass(bytes.TrimRight(o.body[off:end], " \t\r"), why, end, o.to)
}

// objectAt returns the length of the object at the start of b, or 0 when it has no
// end, and the reason why it is no record. looked is how far it had to scan.
func objectAt(b []byte, to Sink) (n int, why Rejection, looked int) {
	if _, ok := to.(*batch); b[0] != '{' && !(ok && b[0] == '"') {
		return 0, noObject(b[:text.LineEnd(b, 0)]), 0
	}
	n, err := to.Scan(b)
	if err == nil {
		return n, Rejection{}, n
	}
	if why, looked = rejectionOf(err); n > 0 || why.Syntax {
		return n, why, max(n, looked)
	}
	// Too long: it may still have an end.
	if n = record.ValueLen(b); n > 0 {
		return n, why, n
	}
	return 0, why, len(b)
}

// atEnd reports whether an object may end at off.
func atEnd(body []byte, off int) bool {
	for ; off < len(body); off++ {
		switch body[off] {
		case ' ', '\t', '\r':
		case '\n', '{':
			return true
		default:
			return false
		}
	}
	return true
}

// rejectionOf returns the reason of an error of Scan, which is always a
// *[record.RejectError], and its offset in the source.
func rejectionOf(err error) (why Rejection, offset int) {
	e, _ := errors.AsType[*record.RejectError](err)
	return Rejection{Reason: e.Error(), Syntax: e.Syntax}, e.Offset
}

// noObject returns the reason why something that does not begin as an object is no
// record. This is rare, so checking it once more does not matter.
func noObject(raw []byte) Rejection {
	if json.Valid(raw) {
		return Rejection{Reason: "not a JSON object"}
	}
	return Rejection{Reason: "not a JSON object: begins with neither { nor white space", Syntax: true}
}
