package httpsource

import (
	"net/http"
	"time"

	"blobtail/record"
	"blobtail/source/body"
)

// A Guard admits senders of records.
type Guard interface {
	// Admit returns the sender of a request by its header. The error is a *[Refusal], with
	// status 401 if the credentials are missing or wrong.
	Admit(r *http.Request) (Sender, error)
}

// A Sender stands for the sender of one request that a guard has admitted. One goroutine uses it. If it
// has a method Ack() [ack.Level], that is the least level of its requests.
type Sender interface {
	// ID names the sender, and is no secret. Idempotency keys count for it alone.
	ID() string
	// Open asks whether the sender may send a body of so many bytes, or 0 if the length is
	// not known. Service is the service of all records, "" if each has its own. wait is how
	// long the request is held back, at most patience. The error is a *[Refusal].
	Open(service string, bytes int64, patience time.Duration) (wait time.Duration, err error)
	// Charge counts bytes that Open did not know of. The number is negative if the body
	// was shorter.
	Charge(bytes int64)
	// Allow returns the reason why records of a service are rejected, "" if they are not.
	// It is called once for each service of a part of a body that has records of it.
	// forbidden says that the reason does not pass with time.
	Allow(service string) (reason string, forbidden bool)
}

// admit returns the sender of a request, nil without a guard.
func (s *Source) admit(r *http.Request) (Sender, error) {
	if s.o.Guard == nil {
		return nil, nil
	}
	return s.o.Guard.Admit(r)
}

// open asks a sender whether it may send a body, and waits as long as it says: many clients
// drop records that are refused.
func open(r *http.Request, who Sender, service string, bytes int64, patience time.Duration) error {
	if who == nil {
		return nil
	}
	wait, err := who.Open(service, bytes, patience)
	if err != nil || wait <= 0 {
		return err
	}
	select {
	case <-time.After(wait):
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

// allow returns the check of services for the records of a sender; nil if there is none.
func (s *Source) allow(who Sender) func(service string) (reason string, forbidden bool) {
	all := s.o.Allow
	switch {
	case who == nil:
		return body.ForNow(all)
	case all == nil:
		return who.Allow
	}
	return func(service string) (reason string, forbidden bool) {
		if reason, forbidden = who.Allow(service); reason != "" {
			return reason, forbidden
		}
		return all(service), false
	}
}

// forbidden returns the refusal of a body without any record that its sender may send; nil
// if there is one. The records are in the service _rejected then.
func (b *builder) forbidden() error {
	a := &b.answer
	if a.Accepted+a.Expired > 0 || a.Rejected == 0 || b.denied < a.Rejected {
		return nil
	}
	return Refuse(http.StatusForbidden, "%s; the records are kept in the service %s", a.Errors[0].Reason, record.RejectedService)
}
