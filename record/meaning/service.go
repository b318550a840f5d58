package meaning

import (
	"blobtail/record"
)

// A service is the result of [record.FoldService] for a text.
type service struct {
	text, name string
	same       bool // text and name
}

// Bounds of the cache of folded names.
const (
	cachedServices   = 1024
	cachedServiceLen = 256
	recentServices   = 64
)

// services are the names that were folded last.
type services struct {
	by     map[string]*service
	recent [recentServices]*service
}

// fold is [record.FoldService], for a text that is not empty, with a cache of its results:
// the names in stamps are allocated once. A small table is in front of it.
func (p *services) fold(text []byte) *service {
	n := uint(len(text))
	r := &p.recent[(n*7+uint(text[0])+uint(text[n/2])*3+uint(text[n-1])*5)%recentServices]
	if *r != nil && (*r).text == string(text) {
		return *r
	}
	s := p.by[string(text)]
	if s == nil {
		s = &service{text: string(text)}
		s.name = record.FoldService(s.text)
		s.same = s.name == s.text
		if len(text) > cachedServiceLen {
			return s
		}
		if p.by == nil || len(p.by) >= cachedServices {
			p.by = make(map[string]*service)
		}
		p.by[s.text] = s
	}
	*r = s
	return s
}
