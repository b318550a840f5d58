package closing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/reading/blobs"
)

// ask is a read.
type ask struct {
	service         string // or a glob
	from, to        int64
	distant, newest bool
}

func (a ask) String() string {
	text := func(t int64) string {
		if t == blobs.Oldest || t == blobs.Newest {
			return "..."
		}
		return time.Unix(0, t).UTC().Format("02T15:04")
	}
	return fmt.Sprintf("%s from %s to %s (distant %v, newest %v)", a.service, text(a.from), text(a.to), a.distant, a.newest)
}

// drawAsk draws a read: of all, some days, a day, an hour, or a part of one.
func (w *world) drawAsk(rng *rand.Rand) ask {
	a := ask{service: "*", from: blobs.Oldest, to: blobs.Newest, distant: rng.IntN(2) == 0, newest: rng.IntN(3) == 0}
	if rng.IntN(2) == 0 {
		a.service = pick(rng, w.services())
	}
	at := (horizon.DayOf(time.Now()) - horizon.Day(rng.IntN(6))).Start()
	length := 24 * time.Hour
	switch rng.IntN(6) {
	case 0:
		return a
	case 1:
		a.from = at.UnixNano()
		return a
	case 2:
		a.to = at.UnixNano()
		return a
	case 3:
	case 4:
		at, length = at.Add(time.Duration(pick(rng, w.p.Hours))*time.Hour), time.Hour
	case 5:
		at, length = at.Add(time.Duration(pick(rng, w.p.Hours))*time.Hour), 20*time.Minute
		if rng.IntN(2) == 0 {
			length = 26 * time.Hour
		}
	}
	a.from, a.to = at.UnixNano(), at.Add(length).UnixNano()
	return a
}

// drawRead draws a reader of a round.
func (w *world) drawRead(actor string) func() {
	a, hangs, verify := w.drawAsk(w.rng), w.rng.IntN(8) == 0, w.rng.IntN(6) == 0
	return func() {
		v := w.view(actor, w.p.Pause)
		v.hangs = hangs
		if verify {
			w.verify(v, false)
		} else {
			w.read(v, a)
		}
	}
}

// wants reports whether a read asks for a record.
func (a ask) wants(r *rec) bool {
	return (a.service == "*" || a.service == r.at.service) && r.time >= a.from && (r.time < a.to || a.to == blobs.Newest)
}

// read reads, judges what it gets, and reports whether it says that this is complete.
func (w *world) read(v *view, a ask) bool {
	w.told("%s reads %s", v.actor, a)
	q := blobs.Query{Services: []string{a.service}, Range: blobs.Range{From: a.from, To: a.to}}
	r := blobs.New(v, blobs.Options{Workers: 1, Distant: a.distant})
	got := map[int]int{}
	emit := func(lines []byte) error {
		for line := range bytes.Lines(lines) {
			w.mu.Lock()
			r := w.record(line)
			w.mu.Unlock()
			if r == nil {
				return fmt.Errorf("nobody sent %s", line)
			}
			got[r.id]++
		}
		return nil
	}
	var sum blobs.Summary
	var err error
	if a.newest {
		q.Limit = pick(w.fate("limit", v.actor), []int{1, 3, 10, 1000, 1000})
		sum, err = r.Newest(context.Background(), q, emit)
	} else {
		var p *blobs.Plan
		if p, err = r.Plan(context.Background(), q); err == nil {
			sum, err = p.Read(context.Background(), emit)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.totals.Reads++
	if none := (*blobs.NoServiceError)(nil); errors.As(err, &none) {
		err = nil
	} else if err != nil {
		w.broken("%s of %s: %v", v.actor, a, err)
		return false
	}
	for _, err := range sum.Problems {
		if text := err.Error(); strings.Contains(text, "may be deleted or compacted by now") {
			w.tell("%s is too old", v.actor)
		} else if w.tell("%s: %s", v.actor, text); !w.touches(a) {
			w.broken("%s of %s: a false alarm: %s", v.actor, a, text)
		}
	}
	for id, n := range got {
		r := w.records[id]
		if hidden := w.hidden(r.at); n > 1 && !w.touches(a) || !a.wants(r) || !hidden.IsZero() && hidden.Before(v.began) {
			w.broken("%s of %s has record %d of %s %d times", v.actor, a, id, r.at, n)
		}
	}
	if sum.Complete() {
		w.totals.Complete++
		w.whole(v, a, got, q.Limit)
	}
	return sum.Complete()
}

// touches reports whether a read asks for a day that hands have touched.
func (w *world) touches(a ask) bool {
	for p := range w.touched {
		first, next := p.day.Start().UnixNano(), (p.day + 1).Start().UnixNano()
		if (a.service == "*" || a.service == p.service) && (a.to == blobs.Newest || first < a.to) && next > a.from {
			return true
		}
	}
	return false
}

// whole judges a read that says it is complete. One with a limit has the newest records.
func (w *world) whole(v *view, a ask, got map[int]int, limit int) {
	oldest := blobs.Oldest
	if limit > 0 && len(got) >= limit {
		oldest = blobs.Newest
		for id := range got {
			oldest = min(oldest, w.records[id].time)
		}
	}
	for _, r := range w.records {
		if r.time < oldest || got[r.id] > 0 || !a.wants(r) || r.stored.IsZero() || !r.stored.Before(v.began) || !w.hidden(r.at).IsZero() {
			continue
		}
		if w.concealed(v, r, a) {
			w.totals.Concealed++
			continue
		}
		w.broken("%s of %s is complete without record %d of %s, stored at %s", v.actor, a, r.id, time.Unix(0, r.time).UTC(), r.stored)
	}
}

// concealed reports whether a read cannot know that a record is lost. A range that is open asks for no
// day before the first one, or after the last one, of which anything is left, and a glob for no service
// without any. A blob may go by hand, and what compaction has made of it come, while a read is under way.
func (w *world) concealed(v *view, r *rec, a ask) bool {
	return slices.ContainsFunc(w.losses, func(l *loss) bool {
		open := a.from == blobs.Oldest || a.to == blobs.Newest || w.without(l.at.service)
		meets := l.since.After(v.began) && r.copies > 0
		undone := !l.undone.IsZero() && l.undone.Before(v.began)
		return l.at == r.at && !undone && (l.hidden || meets || l.what == "day with parts" && open)
	})
}

// without reports whether nothing is left of a service.
func (w *world) without(service string) bool {
	for _, o := range w.objects {
		if o.at.service == service {
			return false
		}
	}
	return true
}

// verify checks the store, and judges what it finds. By then all is calm, or not.
func (w *world) verify(v *view, calm bool) {
	w.told("%s verifies", v.actor)
	r := blobs.New(v, blobs.Options{Workers: 1})
	var found []string
	_, err := r.Verify(context.Background(), blobs.Query{Range: blobs.Always()}, blobs.VerifyOptions{}, func(f blobs.Finding) {
		if !f.Note {
			found = append(found, fmt.Sprintf("%s: %v", f.Key, f.Err))
		}
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.totals.Verified++
	if err != nil {
		w.broken("%s: %v", v.actor, err)
		return
	}
	long := time.Since(v.began) > grace/2 // a blob may have been compacted
	for _, text := range found {
		w.tell("%s: %s", v.actor, text)
		harmless := !calm && strings.Contains(text, "or its ingester has yet to store it") ||
			long && strings.Contains(text, "compacted while it was read")
		if len(w.touched) == 0 && !harmless {
			w.broken("%s: a false alarm: %s", v.actor, text)
		}
	}
	for _, l := range w.losses {
		if w.hidden(l.at).IsZero() && l.since.Before(v.began) && w.found(l) && !slices.ContainsFunc(found, l.named) {
			w.broken("%s does not find that somebody did this to %s: %s", v.actor, l.at, l.what)
		}
	}
}

// named reports whether a finding is about the day. If nothing is left of the service, it has no name.
func (l *loss) named(finding string) bool {
	return strings.Contains(finding, l.at.prefix()) ||
		strings.Contains(finding, l.at.day.String()) && strings.Contains(finding, closed.Alias(l.at.service))
}

// found reports whether verify has to tell of what somebody has done. Compaction may have read a blob
// before it was removed, so that nothing is lost.
func (w *world) found(l *loss) bool {
	return w.p.Hands == 1 || l.undone.IsZero() && strings.Contains(l.what, "part") ||
		slices.ContainsFunc(w.records, func(r *rec) bool { return r.at == l.at && !r.stored.IsZero() && r.copies == 0 })
}

// look reads everything in many ways, beside nothing.
func (w *world) look(when string) {
	w.told("look: %s", when)
	rng := w.fate("look", when)
	for n := range 8 {
		a := w.drawAsk(rng)
		if n < 4 {
			a = ask{"*", blobs.Oldest, blobs.Newest, n&1 > 0, n&2 > 0}
		}
		w.read(w.view(fmt.Sprint(when, ": reader ", n), time.Millisecond), a)
	}
	for _, l := range w.losses {
		for n := range 4 {
			from := l.at.day.Start()
			a := ask{l.at.service, from.UnixNano(), from.Add(24 * time.Hour).UnixNano(), n&1 > 0, n&2 > 0}
			if !l.hour.IsZero() {
				a.from, a.to = l.hour.UnixNano(), l.hour.Add(time.Hour).UnixNano()
			}
			w.read(w.view(fmt.Sprint(when, ": reader of ", l.at, n), time.Millisecond), a)
		}
	}
	w.verify(w.view(when+": verify", time.Millisecond), true)
}
