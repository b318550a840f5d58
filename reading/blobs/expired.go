package blobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"blobtail/catalog"
	"blobtail/catalog/horizon"
	"blobtail/record"
	"blobtail/storage/fanout"
)

// defaultMaxAge is half of the default hour between hiding a day and deleting it.
const defaultMaxAge = 30 * time.Minute

// errOld ends a read that is older than it may be.
var errOld = errors.New("what was listed before may be deleted or compacted by now; read less at once, by a shorter range")

// Horizons reads the horizons of the services that names and globs mean. A reader without
// the right to read them gets none; see [horizon.Check].
func (r *Reader) Horizons(ctx context.Context, names []string) (horizon.Checked, error) {
	if slices.ContainsFunc(names, isGlob) {
		return horizon.Check(ctx, r.store)
	}
	services := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !catalog.IsService(name) })
	if len(services) == 0 {
		return horizon.Checked{Days: horizon.Horizons{}}, nil
	}
	return horizon.Check(ctx, r.store, services...)
}

// gone explains a missing blob: its day has expired, or else there is an error.
func (a *asked) gone(ctx context.Context, s *source, err error) (expired bool, _ error) {
	if a.view.Hides(s.Name.Service, s.Day()) {
		return true, nil
	}
	if lerr := a.view.Look(ctx); lerr != nil {
		return false, fmt.Errorf("%w; whether it has expired is not known: %w", err, lerr)
	}
	if a.view.Hides(s.Name.Service, s.Day()) {
		return true, nil
	}
	if s.State != catalog.Sound {
		return false, err
	}
	if replaced, _ := a.reader.replaced(ctx, s.Name, s.Meta.Batch); replaced {
		return false, fmt.Errorf("compacted while it was read; read again: %w", err)
	}
	return false, err
}

// confirmed reads the listed blobs. If the listing took long, it concurrently checks for
// days that expired meanwhile. A read that gets too old ends with a problem: the listed blobs
// may be deleted or compacted by then. That is judged by the clock and not by the error of read
// alone: a part of a read that a deadline interrupts may look like one that has found nothing.
func (a *asked) confirmed(ctx context.Context, sum *Summary, read func(context.Context) error) error {
	age := a.reader.opt.MaxAge
	inTime, stop := context.WithDeadlineCause(ctx, a.began.Add(age), errOld)
	defer stop()
	looking, stopLooking := context.WithCancel(inTime)
	defer stopLooking()
	looked := make(chan error, 1)
	var fault *fanout.Panic
	if a.view.Settled(age) {
		looked <- nil
	} else {
		go func() {
			var err error
			fault = fanout.Keep(func() { err = a.view.Look(looking) })
			looked <- err
		}()
	}
	err := inTime.Err()
	if err == nil {
		err = read(inTime)
	}
	if err == nil {
		err = inTime.Err()
	}
	if err != nil {
		stopLooking()
	}
	failed := <-looked
	fault.Again()
	old := errors.Is(context.Cause(inTime), errOld)
	switch {
	case err == nil && failed == nil:
		return nil
	case err == nil && ctx.Err() != nil:
		return ctx.Err()
	case err == nil && !old:
		sum.Problems = append(sum.Problems, fmt.Errorf("days may have expired during this read, and that cannot be checked: %w", failed))
		return nil
	case !old || err != nil && !errors.Is(err, context.DeadlineExceeded):
		return err
	}
	sum.Problems = append(sum.Problems, fmt.Errorf("stopped after %s: %w", age, errOld))
	return nil
}

// tellExpired warns of the expired days that the query's range asks for, and of those that expired
// since the listing. If the limit of newest records is reached, no older one is missing. A range
// that is open asks for all that there is: it reaches beyond a horizon for a service only if there
// is nothing of the service on this side. found reports whether there is. Of a part of a question its
// asker tells them.
func (a *asked) tellExpired(sum *Summary, found func(service string) bool) {
	if a.part {
		return
	}
	if err := unseen(a.view.Forbidden()); err != nil {
		sum.Warnings = append(sum.Warnings, err)
	}
	if !a.query.Part && !(a.query.Limit > 0 && sum.Records >= int64(a.query.Limit)) {
		sum.Warnings = append(sum.Warnings, a.expiredLines(found)...)
	}
	for _, service := range a.services {
		was, is := a.view.Dropped(service)
		for _, text := range meanwhile(was, is, a.query.Range) {
			sum.Warnings = append(sum.Warnings, fmt.Errorf("%s of %s expired while it was read", text, service))
		}
	}
}

// has returns a function that reports whether a plan has anything of a service to read.
func (p *Plan) has() func(service string) bool {
	some := map[string]bool{}
	for i := range p.blobs {
		some[p.blobs[i].Name.Service] = true
	}
	return func(service string) bool { return some[service] }
}

// unseen is the warning of a reader that may not read the horizons; nil for others.
func unseen(forbidden error) error {
	if forbidden == nil {
		return nil
	}
	return fmt.Errorf("records of dropped days may be among these: this reader has no right to list _horizon/ and _dropped/ (%w)", forbidden)
}

const (
	mostLines = 4 // about expired days
	mostNames = 3 // of services or days in one
)

// expiredLines names the days that had expired at the first check, in a few lines:
// one for all services with the same text.
func (a *asked) expiredLines(found func(service string) bool) (out []error) {
	var texts []string
	of := map[string][]string{}
	for _, service := range a.services {
		s, _ := a.view.Dropped(service)
		rng := a.query.Range
		if rng.From == Oldest && s.Set && found(service) {
			rng.From = startOf(s.First)
		}
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
		out = append(out, fmt.Errorf("%s: %s", someOf(of[text]), text))
	}
	return out
}

// expiredText names the expired days of a range; "": none.
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
		return fmt.Sprintf("older than %s has expired, and so %s %s", s.First, have, someOf(days))
	case older:
		return fmt.Sprintf("older than %s has expired", s.First)
	case len(days) > 0:
		return fmt.Sprintf("%s %s expired", someOf(days), have)
	}
	return ""
}

// meanwhile names the days of a range that expired between two checks.
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

// startOf is the first ns of a day, clamped to the range of times.
func startOf(d horizon.Day) int64 { return record.ClampTime(d.Start()) }

// someOf joins names, and counts the ones beyond mostNames.
func someOf(names []string) string {
	last := len(names) - 1
	end := names[last]
	if len(names) > mostNames {
		last, end = mostNames, fmt.Sprintf("%d more", len(names)-mostNames)
	} else if last == 0 {
		return end
	}
	return strings.Join(names[:last], ", ") + " and " + end
}
