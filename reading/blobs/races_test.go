package blobs_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"blobtail/blobfmt"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/internal/dev/testkit"
	"blobtail/reading/blobs"
	"blobtail/reading/blobs/indexcache"
	"blobtail/record"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// race is a read of a store during drops, deletions and compactions, as the retention
// job does them. Nothing is deleted within an hour of its horizon, or of the blob
// that replaces it, except days that are dropped for a secret: these within [horizon.Settle].
type race struct {
	t      *testing.T
	rng    *rand.Rand
	b      *builder
	all    []rec // each once
	store  storage.BlobStore
	steps  []step
	real   bool            // the real compactor runs
	raised []time.Duration // when days expire

	mu     sync.Mutex
	marks  []made
	looked map[string]time.Time // the end of the reader's first listing of marks with a prefix
}

// step is an event at a time.
type step struct {
	at time.Duration
	do func()
}

// made is a mark with the time of its creation.
type made struct {
	at      time.Time
	service string
	day     horizon.Day
	single  bool
}

// prefix is the prefix of the listing that finds the mark.
func (m made) prefix() string {
	if m.single {
		return "_dropped/" + m.service + "/"
	}
	return "_horizon/" + m.service + "/"
}

func (m made) hides(service string, d horizon.Day) bool {
	return service == m.service && (m.single && d == m.day || !m.single && d < m.day)
}

const graceOfRace = time.Hour

var servicesOfRace = []string{"api", "web"}

// firstOfRace is the first of five days with logs. All can be closed.
func firstOfRace() time.Time { return time.Date(1999, 12, 26, 0, 0, 0, 0, time.UTC) }

func (r *race) between(from, to time.Duration) time.Duration {
	return from + time.Duration(r.rng.Int64N(int64(to-from)))
}

func (r *race) then(at time.Duration, do func()) { r.steps = append(r.steps, step{at, do}) }

// fill stores some hours of each day, in blobs of several periods, with copies. It
// may have an hour compacted.
func (r *race) fill() {
	requests := uint64(0)
	for _, service := range servicesOfRace {
		for d := range 5 {
			for _, h := range []int{3, 15} {
				start := firstOfRace().AddDate(0, 0, d).Add(time.Duration(h) * time.Hour)
				var hour []rec
				var ids []blobfmt.BatchID
				var keys []string
				for range 1 + r.rng.IntN(3) {
					period := []time.Duration{time.Hour, 15 * time.Minute}[r.rng.IntN(2)]
					from := start.Add(time.Duration(r.rng.IntN(4)) * 15 * time.Minute).UnixNano()
					requests++
					var recs []rec
					for i := range 1 + r.rng.IntN(4) {
						at := from + int64(i)*int64(time.Minute)
						recs = append(recs, rec{service: service, time: at, origin: origin(requests), index: uint32(i),
							line: line(at, "info", service, fmt.Sprintf("%d of %d", i, requests))})
					}
					r.all, hour = append(r.all, recs...), append(hour, recs...)
					for range 1 + r.rng.IntN(5)/4 { // twice, after a lost answer
						key, id := r.b.add(period, recs)
						ids, keys = append(ids, id), append(keys, key)
					}
				}
				if !r.real && r.rng.IntN(3) == 0 {
					r.compact(service, start, hour, ids, keys)
				}
			}
		}
	}
	slices.SortFunc(r.all, compareRecs)
}

// compact replaces the blobs of an hour by one, and may do so again with late blobs.
func (r *race) compact(service string, start time.Time, hour []rec, ids []blobfmt.BatchID, keys []string) {
	body, meta, id := r.b.encode(hour, ids...)
	name := func(number int) string {
		return blobfmt.Name{Service: service, Period: start, Number: number}.String()
	}
	at := r.between(0, 3*time.Hour)
	r.then(at, func() { r.b.put(name(990001), body, meta.Map()) })
	r.deleted(at+graceOfRace, keys...)
	if r.rng.IntN(2) == 0 { // a slow PUT of the first of them
		var lateBody []byte
		var lateMeta map[string]string
		for _, o := range storagetest.Objects(r.t, r.b.store, keys[0]) {
			lateBody, lateMeta = storagetest.Body(r.t, r.b.store, o.Key), o.Metadata
		}
		late := at + r.between(0, 2*time.Hour)
		r.then(late, func() { r.b.put(name(77), lateBody, lateMeta) })
		r.deleted(late+graceOfRace, name(77))
	}
	if r.rng.IntN(2) == 0 {
		body, meta, _ := r.b.encode(hour, append(slices.Clone(ids), id)...)
		again := at + r.between(0, 2*time.Hour)
		r.then(again, func() { r.b.put(name(990002), body, meta.Map()) })
		r.deleted(again+graceOfRace, name(990001))
	}
}

// deleted deletes some keys one by one.
func (r *race) deleted(at time.Duration, keys ...string) {
	for _, key := range keys {
		at += r.between(1, 5*time.Minute)
		r.then(at, func() { mark(r.t, r.b.store.Delete(context.Background(), storage.Blob{Key: key})) })
	}
}

// compacting closes the days and runs the compactor a few times, at a slow store.
func (r *race) compacting() {
	at := time.Duration(0)
	for range 3 {
		at += r.between(1, 2*time.Hour)
		pauses := rand.New(rand.NewPCG(r.rng.Uint64(), 3))
		most := int64([]time.Duration{1, time.Second, 5 * time.Second}[r.rng.IntN(3)])
		store := dragging{r.b.store, within(pauses, most), func(string) {}}
		r.then(at, func() {
			closed, err := closing.Run(context.Background(), store, closing.Options{After: closed.Soonest})
			if err != nil || len(closed.Problems) > 0 {
				r.t.Errorf("close: %+v, %v", closed, err)
			}
			done, err := compact.Run(context.Background(), store, compact.Options{Grace: graceOfRace, Now: time.Now, Level: zstd.SpeedFastest})
			if err != nil || len(done.Problems) > 0 {
				r.t.Errorf("compact: %+v, %v", done, err)
			}
		})
	}
}

// within returns a source of random pauses.
func within(rng *rand.Rand, most int64) func() time.Duration {
	var mu sync.Mutex
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(rng.Int64N(most))
	}
}

// expire raises horizons and drops days.
func (r *race) expire() {
	for range r.rng.IntN(4) {
		m := made{service: servicesOfRace[r.rng.IntN(2)], single: r.rng.IntN(3) == 0, day: horizon.DayOf(firstOfRace()) + horizon.Day(r.rng.IntN(5))}
		at, grace := r.between(0, 4*time.Hour), graceOfRace
		if m.single {
			grace = horizon.Settle
		} else {
			m.day++
		}
		r.raised = append(r.raised, at)
		r.then(at, func() {
			r.mu.Lock() // a read may see the mark, and be judged, before it is among the marks
			defer r.mu.Unlock()
			m.at = time.Now()
			publish := horizon.Publish
			if m.single {
				publish = horizon.Drop
			}
			mark(r.t, publish(context.Background(), r.b.store, m.service, m.day))
			r.marks = append(r.marks, m)
		})
		pauses := rand.New(rand.NewPCG(r.rng.Uint64(), 2))
		r.then(at+grace+r.between(1, 3*time.Minute), func() {
			for o, err := range r.b.store.List(context.Background(), m.service+"/", "") {
				mark(r.t, err)
				if name, err := blobfmt.ParseName(o.Key); err == nil && m.hides(m.service, horizon.DayOf(name.Period)) {
					time.Sleep(time.Duration(pauses.Int64N(int64(time.Minute))))
					mark(r.t, r.b.store.Delete(context.Background(), o))
				}
			}
		})
	}
}

// hidden reports whether a record had expired at a time.
func (r *race) hidden(c rec, at time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.marks, func(m made) bool {
		return !m.at.After(at) && m.hides(c.service, horizon.DayOfNs(c.time))
	})
}

// hiddenFirst reports whether a record had expired when the reader looked for the first time. A
// read that asks for all that there is, or that finds as many as it wants, does not tell such a
// day: it returns the same as if it had begun then. It tells of single dropped days always, unless it
// is full.
func (r *race) hiddenFirst(c rec, full bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.marks, func(m made) bool {
		return (full || !m.single) && !m.at.After(r.looked[m.prefix()]) && m.hides(c.service, horizon.DayOfNs(c.time))
	})
}

// A read during all that is complete, except for days that it reports as expired
// meanwhile, or it reports that it stopped. It returns nothing twice, and nothing
// that had expired when it began.
func TestRaces(t *testing.T) {
	races := uint64(testkit.Share(400, 60))
	if n, err := strconv.ParseUint(os.Getenv("BLOBTAIL_RACES"), 10, 64); err == nil {
		races = n
	}
	first, _ := strconv.ParseUint(os.Getenv("BLOBTAIL_RACES_FIRST"), 10, 64)
	b := newBuilder(t, 0)
	outcomes := map[string]int{}
	seed := first
	defer func() { // a test in a bubble that fails ends this one
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	for ; seed < first+races; seed++ {
		r := &race{t: t, rng: rand.New(rand.NewPCG(seed, 5)), b: b, real: seed%4 == 0}
		b.forget()
		r.fill() // outside, since all bubbles share the encoder
		synctest.Test(t, func(t *testing.T) { outcomes[r.run(t)]++ })
	}
	t.Log(outcomes)
	for _, o := range []string{"complete", "expired meanwhile", "stopped"} {
		if outcomes[o] < int(races/50) {
			t.Errorf("%d of %d races are %s", outcomes[o], races, o)
		}
	}
}

func (r *race) run(t *testing.T) (outcome string) {
	r.t, r.b.t = t, t
	r.expire()
	if r.real {
		r.compacting()
	}
	slices.SortStableFunc(r.steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	begun := time.Now()
	var job sync.WaitGroup
	for _, s := range r.steps {
		job.Go(func() {
			time.Sleep(s.at)
			s.do()
		})
	}
	scale := []time.Duration{1, time.Second, 10 * time.Second, 30 * time.Second, 2 * time.Minute}[r.rng.IntN(5)]
	start := r.between(1, 4*time.Hour)
	switch near := r.rng.IntN(4); { // just before an event
	case near > 1 && len(r.raised) > 0:
		start = r.raised[r.rng.IntN(len(r.raised))] - r.between(0, 20*scale+1)
	case near > 0 && len(r.steps) > 0:
		start = r.steps[r.rng.IntN(len(r.steps))].at - r.between(0, 20*scale+1)
	}
	time.Sleep(start)
	r.looked = map[string]time.Time{}
	r.store = dragging{r.b.store, within(rand.New(rand.NewPCG(r.rng.Uint64(), 1)), int64(2*scale)), r.list}
	outcome = r.read()
	job.Wait()
	if time.Since(begun) > 48*time.Hour {
		t.Error("it took two days")
	}
	return outcome
}

// list records the end of a listing.
func (r *race) list(prefix string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again := r.looked[prefix]; isMark(prefix) && !again {
		r.looked[prefix] = time.Now()
	}
}

// read does a random kind of read and judges it.
func (r *race) read() string {
	q := blobs.Query{Services: [][]string{{"web"}, {"api", "web"}, {"*"}}[r.rng.IntN(3)], Range: blobs.Always(), Reverse: r.rng.IntN(3) == 0}
	if r.rng.IntN(3) == 0 {
		q.Range.From = firstOfRace().Add(r.between(0, 96*time.Hour)).UnixNano()
	}
	if r.rng.IntN(3) == 0 {
		q.Range.To = firstOfRace().Add(r.between(96*time.Hour, 120*time.Hour)).UnixNano()
	}
	now := firstOfRace().Add(r.between(0, 144*time.Hour))
	reader := blobs.New(r.store, blobs.Options{Workers: 2, Distant: r.rng.IntN(2) == 0, Indexes: indexcache.New(0), Now: func() time.Time { return now }})
	kind := r.rng.IntN(6)
	if kind < 2 {
		q.Limit = 1 + r.rng.IntN(60)
	}
	if r.rng.IntN(2) == 0 {
		// It looks at the store a while before the read.
		q.Ahead = r.rng.IntN(2) == 0
		q.Scout = reader.Scout(r.t.Context(), q, nil)
		defer q.Scout.Close()
		time.Sleep(r.between(0, time.Hour))
	}
	begun := time.Now()
	var got []string
	var sum blobs.Summary
	var err error
	take := func(lines []byte) error {
		got = append(got, slices.Collect(strings.Lines(string(lines)))...)
		return nil
	}
	counted := int64(-1)
	switch kind {
	case 0, 1:
		sum, err = reader.Newest(r.t.Context(), q, take)
	default:
		if kind == 2 {
			q.First = 1 + r.rng.IntN(60)
		}
		var plan *blobs.Plan
		if plan, err = reader.Plan(r.t.Context(), q); err != nil {
			break
		}
		switch kind {
		case 3:
			counted, sum, err = plan.Count(r.t.Context())
		case 4:
			sum, err = plan.Entries(r.t.Context(), func(e *record.Entry) error { return take(e.Line) })
		default:
			sum, err = plan.Read(r.t.Context(), take)
		}
	}
	var none *blobs.NoServiceError
	if errors.As(err, &none) && q.Services[0] == "*" && r.nothing(time.Now()) {
		return "nothing left"
	}
	if err != nil {
		r.t.Errorf("%+v: %v", q, err)
		return "failed"
	}
	return r.judge(q, begun, got, counted, &sum)
}

// nothing reports whether all records have expired.
func (r *race) nothing(at time.Time) bool {
	return !slices.ContainsFunc(r.all, func(c rec) bool { return !r.hidden(c, at) })
}

// generally parses the expired days of a service from a warning.
func generally(text string, excused map[string]bool) bool {
	m := haveExpired.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	for _, service := range servicesOfRace {
		for d := horizon.DayOf(firstOfRace()); strings.Contains(m[1], service) && d < horizon.DayOf(firstOfRace())+5; d++ {
			if d.String() < m[2] || strings.Contains(m[3], d.String()) {
				excused[service+d.String()] = true
			}
		}
	}
	return true
}

var (
	haveExpired = regexp.MustCompile(`^((?:api|web)(?: and web)?): (?:older than (\S+) has expired)?(.*)$`)
	whileRead   = regexp.MustCompile(`^(what is older than )?(\d{4}-\d\d-\d\d)(?: to (\d{4}-\d\d-\d\d))? of (\w+) expired while it was read$`)
)

func (r *race) judge(q blobs.Query, begun time.Time, got []string, counted int64, sum *blobs.Summary) (outcome string) {
	t := r.t
	outcome = "complete"
	excused := map[string]bool{} // service and day
	for _, w := range sum.Warnings {
		m := whileRead.FindStringSubmatch(w.Error())
		if m == nil {
			if !generally(w.Error(), excused) {
				t.Errorf("warns: %v", w)
			}
			continue
		}
		outcome = "expired meanwhile"
		for d := horizon.DayOf(firstOfRace()); d < horizon.DayOf(firstOfRace())+5; d++ {
			text := d.String()
			if m[1] != "" && text < m[2] || m[1] == "" && text >= m[2] && text <= max(m[2], m[3]) {
				excused[m[4]+text] = true
			}
		}
	}
	for _, p := range sum.Problems {
		outcome = "stopped"
		if took := time.Since(begun); !strings.HasPrefix(p.Error(), "stopped after 30m0s: ") || took < graceOfRace/2 {
			t.Errorf("after %s: %v", took, p)
		}
	}
	full := q.Limit > 0 && len(got) == q.Limit
	var may, must []string // the lines that it may return, and those that it must if it is complete
	for _, c := range r.all {
		named := slices.ContainsFunc(q.Services, func(s string) bool { return s == "*" || s == c.service })
		// A day that expires at the very ns of the begin may have expired or not.
		if !named || c.time < q.Range.From || q.Range.To != blobs.Newest && c.time >= q.Range.To || r.hidden(c, begun.Add(-1)) {
			continue
		}
		may = append(may, c.line)
		day := c.service + horizon.DayOfNs(c.time).String()
		switch {
		case excused[day] && !r.hidden(c, time.Now()):
			t.Errorf("%s did not expire meanwhile", day)
		case excused[day], r.hidden(c, begun):
		case (full || q.Range.From == blobs.Oldest) && r.hiddenFirst(c, full): // as if it had begun then
		default:
			must = append(must, c.line)
		}
	}
	if counted >= 0 {
		if counted > int64(len(may)) || sum.Complete() && counted < int64(len(must)) {
			t.Errorf("%+v: counted %d, want %d to %d; %v", q, counted, len(must), len(may), sum.Warnings)
		}
		return outcome
	}
	if q.Reverse {
		slices.Reverse(got)
	}
	r.compare(q, got, may, must, sum)
	return outcome
}

// compare looks for missing lines, duplicates, and lines that should not be there.
func (r *race) compare(q blobs.Query, got, may, must []string, sum *blobs.Summary) {
	at := 0
	for _, g := range got { // in order, and so without duplicates
		n := slices.Index(may[at:], g)
		if n < 0 {
			r.t.Errorf("%+v: out of order, twice, or expired: %s", q, g)
			return
		}
		at += n + 1
	}
	if !sum.Complete() {
		return
	}
	limit := max(q.Limit, q.First)
	full := limit > 0 && len(got) == limit
	if limit > 0 && len(got) > limit {
		r.t.Errorf("%+v: %d lines", q, len(got))
	}
	for _, m := range must {
		place := slices.Index(may, m)
		beyond := full && (q.Limit > 0 && place < slices.Index(may, got[0]) || q.First > 0 && place > slices.Index(may, got[len(got)-1]))
		if !beyond && !slices.Contains(got, m) {
			r.t.Errorf("%+v: short by %s%d lines, %v", q, m, len(got), sum.Warnings)
			return
		}
	}
}
