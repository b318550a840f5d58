// Package datadog is the protocol by which Datadog's agents and libraries send logs: POST
// /api/v2/logs and /v1/input, and the probe of the API key.
//
// Make it with [New] and give it to a source of HTTP. An item becomes a record: its
// message is unchanged, status is the level, and service the service, or else ddsource. If the
// message is JSON, the time and the level may be in there. The tags of ddtags, hostname and all
// other attributes are fields. The parameters service, ddsource, hostname and ddtags of the query
// are defaults. A body of the type text/plain is lines of text, or items.
package datadog

import (
	"encoding/json"
	"mime"
	"net/http"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/names"
	"blobtail/record/times"
	"blobtail/source/body"
	"blobtail/source/httpsource"
)

// New makes the protocol.
func New() httpsource.Protocol { return httpsource.NewProtocol("datadog", exchange) }

// exchange is that of a request, nil for a path of another protocol.
func exchange(r *http.Request) httpsource.Exchange {
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
	query, in.Scope = httpsource.QueryPairs(x.r.URL.Query(), "service", "ddsource", "hostname", "ddtags")
	media, _, _ := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	decode := func(b []byte, to body.Sink) error {
		s := &sink{Sink: to, parser: meaning.NewReader(), sent: sent, query: query, size: httpsource.SizeOf(query)}
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
	parser *meaning.Reader
	sent   int64 // time of items without one, 0 for none
	query  defaults
	size   int         // of the query
	shared body.Shared // what the query adds to the records
	rest   []names.Pair
}

// sharing is the query's part in the reason for rejecting a record.
const sharing = "the query adds"

// Object passes an item.
func (s *sink) Object(raw []byte, end int) bool {
	if _, err := s.parser.Scan(raw); err != nil {
		return s.Reject(raw, body.Rejection{Reason: err.Error()}, end)
	}
	h, rest := body.HeadOf(s.Sink, s.parser, s.rest[:0])
	s.rest = rest[:0]
	var own [4][]byte // in place of the query's
	for _, p := range rest {
		switch p.Name {
		case "status": // that of an access log is none, and beside a level it has another meaning
			if word := record.TextOf(p.Value); len(h.Level) == 0 && !isCode(word) {
				h.Level, h.Assumed = word, true // a container prints all under info
				h.Why.Level().Note(meaning.FromField, "status")
				continue
			}
		case "ddsource":
			own[source] = record.TextOf(p.Value)
		case "ddtags":
			own[tags] = record.TextOf(p.Value)
			continue
		case "hostname":
			own[host] = p.Value
		}
		s.rest = append(s.rest, p)
	}
	s.query.name(&h, own[source])
	if !s.shared.Add(s.size) {
		return s.Reject(raw, s.shared.Rejection(sharing), end)
	}
	h.Observed = s.sent
	b := s.Begin(h)
	b.AddAll(s.rest)
	s.query.add(b, own)
	return s.Record(raw, 1, end)
}

// isCode reports whether a status is a number that is no level, such as that of an answer of HTTP.
func isCode(text []byte) bool {
	return len(text) > 0 && text[0] >= '0' && text[0] <= '9' && record.ParseLevel(text) == record.Other
}
