package body

import (
	"fmt"

	"blobtail/record/meaning"
	"blobtail/record/names"
)

// HeadOf returns the head of the object that p has scanned last, with its cause if somebody asks, and
// its other members appended to rest.
func HeadOf(to Sink, p *meaning.Reader, rest []names.Pair) (meaning.Head, []names.Pair) {
	h, members := p.Head(to.Arrival())
	h.Renames = true
	if h.Why = to.Why(); h.Why != nil {
		*h.Why = p.Why(to.Arrival(), nil)
	}
	for key, value := range members {
		rest = append(rest, names.MemberPair(key, value, ""))
	}
	return h, rest
}

// Shared counts the bytes that a request says once, and that many of its records get: a short body
// could become lines without end.
type Shared struct{ sum int }

const maxShared = 128 << 20

// Add counts n bytes for one more record, and reports whether it may have them.
func (s *Shared) Add(n int) bool {
	s.sum += n
	return s.Fits()
}

// Fits reports whether the record counted last may have its bytes.
func (s *Shared) Fits() bool { return s.sum <= maxShared }

// Rejection is that of a record that may not. what they are is in words.
func (s *Shared) Rejection(what string) Rejection {
	return Rejection{Reason: fmt.Sprintf("%s over %d MiB to the records of this body; send fewer records together", what, maxShared>>20)}
}

// Names keeps names, so that each is allocated once.
type Names map[string]string

// Of returns a name as a string.
func (n Names) Of(text []byte) string {
	const most, longest = 2048, 128
	if s, ok := n[string(text)]; ok {
		return s
	}
	s := string(text)
	if len(s) > longest {
		return s
	}
	if len(n) >= most {
		clear(n)
	}
	n[s] = s
	return s
}
