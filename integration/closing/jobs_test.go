package closing_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"

	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/retention"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
)

// job is a run of something that changes the store. It says whether the run came to its end.
type job func(v *view, ctx context.Context) bool

// drawJob draws a job of a round. Some are killed, and some hang for hours.
func (w *world) drawJob(actor string) func() {
	what := []job{w.apply, w.apply, w.compact, w.compact, w.byHand}[w.rng.IntN(5)]
	if w.p.Drops && w.rng.IntN(5) == 0 {
		p := w.drawPlace()
		what = func(v *view, ctx context.Context) bool { return w.drop(v, ctx, p) }
	}
	at, hangs := 0, w.rng.IntN(5) == 0
	if w.rng.IntN(3) == 0 {
		at = 1 + w.rng.IntN(80)
	}
	return func() {
		v, ctx := w.view(actor, w.p.Pause), context.Background()
		v.hangs = hangs
		if at > 0 {
			ctx = v.mortal(ctx, at)
			defer v.die()
		}
		what(v, ctx)
	}
}

// drawPlace draws one of the last days.
func (w *world) drawPlace() place {
	return place{w.services()[w.rng.IntN(w.p.Services)], horizon.DayOf(time.Now()) - horizon.Day(w.rng.IntN(5))}
}

func (w *world) job(v *view) *retention.Job {
	age := retention.Keep
	if w.p.Age > 0 {
		age = w.p.Age
	}
	return retention.New(v, w.store, retention.Options{Policy: retention.Policy{Default: age}, Grace: grace, Log: zerolog.Nop(),
		Closing: &closing.Options{After: w.p.After}})
}

// apply is the daily run.
func (w *world) apply(v *view, ctx context.Context) bool {
	w.told("%s applies", v.actor)
	j := w.job(v)
	p, err := j.Plan(ctx)
	var r *retention.Result
	if err == nil {
		r, err = j.Apply(ctx, p.Hash)
	}
	if r != nil {
		w.judge(v, r.Problems)
	}
	return w.ended(v, err)
}

// byHand closes all days, as an operator does.
func (w *world) byHand(v *view, ctx context.Context) bool {
	w.told("%s closes by hand", v.actor)
	r, err := closing.Run(ctx, v, closing.Options{After: w.p.After, Log: zerolog.Nop()})
	w.judge(v, r.Problems)
	return w.ended(v, err)
}

func (w *world) compact(v *view, ctx context.Context) bool {
	w.told("%s compacts", v.actor)
	r, err := compact.Run(ctx, v, compact.Options{Grace: grace, Level: zstd.SpeedFastest, Target: 8 << 10, Log: zerolog.Nop()})
	w.judge(v, r.Problems)
	return w.ended(v, err)
}

// drop drops a day.
func (w *world) drop(v *view, ctx context.Context, p place) bool {
	w.told("%s drops %s", v.actor, p)
	req := retention.DropRequest{Service: p.service, Day: p.day}
	r, _ := w.job(v).Drop(ctx, req)
	if r == nil {
		return w.ended(v, ctx.Err())
	}
	req.Confirm = r.Plan.Hash
	r, err := w.job(v).Drop(ctx, req)
	if r != nil {
		w.judge(v, r.Problems)
	}
	return w.ended(v, err)
}

// harmless are the problems that a job may have beside others.
var harmless = []string{
	"numbers of blobs that lack", // an ingester has yet to store them
	"does not exist",             // another job was quicker
	"is someone writing them",    // the ingesters of these worlds know no horizons
	"it is not hidden any more",  // marks below a horizon were tidied while they were listed
	"this process was killed",    // it is so
	"context canceled",           //
}

// judge judges the problems of a job.
func (w *world) judge(v *view, problems []error) {
	for _, err := range problems {
		text := err.Error()
		if slices.ContainsFunc(harmless, func(s string) bool { return strings.Contains(text, s) }) || w.excused(text) {
			continue
		}
		w.violation("%s: a false alarm: %s", v.actor, text)
	}
}

// excused reports whether a hand explains an alarm.
func (w *world) excused(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.touched {
		if strings.Contains(text, p.prefix()) {
			return true
		}
	}
	return false
}

// prefix begins the keys of a day's objects.
func (p place) prefix() string {
	return strings.TrimSuffix(closed.PartPrefix(p.service, p.day), "_closed.")
}

// ended judges the error of a job, and says whether it came to its end.
func (w *world) ended(v *view, err error) bool {
	if v.dead() {
		return false
	}
	refused, unconfirmed := (*retention.RefusedError)(nil), (*retention.ConfirmError)(nil)
	switch {
	case err == nil:
		return true
	case errors.As(err, &refused) || errors.As(err, &unconfirmed): // of a job that hangs, or whose plan has changed
		w.told("%s: %v", v.actor, err)
	default:
		w.violation("%s: %v", v.actor, err)
	}
	return false
}

// settled judges the accounts once all is stored and all jobs have ended.
func (w *world) settled() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.places() {
		highest := w.highest(p)
		if over := time.Since((p.day + 1).Start()); w.touched[p] || !w.hidden(p).IsZero() || over < w.p.After+12*time.Hour {
			continue
		}
		if highest == nil {
			w.broken("%s has no account at the end", p)
			continue
		}
		w.totals.Closed++
		for _, l := range highest.part.Lost {
			w.broken("%s names %s as lost, and nothing is", highest.key, l.Key)
		}
		if !w.has(highest.part.Blobs) {
			w.broken("%s has a blob that is not there", highest.key)
		}
		for _, b := range highest.part.Replaced {
			if o := w.objects[b.Key]; o != nil && o.meta.Batch == b.Batch {
				w.broken("%s has %s, which is replaced and not deleted", highest.key, b.Key)
			}
		}
	}
}

// places are the days with an object.
func (w *world) places() map[place]bool {
	all := map[place]bool{}
	for _, o := range w.objects {
		all[o.at] = true
	}
	return all
}

// accept has an operator accept that blobs of a day are lost. Then reads of the day are complete
// without them.
func (w *world) accept(l *loss) {
	if l.what != "blob" && l.what != "hour" && l.what != "day" {
		return
	}
	w.told("an operator accepts the loss of %s", l.at)
	c := closing.NewCloser(w.view("an operator", time.Millisecond), time.Now())
	lost, err := c.Accept(bg, l.at.service, l.at.day)
	if err == nil {
		_, err = c.Root(bg, nil, 0)
	}
	if len(lost) == 0 || err != nil {
		w.violation("nothing is lost of %s: %v", l.at, err)
	}
	l.hidden = true
	for _, distant := range []bool{false, true} {
		a := ask{l.at.service, l.at.day.Start().UnixNano(), (l.at.day + 1).Start().UnixNano(), distant, !distant}
		if !w.read(w.view(fmt.Sprint("reader of what is left ", distant), time.Millisecond), a) {
			w.violation("a read of %s is not complete, though the loss is accepted", l.at)
		}
	}
}

func pick[T any](rng *rand.Rand, all []T) T { return all[rng.IntN(len(all))] }
