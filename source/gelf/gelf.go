// Package gelf is the protocol of Graylog's GELF over HTTP: POST /gelf with one message in
// JSON, or with several one after the other.
//
// Make it with [New] and give it to a source of HTTP. A message becomes a record:
// short_message is its message, or full_message if that begins with it, and message where it has
// no short one; level is its level, and timestamp its time. Its additional fields are fields without
// the underscore. The service is one of them, or else the host. Chunks belong to GELF over UDP,
// which is not supported.
package gelf

import (
	"bytes"
	"net/http"
	"slices"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/names"
	"blobtail/source/body"
	"blobtail/source/httpsource"
)

// New makes the protocol.
func New() httpsource.Protocol { return httpsource.NewProtocol("gelf", exchange) }

// exchange is that of a request, nil for a path of another protocol.
func exchange(r *http.Request) httpsource.Exchange {
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
	decode := func(b []byte, to body.Sink) error { return body.JSON(b, &sink{Sink: to, parser: meaning.NewReader()}) }
	in.Form, err = body.NewSensedForm(decode, x.r.Header.Values("Content-Encoding"))
	return in, err
}

// Reply implements [httpsource.Exchange] as Graylog does: 202 without a body, or the reason as
// text.
func (messages) Reply(h http.Header, counts *httpsource.Result, refused *httpsource.Refusal) (int, []byte) {
	return counts.ReplyPlain(h, refused, http.StatusAccepted, "")
}

// A sink makes records of the messages that a decoder of JSON finds.
type sink struct {
	body.Sink
	parser *meaning.Reader
	rest   []names.Pair
}

// Object passes a message.
func (s *sink) Object(raw []byte, end int) bool {
	if _, err := s.parser.Scan(raw); err != nil {
		return s.Reject(raw, body.Rejection{Reason: err.Error()}, end)
	}
	h, unread := s.message()
	b := s.Begin(h)
	b.AddAll(s.rest)
	if len(unread) > 0 {
		b.Text("ts", unread)
	}
	return s.Record(raw, 1, end)
}

// message finds the head of the message scanned last, and leaves the fields in rest. unread is a
// timestamp that is no time.
func (s *sink) message() (h meaning.Head, unread []byte) {
	h = meaning.Head{Renames: true, Why: s.Why()}
	h.Why.Named("timestamp", "level", "short_message", "")
	s.rest = s.rest[:0]
	var word []byte // for the level
	for key, value := range s.parser.Members() {
		switch string(key) {
		case "version":
			continue
		case "short_message":
			h.Msg = record.TextOf(value)
			continue
		case "timestamp":
			unread, _ = h.SetTime("timestamp", value, s.Arrived())
			continue
		case "level":
			if word = record.TextOf(value); record.ParseLevel(word) != record.Other {
				h.Level, h.Assumed = word, true // a container prints all under info
			}
			continue
		}
		s.rest = append(s.rest, names.MemberPair(key, value, "_"))
	}
	for _, name := range []string{"message", "full_message"} { // many clients cut the first line off for the short one
		at := slices.IndexFunc(s.rest, func(p names.Pair) bool { return p.Name == name })
		if at < 0 || name == "message" && len(h.Msg) > 0 {
			continue
		}
		if text := record.TextOf(s.rest[at].Value); bytes.HasPrefix(text, h.Msg) {
			h.Msg, s.rest = text, slices.Delete(s.rest, at, at+1)
			h.Why.Message().Note(meaning.FromProtocol, name)
		}
	}
	if s.rest = h.Take(s.rest, names.OfGELF); len(h.Level) == 0 {
		h.Level = word
	}
	return h, unread
}
