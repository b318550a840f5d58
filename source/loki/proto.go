package loki

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"blobtail/source/body"
)

// The numbers of fields, from pkg/push/push.proto of github.com/grafana/loki:
//
//	PushRequest   streams=1
//	Stream        labels=1 entries=2 hash=3
//	Entry         timestamp=1 line=2 structuredMetadata=3 parsed=4
//	LabelPair     name=1 value=2
//	Timestamp     seconds=1 nanos=2 (google.protobuf)
//
// They are read by hand, because this is the hot path, and because a message would be
// allocated for each entry.

// proto passes the entries of a push request to the sink. A body with an error is rejected
// from its stream on.
func (d *decoder) proto(b []byte) {
	for off := 0; off < len(b); {
		num, value, n, err := next(b[off:])
		end := off + n
		if err == nil && num == 1 && value != nil {
			var more bool
			if more, err = d.protoStream(value, end); err == nil && !more {
				return
			}
		}
		if err != nil {
			text := strings.ReplaceAll(err.Error(), "\u00a0", " ") // the library draws a blank for each build; retries want one line
			d.to.Reject(b[off:], body.Rejection{Reason: "the body is no push request in protobuf: " + text, Syntax: true}, len(b))
			return
		}
		off = end
	}
}

// protoStream passes the entries of a stream, which ends at end in the body. The labels may
// come last.
func (d *decoder) protoStream(b []byte, end int) (more bool, err error) {
	selector, err := selectorOf(b)
	if err != nil {
		return false, err
	}
	if err := d.selector(selector); err != nil {
		return d.to.Reject(b, body.Rejection{Reason: err.Error()}, end), nil
	}
	for off := 0; off < len(b); {
		num, value, n, err := next(b[off:])
		if err != nil {
			return false, err
		}
		if off += n; num != 2 || value == nil {
			continue
		}
		more, err := d.protoEntry(value, end-len(b)+off)
		if err != nil || !more {
			return more, err
		}
	}
	return true, nil
}

// selectorOf returns the labels of a stream. They are its first field, unless an encoder has
// an order of its own.
func selectorOf(b []byte) (selector []byte, err error) {
	for off := 0; off < len(b); {
		num, value, n, err := next(b[off:])
		if err != nil {
			return nil, err
		}
		if num == 1 && value != nil {
			return value, nil
		}
		off += n
	}
	return nil, nil
}

// protoEntry passes an entry.
func (d *decoder) protoEntry(b []byte, end int) (more bool, err error) {
	e := entry{end: end, raw: b}
	d.meta = d.meta[:0]
	for off := 0; off < len(b); {
		num, value, n, err := next(b[off:])
		if err != nil {
			return false, err
		}
		off += n
		switch {
		case value == nil:
		case num == 1:
			if err = e.timestamp(value); err != nil {
				return false, err
			}
		case num == 2:
			e.line = value
		case num == 3:
			if err := d.protoPair(value); err != nil {
				return false, err
			}
		}
	}
	if len(e.line) > 0 {
		e.raw = e.line
	}
	return d.record(e), nil
}

// protoPair adds an item of metadata.
func (d *decoder) protoPair(b []byte) error {
	name, value, ok := shortPair(b)
	for off := 0; !ok && off < len(b); {
		num, bytes, n, err := next(b[off:])
		if err != nil {
			return err
		}
		off += n
		switch num {
		case 1:
			name = bytes
		case 2:
			value = bytes
		}
	}
	p := d.pair(name)
	p.Value, p.JSON = value, false
	return nil
}

// shortPair reads a pair as encoders write it: a name and then a value, each shorter than 128 bytes.
func shortPair(b []byte) (name, value []byte, ok bool) {
	if len(b) < 4 || b[0] != 1<<3|byte(protowire.BytesType) {
		return nil, nil, false
	}
	n := 2 + int(b[1])
	if b[1] >= 0x80 || n+2 > len(b) || b[n] != 2<<3|byte(protowire.BytesType) || b[n+1] >= 0x80 || n+2+int(b[n+1]) != len(b) {
		return nil, nil, false
	}
	return b[2:n], b[n+2:], true
}

// timestamp reads the time of an entry. Nanoseconds may be unable to express it.
func (e *entry) timestamp(b []byte) error {
	const most = 1 << 33 // seconds; nanoseconds end in 2262, before it
	var seconds, nanos int64
	for off := 0; off < len(b); {
		num, kind, n := protowire.ConsumeTag(b[off:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		off += n
		if kind == protowire.VarintType {
			v, n := protowire.ConsumeVarint(b[off:])
			if n < 0 {
				return protowire.ParseError(n)
			}
			off += n
			switch num {
			case 1:
				seconds = int64(v)
			case 2:
				nanos = int64(v)
			}
			continue
		}
		if n = protowire.ConsumeFieldValue(num, kind, b[off:]); n < 0 {
			return protowire.ParseError(n)
		}
		off += n
	}
	if seconds < -most || seconds > most || nanos < 0 || nanos >= 1e9 {
		e.badTime = fmt.Appendf(nil, "%d s %d ns", seconds, nanos)
		return nil
	}
	e.time = seconds*1e9 + nanos
	return nil
}

// next reads the field at the start of b, and returns its length. value is nil if it is not
// of bytes.
func next(b []byte) (num protowire.Number, value []byte, n int, err error) {
	// Tags have one byte, and most lengths one or two.
	if len(b) >= 3 && b[0] < 0x80 && b[0]&7 == byte(protowire.BytesType) && b[0] >= 8 {
		at, length := 2, int(b[1])
		if length >= 0x80 {
			at, length = 3, length&0x7f|int(b[2])<<7
		}
		if end := at + length; end <= len(b) && (at == 2 || b[2] < 0x80) {
			return protowire.Number(b[0] >> 3), b[at:end], end, nil
		}
	}
	num, kind, n := protowire.ConsumeTag(b)
	if n < 0 {
		return 0, nil, 0, protowire.ParseError(n)
	}
	if kind != protowire.BytesType {
		m := protowire.ConsumeFieldValue(num, kind, b[n:])
		if m < 0 {
			return 0, nil, 0, protowire.ParseError(m)
		}
		return num, nil, n + m, nil
	}
	value, m := protowire.ConsumeBytes(b[n:])
	if m < 0 {
		return 0, nil, 0, protowire.ParseError(m)
	}
	if value == nil {
		return 0, nil, 0, errors.New("a field has no bytes")
	}
	return num, value, n + m, nil
}
