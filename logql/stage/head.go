package stage

import (
	"bytes"
	"slices"
	"strings"

	"blobtail/internal/budget"
	"blobtail/logql"
	"blobtail/record"
)

// A Selection is the part of a query that is decided without a look at whole records.
type Selection struct {
	// Service reports whether records of a service can match.
	Service func(name string) bool
	// Names are the services that can match, in order; nil: any for which Service is true.
	Names []string
	// Levels are the levels that can match. For other records Keep is false.
	Levels [record.NumLevels]bool
	// Texts are in each record for which Keep is true, as texts of a blobs.Filter.
	Texts []string
	// All says that service and level decide: Keep is true for each record that has one of
	// Levels and a service that matches.
	All bool
}

// Selection returns the part of the query that services, levels and texts decide.
func (p *Pipeline) Selection() Selection {
	return Selection{
		Service: p.head.service, Names: p.head.names(), Levels: p.head.levels,
		Texts: slices.Clone(p.texts), All: len(p.keep) == 0,
	}
}

// A head decides by the fields at the start of a line.
type head struct {
	levels   [record.NumLevels]bool
	all      bool // all levels
	services []*matcher
	system   bool // system services can match
}

// serviceMatcher adds a matcher of the service. System services match only if they are meant.
func (h *head) serviceMatcher(b *budget.Budget, m logql.Matcher) error {
	one, err := newMatcher(b, m.Op, m.Value)
	if err != nil {
		return err
	}
	h.services = append(h.services, one)
	h.system = h.system || !one.not && strings.HasPrefix(m.Value, "_")
	return nil
}

// levelsOf removes the levels for which a condition is not true.
func (h *head) levelsOf(is func(name []byte) bool) {
	h.all = true
	for l := range h.levels {
		h.levels[l] = h.levels[l] && is(levelNames[l])
		h.all = h.all && h.levels[l]
	}
}

// service reports whether a service matches.
func (h *head) service(name string) bool { return h.welcomes([]byte(name)) }

func (h *head) welcomes(name []byte) bool {
	if len(name) > 0 && name[0] == '_' && !h.system {
		return false
	}
	for _, m := range h.services {
		if !m.match(name) {
			return false
		}
	}
	return true
}

// names are the services that can match; nil if they are not listed in the query.
func (h *head) names() []string {
	var names []string
	for _, m := range h.services {
		if m.not || m.texts == nil {
			continue
		}
		names = []string{}
		for _, text := range m.texts {
			if text != "" && h.service(text) {
				names = append(names, text)
			}
		}
	}
	slices.Sort(names)
	return names
}

// set begins a record, and reports whether its head matches.
func (h *head) set(s *state, line []byte) bool {
	raw := trimLine(line)
	s.set(raw)
	s.level = record.LineLevel(raw)
	if !h.all && !h.levels[s.level] {
		return false
	}
	const between = `","msg":"`
	if off, ok := record.LineMsg(raw); ok {
		s.msg = off
		front := raw[:off-len(between)]
		s.service = front[bytes.LastIndexByte(front, '"')+1:]
	}
	if len(h.services) == 0 {
		return h.system || len(s.service) == 0 || s.service[0] != '_'
	}
	if s.judged == nil || !bytes.Equal(s.judged, s.service) {
		s.judged = append(s.judged[:0], s.service...)
		s.welcome = h.welcomes(s.service)
	}
	return s.welcome
}
