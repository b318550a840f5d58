package newest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"blobtail/query"
)

const (
	// quiet is for how long the same message is not repeated.
	quiet = time.Minute
	// settled is how long a trouble must be absent to be over.
	settled = 3 * time.Second
)

// speaker prevents the same message from being reported at each poll.
type speaker struct {
	told     map[string]time.Time
	troubles map[string]*trouble
}

// trouble is a failure that lasts over several polls.
type trouble struct {
	kind string
	told time.Time
	well time.Time // since when all polls succeeded; zero: the last one failed
}

// kind is a text without its numbers, which differ each time.
func kind(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, text)
}

// fresh reports whether no message of this kind was reported lately.
func (s *speaker) fresh(text string) bool {
	if len(s.told) > 1000 {
		clear(s.told)
	}
	now, k := time.Now(), kind(text)
	if at, ok := s.told[k]; ok && now.Sub(at) < quiet {
		return false
	}
	s.told[k] = now
	return true
}

func (f *follower) problem(err error) {
	if f.fresh(err.Error()) {
		f.o.Problem(err)
	}
}

func (f *follower) note(text string) {
	if f.fresh(text) {
		f.o.Note(text)
	}
}

// read passes the records of a query on, and then the report.
func (f *follower) read(ctx context.Context, q query.Query) error {
	sum, report, err := f.r.Tail(ctx, q, f.pass)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	report.Problems = append(report.Problems, sum.Problems...)
	for _, w := range sum.Warnings {
		report.note("%v", w)
	}
	f.tell(report)
	return err
}

// tell passes on a report.
func (f *follower) tell(report *Report) {
	for _, p := range report.Problems {
		f.problem(p)
	}
	for _, n := range report.Notes {
		f.note(n)
	}
	for _, g := range report.Gaps {
		f.o.Gap(g)
	}
}

// The ends of troubles. Each names its trouble too.
const (
	liveOver     = "the ingesters answer again; what they took meanwhile is shown"
	tablesOver   = "the tables of the tail can be read again"
	blobsOver    = "the blobs can be read again"
	expiredOver  = "what has expired is known again"
	servicesOver = "the store can be listed again"
)

// say reports a trouble when it begins, when it changes its kind, and once when it is
// over.
func (f *follower) say(over string, err error) {
	now, t := time.Now(), f.troubles[over]
	if err == nil {
		switch {
		case t == nil:
		case t.well.IsZero() && over != blobsOver:
			t.well = now
		case now.Sub(t.well) >= settled || over == blobsOver: // blobs are read only if needed
			delete(f.troubles, over)
			f.o.Note(over)
		}
		return
	}
	if t == nil {
		t = &trouble{}
		f.troubles[over] = t
	}
	t.well = time.Time{}
	if k := kind(err.Error()); k != t.kind && now.Sub(t.told) >= settled {
		t.kind, t.told = k, now
		f.fresh(err.Error())
		if errors.Is(err, ErrNobody) {
			f.o.Note(err.Error())
			return
		}
		f.o.Problem(err)
	}
}

// sayLive is say for the answers of ingesters.
func (f *follower) sayLive(err error) {
	switch {
	case errors.Is(err, ErrNobody):
		err = fmt.Errorf("%w; records are shown when one is", err)
	case err != nil && !f.o.Once:
		err = fmt.Errorf("%w (asked again until it answers)", err)
	}
	f.say(liveOver, err)
}
