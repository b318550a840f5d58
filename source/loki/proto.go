package loki

import (
	"errors"
	"fmt"

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
			d.to.Reject(b[off:], body.Rejection{Reason: "the body is no push request in protobuf: " + err.Error(), Syntax: true}, len(b))
			return
		}
		off = end
	}
}

// protoStream passes the entries of a stream, which ends at end in the body. The labels may
// come last.
func (d *decoder) protoStream(b []byte, end int) (more bool, err error) {
	var selector []byte
	for off := 0; off < len(b); {
		num, value, n, err := next(b[off:])
		if err != nil {
			return false, err
		}
		if num == 1 && value != nil {
			selector = value
		}
		off += n
	}
	if err := d.selector(selector); err != nil {
		return d.to.Reject(b, body.Rejection{Reason: err.Error()}, end), nil
	}
	for off := 0; off < len(b); {
		num, value, n, err := next(b[off:])
		off += n
		if err != nil || num != 2 || value == nil {
			continue // the first loop found no error
		}
		more, err := d.protoEntry(value, end-len(b)+off)
		if err != nil || !more {
			return more, err
		}
	}
	return true, nil
}

// protoEntry passes an entry.
func (d *decoder) protoEntry(b []byte, end int) (more bool, err error) {
	e := entry{end: end}
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
			p, err := d.protoPair(value)
			if err != nil {
				return false, err
			}
			d.meta = append(d.meta, p)
		}
	}
	return d.record(e), nil
}

func (d *decoder) protoPair(b []byte) (p pair, err error) {
	for off := 0; off < len(b); {
		num, value, n, err := next(b[off:])
		if err != nil {
			return p, err
		}
		off += n
		switch num {
		case 1:
			p.name = d.name(value)
		case 2:
			p.value = value
		}
	}
	return p, nil
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
