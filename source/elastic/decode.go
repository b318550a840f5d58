package elastic

import (
	"bytes"
	"errors"
	"net/http"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/source/body"
	"blobtail/source/httpsource"
)

const (
	// mostLines bounds the actions that are kept for the answer. It is beyond all bodies with
	// documents of some sixty bytes.
	mostLines = 2_000_000
	// mostServices is how many services of indexes a decoder keeps for later bodies.
	mostServices = 1024
)

// A decoder has the memory of a body's decoding, which serves later bodies.
type decoder struct {
	actions  reader
	updates  *meaning.Reader
	services map[string]string // by index
}

func newDecoder() *decoder {
	return &decoder{
		actions:  reader{outer: meaning.NewReader(), inner: meaning.NewReader()},
		updates:  meaning.NewReader(),
		services: map[string]string{},
	}
}

// forget releases the parts of the state that belong to a body, and a list of services that has
// grown long.
func (d *decoder) forget() {
	d.actions = reader{outer: d.actions.outer, inner: d.actions.inner}
	if len(d.services) > mostServices {
		clear(d.services)
	}
}

// A pass is the decoding of one body.
type pass struct {
	*decoder
	x       *exchange
	text    []byte
	off     int
	to      body.Sink
	service string // the fallback that the sink has
	url     []byte // the index in the path
	target  func(k kind, index []byte) (n int, keep bool)
}

// decode is the body.Decoder of bulk requests. Each line that is not empty is an action or
// a document. A line that should be an action and is none is rejected, and the next line
// should be an action again.
func (x *exchange) decode(text []byte, to body.Sink) error {
	if len(text) > 8*mostLines && bytes.Count(text, []byte{'\n'}) > mostLines {
		return httpsource.Refuse(http.StatusRequestEntityTooLarge, "the body has more than %d lines; send it in smaller bodies", mostLines)
	}
	if x.decoding { // its lines are counted meanwhile, which leaves the answer alone
		x = &exchange{p: x.p, at: x.at}
	}
	x.decoding = true
	d := x.p.decoders.Get().(*decoder)
	p := pass{decoder: d, x: x, text: text, to: to, url: []byte(x.at.index)}
	p.target = p.targetOf
	if mark := "\xef\xbb\xbf"; bytes.HasPrefix(text, []byte(mark)) {
		p.off = len(mark)
	}
	for p.pair() {
	}
	d.forget()
	x.p.decoders.Put(d)
	return nil
}

// decodeOne is the body.Decoder of a request with one document.
func (x *exchange) decodeOne(text []byte, to body.Sink) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return httpsource.Refuse(http.StatusBadRequest, "the request has no document")
	}
	to.Fallback(x.p.service(x.at.index))
	return body.JSON(text, to)
}

// line returns the next line that is not empty, without white space around it.
func (p *pass) line() (line []byte, ok bool) {
	for p.off < len(p.text) {
		line = p.text[p.off:]
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line = line[:i]
		}
		p.off += len(line) + 1
		if n := len(line); n > 0 && (line[0] != '{' || line[n-1] != '}') {
			line = bytes.Trim(line, " \t\r")
		}
		if len(line) > 0 {
			return line, true
		}
	}
	return nil, false
}

// end is the offset of the end of the line read last.
func (p *pass) end() int { return min(p.off, len(p.text)) }

// pair passes an action and its document to the sink. It reports whether there may be
// another one.
func (p *pass) pair() bool {
	line, ok := p.line()
	if !ok {
		return false
	}
	if reason := p.actions.read(line, p.target); reason != "" {
		return p.to.Reject(line, body.Rejection{Reason: reason, Syntax: true}, p.end())
	}
	a := &p.actions.now
	t := &p.x.items.targets[a.target]
	p.x.items.add(a.target, a.id)
	if t.kind == remove {
		return true
	}
	document, ok := p.line()
	if !ok {
		return p.to.Reject(line, body.Rejection{Reason: "the body ends before the document of this action"}, p.end())
	}
	if t.service != p.service {
		p.service = t.service
		p.to.Fallback(t.service)
	}
	source := document
	if t.kind == update {
		if source, ok = p.updated(document); !ok {
			return p.to.Reject(document, body.Rejection{Reason: `no document in an update: want {"doc":{...}} or {"upsert":{...}}`}, p.end())
		}
	}
	n, err := p.to.Scan(source)
	if err == nil && len(bytes.TrimSpace(source[n:])) == 0 {
		return p.to.Object(document, p.end())
	}
	return p.to.Reject(document, rejection(err), p.end())
}

// rejection is the reason of an error of Scan; without one there is text after the object.
func rejection(err error) body.Rejection {
	if err == nil {
		return body.Rejection{Reason: "text after the document; send one on a line", Syntax: true}
	}
	e, ok := errors.AsType[*record.RejectError](err)
	return body.Rejection{Reason: err.Error(), Syntax: ok && e.Syntax}
}

// updated returns the document in an update. One by a script alone has none.
func (p *pass) updated(document []byte) (source []byte, ok bool) {
	if _, err := p.updates.Scan(document); err != nil {
		return document, true // the sink finds the same error
	}
	for key, value := range p.updates.Members() {
		if string(key) == "doc" || string(key) == "upsert" && source == nil {
			source = value
		}
	}
	return source, source != nil
}

// targetOf returns the number of a kind and an index among the items, and whether it stays
// that. An action without an index has that of the path.
func (p *pass) targetOf(k kind, index []byte) (n int, keep bool) {
	if len(index) == 0 {
		index = p.url
	}
	index = record.CutText(index, longestIndex)
	if n, ok := p.x.items.target(k, index); ok {
		return n, true
	}
	service, ok := p.services[string(index)]
	if !ok {
		service = p.x.p.service(string(index))
		if len(p.services) <= mostServices {
			p.services[string(index)] = service
		}
	}
	return p.x.items.addTarget(k, index, service)
}
