package integration_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"blobtail/internal/dev/check"
	"blobtail/record"
)

// client sends bodies of records that carry their own times, and keeps account of the
// answers.
type client struct {
	name   string
	ledger *check.Ledger
	http   *http.Client
	target func() *ingester // the ingester for the next request; nil for a while
	rand   *rand.Rand
	hours  int           // of event time that the records are spread over
	pause  time.Duration // before each request
	single bool          // only bodies of one service
	sent   int
}

// request is a body that may be sent again unchanged.
type request struct {
	path    string
	data    []byte
	headers []string
	ids     []string
}

// newClients makes clients of one ingester. The test may replace that ingester by
// another.
func newClients(n int, ledger *check.Ledger, target *atomic.Pointer[ingester], seed uint64) []*client {
	out := make([]*client, n)
	for i := range out {
		out[i] = &client{name: fmt.Sprintf("c%d", i), ledger: ledger, http: impatient(), target: target.Load,
			rand: rand.New(rand.NewPCG(seed, uint64(i))), hours: 3}
	}
	return out
}

// next makes a body of 1 to 40 records of one service, or of three.
func (c *client) next() request {
	services := [...]string{"web", "api", "db"}
	n := 1 + c.rand.IntN(40)
	one := c.rand.IntN(2) == 0 || c.single
	service := services[c.rand.IntN(3)]
	r := request{path: "/ingest"}
	if one {
		r.path += "/" + service
	}
	base := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC).UnixNano()
	for range n {
		if !one {
			service = services[c.rand.IntN(3)]
		}
		c.sent++
		id := fmt.Sprintf("%s-%d", c.name, c.sent)
		// Never a whole second, so that a repeat of a one-record body is also
		// recognised.
		at := base + c.rand.Int64N(int64(c.hours)*int64(time.Hour))/1e9*1e9 + 1 + c.rand.Int64N(999_999_999)
		r.data = append(r.data, `{"time":"`...)
		r.data = record.AppendTime(r.data, at)
		r.data = fmt.Appendf(r.data, `","service":"%s","level":"warn","msg":"%s says %d","pad":"%064d"}`+"\n", service, id, at, n)
		r.ids = append(r.ids, id)
		c.ledger.Sent(id, service, at)
	}
	if c.rand.IntN(3) == 0 {
		r.headers = []string{"Idempotency-Key", fmt.Sprintf("key-%s-%d", c.name, c.sent)}
	}
	return r
}

// run sends until stop is closed. It resends an unanswered request with probability
// 1/2, to the ingester that is the target at that time, until the request is answered
// or given up.
func (c *client) run(stop <-chan struct{}) {
	var again []request
	for {
		select {
		case <-stop:
			return
		default:
		}
		p := c.target()
		if p == nil || p.Gone() {
			time.Sleep(time.Millisecond)
			continue
		}
		var r request
		if len(again) > 0 {
			r, again = again[0], again[1:]
		} else {
			r = c.next()
		}
		time.Sleep(c.pause)
		code, a, _, err := post(c.http, p.listen+r.path, r.data, r.headers...)
		switch {
		case err == nil && code == http.StatusOK && a.Accepted == len(r.ids):
			c.ledger.Acked(r.ids...)
		default:
			if c.rand.IntN(2) == 0 {
				again = append(again, r)
			}
			time.Sleep(time.Duration(1+c.rand.IntN(4)) * time.Millisecond)
		}
	}
}

// roam makes a client choose an ingester anew for every request, so that retries go
// to other ingesters. The client also loses one answer in a hundred.
func (c *client) roam(ps []*ingester) {
	c.target = func() *ingester { return ps[c.rand.IntN(len(ps))] }
	c.http.Transport = &lossy{RoundTripper: c.http.Transport, rand: rand.New(rand.NewPCG(c.rand.Uint64(), 5))}
}

// lossy loses answers, and now and then a request before it is sent.
type lossy struct {
	http.RoundTripper
	mu   sync.Mutex
	rand *rand.Rand
}

func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	lost := errors.New("lost")
	l.mu.Lock()
	n := l.rand.IntN(200)
	l.mu.Unlock()
	if n == 0 {
		return nil, lost
	}
	resp, err := l.RoundTripper.RoundTrip(r)
	if err == nil && n <= 2 {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return nil, lost
	}
	return resp, err
}
