package body

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"blobtail/record"
)

// A ledger is a sink that records its share of the bytes of a body.
type ledger struct {
	t        *testing.T
	parser   *record.Parser
	body     []byte
	seen     []bool
	reach    int
	accepted int
	rejected int
}

func (l *ledger) Scan(src []byte) (int, error) { return l.parser.Scan(src) }

func (l *ledger) Object(raw []byte, end int) bool {
	if !json.Valid(raw) && json.Valid(bytes.ToValidUTF8(raw, nil)) {
		l.t.Errorf("no JSON: %q", raw)
	}
	l.accepted++
	return l.note(raw, end)
}

func (l *ledger) Begin(h record.Head) *record.Parts {
	return l.parser.Begin(nil, h, record.Defaults{})
}

func (l *ledger) Fallback(string) {}

func (l *ledger) Scanned() (ns int64, own bool) { return 0, false }

func (l *ledger) Last() (ns int64, own, any bool) { return 0, false, l.accepted > 0 }

func (l *ledger) Record(raw []byte, places, end int) bool {
	if lines := bytes.FieldsFunc(raw, func(r rune) bool { return r == '\n' }); len(raw) == 0 || places < 1 || places > len(lines) {
		l.t.Errorf("%d places: %q", places, raw)
	}
	l.accepted++
	return l.note(raw, end)
}

func (l *ledger) Reject(raw []byte, why Rejection, end int) bool {
	if why.Reason == "" {
		l.t.Errorf("no reason for %q", raw)
	}
	l.rejected++
	return l.note(raw, end)
}

func (l *ledger) Arrived() int64 { return 0 }

// note finds the offset of raw in the body, searching the rest of its array.
func (l *ledger) note(raw []byte, end int) bool {
	from := cap(l.body) - cap(raw)
	if from < l.reach || end < from+len(raw) || end > len(l.body) {
		l.t.Fatalf("record at %d..%d with end %d, the last one reached to %d", from, from+len(raw), end, l.reach)
	}
	for i := from; i < from+len(raw); i++ {
		l.seen[i] = true
	}
	l.reach = from + len(raw)
	return true
}

type shape struct {
	name      string
	decode    decoder
	structure string // bytes that belong to no record
}

func shapes() []shape {
	return []shape{
		{"lines", decodeLines, " \t\r\n"},
		{"json", decodeJSON, " \t\r\n[],"},
		{"sniffed", decodeSniffed, " \t\r\n[],"},
		{"mixed", decodeMixed, " \t\r\n"},
	}
}

// For any input, every byte of a body that is not white space or the frame of an
// array is in exactly one record or reject, in order.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{
		"{\"a\":1}\n{\"b\":2}\r\n\n{\"c\":", `[{"a":1},2,"x",[3],{"b":2}] tail`, "[error] x\r\n[1,2] y\n", "{\"a\":[1,\n{\"b\":2}\n{\"c\":3}",
		"\xef\xbb\xbf{} {}\n{}x", "{\n \"a\": {\n \"b\": [\n 1 ] } }\n{\"a\":1,\"a\":2}{}", `[{"a":"\ud800\xff"},{"a":`, "\x00\n\xff\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		body = slices.Clip(body)
		for _, sh := range shapes() {
			l := &ledger{t: t, parser: record.NewParser(), body: body, seen: make([]bool, len(body))}
			sh.decode(body, bom(body), l)
			for i := bom(body); i < len(body); i++ {
				if !l.seen[i] && !bytes.ContainsRune([]byte(sh.structure), rune(body[i])) {
					t.Fatalf("%s: byte %d of %q is lost", sh.name, i, body)
				}
			}
		}
	})
}

// FuzzDecompress feeds damaged bodies to the decompressors.
func FuzzDecompress(f *testing.F) {
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xaa\xae\x05\x00\x43\xbf\xa6\xa3\x02\x00\x00\x00"))
	f.Add([]byte("\x28\xb5\x2f\xfd\x04\x00\x11\x00\x00\x7b\x7d\xd4\xbc\x23\xb1"))
	f.Add([]byte("\x02\x04\x7b\x7d"))
	f.Add([]byte(snappyStream + "\x01\x06\x00\x00\x00\x00\x00\x00{}"))
	f.Add([]byte("\x78\x9c\xab\xae\x05\x00\x01\x75\x00\xf9"))
	d := NewDecompressor(1)
	grow := func(buf []byte, n int) ([]byte, error) { return append(make([]byte, 0, n), buf...), nil }
	f.Fuzz(func(t *testing.T, wire []byte) {
		for _, enc := range []Encoding{Gzip, Zstd, Deflate, Snappy} {
			out, err := d.Decompress(t.Context(), enc, wire, grow)
			if limit := min(MaxDecoded, 1<<20+MaxRatio*len(wire)); err == nil && len(out) > limit {
				t.Errorf("%s: %d bytes of %d", enc, len(out), len(wire))
			}
			var e *Error
			if err != nil && (!errors.As(err, &e) || e.Reason == "") {
				t.Errorf("%s: %v", enc, err)
			}
		}
	})
}
