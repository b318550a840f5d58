package elastic

import (
	"cmp"
	"encoding/json"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/record"
	"blobtail/source/body"
	"blobtail/source/httpsource"
)

// An exchange is one request and its answer, an httpsource.LongReply.
type exchange struct {
	p     *Protocol
	r     *http.Request
	at    place
	begun time.Time
	items items
	// decoding says that the items are those of a decoding under way.
	decoding bool

	answer string                  // of a probe
	rest   func(w io.Writer) error // of the answer to a bulk request
}

// Open implements httpsource.Exchange.
func (x *exchange) Open() (in httpsource.Intake, err error) {
	x.begun = time.Now()
	m := x.r.Method
	writes := m == http.MethodPost || m == http.MethodPut
	if !x.at.bulk && !(x.at.document && writes) {
		return x.openProbe()
	}
	if !writes {
		return in, httpsource.RefuseMethod("POST, PUT", "%s %s: documents are sent with POST or PUT", m, body.Short(x.r.URL.Path))
	}
	if err := checkType(x.r.Header.Get("Content-Type")); err != nil {
		return in, err
	}
	if x.at.document {
		in.Form, err = body.NewForm(x.decodeOne, x.r.Header.Values("Content-Encoding"))
		return in, err
	}
	x.items.memory = *x.p.memories.Get().(*memory)
	x.items.filter = parseFilter(x.r.URL.Query().Get("filter_path"))
	in.Form, err = body.NewForm(x.decode, x.r.Header.Values("Content-Encoding"))
	return in, err
}

// checkType refuses the binary forms of Elasticsearch, and texts that are not UTF-8. Clients
// send lines of JSON under many types, and under none.
func checkType(contentType string) error {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil //nolint:nilerr // the lines are what they are
	}
	for _, form := range []string{"cbor", "smile", "yaml"} {
		if strings.HasSuffix(media, form) {
			return httpsource.Refuse(http.StatusUnsupportedMediaType, "Content-Type %s is not taken; send application/x-ndjson", body.Short(media))
		}
	}
	switch c := strings.ToLower(params["charset"]); c {
	case "", "utf-8", "utf8", "us-ascii":
		return nil
	default:
		return httpsource.Refuse(http.StatusUnsupportedMediaType, "charset %s is not taken; send UTF-8", body.Short(c))
	}
}

// Reply implements httpsource.Exchange.
func (x *exchange) Reply(h http.Header, counts *httpsource.Result, refused *httpsource.Refusal) (status int, text []byte) {
	h.Set("X-Elastic-Product", "Elasticsearch") // or the official clients refuse the answer
	h.Set("Content-Type", answerType(x.r.Header))
	switch {
	case refused != nil && denied(refused.Status):
		h.Set("Content-Type", "text/plain; charset=UTF-8")
		return refused.Status, []byte(refused.Reason)
	case refused != nil && again(refused.Status):
		// No form of JSON here, and no 429: rsyslog looks at the body only, and drops its records
		// after any object without items. The official clients send a whole request again
		// after 503, and never after 429.
		h.Set("Content-Type", "text/plain; charset=UTF-8")
		return http.StatusServiceUnavailable, []byte(refused.Reason)
	case refused != nil:
		return refused.Status, errorText(refused.Status, refused.Reason)
	case counts.Error != "" && len(x.items.targets) == 0, x.at.document && counts.Rejected > 0:
		return http.StatusBadRequest, errorText(http.StatusBadRequest, unreadable(counts))
	case x.at.document:
		return http.StatusCreated, x.created()
	case !x.at.bulk:
		if x.at.probe == "_cat" {
			h.Set("Content-Type", "text/plain; charset=UTF-8")
		}
		return http.StatusOK, []byte(x.answer)
	}
	took := time.Since(x.begun).Milliseconds()
	x.rest = func(w io.Writer) error { return x.writeLong(w, took) }
	if size := x.items.size(); size <= whole {
		text, _ := x.items.appendTo(slices.Grow(x.items.text, size), nil, took) // nothing fails without a writer
		x.items.text = text
		h.Set("Content-Length", strconv.Itoa(len(text)))
		x.rest = x.writeShort
	}
	return http.StatusOK, nil
}

// created is the answer to a document. One without an id gets one.
func (x *exchange) created() []byte {
	id := cmp.Or(x.at.id, strconv.FormatUint(rand.Uint64(), 36))
	text, _ := json.Marshal(map[string]any{ // strings and numbers have a form in JSON
		"_index": x.at.index, "_id": id, "_version": 1, "result": "created", "_seq_no": 0, "_primary_term": 1,
		"_shards": map[string]int{"total": 1, "successful": 1, "failed": 0},
	})
	return text
}

// denied reports whether a client has no right to send: rsyslog then keeps its records, and
// sends them until it has one, because the answer is no JSON.
func denied(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// again reports whether a client has to send the same request later.
func again(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// writeShort writes an answer that is complete.
func (x *exchange) writeShort(w io.Writer) error {
	_, err := w.Write(x.items.text)
	x.release()
	return err
}

// writeLong writes an answer in pieces.
func (x *exchange) writeLong(w io.Writer, took int64) (err error) {
	x.items.text, err = x.items.appendTo(slices.Grow(x.items.text, 2*piece), w, took)
	x.release()
	return err
}

// release keeps the memory of the items for a later request.
func (x *exchange) release() {
	if m := x.items.memory; m.release() {
		x.p.memories.Put(&m)
	}
	x.items.memory = memory{}
}

// Rest implements httpsource.LongReply.
func (x *exchange) Rest() func(w io.Writer) error { return x.rest }

// unreadable is the reason for an answer that nothing of a body could be read, or not its document.
func unreadable(counts *httpsource.Result) string {
	if len(counts.Errors) == 0 {
		return counts.Error
	}
	return counts.Errors[0].Reason + "; " + cmp.Or(counts.Error, "it is kept in the service "+record.RejectedService)
}

// answerType is the type that a client accepts: with the official clients that of a vendor,
// with the major version that the answer is compatible with.
func answerType(h http.Header) string {
	for _, v := range []string{h.Get("Accept"), h.Get("Content-Type")} {
		media, params, err := mime.ParseMediaType(v)
		if err != nil || !strings.HasPrefix(media, "application/vnd.elasticsearch+") {
			continue
		}
		if version := params["compatible-with"]; len(version) == 1 && version[0] >= '0' && version[0] <= '9' {
			return "application/vnd.elasticsearch+json;compatible-with=" + version
		}
	}
	return "application/json"
}

// errorText is an error in the form of Elasticsearch.
func errorText(status int, reason string) []byte {
	type cause struct {
		Type   string `json:"type"`
		Reason string `json:"reason"`
	}
	c := cause{errorType(status), reason}
	text, _ := json.Marshal(map[string]any{"status": status, "error": struct {
		RootCause []cause `json:"root_cause"`
		cause
	}{[]cause{c}, c}}) // strings and numbers have a form in JSON
	return text
}

// errorType is Elasticsearch's name for a status.
func errorType(status int) string {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "security_exception"
	case http.StatusNotFound:
		return "resource_not_found_exception"
	case http.StatusMethodNotAllowed:
		return "method_not_allowed_exception"
	case http.StatusRequestEntityTooLarge:
		return "content_too_long_exception"
	case http.StatusUnsupportedMediaType:
		return "media_type_header_exception"
	}
	if status >= http.StatusInternalServerError {
		return "unavailable_shards_exception"
	}
	return "illegal_argument_exception"
}
