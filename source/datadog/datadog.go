// Package datadog is the protocol by which Datadog's agents and libraries send logs: POST
// /api/v2/logs and /v1/input, and the probe of the API key.
//
// Make a [Protocol] with [New] and give it to a source of HTTP. An item becomes a record: its
// message is unchanged, status is the level, and service the service, or else ddsource. If the
// message is JSON, the time and the level may be in there. The tags of ddtags, hostname and all
// other attributes are fields. The parameters service, ddsource, hostname and ddtags of the query
// are defaults. A body of the type text/plain is lines of text, or items.
package datadog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"blobtail/record"
	"blobtail/record/times"
	"blobtail/source/body"
	"blobtail/source/httpsource"
)

// Protocol is that of Datadog's logs, an [httpsource.Protocol].
type Protocol struct{}

// New makes the protocol.
func New() Protocol { return Protocol{} }

// Name implements [httpsource.Protocol].
func (Protocol) Name() string { return "datadog" }

// Exchange implements [httpsource.Protocol].
func (Protocol) Exchange(r *http.Request) httpsource.Exchange {
	switch r.URL.Path {
	case "/api/v2/logs", "/v1/input":
		return logs{r}
	case "/api/v1/validate":
		return httpsource.Probe{Request: r, Answer: validate}
	}
	return nil
}

type logs struct{ r *http.Request }

// Open implements [httpsource.Exchange].
func (x logs) Open() (in httpsource.Intake, err error) {
	if x.r.Method != http.MethodPost {
		return in, httpsource.RefuseMethod("POST", "%s %s: logs are sent with POST", x.r.Method, x.r.URL.Path)
	}
	// The agent sends the time of all items in a header if it has no other.
	sent, _ := times.Parse([]byte(x.r.Header.Get("Dd-Message-Timestamp")))
	var query defaults
	query, in.Scope = defaultsOf(x.r.URL.Query())
	media, _, _ := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	decode := func(b []byte, to body.Sink) error {
		s := &sink{Sink: to, parser: record.NewParser(), inner: record.NewParser(), sent: sent, query: query}
		if media == "text/plain" {
			return body.Text(b, &textSink{s})
		}
		return body.JSON(b, s)
	}
	in.Form, err = body.NewForm(decode, x.r.Header.Values("Content-Encoding"))
	return in, err
}

// Reply implements [httpsource.Exchange]: 202 and an empty object, or a list of errors.
func (logs) Reply(h http.Header, counts *httpsource.Result, refused *httpsource.Refusal) (int, []byte) {
	status, reason := counts.Failed(refused)
	return answer(h, status, reason, http.StatusAccepted, "{}")
}

// validate answers the probe of the API key.
func validate(h http.Header, status int, reason string) (int, []byte) {
	return answer(h, status, reason, http.StatusOK, `{"valid":true}`)
}

func answer(h http.Header, status int, reason string, good int, text string) (int, []byte) {
	h.Set("Content-Type", "application/json")
	if status == 0 {
		return good, []byte(text)
	}
	b, _ := json.Marshal(map[string][]string{"errors": {reason}}) // texts have a form in JSON
	return status, b
}

// A sink makes records of the items that a decoder of JSON finds.
type sink struct {
	body.Sink
	parser *record.Parser
	inner  *record.Parser // for messages
	sent   int64          // time of items without one, 0 for none
	query  defaults
	shared int // bytes of the query in all records so far
}

// Object passes an item.
func (s *sink) Object(raw []byte, end int) bool {
	if _, err := s.parser.Scan(raw); err != nil {
		return s.Reject(raw, body.Rejection{Reason: err.Error()}, end)
	}
	h, rest := s.parser.Head(s.Arrival())
	h.Renames = true
	if h.Why = s.Why(); h.Why != nil {
		*h.Why = s.parser.Why(s.Arrival())
	}
	var source, tags []byte
	levelled := len(h.Level) > 0 // then status has another meaning
	sourced, hosted := false, false
	for key, value := range rest {
		switch string(key) {
		case "status":
			if levelled = levelled || isCode(record.TextOf(value)); !levelled { // that of an access log is none
				h.Level, h.Assumed = record.TextOf(value), true // a container prints all under info
				h.Why.Level().Note(record.FromField, "status")
			}
		case "ddsource":
			source, sourced = record.TextOf(value), true
		case "ddtags":
			tags = record.TextOf(value)
		case "hostname":
			hosted = true
		}
	}
	for _, name := range [][]byte{s.query.service, source, s.query.source} {
		if len(h.Service) == 0 {
			h.Service = name
		}
	}
	if !s.share() {
		return s.Reject(raw, tooMuch(), end)
	}
	s.complete(&h)
	b := s.Begin(h)
	for key, value := range rest {
		switch name := string(key); {
		case name == "status" && !levelled, name == "ddtags":
		default:
			b.Member(key, value, "")
		}
	}
	s.query.add(b, sourced, hosted, tags)
	return s.Record(raw, 1, end)
}

// isCode reports whether a status is a number that is no level, such as that of an answer of HTTP.
func isCode(text []byte) bool {
	return len(text) > 0 && text[0] >= '0' && text[0] <= '9' && record.ParseLevel(text) == record.Other
}

// complete gives a record the time that its message shows, if it has none. Libraries send their
// records as JSON in the message, which Datadog reads too.
func (s *sink) complete(h *record.Head) {
	if h.Time == 0 && len(h.Msg) > 0 && h.Msg[0] == '{' {
		if n, err := s.inner.Scan(h.Msg); err == nil && n == len(h.Msg) {
			inner, _ := s.inner.Head(s.Arrival())
			h.Time, h.Guessed, h.Far = inner.Time, inner.Guessed, h.Far || inner.Far
			if h.Why != nil && h.Time != 0 {
				w := s.inner.Why(s.Arrival())
				h.Why.Time().Note(record.FromText, w.Time().Name)
			}
		}
	}
	h.Time = cmp.Or(h.Time, s.sent)
}

// addTags adds the tags of a list such as env:prod,team:web. A tag without a value is a field
// that is true. Tags of the names of other ones are left out.
func addTags(b *record.Parts, list, other []byte) {
	for tag := range bytes.SplitSeq(list, []byte(",")) {
		name, value, ok := bytes.Cut(bytes.TrimSpace(tag), []byte(":"))
		switch {
		case len(name) == 0 || len(other) > 0 && hasTag(other, bytes.TrimSpace(name)):
		case ok:
			b.Text(strings.TrimSpace(string(name)), value)
		default:
			b.Bool(string(name), true)
		}
	}
}
