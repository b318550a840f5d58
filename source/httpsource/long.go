package httpsource

import (
	"io"
	"net/http"
	"time"
)

// A LongReply is an [Exchange] that may answer with more than a few KiB.
type LongReply interface {
	Exchange
	// Rest returns a function that writes the part of the answer behind the text of
	// Reply, or nil if that text is all of it. It is called once, after Reply. The function
	// stops at the first error. The client has as much time for each piece that it writes
	// as for a short body. With a rest, Reply itself sets Content-Length, if it knows it.
	Rest() func(w io.Writer) error
}

// restOf returns the function for the rest of an answer, nil if there is none.
func restOf(x Exchange) func(io.Writer) error {
	if long, ok := x.(LongReply); ok {
		return long.Rest()
	}
	return nil
}

// A patientWriter gives the client the same time to take each piece of a long answer. A
// client that takes nothing must not hold the memory of its request.
type patientWriter struct {
	http.ResponseWriter
	rc    *http.ResponseController
	grace time.Duration
}

// writeRest writes the rest of a long answer. After an error net/http closes the connection.
func writeRest(w http.ResponseWriter, rest func(io.Writer) error, grace time.Duration) {
	p := patientWriter{w, http.NewResponseController(w), grace}
	if rest(p) == nil {
		_ = p.rc.Flush() // while there is a deadline
		_ = p.rc.SetWriteDeadline(time.Time{})
	}
}

// Write implements [io.Writer]. Without a connection there is no deadline.
func (p patientWriter) Write(piece []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(p.grace))
	return p.ResponseWriter.Write(piece)
}
