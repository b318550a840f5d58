package otlp

import (
	"encoding/binary"
	"errors"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"blobtail/record"
	"blobtail/source/body"
)

// A field is one field of a message of protobuf.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte // of a string, bytes or message
	bits   uint64 // of a number
}

// fieldAt returns the field at the start of b and its length, negative if there is none.
func fieldAt(b []byte) (f field, n int) {
	var m int
	if f.number, f.kind, n = protowire.ConsumeTag(b); n < 0 {
		return f, n
	}
	switch b = b[n:]; f.kind {
	case protowire.BytesType:
		f.bytes, m = protowire.ConsumeBytes(b)
	case protowire.VarintType:
		f.bits, m = protowire.ConsumeVarint(b)
	case protowire.Fixed64Type:
		f.bits, m = protowire.ConsumeFixed64(b)
	case protowire.Fixed32Type:
		var bits uint32
		bits, m = protowire.ConsumeFixed32(b)
		f.bits = uint64(bits)
	default:
		m = protowire.ConsumeFieldValue(f.number, f.kind, b)
	}
	if m < 0 {
		return f, m
	}
	return f, n + m
}

// delimited is fieldAt for a string, bytes or message with a small number and less than 16
// KiB, as most are; n is 0 for any other.
func delimited(b []byte) (inside []byte, n int) {
	if b[0]&0x87 != 2 || len(b) < 2 {
		return nil, 0
	}
	from, end := 2, 2+int(b[1])
	if b[1] >= 0x80 {
		if len(b) < 3 || b[2] >= 0x80 {
			return nil, 0
		}
		from, end = 3, 3+(int(b[1]&0x7f)|int(b[2])<<7)
	}
	if end > len(b) {
		return nil, 0
	}
	return b[from:end], end
}

// Numbers of fields. A scope was once called a library; the fields are the same.
const (
	ofResource      = 1    // of ResourceLogs
	ofScopes        = 2    // of ResourceLogs
	ofLibraries     = 1000 // of ResourceLogs, long deprecated
	ofScope         = 1    // of ScopeLogs
	ofRecords       = 2    // of ScopeLogs
	ofAttributes    = 1    // of Resource
	ofAttributesToo = 3    // of InstrumentationScope
)

// broken is the rejection of bytes that are no message.
func broken(message string, n int) body.Rejection {
	// The library's own text is not the same in each binary.
	why := "it is not protobuf"
	if errors.Is(protowire.ParseError(n), io.ErrUnexpectedEOF) {
		why = "it ends too early"
	}
	return body.Rejection{Reason: "not a " + message + " of OTLP: " + why, Syntax: true}
}

// walkProto walks through an ExportLogsServiceRequest.
func (w *walker) walkProto() {
	found := false
	for at := 0; at < len(w.body); {
		f, n := fieldAt(w.body[at:])
		if n < 0 {
			w.reject(at, len(w.body), broken("request", n))
			return
		}
		at += n
		if f.number != 1 {
			continue
		}
		found = true
		if f.kind != protowire.BytesType {
			if !w.reject(at-n, at, wrongKind("request", f)) {
				return
			}
		} else if !w.walkResource(at-len(f.bytes), at) {
			return
		}
	}
	// Most texts are fields that no version of OTLP knows.
	if !found && len(w.body) > 0 {
		w.reject(0, len(w.body), body.Rejection{Reason: "no logs in the request: it is not OTLP", Syntax: true})
	}
}

// walkResource walks through ResourceLogs. The resource may be behind its records.
func (w *walker) walkResource(from, end int) bool {
	w.resource.clear()
	w.scope.clear()
	for at := from; at < end; {
		f, n := fieldAt(w.body[at:end])
		if n < 0 {
			break // reported below, behind the records before it
		}
		at += n
		if f.number == ofResource {
			w.attributes(&w.resource, "resource", f, ofAttributes, nil)
		}
	}
	w.nameService()
	w.price()
	for at := from; at < end; {
		f, n := fieldAt(w.body[at:end])
		if n < 0 {
			return w.reject(at, end, broken("ResourceLogs", n))
		}
		at += n
		switch {
		case f.number != ofScopes && f.number != ofLibraries:
		case f.kind != protowire.BytesType:
			if !w.reject(at-n, at, wrongKind("ResourceLogs", f)) {
				return false
			}
		case !w.walkScope(at-len(f.bytes), at):
			return false
		}
	}
	return true
}

// attributes adds the attributes of a message, and calls also for its other fields.
func (w *walker) attributes(s *set, message string, f field, number protowire.Number, also func(field)) {
	if f.kind != protowire.BytesType {
		s.why = wrongKind(message, f)
		return
	}
	if len(f.bytes) > record.MaxRecord {
		s.reject("its "+message+" is longer than 1 MiB", false)
		return
	}
	for b := f.bytes; len(b) > 0 && !s.failed(); {
		f, n := fieldAt(b)
		if n < 0 {
			s.why = broken(message, n)
			return
		}
		b = b[n:]
		switch {
		case f.number != number:
			if also != nil {
				also(f)
			}
		case f.kind != protowire.BytesType:
			s.why = wrongKind(message, f)
		default:
			w.attribute(s, f.bytes)
		}
	}
}

// walkScope walks through ScopeLogs.
func (w *walker) walkScope(from, end int) bool {
	s := &w.scope
	s.clear()
	for at := from; at < end; {
		f, n := fieldAt(w.body[at:end])
		if n < 0 {
			break
		}
		at += n
		if f.number == ofScope {
			w.attributes(&s.set, "scope", f, ofAttributesToo, func(f field) {
				switch f.number {
				case 1:
					s.name = f.bytes
				case 2:
					s.version = f.bytes
				}
			})
		}
	}
	w.price()
	for at := from; at < end; {
		f, n := fieldAt(w.body[at:end])
		if n < 0 {
			return w.reject(at, end, broken("ScopeLogs", n))
		}
		at += n
		switch {
		case f.number != ofRecords:
		case f.kind != protowire.BytesType:
			if !w.reject(at-n, at, wrongKind("ScopeLogs", f)) {
				return false
			}
		default:
			w.readRecord(f.bytes)
			if !w.pass(at-len(f.bytes), at) {
				return false
			}
		}
	}
	return true
}

// readRecord reads a LogRecord.
func (w *walker) readRecord(b []byte) {
	e := &w.entry
	e.clear()
	if len(b) > record.MaxRecord {
		e.tooLong()
		return
	}
	for len(b) > 0 && !e.failed() {
		number, inside, bits, n := protowire.Number(b[0]>>3), []byte(nil), uint64(0), 0
		switch b[0] {
		case 1<<3 | byte(protowire.Fixed64Type), 11<<3 | byte(protowire.Fixed64Type):
			if len(b) > 8 {
				bits, n = binary.LittleEndian.Uint64(b[1:]), 9
			}
		case 5<<3 | 2, 6<<3 | 2, 3<<3 | 2, 9<<3 | 2, 10<<3 | 2, 12<<3 | 2:
			inside, n = delimited(b)
		}
		if n == 0 {
			var f field
			if f, n = fieldAt(b); n < 0 {
				e.why = broken("LogRecord", n)
				return
			}
			if f.number <= 12 && f.kind != kindOf(f.number) {
				e.why = wrongKind("LogRecord", f)
				return
			}
			number, inside, bits = f.number, f.bytes, f.bits
		}
		b = b[n:]
		w.readMember(number, inside, bits)
	}
}

// kindOf returns the wire type of a field of a LogRecord. Any will do for an unknown one.
func kindOf(number protowire.Number) protowire.Type {
	switch number {
	case 1, 11:
		return protowire.Fixed64Type
	case 2, 7:
		return protowire.VarintType
	case 8:
		return protowire.Fixed32Type
	}
	return protowire.BytesType
}

// readMember reads a field of a LogRecord.
func (w *walker) readMember(number protowire.Number, b []byte, bits uint64) {
	e := &w.entry
	switch number {
	case 1:
		e.time = bits
	case 2:
		e.number = uint64(uint32(bits))
	case 3:
		e.severity = b
	case 5:
		w.readBody(b)
	case 6:
		w.attribute(&e.set, b)
	case 7:
		e.dropped = uint64(uint32(bits))
	case 8:
		e.flags = bits
	case 9:
		e.trace = e.id(b)
	case 10:
		e.span = e.id(b)
	case 11:
		e.seen = bits
	case 12:
		e.event = b
	}
}
