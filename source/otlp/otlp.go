// Package otlp takes the logs of OpenTelemetry: OTLP over HTTP, POST /v1/logs and
// /otlp/v1/logs, as protobuf or JSON. [New] makes the [Protocol] for httpsource.
//
// proto.go and json.go walk through a body of either encoding, record by record, and
// protovalue.go and jsonvalue.go read its values. Both fill the same entry, and record.go passes it
// on by its parts. Nothing is allocated for a record. So a body needs no more memory than its
// bytes, however many values it announces, and a value nested too deeply costs its record only. A
// library that decodes the whole body at once needs up to a hundred times its bytes, and twice the
// time of the same records as NDJSON. The tests compare both walks with the library of the
// OpenTelemetry Collector.
//
// The package does not take traces, metrics or gRPC.
package otlp

import (
	"errors"
	"mime"
	"net/http"
	"strings"
	"sync"

	"blobtail/source/body"
	"blobtail/source/httpsource"
	"blobtail/source/tokens"
)

// Protocol is OTLP over HTTP. Its methods may be called by any number of goroutines.
type Protocol struct {
	walkers sync.Pool // of *walker
}

// New makes a Protocol.
func New(o Options) *Protocol {
	return &Protocol{walkers: sync.Pool{New: func() any { return newWalker(o.ServiceFrom) }}}
}

// Name implements [httpsource.Protocol].
func (*Protocol) Name() string { return "otlp" }

// Exchange implements [httpsource.Protocol].
func (p *Protocol) Exchange(r *http.Request) httpsource.Exchange {
	if r.URL.Path != "/v1/logs" && r.URL.Path != "/otlp/v1/logs" {
		return nil
	}
	return &exchange{request: r, walkers: &p.walkers}
}

// An encoding is the form of a message.
type encoding uint8

const (
	sniffed encoding = iota // not known before the body is read
	inProto
	inJSON
)

type exchange struct {
	request  *http.Request
	walkers  *sync.Pool
	encoding encoding
}

// Open implements [httpsource.Exchange].
func (x *exchange) Open() (in httpsource.Intake, err error) {
	r := x.request
	// First of all: a refusal is written in the encoding of the request.
	x.encoding, err = encodingOf(r.Header.Get("Content-Type"))
	if err != nil {
		return in, err
	}
	if r.Method != http.MethodPost && r.Method != http.MethodPut {
		return in, httpsource.RefuseMethod("POST, PUT", "%s %s: logs are sent with POST", r.Method, body.Short(r.URL.Path))
	}
	in.Form, err = body.NewForm(x.decode, r.Header.Values("Content-Encoding"))
	return in, err
}

// encodingOf chooses the encoding by the Content-Type. Types that clients send for want of
// a better one say nothing about the body.
func encodingOf(contentType string) (encoding, error) {
	if strings.TrimSpace(contentType) == "" {
		return sniffed, nil
	}
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return sniffed, httpsource.Refuse(http.StatusUnsupportedMediaType, "Content-Type %s cannot be read: %v", body.Short(contentType), err)
	}
	switch media {
	case "application/x-protobuf", "application/protobuf", "application/vnd.google.protobuf":
		return inProto, nil
	case "application/json":
		if c := params["charset"]; c != "" && !strings.EqualFold(c, "utf-8") && !strings.EqualFold(c, "utf8") && !strings.EqualFold(c, "us-ascii") {
			return inJSON, httpsource.Refuse(http.StatusUnsupportedMediaType, "charset %s is not taken; send UTF-8", body.Short(c))
		}
		return inJSON, nil
	case "application/octet-stream", "application/x-www-form-urlencoded", "application/x-ndjson", "text/plain":
		return sniffed, nil
	}
	return sniffed, httpsource.Refuse(http.StatusUnsupportedMediaType,
		"Content-Type %s is not taken here; send OTLP as application/x-protobuf or application/json", body.Short(media))
}

// decode is the [body.Decoder] of the request.
func (x *exchange) decode(text []byte, to body.Sink) error {
	if x.encoding == sniffed {
		// As protobuf an opening brace would begin a group that OTLP does not have.
		x.encoding = inProto
		if at := tokens.SkipSpace(text, 0); at < len(text) && text[at] == '{' {
			x.encoding = inJSON
		}
	}
	w, _ := x.walkers.Get().(*walker)
	defer func() {
		w.forget()
		x.walkers.Put(w)
	}()
	w.body, w.to = text, to
	if x.encoding == inJSON {
		w.walkJSON()
	} else {
		w.walkProto()
	}
	return nil
}
