package splunk

import (
	"blobtail/record"
	"blobtail/source/body"
)

// A sink makes records of the events that a decoder of JSON finds.
type sink struct {
	body.Sink
	given        metadata // of the request
	outer, inner *record.Parser
}

// Object passes an event.
func (s *sink) Object(raw []byte, end int) bool {
	if _, err := s.outer.Scan(raw); err != nil {
		return s.Reject(raw, body.Rejection{Reason: err.Error()}, end)
	}
	m := s.given
	var event, fields, time []byte
	for key, value := range s.outer.Members() {
		switch string(key) {
		case "event":
			event = value
		case "fields":
			fields = value
		case "time":
			time = value
		case "host":
			m.host = value
		case "source":
			m.source = value
		case "sourcetype":
			m.sourcetype = value
		case "index":
			m.index = value
		}
	}
	if len(event) == 0 || string(event) == "null" || string(event) == `""` {
		return s.Reject(raw, body.Rejection{Reason: "the event has no member event"}, end)
	}
	h, rest, err := s.head(event)
	if err != nil {
		return s.Reject(raw, body.Rejection{Reason: "the member event: " + err.Error()}, end)
	}
	text := record.TextOf(time)
	ns, ok := record.ParseTime(text)
	if ok && ns != 0 {
		h.Time = ns
	}
	extra, err := s.fields(fields, &h)
	if err != nil {
		return s.Reject(raw, body.Rejection{Reason: "the member fields: " + err.Error()}, end)
	}
	if len(h.Service) == 0 {
		h.Service = m.service()
	}
	b := s.Begin(h)
	for _, f := range append(rest, extra...) {
		b.Member(f.key, f.value, "")
	}
	for _, f := range []field{{[]byte("host"), m.host}, {[]byte("source"), m.source}, {[]byte("sourcetype"), m.sourcetype}, {[]byte("index"), m.index}} {
		if f.value != nil {
			b.Member(f.key, f.value, "")
		}
	}
	if !ok && len(text) > 0 {
		b.Text("time", text)
	}
	return s.Record(raw, 1, end)
}

// A field is a member of an object.
type field struct{ key, value []byte }

// head returns the head and the fields of an event: of an object its members, of anything else
// the text.
func (s *sink) head(event []byte) (h record.Head, rest []field, err error) {
	if event[0] != '{' {
		h.Msg = record.TextOf(event)
		h.Level, h.Renames = body.TextLevel(h.Msg), true
		return h, nil, nil
	}
	if _, err := s.inner.Scan(event); err != nil {
		return h, nil, err
	}
	h, members := s.inner.Head()
	h.Renames = true
	for key, value := range members {
		rest = append(rest, field{key, value})
	}
	return h, rest, nil
}

// fields returns the indexed fields of an event. They may name its service and level.
func (s *sink) fields(object []byte, h *record.Head) (fields []field, err error) {
	if len(object) == 0 || object[0] != '{' {
		return nil, nil
	}
	p := record.NewParser()
	if _, err := p.Scan(object); err != nil {
		return nil, err
	}
	for key, value := range p.Members() {
		switch {
		case len(h.Service) == 0 && (string(key) == "service" || string(key) == "service.name"):
			h.Service = record.TextOf(value)
		case len(h.Level) == 0 && (string(key) == "level" || string(key) == "severity"):
			h.Level = record.TextOf(value)
		default:
			fields = append(fields, field{key, value})
		}
	}
	return fields, nil
}
