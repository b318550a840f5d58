// Package loki is the protocol by which shippers push logs to Loki: POST /loki/api/v1/push,
// as JSON or as a snappy block of protobuf.
//
// Make a [Protocol] with [New] and give it to a source of HTTP. An entry becomes a record:
// its line is the message, unchanged; its structured metadata and the labels of its stream
// are fields. One label names the service, and one the level. An entry without a level gets the
// one that its line shows.
//
// The package answers the push API and the probe /ready. It does not answer queries.
package loki

import (
	"mime"
	"net/http"
	"sync"

	"blobtail/source/body"
	"blobtail/source/httpsource"
)

// Protocol is Loki's push API, an [httpsource.Protocol].
type Protocol struct {
	decoders sync.Pool // of *decoder
}

// New makes the protocol.
func New() *Protocol {
	return &Protocol{decoders: sync.Pool{New: func() any { return newDecoder() }}}
}

// Name implements [httpsource.Protocol].
func (*Protocol) Name() string { return "loki" }

// Exchange implements [httpsource.Protocol].
func (p *Protocol) Exchange(r *http.Request) httpsource.Exchange {
	switch r.URL.Path {
	case "/loki/api/v1/push", "/api/prom/push":
		return &push{r, p}
	case "/ready":
		return httpsource.Probe{Request: r, Answer: ready}
	}
	return nil
}

// push is a request with records.
type push struct {
	r *http.Request
	p *Protocol
}

// Open implements [httpsource.Exchange]. As in Loki, the body is protobuf unless its type is
// JSON, and protobuf is a snappy block whether a header says so or not.
func (x *push) Open() (in httpsource.Intake, err error) {
	if x.r.Method != http.MethodPost {
		return in, httpsource.RefuseMethod("POST", "%s %s: entries are pushed with POST", x.r.Method, x.r.URL.Path)
	}
	media, _, _ := mime.ParseMediaType(x.r.Header.Get("Content-Type"))
	read := (*decoder).json
	if media != "application/json" {
		read = (*decoder).proto
	}
	if in.Form, err = body.NewForm(x.p.decode(read), x.r.Header.Values("Content-Encoding")); err != nil {
		return in, err
	}
	if media != "application/json" && in.Form.Encoding != body.Snappy {
		in.Form.Inner = body.Snappy
	}
	return in, nil
}

// Reply implements [httpsource.Exchange]: 204, or the reason as text.
func (x *push) Reply(h http.Header, counts *httpsource.Result, refused *httpsource.Refusal) (int, []byte) {
	return counts.ReplyPlain(h, refused, http.StatusNoContent, "")
}

// ready answers clients that check whether Loki is up.
func ready(h http.Header, status int, reason string) (int, []byte) {
	if status > 0 {
		return httpsource.Plain(h, status, reason)
	}
	return httpsource.Plain(h, http.StatusOK, "ready")
}

// decode makes a [body.Decoder] of a method of the decoders.
func (p *Protocol) decode(read func(d *decoder, b []byte)) body.Decoder {
	return func(b []byte, to body.Sink) error {
		d := p.decoders.Get().(*decoder)
		defer p.release(d)
		d.to = to
		read(d, b)
		return nil
	}
}

// release keeps a decoder for the next body, unless this one made it large.
func (p *Protocol) release(d *decoder) {
	if d.forget() {
		p.decoders.Put(d)
	}
}
