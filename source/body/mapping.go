package body

import (
	"blobtail/record"
)

// serviceOf is the service of a record as it is known before its fields.
func (g *Gatherer) serviceOf(own []byte) string {
	switch {
	case g.defaults.Service != "":
		return g.defaults.Service
	case len(own) > 0:
		return record.FoldService(string(own))
	}
	return g.defaults.Fallback
}

// Mapped reports whether a field is named, as in [Sink].
func (g *Gatherer) Mapped(service []byte, key string) bool {
	return g.defaults.Mapping != nil && g.parser.Mapped(g.defaults.Mapping, g.serviceOf(service), key)
}

// Takes reports whether records of a service are accepted, as in [Sink].
func (g *Gatherer) Takes(service []byte) bool {
	return g.arrival.Allow == nil || g.allowed(g.serviceOf(service))
}
