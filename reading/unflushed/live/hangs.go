package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// hangWait is how long an ingester may give no sign of life until it counts as hung. An
	// ingester that is only slow answers a ping meanwhile.
	hangWait = 2 * time.Second
	// loneWait is the same for the one read of a process: nothing waits behind it.
	loneWait = 4 * time.Second
	// hungWait is how long a question waits for an ingester that counts as hung. Questions of the
	// next missFor share the finding that it did not answer in that time.
	hungWait = 200 * time.Millisecond
	missFor  = 300 * time.Millisecond
	// tryEvery is how often one question has hangWait for an ingester that counts as hung: the way
	// to it may take longer than hungWait.
	tryEvery = 10 * time.Second
	// pingPause is the time between pings of an ingester that answers them, and keeps questions
	// waiting.
	pingPause = 500 * time.Millisecond
	// beat is the unit in which silence is counted: a process that stands still itself counts one.
	beat = 100 * time.Millisecond
	// forgetAfter is how long a hung ingester is remembered that nobody asks.
	forgetAfter = time.Hour
)

// errHung ends a question to an ingester that hangs.
var errHung = errors.New("no answer in time, nor another sign of life")

// Hangs remembers the ingesters that hang, for all questions of a process. The first question
// takes 2 s to find a hang, and those that wait meanwhile share the finding. Later ones wait 200 ms
// at most, until the ingester answers anything. The zero value works. It is safe for concurrent
// use.
type Hangs struct {
	// Alone reports whether one read is under way in the process, and so takes 4 s to find a hang.
	// Nil: it is not known.
	Alone func() bool

	mu  sync.Mutex
	all map[string]*pulse
}

// pulse is one start of an ingester at one address. The lock of its Hangs guards it.
type pulse struct {
	of      *Hangs
	users   int             // questions under way
	used    time.Time       // when the last one came
	waiting map[*vigil]bool // those that have waited for hungWait
	brief   int             // those that wait for hungWait only
	silent  time.Duration   // since the last sign of life, while any waits
	hung    time.Time       // since when it counts as hung; zero: it does not
	well    chan struct{}   // closed when it does not any more
	missed  time.Time       // when it last did not answer in time
	tried   time.Time       // when a question last had hangWait
	pinging bool            // a goroutine pings it
	stop    func()          // ends the ping under way; nil: there is none
}

// vigil is one question that waits for a sign of life.
type vigil struct {
	patience time.Duration
	end      func(error)
	over     bool // it has its answer
}

// use returns the pulse of an ingester; nil, of which all methods work: none is remembered. The
// caller calls done.
func (h *Hangs) use(name string) *pulse {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	p := h.all[name]
	if p == nil {
		for other, q := range h.all { // new ones are rare
			if q.users == 0 && !q.pinging && (q.hung.IsZero() || now.Sub(q.used) > forgetAfter) {
				delete(h.all, other)
			}
		}
		if h.all == nil {
			h.all = map[string]*pulse{}
		}
		p = &pulse{of: h, waiting: map[*vigil]bool{}}
		h.all[name] = p
	}
	p.users, p.used = p.users+1, now
	return p
}

// done ends the use of a question.
func (p *pulse) done() {
	if p == nil {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.users--
}

// admit returns errHung if the ingester counts as hung, and does not answer a ping within
// hungWait. It reports whether the question may take longer than that.
func (p *pulse) admit(ctx context.Context, c *Client) (patient bool, err error) {
	if p == nil {
		return true, nil
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	well, now := p.well, time.Now()
	switch {
	case p.hung.IsZero():
		return false, nil
	case now.Sub(p.tried) >= tryEvery:
		p.tried = now
		return true, nil
	case now.Sub(p.missed) >= missFor:
		p.brief++
		p.ping(c)
		p.of.mu.Unlock()
		wait := time.NewTimer(hungWait)
		select {
		case <-well:
		case <-wait.C:
		case <-ctx.Done():
		}
		wait.Stop()
		p.of.mu.Lock()
		p.brief--
		p.rest()
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case p.hung.IsZero():
			return false, nil
		}
		p.missed = time.Now()
	}
	return false, p.reason()
}

// reason is the error of a question to an ingester that hangs.
func (p *pulse) reason() error {
	return fmt.Errorf("%w since %s", errHung, p.hung.UTC().Format(time.RFC3339))
}

// watch ends a question by end if the ingester turns out to hang. It has patience for it, but not
// more than hangWait. A patient question waits although the ingester counts as hung.
func (p *pulse) watch(c *Client, patience time.Duration, patient bool, end func(error)) (stop func()) {
	if p == nil {
		return func() {}
	}
	v := &vigil{patience: min(patience, hangWait), end: end}
	join := time.AfterFunc(hungWait, func() {
		p.of.mu.Lock()
		defer p.of.mu.Unlock()
		switch {
		case v.over:
			return
		case !p.hung.IsZero() && !patient:
			end(p.reason())
			return
		}
		if len(p.waiting) == 0 {
			p.silent = hungWait
		}
		p.waiting[v] = true
		p.ping(c)
	})
	return func() {
		if join.Stop() {
			return
		}
		p.of.mu.Lock()
		defer p.of.mu.Unlock()
		v.over = true
		delete(p.waiting, v)
		p.rest()
	}
}

// rest ends the pings if no question waits.
func (p *pulse) rest() {
	if len(p.waiting)+p.brief == 0 && p.stop != nil {
		p.stop()
	}
}

// sign notes a sign of life.
func (p *pulse) sign() {
	if p == nil {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.alive()
}

func (p *pulse) alive() {
	p.silent = 0
	if !p.hung.IsZero() {
		p.hung = time.Time{}
		close(p.well)
	}
}

// late notes that a question got nothing in all the time that it had. An ingester that answers
// pings does not hang.
func (p *pulse) late(waited time.Duration) {
	if p == nil {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.silent+2*beat >= min(waited, hangWait) {
		p.hang()
	}
}

// hang notes that the ingester hangs, and ends all questions that wait for it.
func (p *pulse) hang() {
	now := time.Now()
	if p.missed = now; p.hung.IsZero() {
		p.hung, p.well, p.tried = now.Add(-p.silent), make(chan struct{}), now
	}
	for v := range p.waiting {
		v.end(p.reason())
	}
	clear(p.waiting)
	p.rest()
}

// ping has the ingester pinged as long as a question waits.
func (p *pulse) ping(c *Client) {
	if p.pinging {
		return
	}
	p.pinging = true
	go func() {
		for ctx := p.next(); ctx != nil; ctx = p.next() {
			p.once(ctx, c)
		}
	}()
}

// next begins another ping, if a question waits. The context is that of the ping; nil: there is none.
func (p *pulse) next() context.Context {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
	if p.pinging = len(p.waiting)+p.brief > 0; !p.pinging {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), hangWait)
	p.stop = cancel
	return ctx
}

// once pings once. It counts the silence until the answer, and pauses behind it.
func (p *pulse) once(ctx context.Context, c *Client) {
	answer := make(chan error, 1)
	go func() { answer <- c.ping(ctx) }()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for silent, pause := true, hangWait+pingPause; pause > 0; pause -= beat {
		select {
		case err := <-answer:
			if ctx.Err() != nil {
				return // the end of a ping that is not wanted any more is no refusal
			}
			silent, pause = !p.answered(err), pingPause
		case <-ctx.Done():
			return
		case <-tick.C:
			p.tick(silent)
		}
	}
}

// answered reports whether the end of a ping shows that the ingester does not hang. One that
// counts as hung and has gone refuses at once, as it will refuse each question.
func (p *pulse) answered(err error) bool {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if err == nil || !isTimeout(err) && !p.hung.IsZero() {
		p.alive()
		return true
	}
	return false
}

// tick counts a beat, and ends the questions that have waited long enough.
func (p *pulse) tick(silent bool) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if !silent {
		return
	}
	p.silent += beat
	lone := len(p.waiting) == 1 && p.of.Alone != nil && p.of.Alone()
	for v := range p.waiting {
		if p.silent >= v.patience && !(lone && v.patience == hangWait && p.silent < loneWait) {
			p.hang()
			return
		}
	}
}

func isTimeout(err error) bool {
	late, ok := errors.AsType[net.Error](err)
	return ok && late.Timeout()
}

// ping asks for a sign of life: an ingester of any version refuses a HEAD at once, without a look at
// its log. The failure of a proxy is none.
func (c *Client) ping(ctx context.Context) error {
	req, err := c.request(ctx, http.MethodHead, "-")
	if err != nil {
		return err
	}
	// A ping that ends as its answer comes ends its connection, and net/http may have put that back:
	// the next question on it would fail with the ping's cancellation.
	req.Close = true
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode >= 500 && resp.Header.Get(headerVersion) == "" {
		return context.DeadlineExceeded
	}
	return nil
}
