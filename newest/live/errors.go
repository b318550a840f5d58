package live

import (
	"fmt"
	"strings"
)

// UnreachableError says that no ingester answered at all: there is no connection,
// or no header came in time.
type UnreachableError struct {
	URL string
	Err error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no ingester can be reached at %s: %v", e.URL, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// VersionError says that an ingester answered in a version that is not read here.
type VersionError struct {
	URL, ID string
	Version uint64
	// Peer says that another ingester asked, and passes this text on.
	Peer bool
}

func (e *VersionError) Error() string {
	text := fmt.Sprintf("ingester %s at %s speaks version %d of /live", e.ID, e.URL, e.Version)
	switch {
	case e.Version < Version:
		return text + ", which does not name the start and the store that its records are of: upgrade that ingester"
	case e.Peer:
		return text + fmt.Sprintf("; the ingester that asked it knows versions up to %d: upgrade the one that asked", Version)
	}
	return text + fmt.Sprintf("; this program knows versions up to %d: upgrade this program", Version)
}

// RefusedError says that an answer has no records. It comes from an ingester that does
// not accept the question now, or from something else.
type RefusedError struct {
	URL    string
	Status int    // of HTTP
	Reason string // its text, or the fault of its answer
	// Foreign says that this was no ingester's answer to such a question.
	Foreign bool
}

func (e *RefusedError) Error() string {
	if e.Foreign {
		return fmt.Sprintf("no ingester's live records at %s: %s", e.URL, e.Reason)
	}
	return fmt.Sprintf("the ingester at %s does not answer (%d): %s", e.URL, e.Status, e.Reason)
}

// Missing is an ingester without its records, or without some of them, in an answer.
type Missing struct {
	ID     string // "-" when the table of ingesters could not be read, so that no id is known
	Host   string
	Reason string
	// Damaged says that the ingester's log is damaged: asking again returns no more.
	Damaged bool
	// Partly says that some of its records came before it failed.
	Partly bool
}

// IncompleteError says that an answer came to its end but is incomplete.
type IncompleteError struct {
	Asked, Answered int // other ingesters
	Missing         []Missing
	// Damage describes the damaged log of the asked ingester. The numbers are not known
	// then.
	Damage string
}

func (e *IncompleteError) Error() string {
	var parts []string
	if e.Damage != "" {
		parts = append(parts, "the log of the ingester that was asked is damaged: "+e.Damage)
	} else {
		parts = append(parts, fmt.Sprintf("%d of %d other ingesters answered", e.Answered, e.Asked))
	}
	for _, m := range e.Missing {
		where := m.ID
		if m.Host != "" {
			where += " on " + m.Host
		}
		parts = append(parts, fmt.Sprintf("ingester %s: %s", where, m.Reason))
	}
	return strings.Join(parts, "; ")
}

// CutError says that an answer ended before its end line, or went on with an invalid
// line. The records before that are good.
type CutError struct {
	URL string
	Err error
}

func (e *CutError) Error() string {
	return fmt.Sprintf("the answer of %s was cut short: %v", e.URL, e.Err)
}

// Unwrap returns the cause.
func (e *CutError) Unwrap() error { return e.Err }
