// Package splunk is the protocol of Splunk's HTTP Event Collector: events in JSON at
// /services/collector/event, text at /services/collector/raw, and the probe of its health.
//
// Make it with [New] and give it to a source of HTTP. An event becomes a record. Its
// text is the message; of an event that is an object, the usual names of message, level and
// service are recognised. The metadata host, source, sourcetype and index are fields, and so
// are its indexed fields. The service is the event's own, or else the source, unless that is a
// path, the source type or the index.
//
// The package has no acknowledgements by channel: the answer means that the events are stored
// durably.
package splunk

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"blobtail/record/meaning"
	"blobtail/record/names"
	"blobtail/source/body"
	"blobtail/source/httpsource"
)

// New makes the protocol.
func New() httpsource.Protocol { return httpsource.NewProtocol("splunk", exchange) }

// exchange is that of a request, nil for a path of another protocol.
func exchange(r *http.Request) httpsource.Exchange {
	rest, ok := strings.CutPrefix(r.URL.Path, "/services/collector")
	if !ok {
		return nil
	}
	switch strings.TrimSuffix(rest, "/1.0") {
	case "", "/event":
		return &events{r, false}
	case "/raw":
		return &events{r, true}
	case "/health":
		return httpsource.Probe{Request: r, Answer: health}
	}
	return nil
}

// events is a request with events.
type events struct {
	r   *http.Request
	raw bool // text
}

// Open implements [httpsource.Exchange]. The Content-Type means nothing: clients send JSON as
// a form.
func (x *events) Open() (in httpsource.Intake, err error) {
	if x.r.Method != http.MethodPost {
		return in, httpsource.RefuseMethod("POST", "%s %s: events are sent with POST", x.r.Method, body.Short(x.r.URL.Path))
	}
	var given metadata
	given, in.Scope = httpsource.QueryPairs(x.r.URL.Query(), "host", "source", "sourcetype", "index")
	decode := func(b []byte, to body.Sink) error {
		s := &sink{Sink: to, given: given, size: httpsource.SizeOf(given), outer: meaning.NewReader(), inner: meaning.NewReader()}
		if x.raw {
			return body.Text(b, &rawSink{s})
		}
		return body.JSON(b, s)
	}
	in.Form, err = body.NewForm(decode, x.r.Header.Values("Content-Encoding"))
	return in, err
}

// Reply implements [httpsource.Exchange] with the codes of the collector
// (https://docs.splunk.com/Documentation/Splunk/latest/Data/TroubleshootHTTPEventCollector).
func (x *events) Reply(h http.Header, counts *httpsource.Result, refused *httpsource.Refusal) (int, []byte) {
	switch status, reason := counts.Failed(refused); {
	case status > 0:
		return refuse(h, status, reason)
	case counts.Accepted+counts.Rejected+counts.Expired == 0:
		return answer(h, http.StatusBadRequest, 5, "No data", "")
	}
	return answer(h, http.StatusOK, 0, "Success", "")
}

func refuse(h http.Header, status int, reason string) (int, []byte) {
	switch status {
	case http.StatusUnauthorized:
		return answer(h, status, 2, "Token is required: "+reason, "") // clients show the text only
	case http.StatusForbidden:
		return answer(h, status, 4, "Invalid token: "+reason, "")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		// The collector itself never answers 429.
		return answer(h, http.StatusServiceUnavailable, 9, "Server is busy", reason)
	}
	return answer(h, status, 6, "Invalid data format", reason)
}

func answer(h http.Header, status, code int, text, reason string) (int, []byte) {
	h.Set("Content-Type", "application/json; charset=UTF-8")
	b, _ := json.Marshal(struct {
		Text   string `json:"text"`
		Code   int    `json:"code"`
		Reason string `json:"reason,omitempty"`
	}{text, code, reason}) // texts and numbers have a form in JSON
	return status, b
}

// health answers the probe of the collector's health.
func health(h http.Header, status int, reason string) (int, []byte) {
	if status > 0 {
		return refuse(h, status, reason)
	}
	return answer(h, http.StatusOK, 17, "HEC is healthy", "")
}

// metadata are the four words of the collector about an event: host, source, sourcetype and index.
type metadata []names.Pair

// add adds the metadata to a record.
func (m metadata) add(b *meaning.Parts) {
	for i := range m {
		if m[i].Value != nil {
			b.Add(&m[i])
		}
	}
}

// name gives a head without a service that of the metadata. A source may be the path of a file.
func (m metadata) name(h *meaning.Head) {
	for i := 1; i < len(m) && len(h.Service) == 0; i++ {
		if text := m[i].Text(); i > 1 || !bytes.ContainsAny(text, `/\`) {
			h.Service = text
			h.Why.Service().Note(meaning.FromProtocol, "source, sourcetype or index")
		}
	}
}
