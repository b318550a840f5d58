package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"blobtail/blobfmt"
	"blobtail/horizon"
)

// defaultMaxAge is half of the hour that lies between hiding a day and deleting it
// unless it is configured.
const defaultMaxAge = 30 * time.Minute

// errOld ends a read that is older than it may be.
var errOld = errors.New("what was listed before may be deleted or compacted by now; read less at once, by a shorter range")

// expiry is what the reads of a plan know of days that have expired. The first look
// is beside the listing, and no request later for that. The second is beside the
// read: whatever was deleted before the listing ended had expired before that, so
// that it is known then why the listing may have been short.
type expiry struct {
	store    horizon.Lister
	services []string
	began    time.Time // of the plan: nothing that it knows is older

	before horizon.Horizons
	now    atomic.Pointer[horizon.Horizons] // nil: not known yet

	// turn has room for who asks the store: one at a time, so that no look is replaced
	// by an older one.
	turn     chan struct{}
	replaced map[string]map[blobfmt.BatchID]bool // by hour, since the listing
}

// Horizons says what has expired of the services that names and globs stand for.
func (r *Reader) Horizons(ctx context.Context, names []string) (horizon.Horizons, error) {
	var services []string
	for _, name := range names {
		switch {
		case strings.ContainsAny(name, globChars):
			return horizon.Read(ctx, r.store)
		case isService(name):
			services = append(services, name)
		}
	}
	if len(services) == 0 {
		return horizon.Horizons{}, nil
	}
	return horizon.Read(ctx, r.store, services...)
}

func (r *Reader) expiry(services []string, known horizon.Horizons) *expiry {
	e := &expiry{store: r.store, services: services, began: time.Now(), turn: make(chan struct{}, 1)}
	if known != nil {
		e.before = known
		e.now.Store(&known)
	}
	return e
}

// know looks once.
func (e *expiry) know(ctx context.Context) error {
	if e.now.Load() != nil || len(e.services) == 0 {
		return nil
	}
	if err := e.look(ctx); err != nil {
		return err
	}
	e.before = *e.now.Load()
	return nil
}

// look reads what has expired by now. What was hidden stays so: a horizon only
// rises, and the mark of a single day goes only when it is below one.
func (e *expiry) look(ctx context.Context) error {
	if len(e.services) == 0 {
		return nil
	}
	if err := e.take(ctx); err != nil {
		return err
	}
	defer e.leave()
	h, err := horizon.Read(ctx, e.store, e.services...)
	if err == nil {
		e.now.Store(&h)
	}
	return err
}

func (e *expiry) take(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *expiry) leave() { <-e.turn }

// hides says whether a day of a service has expired, as far as is known.
func (e *expiry) hides(service string, day horizon.Day) bool {
	h := e.now.Load()
	return h != nil && h.Hides(service, day)
}

// of is what has expired of a service.
func (e *expiry) of(service string) horizon.Service {
	if h := e.now.Load(); h != nil {
		return (*h)[service]
	}
	return horizon.Service{}
}

// below is where a walk goes on that has come upon a day that has expired: nothing
// is older than a horizon.
func (e *expiry) below(service string, t time.Time) time.Time {
	if s := e.of(service); s.Set && horizon.DayOf(t) < s.First {
		return time.Time{}
	}
	return horizon.DayOf(t).Start()
}

func (e *expiry) hidesName(n *blobfmt.Name) bool {
	return e.hides(n.Service, horizon.DayOf(n.Period))
}

// hide leaves out of a listing what has expired.
func (l *listing) hide(e *expiry) {
	n := len(l.blobs)
	l.blobs = slices.DeleteFunc(l.blobs, func(b blob) bool { return e.hidesName(&b.name) })
	l.expired = int64(n - len(l.blobs))
	l.problems = slices.DeleteFunc(l.problems, func(err error) bool {
		p := (*Problem)(nil)
		if !errors.As(err, &p) {
			return false
		}
		name, err := blobfmt.ParseName(p.Blob)
		return err == nil && e.hidesName(&name)
	})
}

// gone says what it means that a blob is not there any more: that its day has
// expired, or else an error.
func (p *Plan) gone(ctx context.Context, s *source, err error) (expired bool, _ error) {
	e := p.expiry
	if e.hides(s.service, s.day) {
		return true, nil
	}
	if lerr := e.look(ctx); lerr != nil {
		return false, fmt.Errorf("%w; whether it has expired is not known: %w", err, lerr)
	}
	if e.hides(s.service, s.day) {
		return true, nil
	}
	if !s.bare && e.replaces(ctx, p.reader, s) {
		return false, fmt.Errorf("compacted while it was read; read again: %w", err)
	}
	return false, err
}

// replaces says whether a compacted blob has come that stands for one that is gone.
func (e *expiry) replaces(ctx context.Context, r *Reader, s *source) bool {
	name, err := blobfmt.ParseName(s.key)
	if err != nil || e.take(ctx) != nil {
		return false
	}
	defer e.leave()
	hour := name.Service + name.Period.Format("/2006/01/02/15")
	ids, known := e.replaced[hour]
	if !known {
		ids = map[blobfmt.BatchID]bool{}
		var count counters
		for o, err := range r.store.List(ctx, hour, "") {
			if err != nil {
				break // then it is only not known
			}
			name, err := blobfmt.ParseName(o.Key)
			meta, merr := blobfmt.ParseMeta(o.Metadata)
			if err != nil || merr != nil || meta.Compacted == 0 {
				continue
			}
			b := blob{key: o.Key, size: o.Size, name: name, meta: meta}
			if index, err := r.source(&b, &count).readIndex(ctx, false); err == nil {
				for _, id := range index.Replaces {
					ids[id] = true
				}
			}
		}
		if e.replaced == nil {
			e.replaced = map[string]map[blobfmt.BatchID]bool{}
		}
		e.replaced[hour] = ids
	}
	return ids[s.meta.Batch]
}

// confirmed reads what was listed, and looks beside it what has expired meanwhile.
// A read that gets too old ends there, and that is a problem: what it has listed may
// be deleted or compacted.
func (p *Plan) confirmed(ctx context.Context, sum *Summary, read func(context.Context) error) error {
	age := p.reader.opt.MaxAge
	inTime, stop := context.WithDeadlineCause(ctx, p.expiry.began.Add(age), errOld)
	defer stop()
	looking, stopLooking := context.WithCancel(inTime)
	defer stopLooking()
	var besides sync.WaitGroup
	var failed error
	besides.Go(func() { failed = p.expiry.look(looking) })
	err := inTime.Err()
	if err == nil {
		err = read(inTime)
	}
	if err != nil {
		stopLooking()
	}
	besides.Wait()
	old := errors.Is(context.Cause(inTime), errOld)
	switch {
	case err == nil && failed == nil:
		return nil
	case err == nil && ctx.Err() != nil:
		return ctx.Err()
	case err == nil && !old:
		sum.Problems = append(sum.Problems, fmt.Errorf("whether anything expired while it was read is not known: %w", failed))
		return nil
	case !old || err != nil && !errors.Is(err, context.DeadlineExceeded):
		return err
	}
	sum.Problems = append(sum.Problems, fmt.Errorf("stopped after %s: %w", age, errOld))
	return nil
}

// tellExpired warns of what the query's range reaches into and has expired, and of
// what did so since the listing. Where as many of the newest were found as were
// asked for nothing older is missed.
func (p *Plan) tellExpired(sum *Summary) {
	e := p.expiry
	if !(p.query.Limit > 0 && sum.Records >= int64(p.query.Limit)) {
		sum.Warnings = append(sum.Warnings, expiredLines(e.services, e.before, p.query.Range)...)
	}
	for _, service := range e.services {
		was, is := e.before[service], e.of(service)
		for _, text := range meanwhile(was, is, p.query.Range) {
			sum.Warnings = append(sum.Warnings, fmt.Errorf("%s of %s expired while it was read", text, service))
		}
	}
}

const (
	mostLines = 4 // of what has expired
	mostNames = 3 // of services or days in one
)

// expiredLines says what has expired of some services, in a few lines: one for all
// services of which it is the same.
func expiredLines(services []string, h horizon.Horizons, rng Range) (out []error) {
	var texts []string
	of := map[string][]string{}
	for _, service := range services {
		s := h[service]
		text := expiredText(&s, rng)
		if text == "" {
			continue
		}
		if of[text] == nil {
			texts = append(texts, text)
		}
		of[text] = append(of[text], service)
	}
	for i, text := range texts {
		if i == mostLines-1 && len(texts) > mostLines {
			n := 0
			for _, text := range texts[i:] {
				n += len(of[text])
			}
			return append(out, fmt.Errorf("and days of %d more services have expired", n))
		}
		out = append(out, fmt.Errorf("%s: %s", someOf(of[text], mostNames), text))
	}
	return out
}

// expiredText says which days of a range have expired; "" is none.
func expiredText(s *horizon.Service, rng Range) string {
	var days []string
	for _, d := range s.Dropped {
		if (!s.Set || d >= s.First) && rng.touches(startOf(d), startOf(d+1)-1) {
			days = append(days, d.String())
		}
	}
	have := "has"
	if len(days) > 1 {
		have = "have"
	}
	older := s.Set && rng.From < startOf(s.First)
	switch {
	case older && len(days) > 0:
		return fmt.Sprintf("older than %s has expired, and so %s %s", s.First, have, someOf(days, mostNames))
	case older:
		return fmt.Sprintf("older than %s has expired", s.First)
	case len(days) > 0:
		return fmt.Sprintf("%s %s expired", someOf(days, mostNames), have)
	}
	return ""
}

// meanwhile says which days of a range expired between two looks.
func meanwhile(was, is horizon.Service, rng Range) (out []string) {
	first := is.First
	switch {
	case !is.Set || was.Set && was.First >= is.First:
	case !was.Set && rng.From < startOf(first):
		out = append(out, "what is older than "+first.String())
	case was.Set && rng.touches(startOf(was.First), startOf(first)-1):
		text := was.First.String()
		if first > was.First+1 {
			text += " to " + (first - 1).String()
		}
		out = append(out, text)
	}
	for _, d := range is.Dropped {
		if !was.Hides(d) && (!is.Set || d >= first) && rng.touches(startOf(d), startOf(d+1)-1) {
			out = append(out, d.String())
		}
	}
	return out
}

// startOf is the first ns of a day, or the nearest that there is.
func startOf(d horizon.Day) int64 { return nanos(d.Start()) }

// someOf joins names, but for those that are too many.
func someOf(names []string, most int) string {
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	if len(names) > 1 {
		return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
	}
	return names[0]
}
