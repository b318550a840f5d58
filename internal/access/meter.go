package access

import (
	"fmt"
	"strconv"
	"sync"
	"time"
)

// LimitError says that a token is over a limit.
type LimitError struct {
	ID    string // of the token
	Limit string // as "100 requests in a second"
	After time.Duration
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("token %s is over its limit of %s", e.ID, e.Limit)
}

// newFor is how long a service that a token has sent is not new.
const newFor = 24 * time.Hour

// maxServices is the largest limit of new services. It bounds the memory: a token has at
// most 25 times as many services within a day.
const maxServices = 10_000

// A meter has the amounts that a token has used. The tokens of one id share it over changes of the
// file.
type meter struct {
	mu       sync.Mutex
	bytes    account
	requests account
	services account
	known    map[string]time.Time // services, and when they were sent last
	changed  bool                 // known, since it was saved
	swept    time.Time            // when old ones were removed
}

// An account is charged after the fact, so that one request may be larger than the limit
// of a second: its token then waits until that is paid. [golang.org/x/time/rate] refuses
// such a request for ever. The account holds the time until which all use is paid.
type account struct{ until time.Time }

// debt is how long it takes until all use is paid.
func (a *account) debt(now time.Time) time.Duration { return max(0, a.until.Sub(now)) }

// charge adds a use that pays off in the time of cost. saved is how much unused time
// counts.
func (a *account) charge(now time.Time, cost, saved time.Duration) {
	if earliest := now.Add(-saved); a.until.Before(earliest) {
		a.until = earliest
	}
	a.until = a.until.Add(cost)
}

// second is the unused time that counts, for bytes and requests.
const second = time.Second

// Take charges a request of so many bytes, or 0 if its size is not known yet. wait is how
// long the caller has to hold it back, at most patience: clients that are slowed down send
// less, and some of them drop records that are refused. If that is not enough, the error is
// a [LimitError], and nothing is charged.
func (t *Token) Take(bytes int64, patience time.Duration) (wait time.Duration, err error) {
	l := t.Limits
	if l.Bytes == 0 && l.Requests == 0 {
		return 0, nil
	}
	now, m := time.Now(), t.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	of := ""
	if l.Bytes > 0 {
		wait, of = m.bytes.debt(now), l.Bytes.String()+" in a second"
	}
	if l.Requests > 0 {
		if w := m.requests.debt(now); w > wait {
			wait, of = w, perSecond(l.Requests)
		}
	}
	if wait > patience {
		return 0, &LimitError{t.ID, of, wait - patience/2}
	}
	t.charge(now, bytes)
	if l.Requests > 0 {
		m.requests.charge(now, time.Duration(float64(time.Second)/l.Requests), second)
	}
	return wait, nil
}

// Charge adds bytes that Take did not know of. A negative number gives some back.
func (t *Token) Charge(bytes int64) {
	if t.Limits.Bytes == 0 {
		return
	}
	t.meter.mu.Lock()
	defer t.meter.mu.Unlock()
	t.charge(time.Now(), bytes)
}

func (t *Token) charge(now time.Time, bytes int64) {
	if t.Limits.Bytes > 0 {
		t.meter.bytes.charge(now, time.Duration(float64(bytes)/float64(t.Limits.Bytes)*float64(time.Second)), second)
	}
}

// TakeService charges a service if it is new. The error is a [LimitError] if the token has
// sent too many new services within an hour.
func (t *Token) TakeService(service string) error { return t.takeService(service, false) }

// takeService is TakeService of a service that may be held by others, and so not be new.
func (t *Token) takeService(service string, held bool) error {
	limit := t.Limits.Services
	if limit == 0 {
		return nil
	}
	now, m := time.Now(), t.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.known[service]
	if !held && (!known || now.Sub(last) > newFor) {
		after := m.services
		after.charge(now, time.Hour/time.Duration(limit), time.Hour)
		if owed := after.debt(now); owed > 0 {
			return &LimitError{t.ID, strconv.Itoa(limit) + " new services in an hour", owed}
		}
		m.services = after
	}
	m.sweep(now)
	if m.known == nil {
		m.known = make(map[string]time.Time)
	}
	if now.Sub(last) > saveEvery {
		m.known[service], m.changed = now, true
	}
	return nil
}

// sweep removes services that count as new again.
func (m *meter) sweep(now time.Time) {
	if now.Sub(m.swept) < time.Hour {
		return
	}
	m.swept = now
	for service, last := range m.known {
		if now.Sub(last) > newFor {
			delete(m.known, service)
		}
	}
}

func perSecond(requests float64) string {
	return strconv.FormatFloat(requests, 'g', 4, 64) + " requests in a second"
}
