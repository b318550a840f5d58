package httpsource

import (
	"net/http"
	"net/url"

	"blobtail/internal/signpost"
	"blobtail/record/ack"
	"blobtail/record/meaning"
	"blobtail/record/names"
	"blobtail/source/body"
)

// A Protocol is a form of requests with records, and of their answers. Its methods may be
// called by any number of goroutines.
type Protocol interface {
	// Name is a short word for metrics, such as loki.
	Name() string
	// Exchange returns the exchange of a request, or nil if the path is not one of this
	// protocol. It reads only the path.
	Exchange(r *http.Request) Exchange
}

// NewProtocol makes a [Protocol] of its methods.
func NewProtocol(name string, exchange func(r *http.Request) Exchange) Protocol {
	return protocol{name, exchange}
}

type protocol struct {
	name     string
	exchange func(r *http.Request) Exchange
}

// Name implements [Protocol].
func (p protocol) Name() string { return p.name }

// Exchange implements [Protocol].
func (p protocol) Exchange(r *http.Request) Exchange { return p.exchange(r) }

// An Exchange is one request and its answer. Only one goroutine uses it.
type Exchange interface {
	// Open parses the path and the header. It does not read the body. The error is a
	// *[Refusal] or a [*body.Error]. The sender may turn out not to be admitted afterwards.
	Open() (Intake, error)
	// Reply sets the header of the answer, and returns its status and body. It is called
	// once, also if Open failed. With a refusal, which may be of any kind, the counts are
	// those up to it. The source itself sets Content-Length, Retry-After, Allow and
	// WWW-Authenticate. A client must not see a status below 300 with a refusal.
	Reply(h http.Header, counts *Result, refused *Refusal) (status int, text []byte)
}

// A Probe is the [Exchange] of a client that asks whether this is the server that it knows. Answer is
// that to a request with the status and the reason of [Result.Failed].
type Probe struct {
	Request *http.Request
	Answer  func(h http.Header, status int, reason string) (int, []byte)
}

// Open implements [Exchange].
func (p Probe) Open() (in Intake, err error) {
	in.Probe = true
	if m := p.Request.Method; m != http.MethodGet && m != http.MethodHead {
		return in, RefuseMethod("GET, HEAD", "%s %s: want GET", m, body.Short(p.Request.URL.Path))
	}
	return in, nil
}

// Reply implements [Exchange].
func (p Probe) Reply(h http.Header, counts *Result, refused *Refusal) (int, []byte) {
	status, reason := counts.Failed(refused)
	return p.Answer(h, status, reason)
}

// An Intake is the knowledge of a request before its body is read.
type Intake struct {
	// Probe says that the request has no records: a client asks whether this is the server
	// that it knows. A guard admits it like any other. Its body is not read, and Reply is
	// called at once.
	Probe bool
	// Service is the folded service of all records; "" leaves it to each record.
	Service string
	// Form is the form of the body.
	Form body.Form
	// Scope is a text on which the records depend besides the path and the body, such as a query:
	// requests of different scopes are no repeats of each other. "" for nothing.
	Scope string

	// Stream decodes a body of any length while it comes, in place of Form. Nil: the body is
	// read whole. Only the encoding of Form counts then.
	Stream Stream

	fields *meaning.Mapping // of the request
	notes  bool             // the answer has room for a note
	key    string           // the Idempotency-Key, "" for none
	ack    ack.Level        // that the sender asks for
}

// QueryPairs returns the values of parameters of a query, nil for none, and a text that is another one
// for each.
func QueryPairs(q url.Values, parameters ...string) (pairs []names.Pair, scope string) {
	given := url.Values{}
	for _, name := range parameters {
		p := names.Pair{Name: name}
		if text := q.Get(name); text != "" {
			p.Value = []byte(text)
			given.Set(name, text)
		}
		pairs = append(pairs, p)
	}
	return pairs, given.Encode()
}

// SizeOf is how many bytes the values of pairs have.
func SizeOf(pairs []names.Pair) (n int) {
	for i := range pairs {
		n += len(pairs[i].Value)
	}
	return n
}

// protocols returns the protocols of a source: native is the last, because it answers each
// path that is not one of the others.
func (o *Options) protocols() []Protocol {
	return append(o.Protocols[:len(o.Protocols):len(o.Protocols)], native(signpost.Post{At: signpost.Ingester, Admin: o.Admin, Own: map[string]string{"/live/": "GET"}}))
}

// exchange finds the protocol of a request.
func (s *Source) exchange(r *http.Request) (name string, x Exchange) {
	among := s.protocols
	if signpost.Foreign(r) {
		among = among[len(among)-1:] // native, which tells of it
	}
	for _, p := range among {
		if x = p.Exchange(r); x != nil {
			return p.Name(), x
		}
	}
	return "", nil // native has every path
}
