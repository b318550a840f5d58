package reading

import (
	"context"
	"sync"
	"time"

	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/storage/together"
)

const (
	// patience is how long a query waits for others to share its requests with.
	patience = 5 * time.Millisecond
	// burstGap ends a burst: queries that come later are no part of the same dashboard.
	burstGap = 50 * time.Millisecond
)

// Bursts let queries begin. Those that come at the same time, as those of a dashboard, begin
// together as a company, which shares requests. They wait for as many queries as came in
// the last burst, for the patience at most. So a lone query is not delayed.
//
// A burst is the queries that come while another one of it is at work, with short gaps between.
type bursts struct {
	mu      sync.Mutex
	pending *company // that has not begun
	atWork  int      // queries that have come and not ended
	came    int      // in this burst
	last    int      // in the last one
	at      time.Time
}

// company is some queries that begin together. Its members do not change after that.
type company struct {
	began   chan struct{}
	timer   *time.Timer
	members []*member
}

// member is a query of a company.
type member struct {
	asked  []string                  // the names and globs of its services
	choose func(service string) bool // among those that these match
	query  blobs.Query               // of those that the client may read
	mode   unflushed.Mode
	of     *company
	shares *gathering
	lists  *together.Reader // nil: it is alone
}

// enter waits until a query may begin. An error is that of ctx. After nil or an error, the
// query must leave.
func (d *bursts) enter(ctx context.Context, m *member) error {
	d.mu.Lock()
	now := time.Now()
	if d.atWork == 0 || now.Sub(d.at) > burstGap {
		d.last, d.came = d.came, 0
	}
	d.at = now
	d.came++
	d.atWork++
	alone := d.came == 1 && d.last <= 1
	c := d.pending
	if c == nil {
		c = &company{began: make(chan struct{})}
		d.pending = c
		if !alone {
			c.timer = time.AfterFunc(patience, func() {
				d.mu.Lock()
				defer d.mu.Unlock()
				d.begin(c)
			})
		}
	}
	m.of = c
	c.members = append(c.members, m)
	if alone || d.came == d.last {
		d.begin(c)
	}
	d.mu.Unlock()
	select {
	case <-c.began:
		return nil
	case <-ctx.Done():
		<-c.began // in a moment; the others count on this one
		return ctx.Err()
	}
}

// begin lets a company begin. The caller holds the lock.
func (d *bursts) begin(c *company) {
	if d.pending != c {
		return // it has begun
	}
	d.pending = nil
	if c.timer != nil {
		c.timer.Stop()
	}
	c.arrange()
	close(c.began)
}

// alone reports whether one query is at work.
func (d *bursts) alone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.atWork == 1
}

// leave notes that a query has ended.
func (d *bursts) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.atWork--
}

// arrange decides which gatherings and listings the members share.
func (c *company) arrange() {
	gatherings := make(map[string]*gathering)
	for _, m := range c.members {
		key := m.key()
		g := gatherings[key]
		if g == nil || key == "" {
			g = newGathering()
			gatherings[key] = g
		}
		g.members = append(g.members, m)
		m.shares = g
	}
	if len(c.members) < 2 {
		return
	}
	party := together.New(len(c.members))
	for _, m := range c.members {
		m.lists = party.Reader()
	}
}

// over says that a member no longer needs the gathering and the listings that it shares.
func (m *member) over() {
	m.shares.leave()
	if m.lists != nil {
		m.lists.Leave()
	}
}
