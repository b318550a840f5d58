// Package gelf is the protocol of Graylog's GELF over HTTP: POST /gelf with one message in
// JSON, or with several one after the other.
//
// Make a [Protocol] with [New] and give it to a source of HTTP. A message becomes a record:
// short_message is its message, or full_message if that begins with it, and message where it has
// no short one; level is its level, and timestamp its time. Its additional fields are fields without
// the underscore. The service is one of them, or else the host. Chunks belong to GELF over UDP,
// which is not supported.
package gelf

import (
	"bytes"
	"net/http"
	"strings"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/names"
	"blobtail/source/body"
	"blobtail/source/httpsource"
)

// Protocol is GELF over HTTP, an [httpsource.Protocol].
type Protocol struct{}

// New makes the protocol.
func New() Protocol { return Protocol{} }

// Name implements [httpsource.Protocol].
func (Protocol) Name() string { return "gelf" }

// Exchange implements [httpsource.Protocol].
func (Protocol) Exchange(r *http.Request) httpsource.Exchange {
	if r.URL.Path != "/gelf" {
		return nil
	}
	return messages{r}
}

type messages struct{ r *http.Request }

// Open implements [httpsource.Exchange].
func (x messages) Open() (in httpsource.Intake, err error) {
	if x.r.Method != http.MethodPost {
		return in, httpsource.RefuseMethod("POST", "%s /gelf: messages are sent with POST", x.r.Method)
	}
	decode := func(b []byte, to body.Sink) error { return body.JSON(b, &sink{to, meaning.NewReader()}) }
	in.Form, err = body.NewSensedForm(decode, x.r.Header.Values("Content-Encoding"))
	return in, err
}

// Reply implements [httpsource.Exchange] as Graylog does: 202 without a body, or the reason as
// text.
func (messages) Reply(h http.Header, counts *httpsource.Result, refused *httpsource.Refusal) (int, []byte) {
	h.Set("Content-Type", "text/plain; charset=utf-8")
	switch {
	case refused != nil:
		return refused.Status, []byte(refused.Reason + "\n")
	case counts.Error != "":
		return http.StatusBadRequest, []byte(counts.Failure() + "\n")
	}
	return http.StatusAccepted, nil
}

// A sink makes records of the messages that a decoder of JSON finds.
type sink struct {
	body.Sink
	parser *meaning.Reader
}

// Object passes a message.
func (s *sink) Object(raw []byte, end int) bool {
	if _, err := s.parser.Scan(raw); err != nil {
		return s.Reject(raw, body.Rejection{Reason: err.Error()}, end)
	}
	m := s.message()
	b := s.Begin(m.head)
	for key, value := range s.parser.Members() {
		switch name := string(key); {
		case m.named != nil && name == string(m.named):
		case name == "version", name == "short_message", name == "level", name == "timestamp", name == "_service",
			name == "full_message" && m.whole, name == "message" && m.bare:
		default:
			b.Member(key, value, "_")
		}
	}
	if len(m.unread) > 0 {
		b.Text("ts", m.unread)
	}
	return s.Record(raw, 1, end)
}

// A message is one with its parts found.
type message struct {
	head   meaning.Head
	named  []byte // the additional field that names the level, nil for none
	unread []byte // a timestamp that is no time
	whole  bool   // the text is that of full_message
	bare   bool   // it is that of message
}

// message finds the parts of the message scanned last.
func (s *sink) message() message {
	m := message{head: meaning.Head{Renames: true, Why: s.Why()}}
	h := &m.head
	h.Why.Named("timestamp", "level", "short_message", "")
	best, place := 0, 0 // ranks of the service, and of a level among the additional fields
	var level, full, other []byte
	for key, value := range s.parser.Members() {
		switch name := string(key); name {
		case "short_message":
			h.Msg = record.TextOf(value)
		case "message":
			other = record.TextOf(value)
		case "full_message":
			full = record.TextOf(value)
		case "level":
			h.Level = record.TextOf(value)
			h.Assumed = record.ParseLevel(h.Level) == record.Info // of all that a container prints
		case "timestamp":
			ns, ok := meaning.ReadTime(value, s.Arrived())
			if ok {
				h.Time = ns
			} else if !meaning.EmptyTime(value) {
				m.unread, h.Unread = record.TextOf(value), true
				h.Why.Time().Pass("timestamp", m.unread, meaning.NoTime)
			}
		default:
			if rank := serviceRank(name); rank > best && len(value) > 2 {
				best, h.Service = rank, record.TextOf(value)
				h.Why.Service().Note(meaning.FromField, name)
			}
			if text, rank := levelOf(name, value); rank > 0 && (place == 0 || rank < place) {
				place, m.named, level = rank, key, text
			}
		}
	}
	if m.bare = len(h.Msg) == 0 && len(other) > 0; m.bare {
		h.Msg = other
		h.Why.Message().Note(meaning.FromProtocol, "message")
	}
	if record.ParseLevel(h.Level) != record.Other {
		m.named = nil
	} else if m.named != nil {
		h.Level, h.Assumed = level, false
		h.Why.Level().Note(meaning.FromField, string(m.named))
	}
	// Many clients cut the first line off for the short message.
	if m.whole = bytes.HasPrefix(full, h.Msg); m.whole {
		h.Msg = full
		h.Why.Message().Note(meaning.FromProtocol, "full_message")
	}
	return m
}

// levelOf returns the word for the level that an additional field has, and the place of its name
// among those of a level; 0 if it has none.
func levelOf(name string, value []byte) (word []byte, place int) {
	name, ok := strings.CutPrefix(name, "_")
	if !ok {
		return nil, 0
	}
	if _, place = names.FieldLevel(name, nil); place == 0 {
		return nil, 0
	}
	l, place := names.FieldLevel(name, record.TextOf(value))
	if l == record.Other {
		return nil, 0
	}
	return []byte(l.String()), place
}

// serviceRank ranks the members that name a service: the highest is the best.
func serviceRank(name string) int {
	switch name {
	case "_service":
		return 6
	case "_service_name", "_service.name":
		return 5
	case "_app", "_app_name", "_application", "_application_name":
		return 4
	case "_container_name":
		return 3
	case "facility", "_facility":
		return 2
	case "host":
		return 1
	}
	return 0
}
