package loki

import (
	"cmp"
	"slices"
	"time"

	"blobtail/internal/budget"
	"blobtail/logql/stage"
)

const (
	// frameEntries is how many lines a frame has at most. From frameBytes on it has no more.
	frameEntries = 100
	frameBytes   = 4 << 20
	// frameEvery is how far apart frames are that are not full.
	frameEvery = 100 * time.Millisecond
	// mostHeld and mostHeldBytes are how much waits for a delay to pass.
	mostHeld      = 50_000
	mostHeldBytes = 16 << 20
	// heldStep is how much of that is taken from the budget at once.
	heldStep = 1 << 20
)

// frames makes frames of the lines of a tail. A frame has a stream for each row of neighbours
// with equal labels, so that the lines of all streams stay in order.
type frames struct {
	budget *budget.Budget
	paid   int64 // taken from it
	sorts  bool
	delay  time.Duration // for which lines wait for older ones
	entry  stage.Entry   // the one to be added
	last   time.Time     // when the last frame was sent

	held   []held
	bytes  int
	labels []stage.Label
	out    []byte
}

// A held line waits to be sent.
type held struct {
	time   int64
	came   time.Time
	stream string
	value  []byte
}

// fits reports whether there is room for the entry. It takes that from the budget.
func (f *frames) fits() bool {
	n := int64(f.bytes + 2*f.entry.Size)
	if n > f.paid {
		if !f.budget.Try(n - f.paid) {
			return false
		}
		f.paid = n
	}
	return true
}

// add adds the entry. An error is that of the budget.
func (f *frames) add(now time.Time) error {
	e := &f.entry
	labels := e.Stream
	if !f.sorts {
		f.labels = mergeLabels(f.labels[:0], e)
		labels = f.labels
	}
	if err := f.pay(int64(f.bytes + 2*e.Size)); err != nil {
		return err
	}
	key := appendLabels(nil, labels)
	value := appendLine(nil, e, f.sorts)
	f.bytes += len(key) + len(value)
	f.held = append(f.held, held{e.Time, now, string(key), value})
	return f.pay(int64(f.bytes))
}

// pay takes from the budget the missing part of so many bytes.
func (f *frames) pay(n int64) error {
	if n <= f.paid {
		return nil
	}
	err := f.budget.Take(n - f.paid)
	if err == nil {
		f.paid = n
	}
	return err
}

// full reports whether no more lines may be added for now. It takes room for the next ones.
func (f *frames) full() bool {
	if len(f.held) >= mostHeld || f.bytes >= mostHeldBytes {
		return true
	}
	if int64(f.bytes+heldStep) > f.paid {
		if !f.budget.Try(heldStep) {
			return len(f.held) > 0
		}
		f.paid += heldStep
	}
	return false
}

// ready reports whether the lines fill a frame.
func (f *frames) ready() bool { return len(f.held) >= frameEntries || f.bytes >= frameBytes }

// due reports whether a frame is to be sent now.
func (f *frames) due(now time.Time) bool { return len(f.held) > 0 && f.wait(now) <= 0 }

// wait returns how long nothing is to be sent.
func (f *frames) wait(now time.Time) time.Duration {
	if len(f.held) == 0 {
		return time.Hour
	}
	wait := f.held[0].came.Add(f.delay).Sub(now)
	if !f.ready() {
		wait = max(wait, f.last.Add(frameEvery).Sub(now))
	}
	return wait
}

// next returns the next frame, valid until the next call. Lines that have waited for their delay
// take those with them that came later and are older.
func (f *frames) next(now time.Time) []byte {
	n := len(f.held)
	if f.delay > 0 {
		n = f.order(now)
	}
	size := 0
	for i := range min(n, frameEntries) {
		if size += len(f.held[i].stream) + len(f.held[i].value); size >= frameBytes {
			n = i + 1
			break
		}
	}
	n = min(n, frameEntries)
	if cap(f.out) > frameBytes {
		f.out = nil
	}
	f.out = appendFrame(f.out[:0], f.held[:n], f.sorts)
	for i := range f.held[:n] {
		f.bytes -= len(f.held[i].stream) + len(f.held[i].value)
	}
	f.held = slices.Delete(f.held, 0, n)
	if least := int64(f.bytes + 2*heldStep); f.paid > least {
		f.budget.Give(f.paid - least)
		f.paid = least
	}
	return f.out
}

// order puts the lines in the order of time, as far as one of them is due, and returns their
// number.
func (f *frames) order(now time.Time) int {
	newest := int64(0)
	for i := range f.held {
		if now.Sub(f.held[i].came) >= f.delay {
			newest = max(newest, f.held[i].time)
		}
	}
	late := func(h held) bool { return h.time > newest }
	waiting := slices.DeleteFunc(slices.Clone(f.held), func(h held) bool { return !late(h) })
	f.held = slices.DeleteFunc(f.held, late)
	slices.SortStableFunc(f.held, func(a, b held) int { return cmp.Compare(a.time, b.time) })
	n := len(f.held)
	f.held = append(f.held, waiting...)
	return n
}

// appendFrame appends a message of a tail.
func appendFrame(dst []byte, all []held, sorts bool) []byte {
	dst = append(dst, '{')
	if sorts {
		dst = append(dst, `"encodingFlags":["categorize-labels"],`...)
	}
	dst = append(dst, `"streams":[`...)
	for i := range all {
		if i > 0 && all[i].stream == all[i-1].stream {
			dst = append(dst, ',')
		} else {
			if i > 0 {
				dst = append(dst, "]},"...)
			}
			dst = append(dst, `{"stream":`...)
			dst = append(dst, all[i].stream...)
			dst = append(dst, `,"values":[`...)
		}
		dst = append(dst, all[i].value...)
	}
	if len(all) > 0 {
		dst = append(dst, "]}"...)
	}
	return append(dst, `],"dropped_entries":[]}`...)
}
