// Package tally counts the records that an ingester accepts, by service and level, and by counters
// of the operator's own. So operators can have alerts on the content of logs.
//
// A [Tally] stands between the sources and the rest of an ingester: it passes each request
// on, and counts its records once they are accepted. Make it with [New], and let [Tally.Run]
// run. It counts no repeats, and nothing that was refused. It does not know which records
// expired on arrival, so it counts these too.
//
// # Services with a label
//
// Senders choose the names of services, so their number must not bound the memory of the
// ingester or the series of Prometheus. At most 1,000 services have a label of their own,
// besides the service _rejected. The others are counted together, under the label "other".
// (A service of that name is counted there as well.)
//
//   - A new service gets a label with its first record, while fewer than 1,000 have one.
//   - Later, a service without a label competes by its volume: the number of its records.
//     An hour forgets 3 % of that, and 23 hours forget half of it. Once an hour the
//     services without a label that have more than twice the volume of the smallest ones
//     with a label take their places. A service that was silent for days so loses its label,
//     but only if there is another one for it.
//   - The volumes of services without a label are estimated in bounded memory, by the
//     algorithm Space-Saving (Metwally, Agrawal, El Abbadi, 2005). An estimate may be too
//     high by a known number, and that is taken off first.
//
// No series ever goes backwards. Records counted under "other" stay there. A service that loses
// its label loses its series, and begins at 0 if it gets a label again, which Prometheus takes for
// a restart.
package tally

import (
	"context"
	"time"

	"blobtail/internal/count"
	"blobtail/record"
)

// Accepter is the next part of the ingester. [Tally] is one too.
type Accepter interface {
	Accept(ctx context.Context, r *record.Request) (record.Receipt, error)
}

// Options are the settings of a [Tally]. Accept must be set.
type Options struct {
	// Accept accepts the requests.
	Accept Accepter
	// Counters are those of the operator. Nil: none.
	Counters *Counters
	// Metrics registers the counters. Nil: they are not registered.
	Metrics *count.Registry
	// Most is how many services have a label of their own. 0: 1000.
	Most int
}

const (
	// mostLabels is the default of Options.Most.
	mostLabels = 1000
	// turn is how often labels are given anew.
	turn = time.Hour
)

// Tally counts records. Any number of goroutines may call its methods.
type Tally struct {
	accept   Accepter
	labels   *labels
	counters *Counters
}

// New makes a Tally. It starts nothing.
func New(o Options) *Tally {
	if o.Most == 0 {
		o.Most = mostLabels
	}
	t := &Tally{accept: o.Accept, labels: newLabels(o.Most), counters: o.Counters}
	o.Metrics.Collect(t.labels.write)
	if t.counters != nil {
		o.Metrics.Collect(t.counters.write)
	}
	return t
}

// Run gives labels anew once an hour, until ctx ends.
func (t *Tally) Run(ctx context.Context) {
	tick := time.NewTicker(turn)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.labels.turn()
		case <-ctx.Done():
			return
		}
	}
}

// Accept passes a request on, and counts its records if they are accepted now. The errors
// are those of the next part.
func (t *Tally) Accept(ctx context.Context, r *record.Request) (record.Receipt, error) {
	receipt, err := t.accept.Accept(ctx, r)
	if err == nil && !receipt.Duplicate {
		t.count(r)
	}
	return receipt, err
}

// few is for how many services of a request no memory is allocated.
const few = 32

// count counts the records of a request.
func (t *Tally) count(r *record.Request) {
	var room [few]byLevel
	counts := room[:]
	if len(r.Services) > few {
		counts = make([]byLevel, len(r.Services))
	}
	for i := range r.Lines {
		l := &r.Lines[i]
		counts[l.Service][record.LineLevel(r.Data[l.Off:l.Off+l.Len])]++
	}
	t.labels.add(r.Services, counts, r.Lacks)
	if t.counters != nil {
		t.counters.count(r)
	}
}
