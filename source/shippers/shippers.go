// Package shippers has the protocols of all stock shippers, for those that run the source of HTTP.
package shippers

import (
	"blobtail/source/datadog"
	"blobtail/source/elastic"
	"blobtail/source/gelf"
	"blobtail/source/httpsource"
	"blobtail/source/journald"
	"blobtail/source/loki"
	"blobtail/source/otlp"
	"blobtail/source/splunk"
)

// Options are the settings of the protocols. The zero value is ready for use.
type Options struct {
	// Elasticsearch is the version that its clients are told; "" is that of [elastic.Options].
	Elasticsearch string
	// OTLP are those of OTLP.
	OTLP otlp.Options
}

// Protocols returns all protocols, in their order in docs/send/protocols.md.
func Protocols(o Options) []httpsource.Protocol {
	return []httpsource.Protocol{
		loki.New(), otlp.New(o.OTLP), elastic.New(elastic.Options{Version: o.Elasticsearch}), journald.New(), splunk.New(), datadog.New(), gelf.New(),
	}
}
