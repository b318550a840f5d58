package live

import (
	"fmt"
	"time"
)

// NoAnswerError says that no answer with records came from a URL. Another ingester may
// still answer.
type NoAnswerError struct {
	// Status is that of HTTP. It is 0 if there was no connection, or no header in time.
	Status int
	// Ingester says that an ingester refused to answer: one runs at the URL.
	Ingester bool
	// TLS says that a server runs at the URL, and that the two do not agree about TLS: its
	// certificate was refused, or only one of them speaks TLS. Err has the remedy.
	TLS bool
	Err error
}

func (e *NoAnswerError) Error() string { return e.Err.Error() }

// Missing is an ingester without its records, or without some of them, in an answer.
type Missing struct {
	ID     string // "-" when the table of ingesters could not be read, so that no id is known
	Host   string
	Reason string
	// Damaged says that the ingester's log is damaged: asking again returns no more.
	Damaged bool
	// Partly says that some of its records came before it failed.
	Partly bool

	floor time.Time // it holds no older records; zero: not known
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
	text := fmt.Sprintf("%d of %d other ingesters answered", e.Answered, e.Asked)
	if e.Damage != "" {
		text = "the log of the ingester that was asked is damaged: " + e.Damage
	}
	for _, m := range e.Missing {
		text += "; ingester " + m.ID
		if m.Host != "" {
			text += " on " + m.Host
		}
		text += ": " + m.Reason
	}
	return text
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
