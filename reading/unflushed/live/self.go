package live

import (
	"cmp"
	"fmt"
)

// Self names the ingester that answers. Readers and other ingesters compare all of it
// with the rows of the ingesters.
type Self struct {
	ID      string // of the ingester; 8 hex digits
	Process string // of this start of it; 8 hex digits
	Store   string // id of the store that it writes to; "" while that is not known
}

// mustBe says how the ingester differs from the expected one. If want has no process,
// any start of it will do.
func (s Self) mustBe(want Self) error {
	const unknown = "one that is not known"
	switch {
	case s.ID != want.ID:
		return fmt.Errorf("ingester %s answers", s.ID)
	case s.Store != want.Store:
		return fmt.Errorf("ingester %s answers for another store (%s in place of %s)", s.ID, cmp.Or(s.Store, unknown), cmp.Or(want.Store, unknown))
	case want.Process != "" && s.Process != want.Process:
		return fmt.Errorf("another start of ingester %s answers than the one in its row (%s in place of %s); it has just started, or cannot write its row (see its log), or two run on copies of one log", s.ID, s.Process, cmp.Or(want.Process, unknown))
	}
	return nil
}
