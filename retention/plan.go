package retention

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"blobtail/catalog"
	"blobtail/catalog/hold"
	"blobtail/catalog/horizon"
	"blobtail/storage"
)

// Step is the next action of [Job.Apply] on a day.
type Step string

// The steps of a day, from the last to the first.
const (
	Delete Step = "delete" // its blobs are deleted
	Wait   Step = "wait"   // it is hidden already, but its horizon is not a grace old yet
	Hide   Step = "hide"   // it is hidden
)

// Day describes the stored blobs of a service and day that are to be deleted, or were.
type Day struct {
	Service string
	Day     horizon.Day
	Step    Step
	Blobs   int
	Records int64 // of the blobs with readable metadata
	Bytes   int64 // stored
	Failed  int   // blobs that could not be deleted
	Held    int   // blobs that a policy of the store keeps

	emptied bool // by this run: no blob of ours is left
}

func (d *Day) add(e *catalog.Entry) {
	d.Blobs++
	d.Records += e.Meta.Records
	d.Bytes += e.Size
}

// Plan lists the work of a run. Days are in order of service and day.
type Plan struct {
	At      time.Time // ages count back from it
	Days    []Day
	Tables  []string       // expired tables of the tail
	Raise   []horizon.Mark // to be published; single days of services whose horizon a hold stops
	Held    []Held         // days that are past their age and stay
	Foreign Foreign
	// Hash covers the policy, the day of At, and the service and day of each of Days:
	// 64 hexadecimal digits.
	Hash string
	// Confirm is the reason that Apply needs the hash as a confirmation; "": it needs
	// none.
	Confirm string
	// Doubt is the reason not to trust the host's clock, "" if there is none. Without a
	// confirmation, Apply hides nothing then.
	Doubt string
	// Problems are the parts that were left out.
	Problems []error

	now      time.Time // by the store's clock
	policy   string    // its hash
	recorded policyRecord
	clock    clockState
	services []service
	accounts []storage.Blob // of days that are deleted
}

// Foreign counts objects of other programs below the names of services. They stay.
type Foreign struct {
	Count int
	First []string // some of their keys
}

// fewKeys is how many foreign keys are remembered.
const fewKeys = 20

// Plan returns the plan of the next Apply. It lists only days that are past their age
// or hidden, unless a confirmation depends on more.
func (j *Job) Plan(ctx context.Context) (*Plan, error) {
	if err := j.o.Policy.check(); err != nil {
		return nil, err
	}
	at, now, err := j.clocks(ctx)
	if err != nil {
		return nil, err
	}
	p := &Plan{At: at, now: now, policy: fmt.Sprintf("%x", sha256.Sum256([]byte(j.o.Policy.text())))}
	if p.services, err = j.services(ctx, at, now); err != nil {
		return nil, err
	}
	if err := j.survey(ctx, p); err != nil {
		return nil, err
	}
	for _, s := range p.services {
		if !s.expires || !s.stored {
			continue
		}
		to := min(s.keptFrom, s.holds.First(s.name))
		if to != hold.Oldest && (!s.hidden.Set || to > s.hidden.First) {
			p.Raise = append(p.Raise, horizon.Mark{Service: s.name, Day: to})
		}
		for _, d := range s.due {
			if d.Step == Hide && d.Day >= to {
				p.Raise = append(p.Raise, horizon.Mark{Service: s.name, Day: d.Day, Single: true})
			}
		}
	}
	if age := j.o.Policy.Tail; age != 0 && age != Keep {
		p.Tables, err = j.tablesOf(ctx, func(d horizon.Day) bool { return d < firstKept(at, age) })
		if err != nil {
			// Tables only make reads of the newest records quick. A failure to list them
			// is no reason to keep blobs.
			p.Problems = append(p.Problems, err)
		}
	}
	h := sha256.New()
	fmt.Fprintf(h, "plan 1\n%sday %s\n", j.o.Policy.text(), horizon.DayOf(at))
	for _, d := range p.Days {
		fmt.Fprintf(h, "%s %s\n", d.Service, d.Day)
	}
	p.Hash = fmt.Sprintf("%x", h.Sum(nil))
	if p.recorded, err = j.recordedPolicy(ctx); err != nil {
		return nil, err
	}
	if err := j.judgeClock(ctx, p); err != nil {
		return nil, err
	}
	p.Doubt = p.clock.why(p.now)
	p.Confirm, err = j.guard(ctx, p)
	return p, err
}

// Total adds up the days of a step, or all if none is named.
func (p *Plan) Total(steps ...Step) (sum Day) {
	for _, d := range p.Days {
		if len(steps) == 0 || slices.Contains(steps, d.Step) {
			sum.Blobs += d.Blobs
			sum.Records += d.Records
			sum.Bytes += d.Bytes
			sum.Failed += d.Failed
			sum.Held += d.Held
		}
	}
	return sum
}
