// Package fan has a question that reads much answered by several processes: the one that was asked and
// workers, which are servers of the reading API (logquery serve) over the same store.
//
// A [Crew] is the [reading.Sharing] of a reader. The stores of that reader divide a question by time
// alone and have the crew read the parts. So each is a [reading.Source] that answers as without workers.
//
//	Store: gather unflushed records, list -> parts -+-> this process: at once, and those with unflushed records
//	                                                +-> workers: list later, and ask no ingester
//	                                                -> lines in order, or numbers joined -> one Outcome
//
// A part that a worker does not answer goes to another one, and then to this process. The outcome of an
// answer that broke off is dropped, and its numbers are too. Its lines stay, as far as all of their times
// came: the next try begins behind them. Nobody knows what the worker could not read before it broke
// off, so this process reads what should have come, and compares sums.
package fan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"blobtail/reading"
	"blobtail/reading/remote"
)

const (
	partSize, patience, rest = 64 << 20, 20 * time.Second, time.Second
	// mostRest is how long a worker rests that fails again and again.
	mostRest = time.Minute
	// lookEvery is how often the addresses of a name are asked for, and lookWait how long that may take.
	lookEvery, lookWait = 15 * time.Second, 3 * time.Second
)

// Options tune a Crew. The zero value suits workers that ask for no token.
type Options struct {
	// Remote has the token for the workers, which has to read all services, and what is believed. With a
	// Transport, all are reached by that.
	Remote remote.Options
	// Part is how many bytes of stored blobs make a part; 0: 64 MiB.
	Part int64
	// Patience is how long a worker may be silent, which tells its progress each second; 0: 20 s.
	Patience time.Duration
	// Rest is how long a worker rests that has failed, at least; 0: 1 s.
	Rest time.Duration
	// Failed is told of a worker that fails, perhaps by several goroutines; nil: it is not.
	Failed func(worker string, err error)
	// Begins is told of each question without a limit, with the number of workers; nil: it is not.
	Begins func(d *reading.Division, workers int)
	// Lookup returns the addresses of a name; nil: that of this host.
	Lookup func(ctx context.Context, name string) ([]string, error)
}

// Crew has workers. Several questions may use it at once.
type Crew struct {
	o     Options
	names []*url.URL // whose addresses are workers

	mu     sync.Mutex
	fixed  []*worker
	found  map[string]*worker // by the last look, by the address and the name
	looked time.Time
}

// New returns a crew of the workers at some URLs. One as dns+https://NAME:PORT means all addresses of the
// name, which are asked for from time to time. Their certificates have that name.
func New(places []string, o Options) (*Crew, error) {
	o.Part, o.Patience, o.Rest = cmp.Or(o.Part, partSize), cmp.Or(o.Patience, patience), cmp.Or(o.Rest, rest)
	o.Remote.Idle, o.Remote.Tries = o.Patience, 1
	if o.Lookup == nil {
		o.Lookup = net.DefaultResolver.LookupHost
	}
	if o.Failed == nil {
		o.Failed = func(string, error) {}
	}
	c := &Crew{o: o}
	for _, place := range places {
		base, named := strings.CutPrefix(place, "dns+")
		w, err := c.worker(base, "")
		if err != nil {
			return nil, err
		}
		if !named {
			c.fixed = append(c.fixed, w)
			continue
		}
		u, err := url.Parse(base)
		if err != nil || u.Port() == "" {
			return nil, fmt.Errorf("%.80q has no port; want one like dns+https://workers.logs:8516", place)
		}
		c.names = append(c.names, u)
	}
	if len(c.fixed)+len(c.names) == 0 {
		return nil, errors.New("there is no URL of a worker")
	}
	return c, nil
}

// worker returns the worker at a URL; its host is reached at an address; "": at its own.
func (c *Crew) worker(base, address string) (*worker, error) {
	o, t, name := c.o.Remote, remote.NewTransport(), base
	t.TLSClientConfig, t.ResponseHeaderTimeout = o.Trust.Config(), c.o.Patience
	if address != "" {
		dial := t.DialContext
		t.Proxy, name = nil, base+" at "+address
		t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, address) }
	}
	if o.Transport == nil {
		o.Transport = t
	}
	client, err := remote.New(base, o)
	return &worker{name: name, client: client}, err
}

// workers are those that there are now.
func (c *Crew) workers(ctx context.Context) []*worker {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.names) > 0 && (c.looked.IsZero() || time.Since(c.looked) >= lookEvery) {
		c.look(ctx)
	}
	return slices.AppendSeq(slices.Clone(c.fixed), maps.Values(c.found))
}

// look finds the workers of the names: pods come and go.
func (c *Crew) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	found := map[string]*worker{}
	for _, u := range c.names {
		all, err := c.o.Lookup(ctx, u.Hostname())
		if err != nil {
			if c.o.Failed(u.Hostname(), err); ctx.Err() != nil {
				return
			}
		}
		for _, ip := range all {
			at := net.JoinHostPort(ip, u.Port())
			w := c.found[at+u.String()]
			if w == nil {
				w, _ = c.worker(u.String(), at) // New has made one of that URL
			}
			found[at+u.String()] = w
		}
	}
	c.found, c.looked = found, time.Now()
}

// Size implements [reading.Sharing].
func (c *Crew) Size() int64 { return c.o.Part }

// Workers implements [reading.Sharing].
func (c *Crew) Workers(ctx context.Context) int { return len(c.workers(ctx)) }

// A worker is a server that reads parts.
type worker struct {
	name   string
	client *remote.Client

	mu    sync.Mutex
	rests time.Duration // as long as it rested last; 0: its last answer was good
	until time.Time
}

// resting is how long the worker rests yet.
func (w *worker) resting() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Until(w.until)
}

// note notes how an answer went, and reports whether that of the one before was good.
func (w *worker) note(err error, rest time.Duration) (fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if fresh = w.rests == 0; err == nil {
		w.rests = 0
		return fresh
	}
	w.rests = min(max(2*w.rests, rest), mostRest)
	w.until = time.Now().Add(w.rests)
	return fresh
}

// answer asks the worker for a part.
func (w *worker) answer(ctx context.Context, d *reading.Division, a reading.Ask, emit func([]byte) error) (ans reading.Answer, err error) {
	var out *reading.Outcome
	if d.Joint != nil {
		ans.Part, out, err = w.client.Part(ctx, a, d.Joint)
	} else {
		out, err = w.client.Records(ctx, a, emit)
	}
	if err == nil {
		if broken, ok := errors.AsType[*remote.BrokenError](errors.Join(out.Problems()...)); ok {
			err = broken
		}
	}
	if err != nil {
		return reading.Answer{}, err
	}
	ans.Summary, ans.Notes = out.Summary(), out.Notes
	return ans, nil
}
