package httpsource

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"blobtail/source/body"
	"blobtail/source/tokens"
)

// A likeness is a protocol that a body looks like.
type likeness struct {
	what string // in words
	path string // for it; "" if no path takes it
	kind string // its Content-Type; "" for any
}

// likenesses are found by a name of a member. Only those that are marked are told of a body that
// was taken: the others have names that a record of any program may have.
func likenesses() []struct {
	member string
	sure   bool
	likeness
} {
	return []struct {
		member string
		sure   bool
		likeness
	}{
		{"streams", true, likeness{"a push to Loki", "/loki/api/v1/push", "application/json"}},
		{"resourceLogs", true, likeness{"logs of OTLP", "/v1/logs", "application/json"}},
		{"resourceSpans", true, likeness{"traces of OTLP", "", ""}},
		{"resourceMetrics", true, likeness{"metrics of OTLP", "", ""}},
		{"logEvents", true, likeness{"events of CloudWatch, of which each in logEvents is a record", "/ingest/{service}", ""}},
		{"create", false, likeness{"a bulk request of Elasticsearch", "/_bulk", ""}},
		{"index", false, likeness{"a bulk request of Elasticsearch", "/_bulk", ""}},
		{"short_message", false, likeness{"a message of GELF", "/gelf", ""}},
		{"ddsource", false, likeness{"logs of Datadog's clients", "/api/v2/logs", ""}},
		{"traceId", false, likeness{"spans of Zipkin", "", ""}},
		{"event", false, likeness{"an event of Splunk's collector", "/services/collector/event", ""}},
	}
}

// like returns the protocol that a body of JSON looks like.
func like(sort body.Sort, b []byte, taken bool) (likeness, bool) {
	if sort != body.Object && sort != body.Array {
		return likeness{}, false
	}
	names := members(b)
	for _, l := range likenesses() {
		if slices.Contains(names, l.member) && (l.sure || !taken) {
			return l.likeness, true
		}
	}
	return likeness{}, false
}

// members returns the names of the first members of the object that a body of JSON begins with, or
// of the first one in its array.
func members(b []byte) (names []string) {
	const most, long = 16, 64 << 10
	c := &tokens.Cursor{Src: b[:min(len(b), long)]}
	if c.Has("\xef\xbb\xbf"); c.Next() == '[' {
		c.Enter('[')
	}
	has, _ := c.Enter('{')
	for ; has && len(names) < most; has = c.More('{') {
		names = append(names, string(c.Key()))
		c.Skip()
	}
	return names
}

// remedy says what a body is that its path cannot read, and the path or the header for it; "" if
// that is not known. said is the encoding that the header names.
func remedy(r *http.Request, said body.Encoding, b []byte) string {
	sort, words := body.SortOf(b)
	l, ok := like(sort, b, false)
	switch {
	case sort.Encoded() && string(said) != words:
		return fmt.Sprintf("the body is compressed with %s: send it with Content-Encoding: %s", words, words)
	case sort.Encoded():
		return "the body is compressed twice: compress it once"
	case sort == body.Foreign:
		return "the body is " + words
	case sort == body.Wide:
		return "the body is text in UTF-16: send UTF-8"
	case ok && l.path == "":
		return "the body looks like " + l.what + ", and an ingester takes logs only"
	case ok && !isAt(r, l.path):
		return "the body looks like " + l.what + ": send it to " + l.path
	case ok && l.kind != "" && mediaOf(r) != l.kind:
		return "the body is JSON: send it with Content-Type: " + l.kind
	case ok:
		return ""
	}
	return remedyOf(r, sort, words, b)
}

// unread adds a remedy to the error of a body that its path does not read.
func unread(r *http.Request, said body.Encoding, b []byte, err error) error {
	e, ok := errors.AsType[*body.Error](err)
	if !ok || !errors.Is(err, body.ErrUnsupported) {
		return err
	}
	if sort, _ := body.SortOf(b); sort != body.Protobuf && sort != body.Snapped && sort != body.Deflated {
		return err // it says what the body is
	}
	if text := remedy(r, said, b); text != "" {
		return Refuse(http.StatusUnsupportedMediaType, "%s; %s", e.Reason, text)
	}
	return err
}

// remedyOf is remedy for a body that looks like no protocol of JSON.
func remedyOf(r *http.Request, sort body.Sort, words string, b []byte) string {
	const proto = "application/x-protobuf"
	native := strings.HasPrefix(r.URL.Path, "/ingest")
	switch sort {
	case body.Journal:
		return "the body is entries of journald: send it to /upload with Content-Type: application/vnd.fdo.journal"
	case body.Protobuf, body.Snapped:
		own := "/loki/api/v1/push"
		if sort == body.Protobuf {
			own = "/v1/logs"
		}
		switch {
		case isAt(r, own) && mediaOf(r) != proto:
			return "the body is " + words + ": send it with Content-Type: " + proto
		case isAt(r, own):
			return ""
		case sort == body.Protobuf && isAt(r, "/loki/api/v1/push"):
			return "the body is protobuf without compression: pushes to Loki are a snappy block of it, and OTLP goes to /v1/logs"
		}
		return "the body is " + words + ": pushes to Loki go to /loki/api/v1/push, and OTLP to /v1/logs, with Content-Type: " + proto
	case body.Object, body.Array:
		var first json.RawMessage
		if native || json.NewDecoder(bytes.NewReader(b)).Decode(&first) != nil {
			return ""
		}
		return "the body is JSON of no form that this path takes: send JSON of your own to /ingest/{service}"
	case body.Lines, body.Markup:
		if native {
			return "the body is " + words + ": send it with Content-Type: text/plain"
		}
		return "the body is " + words + ": send lines of text to /ingest/{service}"
	}
	return ""
}

// isAt reports whether a request came to a path, or to another path of the same protocol.
func isAt(r *http.Request, path string) bool {
	at := r.URL.Path
	return strings.HasSuffix(at, path) || path == "/loki/api/v1/push" && at == "/api/prom/push" || path == "/ingest/{service}" && strings.HasPrefix(at, "/ingest") ||
		path == "/services/collector/event" && strings.HasPrefix(at, "/services/collector") || path == "/api/v2/logs" && at == "/v1/input"
}

// mediaOf is the type of a body without its parameters.
func mediaOf(r *http.Request) string {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return media
}

// advise adds the right path to the error of a body that could not be decompressed. If no header
// names the encoding, the body has another form than that of its path.
func advise(r *http.Request, enc body.Encoding, wire []byte, err error) error {
	e, ok := errors.AsType[*body.Error](err)
	if !ok {
		return err
	}
	sort, _ := body.SortOf(wire)
	l, known := like(sort, wire, false)
	if enc == body.Snappy && strings.TrimSpace(r.Header.Get("Content-Encoding")) == "" { // it is the form of the path
		const want = "send JSON with Content-Type: application/json, or protobuf as a block of snappy"
		if text := cmp.Or(remedy(r, "", wire), want); sort != body.Snapped && (sort != body.Unknown || !errors.Is(err, body.ErrTooLarge)) {
			return Refuse(http.StatusBadRequest, "%s; nothing of it was taken, since it is not valid snappy (%s)", text, cause(e))
		}
		return err
	}
	if known && !isAt(r, l.path) {
		return Refuse(http.StatusBadRequest, "%s; %s", e.Reason, remedy(r, "", wire))
	}
	return err
}

// cause is the text in brackets of the reason of an error, or all of it.
func cause(e *body.Error) string {
	if _, rest, ok := strings.Cut(e.Reason, "("); ok {
		text, _, _ := strings.Cut(rest, ")")
		return text
	}
	return e.Reason
}

// meantType adds the path for the type of a body to the refusal of that type.
func meantType(r *http.Request, err error) error {
	e, ok := errors.AsType[*body.Error](err)
	if !ok || !errors.Is(err, body.ErrUnsupported) {
		return err
	}
	to := ""
	switch media := mediaOf(r); {
	case strings.Contains(media, "protobuf"):
		to = "OTLP goes to /v1/logs, and pushes to Loki to /loki/api/v1/push"
	case media == "application/vnd.fdo.journal":
		to = "entries of journald go to /upload"
	case strings.Contains(media, "msgpack"):
		to = "have Fluentd or Fluent Bit send JSON (format json_lines)"
	case media == "multipart/form-data":
		to = "with curl --data-binary @FILE, not -F"
	}
	if to == "" {
		return err
	}
	return Refuse(http.StatusUnsupportedMediaType, "%s; %s", e.Reason, to)
}

// likeNote is a remark about a body that was taken, and looks like that of another path; "" for
// none.
func likeNote(r *http.Request, b []byte, a *Result) string {
	l, ok := likeness{}, false
	if looksLikeBulk(b) {
		l, ok = likeness{"a bulk request of Elasticsearch", "/_bulk", ""}, true
	} else if a.Accepted+a.Expired == 1 && mayBeOther(b) { // the others are one object
		l, ok = like(body.Object, b, true)
	}
	switch {
	case !ok, l.path != "" && isAt(r, l.path):
		return ""
	case l.path == "":
		return "the body looks like " + l.what + "; an ingester takes logs only"
	}
	return "the body looks like " + l.what + ": it is meant for " + l.path
}

// mayBeOther looks for the names of a sure likeness, which costs less than reading all names.
func mayBeOther(b []byte) bool {
	const long = 4 << 10
	head := b[:min(len(b), long)]
	return len(b) > 0 && b[0] == '{' && (bytes.Contains(head, []byte(`"streams"`)) || bytes.Contains(head, []byte(`"resource`)) || bytes.Contains(head, []byte(`"logEvents"`)))
}

// looksLikeBulk reports whether a body begins with an action of Elasticsearch.
func looksLikeBulk(b []byte) bool {
	head := string(b[:min(len(b), 64)])
	return strings.HasPrefix(head, `{"create":{`) || strings.HasPrefix(head, `{"index":{`) || strings.HasPrefix(head, `{ "create" : {`) || strings.HasPrefix(head, `{ "index" : {`)
}
