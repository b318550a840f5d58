// Package globset finds the patterns of a list that match a service, and remembers the
// answer: the same few services come with every request. Make a [Set] by [New], and ask
// [Set.Match].
package globset

import (
	"strings"
	"sync"

	"blobtail/record"
)

// maxKnown bounds the services that a set remembers, since senders choose the names. Beyond
// it the set forgets all of them and begins anew.
const maxKnown = 4096

// Set is a list of patterns as those of [record.MatchService]. Any number of goroutines may
// use it.
type Set struct {
	patterns []string

	mu    sync.RWMutex
	known map[string][]int
}

// New returns the set of the patterns, in their order.
func New(patterns []string) *Set {
	return &Set{patterns: patterns, known: map[string][]int{}}
}

// Match returns the numbers of the patterns that match a service, in ascending order. The
// caller must not change the list.
func (s *Set) Match(service string) []int {
	s.mu.RLock()
	found, ok := s.known[service]
	s.mu.RUnlock()
	if ok {
		return found
	}
	for i, p := range s.patterns {
		if record.MatchService(p, service) {
			found = append(found, i)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxKnown {
		clear(s.known)
	}
	s.known[strings.Clone(service)] = found
	return found
}
