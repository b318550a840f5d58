// Package elastic is the protocol of Elasticsearch for documents: POST or PUT /_bulk and
// /{index}/_bulk, at the root and below /elasticsearch and /insert/elasticsearch. Make it
// with [New] and give it to the source in httpsource.Options.
//
// A body has an action on one line and its document on the next. decode.go and action.go
// read them, and pass the documents to the sink. items.go keeps the actions for the answer,
// and filter.go reads the parameter filter_path, by which clients shorten it. service.go
// names a service by an index. Clients ask other questions first: whether this is
// Elasticsearch, its version, its license, its templates. probe.go answers them, path.go
// knows their paths, and exchange.go has the form of all answers.
//
// A document that is no valid record is kept as a dead letter and answered as created. An
// answer with an error would make Fluent Bit send the whole body again, and Vector drop it.
// An update stores its document as a new record. A delete is answered and changes nothing.
// There is no search, and templates, policies and pipelines are not kept.
package elastic

import (
	"cmp"
	"net/http"
	"regexp"
	"sync"

	"blobtail/source/httpsource"
)

// Options are the settings of a [Protocol]. The zero value is ready for use.
type Options struct {
	// Version is the version number of Elasticsearch that clients are told. Some old
	// clients accept none that is newer or older than themselves. Empty: 8.9.0.
	Version string
}

// A Protocol is the protocol of Elasticsearch, an httpsource.Protocol. Its methods may be
// called by any number of goroutines.
type Protocol struct {
	version  string
	suffix   *regexp.Regexp
	decoders sync.Pool // of *decoder
	memories sync.Pool // of *memory
}

// New makes a Protocol. It starts nothing.
func New(o Options) *Protocol {
	return &Protocol{
		version:  cmp.Or(o.Version, "8.9.0"),
		suffix:   suffixOfIndex(),
		decoders: sync.Pool{New: func() any { return newDecoder() }},
		memories: sync.Pool{New: func() any { return new(memory) }},
	}
}

// Name returns "elastic".
func (*Protocol) Name() string { return "elastic" }

// Exchange returns the exchange of a request, or nil if its path is not one of
// Elasticsearch's.
func (p *Protocol) Exchange(r *http.Request) httpsource.Exchange {
	at, ok := parsePath(r.URL.EscapedPath())
	if !ok {
		return nil
	}
	return &exchange{p: p, r: r, at: at}
}
