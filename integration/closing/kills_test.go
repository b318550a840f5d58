package closing_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/internal/dev/testkit"
	"blobtail/reading/blobs"
)

// A stage brings a small world to the moment before a job.
type stage struct {
	name   string
	age    time.Duration
	before func(w *world)
	job    func(w *world) job
	again  func(w *world) job // the next job; nil: the same
}

var stages = []stage{
	{"a drop", 0, func(w *world) { w.alone(w.byHand) }, dropDay, nil},
	{"a drop that the daily run ends", 0, func(w *world) { w.alone(w.byHand) }, dropDay, daily},
	{"the first close by hand", 0, func(*world) {}, func(w *world) job { return w.byHand }, nil},
	{"the first daily run", 0, func(*world) {}, daily, nil},
	{"a daily run with late blobs", 0, func(w *world) {
		w.alone(w.apply)
		w.late(1)
		time.Sleep(24 * time.Hour)
	}, daily, nil},
	{"compaction that rewrites", 0, func(w *world) {
		w.alone(w.byHand)
		w.late(1)
	}, func(w *world) job { return w.compact }, nil},
	{"compaction that deletes", 0, func(w *world) {
		w.alone(w.byHand)
		w.alone(w.compact)
		time.Sleep(2 * grace)
		w.late(1)
	}, func(w *world) job { return w.compact }, nil},
	{"expiry that hides", 48 * time.Hour, func(w *world) {
		w.alone(w.byHand)
		w.alone(w.compact)
	}, daily, nil},
	{"expiry that deletes", 48 * time.Hour, func(w *world) {
		w.alone(w.byHand)
		w.alone(w.compact)
		w.alone(w.apply)
		time.Sleep(2 * grace)
	}, daily, nil},
}

func daily(w *world) job { return w.apply }

func dropDay(w *world) job {
	return func(v *view, ctx context.Context) bool { return w.drop(v, ctx, w.day(2)) }
}

// A job is killed at each of its operations, which is not done, or is done, every other one late. Then
// nothing is amiss for readers and for verify, nor after the job has run again, once and until there
// is nothing left to do.
func TestKilled(t *testing.T) {
	var total totals
	kills := 0
	every := testkit.Share(1, 9)
	for _, s := range stages {
		for _, done := range []bool{false, true} {
			reached := false
			for at := 1; !reached; at += every {
				how := 0
				if done {
					how = 1 + at%2
				}
				w := s.killed(t, at, how)
				if testkit.Report(t, uint64(at), w); t.Failed() {
					t.Fatalf("%s, killed at operation %d (%d)\n%s", s.name, at, how, w.Story())
				}
				testkit.Add(&total, &w.totals)
				reached = w.totals.Kills == 0
				kills += w.totals.Kills
				if reached && at < 8 {
					t.Errorf("%s has %d operations: something is not tried", s.name, at-1)
				}
			}
		}
	}
	t.Logf("%d kills of %d jobs: %s", kills, len(stages), &total)
}

// killed runs the world of a stage, with a job that is killed at an operation.
func (s stage) killed(t *testing.T, at, how int) (w *world) {
	synctest.Test(t, func(*testing.T) {
		w = smallWorld(uint64(how), s.age)
		s.before(w)
		v := w.view("the victim", time.Millisecond)
		ctx := v.mortal(context.Background(), at)
		v.how = how
		s.job(w)(v, ctx)
		v.die()
		w.glance("after the kill")
		time.Sleep(time.Minute)
		if s.again != nil {
			w.alone(s.again(w))
		} else {
			w.alone(s.job(w))
		}
		w.glance("after the next run")
		w.late(1)
		w.finish()
	})
	return w
}

// smallWorld is a world with two batches of each of the first days.
func smallWorld(seed uint64, age time.Duration) *world {
	w := newWorld(seed)
	w.p = profile{Services: 1, Ingesters: 1, Hours: []int{15}, Page: 2, Pause: time.Millisecond, After: 24 * time.Hour, Age: age}
	w.ingesters = w.ingesters[:1]
	w.ingesters[0].view.pause, w.ingesters[0].up = time.Millisecond, time.Time{}
	time.Sleep(time.Hour)
	for d := range firstDays {
		w.late(horizon.Day(d))
		w.late(horizon.Day(d))
	}
	return w
}

// Jobs of two days meet at midnight. Their roots may follow from the same one.
func TestMidnight(t *testing.T) {
	for seed := range testkit.Share(60, 6) {
		var w *world
		synctest.Test(t, func(*testing.T) {
			w = smallWorld(uint64(seed), 0)
			w.alone(w.byHand)
			w.late(1)
			time.Sleep(time.Until((horizon.DayOf(time.Now()) + 1).Start().Add(-6 * time.Minute)))
			for n := range 4 { // two are slow, and two begin on the next day
				v, at := w.view(fmt.Sprint("slow ", n), 35*time.Second), w.between(0, 2*time.Minute)
				if n > 1 {
					v, at = w.view(fmt.Sprint("late ", n), 12*time.Second), w.between(6*time.Minute, 8*time.Minute)
				}
				w.after(at, func() { w.apply(v, bg) })
			}
			w.running.Wait()
			w.glance("after midnight")
			w.finish()
		})
		if testkit.Report(t, uint64(seed), w); t.Failed() {
			t.Fatal(w.Story())
		}
	}
}

// alone runs a job that nobody disturbs.
func (w *world) alone(do job) {
	w.lone++
	if !do(w.view(fmt.Sprint("job ", w.lone), time.Millisecond), context.Background()) {
		w.violation("a job that nobody disturbs does not end well")
	}
}

// day is a day of the first service before today.
func (w *world) day(before horizon.Day) place {
	return place{w.services()[0], horizon.DayOf(w.start) - before}
}

// late stores a batch of a day of the first days.
func (w *world) late(d horizon.Day) {
	i := w.ingesters[0]
	i.batch(horizon.DayOf(w.start) - d - 1)
	for n := 0; n == 0 || len(i.pending) > 0; n++ {
		i.flush()
	}
}

// glance reads everything in two ways, and the days one by one.
func (w *world) glance(when string) {
	w.told("a glance: %s", when)
	w.read(w.view(when+": near", time.Millisecond), ask{"*", blobs.Oldest, blobs.Newest, false, false})
	w.read(w.view(when+": far", time.Millisecond), ask{"*", blobs.Oldest, blobs.Newest, true, true})
	w.verify(w.view(when+": verify", time.Millisecond), true)
}
