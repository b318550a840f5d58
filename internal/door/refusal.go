package door

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A Refusal is the answer to a request that gets nothing else. Each protocol gives it its own
// form. [Refusal.Header] writes the headers that all forms have.
type Refusal struct {
	Status int
	// Code is a word for metrics and the log; "": it is not counted.
	Code string
	// Title is a few words for people; "": those of the status.
	Title string
	// Reason is the fault, its place, and a remedy, in one line.
	Reason string
	// Words are those by which clients of Loki know the fault; "": Reason.
	Words string
	// Allow has the methods that the path takes, for [http.StatusMethodNotAllowed].
	Allow string
	// After is when to ask again, for the header Retry-After; 0: nothing is said of that.
	After time.Duration
	// OfPage says that a page asked, for [http.StatusUnauthorized]. Its browser must not ask for a
	// name and a password: the page asks for the token.
	OfPage bool
	// HangUp says that the connection is of no more use.
	HangUp bool
	// Cause is the error behind it; nil: none.
	Cause error
}

// Refuse makes a refusal. A %w in the format gives it its cause.
func Refuse(status int, format string, args ...any) *Refusal {
	err := fmt.Errorf(format, args...)
	return &Refusal{Status: status, Reason: err.Error(), Cause: errors.Unwrap(err)}
}

// RefuseMethod makes the refusal of a method, for a path that takes others, as "GET, HEAD".
func RefuseMethod(allow, format string, args ...any) *Refusal {
	f := Refuse(http.StatusMethodNotAllowed, format, args...)
	f.Allow = allow
	return f
}

// Error returns the reason alone.
func (f *Refusal) Error() string { return f.Reason }

// Unwrap returns the cause.
func (f *Refusal) Unwrap() error { return f.Cause }

// Header writes when to ask again, and names the credentials or the methods that are accepted.
// Clients that know Basic only send them after this.
func (f *Refusal) Header(h http.Header) {
	if f.Status == http.StatusUnauthorized {
		if !f.OfPage {
			h.Add("WWW-Authenticate", `Basic realm="blobtail"`)
		}
		h.Add("WWW-Authenticate", `Bearer realm="blobtail"`)
	}
	if f.Status == http.StatusMethodNotAllowed {
		h.Set("Allow", f.Allow)
	}
	if f.After > 0 {
		h.Set("Retry-After", strconv.Itoa(int((f.After+time.Second-1)/time.Second)))
	}
}

// Plain answers with the words, or the reason, as a line of text.
func (f *Refusal) Plain(w http.ResponseWriter) {
	f.Header(w.Header())
	Say(w, f.Status, cmp.Or(f.Words, f.Reason))
}

// Say answers with a line of text.
func Say(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // a client that has gone needs no answer
}
