package httpsource

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"blobtail/record"
	"blobtail/source/body"
)

// openNative reads the header of a request to /ingest or /ingest/{service}.
func openNative(r *http.Request) (in intake, err error) {
	if name := r.PathValue("service"); name != "" {
		in.service = record.FoldService(name)
	}
	in.decode, in.sniffed, err = body.DecoderFor(r.Header.Get("Content-Type"))
	return in, err
}

// answerNative writes the answer as JSON: 200, or 400 when nothing could be read.
func answerNative(w http.ResponseWriter, a *answer, refused *refusal) (status int) {
	if refused != nil {
		writeJSON(w, refused.status, struct {
			Error string `json:"error"`
		}{refused.reason})
		return refused.status
	}
	status = http.StatusOK
	if a.Error != "" {
		status = http.StatusBadRequest
	}
	writeJSON(w, status, a)
	return status
}

// writeJSON writes the whole answer at once. It is at most a few KiB, which a socket
// accepts even if the client does not read: there is no write deadline, because
// waiting for a blob may rightly take minutes.
func writeJSON(w http.ResponseWriter, status int, v any) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		status = http.StatusInternalServerError
		buf.Reset()
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(buf.Len()))
	w.WriteHeader(status)
	// The client may have gone; then nothing is left to do.
	_, _ = w.Write(buf.Bytes())
}
