package httpsource

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"blobtail/record"
	"blobtail/source/body"
)

// An intake is the knowledge of a request before its body is read.
type intake struct {
	service string // folded; "" leaves it to each record
	form    body.Form
	key     string // the Idempotency-Key, "" for none
	stored  bool   // answer only when the records are in a blob
}

// parseHead parses the path and the header of a request. admin is the address of the
// listener for operators, "" for none.
func parseHead(r *http.Request, admin string) (in intake, err error) {
	name, ok := serviceIn(r.URL.EscapedPath())
	switch {
	case !ok && admin != "" && forOperators(r.URL.Path):
		return in, refuse(http.StatusNotFound,
			"%s is answered at the admin listener, %s (--admin); records are sent here, to /ingest/{service}", body.Short(r.URL.Path), admin)
	case !ok:
		return in, refuse(http.StatusNotFound,
			"no such path %s; send records to /ingest/{service}, or to /ingest when each has a field \"service\"", body.Short(r.URL.Path))
	case r.Method != http.MethodPost && r.Method != http.MethodPut:
		return in, refuse(http.StatusMethodNotAllowed, "%s %s: records are sent with POST or PUT", r.Method, body.Short(r.URL.Path))
	case name != "":
		in.service = record.FoldService(name)
	}
	if in.form, err = body.ParseForm(r.Header.Get("Content-Type"), r.Header.Values("Content-Encoding")); err != nil {
		return in, err
	}
	if in.key, err = keyOf(r.Header); err != nil {
		return in, err
	}
	in.stored, err = ackOf(r.Header)
	return in, err
}

// forOperators reports whether a path is one of the listener for operators.
func forOperators(path string) bool {
	return slices.Contains([]string{"/metrics", "/healthz", "/readyz", "/flush", "/drain"}, path) || strings.HasPrefix(path, "/debug/pprof")
}

// serviceIn returns the service of /ingest/{service}, "" for /ingest. A path is not
// cleaned: a client that does not follow the redirect of [http.ServeMux] treats it as
// success.
func serviceIn(path string) (name string, ok bool) {
	if path == "/ingest" {
		return "", true
	}
	segment, ok := strings.CutPrefix(path, "/ingest/")
	if !ok || segment == "" || segment == "." || segment == ".." || strings.Contains(segment, "/") {
		return "", false
	}
	name, err := url.PathUnescape(segment)
	return name, err == nil
}

// ackOf reports whether to answer only when the records are in a blob. An unknown
// word is refused: a typing error must not weaken the promise.
func ackOf(h http.Header) (stored bool, err error) {
	for _, v := range h.Values("Ack") {
		switch v = strings.TrimSpace(v); {
		case strings.EqualFold(v, "stored"):
			stored = true
		case v != "":
			return false, refuse(http.StatusBadRequest,
				"header Ack: %s is not known; send stored to be answered when the records are in a blob, or no such header to be answered when they are in the log", body.Short(v))
		}
	}
	return stored, nil
}

// keyOf returns the Idempotency-Key of a request, "" when it has none.
func keyOf(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	key := strings.TrimSpace(values[0])
	if len(values) > 1 || key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", refuse(http.StatusBadRequest,
			"header Idempotency-Key: want one value of 1 to %d printable ASCII characters, best a UUIDv7 or ULID", maxKey)
	}
	return key, nil
}

// respond answers with JSON, and returns the status: 200, 400 when nothing could be read,
// or that of the refusal. It writes the whole answer at once. It is at most a few KiB,
// which a socket accepts even if the client does not read: there is no write deadline,
// because waiting for a blob may rightly take minutes.
func respond(w http.ResponseWriter, a *answer, refused *refusal) (status int) {
	var v any = a
	status = http.StatusOK
	switch {
	case refused != nil:
		status, v = refused.status, map[string]string{"error": refused.reason}
	case a.Error != "":
		status = http.StatusBadRequest
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // strings and numbers have a form in JSON
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(buf.Len()))
	w.WriteHeader(status)
	// The client may have gone; then nothing is left to do.
	_, _ = w.Write(buf.Bytes())
	return status
}
