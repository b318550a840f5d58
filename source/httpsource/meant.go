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

// A likeness is a protocol that a body looks like, by the name of a member.
type likeness struct {
	member string
	// sure are those that are told of a body that was taken, too: a record of any program may have the
	// names of the others.
	sure bool
	what string // in words
	path string // for it; "" if no path takes it
	kind string // its Content-Type; "" for any
}

func likenesses() []likeness {
	return []likeness{
		{"streams", true, "a push to Loki", "/loki/api/v1/push", "application/json"},
		{"resourceLogs", true, "logs of OTLP", "/v1/logs", "application/json"},
		{"resourceSpans", true, "traces of OTLP", "", ""},
		{"resourceMetrics", true, "metrics of OTLP", "", ""},
		{"create", false, bulk, "/_bulk", ""},
		{"index", false, bulk, "/_bulk", ""},
		{"event", false, "an event of Splunk's collector", "/services/collector/event", ""},
	}
}

const bulk = "a bulk request of Elasticsearch"

// like returns the protocol that a body of JSON looks like.
func like(sort body.Sort, b []byte, taken bool) (likeness, bool) {
	if sort == body.Object {
		names := members(b)
		for _, l := range likenesses() {
			if slices.Contains(names, l.member) && (l.sure || !taken) {
				return l, true
			}
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

// diagnose tells the sender of a body what he may have meant: in the error of one that could not be
// decompressed from enc or read, in that of an answer for one without a record, and in the note for one
// that was taken. The error is err, or that in better words.
func (s *Source) diagnose(r *http.Request, in Intake, enc body.Encoding, b []byte, a *Result, err error) error {
	e, misread := errors.AsType[*body.Error](err)
	switch {
	case a != nil:
		if a.Error != "" {
			if text := remedy(r, in.Form.Encoding, b); text != "" {
				a.Error += "; " + text
			}
		}
		if err == nil && in.notes {
			a.Note = s.note(r, in, b, a)
		}
	case !misread:
	case enc == body.Plain:
		sort, words := body.SortOf(b)
		if errors.Is(err, body.ErrUnsupported) && (sort == body.Unknown || words == "deflate") { // the error says others
			return Refuse(http.StatusUnsupportedMediaType, "%s; %s", e.Reason, remedy(r, in.Form.Encoding, b))
		}
	case enc == body.Snappy && strings.TrimSpace(r.Header.Get("Content-Encoding")) == "" && !errors.Is(err, body.ErrTooLarge):
		want := "send JSON with Content-Type: application/json, or protobuf as a block of snappy" // the form of the path
		want = cmp.Or(remedy(r, "", b), want)
		return Refuse(http.StatusBadRequest, "%s; nothing of it was taken, since it is not valid snappy (%s)", want, cause(e))
	default:
		sort, _ := body.SortOf(b)
		if l, known := like(sort, b, false); known && !isAt(r, l.path) {
			return Refuse(http.StatusBadRequest, "%s; %s", e.Reason, remedy(r, "", b))
		}
	}
	return err
}

// remedy says what a body is that its path cannot read, and the path or the header for it; "" if
// that is not known. said is the encoding that the header names.
func remedy(r *http.Request, said body.Encoding, b []byte) string {
	sort, words := body.SortOf(b)
	l, ok := like(sort, b, false)
	native := strings.HasPrefix(r.URL.Path, "/ingest")
	var first json.RawMessage
	switch {
	case sort == body.Encoded && string(said) == words:
		return "the body is compressed twice: compress it once"
	case sort == body.Encoded:
		return fmt.Sprintf("the body is compressed with %s: send it with Content-Encoding: %s", words, words)
	case sort == body.Foreign:
		return "the body is " + words
	case sort == body.Unknown && len(b) > 0:
		return "protobuf goes to /v1/logs if it is of OTLP, and pushes to Loki go to /loki/api/v1/push as a block of snappy, " +
			"with Content-Type: application/x-protobuf"
	case ok && l.path == "":
		return "the body looks like " + l.what + ", and an ingester takes logs only"
	case ok && !isAt(r, l.path):
		return "the body looks like " + l.what + ": send it to " + l.path
	case ok && l.kind != "" && mediaOf(r) != l.kind:
		return "the body is JSON: send it with Content-Type: " + l.kind
	case ok, sort == body.Unknown, sort == body.Object && (native || json.NewDecoder(bytes.NewReader(b)).Decode(&first) != nil):
		return ""
	case sort == body.Object:
		return "the body is JSON of no form that this path takes: send JSON of your own to /ingest/{service}"
	case native:
		return "the body is text: send it with Content-Type: text/plain"
	}
	return "the body is text: send lines of text to /ingest/{service}"
}

// isAt reports whether a request came to a path, or to another path of the same protocol.
func isAt(r *http.Request, path string) bool {
	at := r.URL.Path
	return strings.HasSuffix(at, path) || path == "/loki/api/v1/push" && at == "/api/prom/push" || path == "/ingest/{service}" && strings.HasPrefix(at, "/ingest") ||
		path == "/services/collector/event" && strings.HasPrefix(at, "/services/collector")
}

// mediaOf is the type of a body without its parameters.
func mediaOf(r *http.Request) string {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return media
}

// cause is the text in brackets of the reason of an error, or all of it.
func cause(e *body.Error) string {
	if _, rest, ok := strings.Cut(e.Reason, "("); ok {
		text, _, _ := strings.Cut(rest, ")")
		return text
	}
	return e.Reason
}

// likeNote is a remark about a body that was taken, and looks like that of another path; "" for
// none.
func likeNote(r *http.Request, b []byte, a *Result) string {
	l, ok := likeness{}, false
	if looksLikeBulk(b) {
		l, ok = likeness{what: bulk, path: "/_bulk"}, true
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
	return len(b) > 0 && b[0] == '{' && (bytes.Contains(head, []byte(`"streams"`)) || bytes.Contains(head, []byte(`"resource`)))
}

// looksLikeBulk reports whether a body begins with an action of Elasticsearch.
func looksLikeBulk(b []byte) bool {
	head := strings.ReplaceAll(string(b[:min(len(b), 24)]), " ", "")
	return strings.HasPrefix(head, `{"create":{`) || strings.HasPrefix(head, `{"index":{`)
}
