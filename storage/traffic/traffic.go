// Package traffic counts the requests of a command to its store and to ingesters, with the
// bytes of their answers, so that a command can tell its cost. Every attempt counts, as on
// the bill of the store.
//
// A [Counter] is handed to a driver of a store. A client of ingesters gets it by
// [Counter.Transport]. Nothing is counted without one: a nil Counter works.
package traffic

import (
	"io"
	"net/http"
	"sync/atomic"
)

// A Kind is a group of requests with one price.
type Kind int

// The kinds, in the order in which they are told.
const (
	List  Kind = iota // a page of a listing of blobs
	Get               // a blob or a part of it
	Put               // a new blob
	Other             // attributes, the clock of the store, deletions
	Table             // a transaction of tables
	Live              // a question to an ingester
	Kinds             // how many there are
)

// String is the name of the kind.
func (k Kind) String() string {
	return [...]string{"LIST", "GET", "PUT", "other", "table", "live"}[k]
}

// A Counter counts requests. Any number of goroutines may use it. The zero value is ready.
type Counter struct {
	kinds [Kinds]struct{ requests, bytes atomic.Int64 }
}

// Sent counts a request, and the bytes of the answer as they are read.
func (c *Counter) Sent(k Kind, answer *http.Response) {
	if c == nil {
		return
	}
	c.kinds[k].requests.Add(1)
	if answer == nil || answer.Body == nil || answer.Body == http.NoBody {
		return
	}
	// The SDK of Azure has read most answers already, and reads them again from where it
	// keeps them. It does so for bodies of its own type only.
	if kept, ok := answer.Body.(io.Seeker); ok {
		n, _ := kept.Seek(0, io.SeekEnd)
		_, _ = kept.Seek(0, io.SeekStart)
		c.kinds[k].bytes.Add(n)
		return
	}
	answer.Body = &body{answer.Body, &c.kinds[k].bytes}
}

// Of returns how many requests of a kind were sent, and the bytes of their answers.
func (c *Counter) Of(k Kind) (requests, bytes int64) {
	if c == nil {
		return 0, 0
	}
	return c.kinds[k].requests.Load(), c.kinds[k].bytes.Load()
}

// Transport counts the requests of a client under one kind.
func (c *Counter) Transport(k Kind, over http.RoundTripper) http.RoundTripper {
	return &transport{c, k, over}
}

type transport struct {
	counter *Counter
	kind    Kind
	over    http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.over.RoundTrip(r)
	t.counter.Sent(t.kind, answer)
	return answer, err
}

// CloseIdleConnections lets [http.Client.CloseIdleConnections] reach the transport below.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.over.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

type body struct {
	io.ReadCloser
	bytes *atomic.Int64
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(int64(n))
	return n, err
}
