package stage

import (
	"errors"
	"sync"
)

// unjudged counts the records that a pipeline could neither pass nor drop for certain: a template
// would have made too much of them, and a filter behind it needed the result.
type unjudged struct {
	mu            sync.Mutex
	dropped, kept int64
	why           error // of the first of them
}

func (u *unjudged) add(why error, kept bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if kept {
		u.kept++
	} else {
		u.dropped++
	}
	if u.why == nil {
		u.why = why
	}
}

// Unjudged returns the number of records that [Pipeline.Keep] could not judge so far, and the
// reason: those that it dropped, and if the caller shows no __error__ those that it kept. A result
// without them, or with them, is not complete. A record that came to a filter on __error__ is
// judged: that filter decides.
func (p *Pipeline) Unjudged(kept bool) (records int64, why error) {
	p.unjudged.mu.Lock()
	defer p.unjudged.mu.Unlock()
	if records = p.unjudged.dropped; kept {
		records += p.unjudged.kept
	}
	if records == 0 {
		return 0, nil
	}
	return records, p.unjudged.why
}

// failForm sets __error__ by the error of a template.
func (s *state) failForm(err error) {
	s.fail(templateErr, err.Error())
	if s.limit == nil && errors.Is(err, errOutput) {
		s.limit = errOutput
	}
}

// ofError reports whether a condition looks at __error__, or its details.
func ofError(c cond) bool {
	switch c := c.(type) {
	case *joined:
		return ofError(c.left) || ofError(c.right)
	case *matchCond:
		return c.of.kind == refError || c.of.kind == refDetails
	}
	return false
}
