package httpsource

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"blobtail/internal/signpost"
	"blobtail/record"
	"blobtail/record/ack"
	"blobtail/source/body"
)

// native is the protocol of the paths /ingest/{service} and /ingest, and of those of Seq's clients,
// which send JSON too. It answers every other path by a sign to the right one.
func native(post signpost.Post) Protocol {
	return NewProtocol("native", func(r *http.Request) Exchange { return nativeExchange{r, post} })
}

type nativeExchange struct {
	*http.Request
	post signpost.Post
}

// Open implements [Exchange].
func (x nativeExchange) Open() (in Intake, err error) {
	r := x.Request
	in.notes = true
	name, ok := serviceIn(r.URL.EscapedPath())
	switch {
	case !ok || signpost.Foreign(r):
		sign := x.post.Find(r)
		f := Refuse(sign.Status, "%s", sign.Text)
		f.Allow = sign.Allow
		return in, f
	case r.Method == http.MethodGet && body.IsURLForm([]byte(r.URL.RawQuery)): // of HTTPHandler of Python
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(r.URL.RawQuery)), int64(len(r.URL.RawQuery))
		r.Header.Set("Content-Type", body.URLForm)
		r.URL.RawQuery = ""
	case r.Method != http.MethodPost && r.Method != http.MethodPut:
		return in, RefuseMethod("POST, PUT", "%s %s: records are sent with POST or PUT", r.Method, body.Short(r.URL.Path))
	}
	if name != "" && !(name == "clef" && strings.HasPrefix(r.Header.Get("Content-Type"), "application/vnd.serilog.clef")) {
		in.Service = record.FoldService(name)
	}
	if r.URL.Path == "/api/events/raw" && r.URL.RawQuery == "" {
		r.URL.RawQuery = "_service=Properties.Application" // of an event in an array; one of CLEF has no Properties
	}
	in.Form, err = body.ParseForm(r.Header.Get("Content-Type"), r.Header.Values("Content-Encoding"))
	return in, err
}

// serviceIn returns the service of /ingest/{service}, "" for /ingest and Seq's path. A path is not
// cleaned: a client that does not follow the redirect of [http.ServeMux] treats it as
// success.
func serviceIn(path string) (name string, ok bool) {
	if path == "/ingest" || path == "/api/events/raw" {
		return "", true
	}
	segment, ok := strings.CutPrefix(path, "/ingest/")
	if !ok || segment == "" || segment == "." || segment == ".." || strings.Contains(segment, "/") {
		return "", false
	}
	name, err := url.PathUnescape(segment)
	return name, err == nil
}

// ask reads the headers of our own, Ack and Idempotency-Key, which a client of any protocol may
// send. The parts of a stream have an identity by themselves.
func (s *Source) ask(in *Intake, who Sender, h http.Header) error {
	asked, err := ackOf(h)
	in.ack = asked
	if demands, ok := who.(interface{ Ack() ack.Level }); ok {
		in.ack = max(in.ack, demands.Ack())
	}
	if err == nil && asked == ack.Shipped && in.ack == asked && !s.o.Ships {
		err = Refuse(http.StatusBadRequest, "header Ack: shipped: this ingester ships no log; "+
			"send stored, or let the operator set ingest.ack, ingest.acks or the ack of a token to shipped")
	}
	if in.ack == ack.Shipped && !s.o.Ships {
		in.ack = ack.Stored // the token has it since the start
	}
	if err == nil && in.Stream == nil {
		in.key, err = keyOf(h)
	}
	return err
}

// ackOf returns the level that a sender asks for. An unknown word is refused: a typing error must
// not weaken the promise.
func ackOf(h http.Header) (level ack.Level, err error) {
	for _, v := range h.Values("Ack") {
		if v = strings.TrimSpace(v); v == "" {
			continue
		}
		asked, err := ack.Parse(v)
		if err != nil {
			return level, Refuse(http.StatusBadRequest,
				"header Ack: %s is not known; send stored to be answered when the records are in a blob, shipped when the store has them as a part of the log, or no such header to be answered when they are in the log", body.Short(v))
		}
		level = max(level, asked)
	}
	return level, nil
}

// keyOf returns the Idempotency-Key of a request, "" when it has none.
func keyOf(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	key := strings.TrimSpace(values[0])
	if len(values) > 1 || key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", Refuse(http.StatusBadRequest,
			"header Idempotency-Key: want one value of 1 to %d printable ASCII characters, best a UUIDv7 or ULID", maxKey)
	}
	return key, nil
}

// Reply implements [Exchange] with JSON: 200, 400 when nothing could be read, or the status
// of the refusal. Clients of Loki get a line of text.
func (x nativeExchange) Reply(h http.Header, counts *Result, refused *Refusal) (status int, text []byte) {
	var v any = counts
	status = http.StatusOK
	switch {
	case refused != nil && refused.Status == http.StatusNotFound && signpost.Reading(x.URL.Path) && !strings.HasPrefix(x.URL.Path, "/api/v1/"):
		return Plain(h, refused.Status, refused.Reason)
	case refused != nil:
		status, v = refused.Status, map[string]string{"error": refused.Reason}
	case counts.Error != "":
		status = http.StatusBadRequest
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // strings and numbers have a form in JSON
	h.Set("Content-Type", "application/json")
	return status, buf.Bytes()
}
