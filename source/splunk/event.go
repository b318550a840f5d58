package splunk

import (
	"bytes"
	"fmt"
	"slices"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/names"
	"blobtail/source/body"
)

// A sink makes records of the events that a decoder of JSON finds.
type sink struct {
	body.Sink
	given, meta  metadata // of the request, and of an event
	size         int      // of given
	outer, inner *meaning.Reader
	shared       body.Shared // what the metadata of the request add to the records
	rest, extra  []names.Pair
	indexed      *meaning.Reader // of members of fields
}

// sharing is the metadata's part in the reason for rejecting a record.
const sharing = "the query adds"

// A rawSink makes records of the lines that a decoder of text finds. They have the metadata of the
// request.
type rawSink struct{ *sink }

// Begin begins a line of text.
func (s *rawSink) Begin(h meaning.Head) *meaning.Parts {
	h.Renames = true
	s.given.name(&h)
	b := s.Sink.Begin(h)
	if s.shared.Add(s.size) {
		s.given.add(b)
	}
	return b
}

// Object passes a line that is an object.
func (s *rawSink) Object(raw []byte, end int) bool {
	if _, err := s.outer.Scan(raw); err != nil {
		return s.Reject(raw, body.Rejection{Reason: err.Error()}, end)
	}
	h, rest := body.HeadOf(s.Sink, s.outer, s.rest[:0])
	s.rest = rest
	s.Begin(h).AddAll(rest)
	return s.Record(raw, 1, end)
}

// Record passes the record begun last.
func (s *rawSink) Record(raw []byte, places, end int) bool {
	if !s.shared.Fits() {
		return s.Reject(raw, s.shared.Rejection(sharing), end)
	}
	return s.Sink.Record(raw, places, end)
}

// Object passes an event.
func (s *sink) Object(raw []byte, end int) bool {
	if _, err := s.outer.Scan(raw); err != nil {
		return s.Reject(raw, body.Rejection{Reason: err.Error()}, end)
	}
	s.meta = append(s.meta[:0], s.given...)
	m := s.meta
	var event, fields, time []byte
	for key, value := range s.outer.Members() {
		switch string(key) {
		case "event":
			event = value
		case "fields":
			fields = value
		case "time":
			time = value
		default:
			if at := slices.IndexFunc(m, func(p names.Pair) bool { return p.Name == string(key) }); at >= 0 {
				m[at] = names.MemberPair(key, value, "")
			}
		}
	}
	if len(event) == 0 || string(event) == "null" || string(event) == `""` {
		return s.Reject(raw, body.Rejection{Reason: "the event has no member event"}, end)
	}
	h, err := s.head(event)
	if err != nil {
		return s.Reject(raw, body.Rejection{Reason: "the member event: " + err.Error()}, end)
	}
	original, timed := h.SetTime("time", time, s.Arrived())
	if timed {
		h.Why.Time().Note(meaning.FromProtocol, "time of the event")
	}
	extra, err := s.fields(fields, &h)
	if err != nil {
		return s.Reject(raw, body.Rejection{Reason: "the member fields: " + err.Error()}, end)
	}
	m.name(&h)
	if !s.shared.Add(s.size) {
		return s.Reject(raw, s.shared.Rejection(sharing), end)
	}
	b := s.Begin(h)
	b.AddAll(s.rest)
	b.AddAll(extra)
	m.add(b)
	if len(original) > 0 {
		b.Text("ts", original)
	}
	return s.Record(raw, 1, end)
}

// objectIn returns the object that a text of JSON has, any other value as it is.
func (s *sink) objectIn(value []byte) []byte {
	if value[0] != '"' || bytes.IndexByte(value[:min(len(value), 8)], '{') < 0 {
		return value
	}
	text := bytes.TrimSpace(record.TextOf(value))
	if n, err := s.Scan(text); err != nil || n < len(text) {
		return value
	}
	return text
}

// spread returns the event scanned last with the members of its message, an object or one in a text,
// in place of that. If more than a severity is beside it, unlike in Splunk's library for Node, nil.
func (s *sink) spread() []byte {
	members, message := 0, []byte(nil)
	for key, value := range s.inner.Members() {
		if members++; string(key) == "message" {
			message = s.objectIn(value)
		}
	}
	if bytes.IndexByte(message, ':') < 0 || message[0] != '{' || members > 2 {
		return nil
	}
	event := []byte{'{'}
	for key, value := range s.inner.Members() {
		if string(key) != "message" {
			event = fmt.Appendf(event, `"%s":%s,`, key, value)
		}
	}
	return append(event, message[1:]...)
}

// head returns the head of an event, and leaves its fields in rest: of an object its members, also if
// that is in a text, of anything else the text.
func (s *sink) head(event []byte) (h meaning.Head, err error) {
	s.rest = s.rest[:0]
	if event = s.objectIn(event); event[0] != '{' {
		h = meaning.Head{Msg: record.TextOf(event), Renames: true, Why: s.Why()}
		h.Why.Message().Note(meaning.FromProtocol, "event")
		return h, nil
	}
	_, err = s.inner.Scan(event)
	if object := s.spread(); object != nil {
		_, err = s.inner.Scan(object)
	}
	if err == nil {
		h, s.rest = body.HeadOf(s.Sink, s.inner, s.rest)
	}
	return h, err
}

// fields returns the indexed fields of an event. They may name its service and level.
func (s *sink) fields(object []byte, h *meaning.Head) (fields []names.Pair, err error) {
	if len(object) == 0 || object[0] != '{' {
		return nil, nil
	}
	if s.indexed == nil {
		s.indexed = meaning.NewReader()
	}
	if _, err := s.indexed.Scan(object); err != nil {
		return nil, err
	}
	s.extra = s.extra[:0]
	for key, value := range s.indexed.Members() {
		s.extra = append(s.extra, names.MemberPair(key, value, ""))
	}
	return h.Take(s.extra, names.Common), nil
}
