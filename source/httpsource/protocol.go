package httpsource

import (
	"net/http"
	"strconv"
	"time"

	"blobtail/source/body"
)

// A protocol is one way to send records over HTTP. Everything else is the same for
// all of them: limits, compression, identities, the log, metrics.
type protocol struct {
	// open reads the header of a request, before its body is read. An error refuses
	// the request.
	open func(r *http.Request) (intake, error)
	// answer writes the answer and returns its status. refused is nil when the records
	// are safe; a then counts them by outcome. Retry-After is set already.
	answer func(w http.ResponseWriter, a *answer, refused *refusal) (status int)
}

// An intake is the knowledge of a request's records before its body is read.
type intake struct {
	service string       // folded; "" leaves it to each record
	decode  body.Decoder // finds the records
	sniffed bool         // the Content-Type does not give the format
}

// routes are the paths of all protocols.
func (s *Source) routes() {
	for _, pattern := range []string{"/ingest", "/ingest/{service}"} {
		s.mux.HandleFunc("POST "+pattern, s.serve(protocol{openNative, answerNative}))
		s.mux.HandleFunc("PUT "+pattern, s.serve(protocol{openNative, answerNative}))
		s.mux.HandleFunc(pattern, s.serve(protocol{wrongMethod, answerNative}))
	}
	s.unknown = s.serve(protocol{unknownPath, answerNative})
	s.mux.HandleFunc("/", s.unknown)
}

// serve is the handler of the requests of a protocol.
func (s *Source) serve(p protocol) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		a := answer{}
		in, err := p.open(r)
		if err == nil {
			a, err = s.take(w, r, in)
		}
		refused := refusalOf(err)
		switch {
		case refused == nil:
			s.pressure.relieved()
		case refused.retry:
			w.Header().Set("Retry-After", strconv.Itoa(s.pressure.refused(time.Now())))
		case refused.allow != "":
			w.Header().Set("Allow", refused.allow)
		}
		if refused != nil && refused.hangUp {
			w.Header().Set("Connection", "close")
		}
		status := p.answer(w, &a, refused)
		s.metrics.request(status, time.Since(begun))
	}
}

func wrongMethod(r *http.Request) (intake, error) {
	f := refuse(http.StatusMethodNotAllowed, "%s %s: records are sent with POST or PUT", r.Method, body.Short(r.URL.Path))
	f.allow = "POST, PUT"
	return intake{}, f
}

func unknownPath(r *http.Request) (intake, error) {
	return intake{}, refuse(http.StatusNotFound,
		"no such path %s; send records to /ingest/{service}, or to /ingest when each has a field \"service\"", body.Short(r.URL.Path))
}
