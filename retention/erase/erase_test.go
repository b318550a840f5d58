package erase_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/catalog/erasure"
	"blobtail/catalog/horizon"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/lease"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/retention"
	"blobtail/retention/erase"
	"blobtail/storage"
	"blobtail/storage/storagetest"
	"blobtail/tailindex"
)

// 1,000 records of a person go from 100,000 in 40 blobs, of closed and of open days, of rejected lines
// and of the tail. All others stay, byte for byte.
func TestErase(t *testing.T) { synctest.Test(t, testErase) }

func testErase(t *testing.T) {
	testkit.FullOnly(t, "it has 100,000 records")
	w := newWorld(t)
	for i := range 39 {
		w.blob([]string{"web", "orders"}[i%2], ago(5-i/8, i%8/3), 2500, 100)
	}
	w.blob(record.RejectedService, ago(2, 3), 2500, 100)
	w.close()
	today := ago(0, 0)
	time.Sleep(6 * time.Hour)
	w.row(w.entries("web", today.Add(6*time.Hour), 90, 9))
	if r := w.erased(); r.Made != 40 || r.Records != 1000 || r.Deleted != 40 {
		t.Errorf("%+v", r)
	}
	for line := range w.stay { // those of the tail are in no blob
		if ts, _ := record.LineTime([]byte(line)); ts >= today.Add(6*time.Hour).UnixNano() {
			delete(w.stay, line)
		}
	}
	w.clean("afterwards")
	if r, err := w.erase(t.Context(), expr); err != nil || len(r.Days) > 0 || r.Rows > 0 {
		t.Errorf("a second run: %+v, %v", r, err)
	}
}

// row writes a row of records.
func (w *world) row(entries []record.Entry) {
	w.t.Helper()
	writer := tailindex.NewWriter(w.tables, tailindex.Options{Prefix: w.tail})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- writer.Run(ctx) }()
	run := &record.Run{Service: "web", Origin: entries[0].ID.Origin, Request: &record.Request{Services: []string{"web"}}}
	for i, e := range entries {
		q := run.Request
		run.Order = append(run.Order, uint32(i))
		q.Lines = append(q.Lines, record.Line{Time: e.Time, Off: uint32(len(q.Data)), Len: uint32(len(e.Line))})
		q.Data = append(q.Data, e.Line...)
	}
	writer.Accepted(1, run)
	time.Sleep(time.Second)
	stop()
	<-done
}

// Of a blob with nothing left only the section stays. So a late PUT of what was erased, as of an ingester
// that lost its note that the batch is stored, is not shown, and the next compaction deletes it.
func TestNothingLeft(t *testing.T) { synctest.Test(t, testNothingLeft) }

func testNothingLeft(t *testing.T) {
	w := newWorld(t)
	at := ago(3, 15)
	key, body, attrs := w.put("web", at, w.entries("web", at, 300, 1))
	w.blob("web", at, 300, 10)
	w.close()
	if r := w.erased(); r.Made != 2 || r.Records != 330 {
		t.Errorf("%+v", r)
	}
	w.clean("afterwards")
	l, err := catalog.ListDay(t.Context(), w.store, "web", horizon.DayOf(at))
	w.must(err)
	part, err := catalog.ReadPart(t.Context(), w.store, l.Part.Key)
	w.must(err)
	hash := fmt.Sprintf(".%x", sha256.Sum256([]byte(expr)))
	for i, n := range []string{"300", "30"} {
		want := closed.Event{Kind: closed.Erased, Key: fmt.Sprintf("web/%s/99000%d.log", at.Format("2006/01/02/1504"), i+1), Gone: n + hash}
		if !slices.Contains(part.Events, want) {
			t.Errorf("the account tells %+v, and not %+v", part.Events, want)
		}
	}
	for range 2 {
		w.must(w.store.Create(t.Context(), key, body, attrs))
		lines, complete := w.shown(w.plan())
		if w.kept("a late PUT", lines, false); !complete {
			t.Error("a read after a late PUT is incomplete")
		}
		w.close()
		for range 3 {
			time.Sleep(2 * time.Hour)
			got, err := w.compact(w.store)
			if w.must(err); len(got.Problems) > 0 {
				t.Error(got.Problems)
			}
		}
		w.clean("after compaction")
	}
	w.must(w.store.Create(t.Context(), key, body, attrs))
	if r := w.erased(); r.Made != 0 || r.Deleted != 1 {
		t.Errorf("the run after a late PUT: %+v", r)
	}
	w.clean("in the end")
}

// What erased blobs without records have replaced is no gap in the numbers, and verify checks them too. Their
// times tell nothing of the erased records.
func TestNoGap(t *testing.T) { synctest.Test(t, testNoGap) }

func testNoGap(t *testing.T) {
	w := newWorld(t)
	at := ago(0, 0)
	w.put("web", at, w.entries("web", at.Add(17*time.Minute), 30, 1))
	w.blob("web", at, 30, 0)
	w.erased()
	w.clean("afterwards")
	for e, err := range catalog.Blobs(t.Context(), w.store, "web", catalog.Range{}) {
		if w.must(err); e.Meta.Erased && (e.Meta.Records != 0 || e.Meta.First != at.UnixNano() || e.Meta.Last != at.UnixNano()) {
			t.Errorf("%s: %+v", e.Key, e.Meta)
		}
	}
	all := blobs.Query{Range: blobs.Always()}
	got, err := blobs.New(w.store, blobs.Options{}).Verify(t.Context(), all, blobs.VerifyOptions{}, func(blobs.Finding) {})
	if err != nil || got.Blobs != 2 || got.Records != 30 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A plan counts records once that are in a blob and in what it was compacted into.
func TestPlan(t *testing.T) { synctest.Test(t, testPlan) }

func testPlan(t *testing.T) {
	w := small(t)
	r, err := erase.Run(t.Context(), w.store, w.tables, w.options(expr))
	sum := int64(0)
	for _, d := range r.Days {
		sum += d.Records
	}
	if !errors.As(err, new(*retention.ConfirmError)) || sum != int64(w.gone) || r.Stored != sum+int64(len(w.stay)) {
		t.Errorf("%d of %d records: %+v, %v", sum, w.gone, r, err)
	}
}

// small makes a world with work for each step of a run.
func small(t testing.TB) *world {
	w := newWorld(t)
	for i := range 3 {
		at := ago(3, 10+i/2)
		w.blob("web", at, 40, 4)
		w.blob("web", at, 40, 8-4*i)
	}
	w.close()
	_, err := w.compact(w.store)
	w.must(err)
	w.blob("web", ago(3, 11), 30, 5)
	w.blob("web", ago(0, 0), 30, 5)
	w.blob(record.RejectedService, ago(0, 0), 30, 5)
	w.close()
	time.Sleep(2 * time.Hour) // the compacted blobs are old enough to be compacted again
	return w
}

// killer lets a run do some operations, and then kills it before or after one.
type killer struct {
	mu    sync.Mutex
	seen  int
	at    int
	after bool
	die   context.CancelFunc
	meets func(op storagetest.Op, key string) // before each operation
}

func (k *killer) script(op storagetest.Op, key string) storagetest.Fault {
	k.mu.Lock()
	k.seen++
	seen := k.seen
	k.mu.Unlock()
	if k.meets != nil && seen == k.at {
		k.meets(op, key)
	}
	if k.die == nil || seen < k.at {
		return storagetest.Fault{}
	}
	k.die()
	if seen == k.at && k.after {
		return storagetest.Fault{After: storagetest.ErrFault}
	}
	return storagetest.Fault{Before: storagetest.ErrFault}
}

// A run that is killed at any operation and repeated ends like one that was not, with a reader and a
// compaction at that moment. No read loses or repeats a record that stays.
func TestKilledAnywhere(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at, more := 1, true; more; at += testkit.Share(1, 17) {
			synctest.Test(t, func(t *testing.T) { more = testKilled(t, at, after) })
		}
	}
}

func testKilled(t *testing.T, at int, after bool) (reached bool) {
	w := small(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	k := &killer{at: at, after: after, die: cancel}
	w.ops = k.script
	begun := w.plan()
	_, err := w.erase(ctx, expr)
	when := fmt.Sprintf("killed at operation %d (done: %v)", at, after)
	if k.seen < at {
		if err != nil || at < 30 {
			t.Errorf("%d operations, %v", at-1, err)
		}
		return false
	}
	w.ops = nil
	lines, complete := w.shown(w.plan())
	if w.kept(when, lines, true); !complete {
		t.Errorf("%s: a read is incomplete", when)
	}
	if lines, complete := w.shown(begun); complete {
		w.kept(when+", a read from before", lines, true)
	}
	_, err = w.compact(w.store)
	w.must(err)
	w.erased()
	w.clean(when)
	return true
}

// A run meets a compaction, a reader and another run at each of its operations.
func TestMeetsAnywhere(t *testing.T) {
	for at, more := 1, true; more; at += testkit.Share(1, 17) {
		synctest.Test(t, func(t *testing.T) { more = testMeets(t, at) })
	}
}

func testMeets(t *testing.T, at int) (reached bool) {
	w := small(t)
	when := fmt.Sprintf("met at operation %d", at)
	var begun *blobs.Plan
	k := &killer{at: at, meets: func(storagetest.Op, string) {
		w.ops = nil
		begun = w.plan()
		lines, complete := w.shown(begun)
		if w.kept(when, lines, true); !complete {
			t.Errorf("%s: a read is incomplete", when)
		}
		if _, err := w.compact(w.store); err != nil {
			t.Errorf("%s: compaction: %v", when, err)
		}
	}}
	w.ops = k.script
	r, err := w.erase(t.Context(), expr)
	w.must(err)
	if begun == nil {
		return false
	}
	for _, p := range r.Problems {
		t.Errorf("%s: %v", when, p)
	}
	if lines, complete := w.shown(begun); complete {
		w.kept(when+", and read later", lines, true)
	}
	w.clean(when)
	return true
}

// A compaction meets a whole run at each of its operations: also between its look at the sources and
// the Create, as on a host that was halted.
func TestWithinCompaction(t *testing.T) {
	for at, more := 1, true; more; at += testkit.Share(1, 17) {
		synctest.Test(t, func(t *testing.T) { more = testWithin(t, small(t), at) })
	}
}

func testWithin(t *testing.T, w *world, at int) (reached bool) {
	when := fmt.Sprintf("at operation %d of a compaction", at)
	k := &killer{at: at, meets: func(op storagetest.Op, key string) {
		when += fmt.Sprintf(" (%s %s)", op, key)
		reached = true
		w.erased()
	}}
	got, err := w.compact(clocked{storagetest.Faulty(w.store, k.script), w.store.(storage.Clock)})
	if err != nil || len(got.Problems) > 0 {
		t.Errorf("%s: %v, %v", when, err, got.Problems)
	}
	if reached {
		w.clean(when)
	}
	return reached
}

// A read that lists before a run is whole as long as it ends within the patience, also if that run was
// killed and another one goes on.
func TestReadFromBefore(t *testing.T) { synctest.Test(t, testReadFromBefore) }

func testReadFromBefore(t *testing.T) {
	w := small(t)
	begun := w.plan()
	var job sync.WaitGroup
	ctx, kill := context.WithTimeout(t.Context(), time.Minute)
	defer kill()
	if _, err := w.erase(ctx, expr); err == nil {
		t.Error("the first run was not killed")
	}
	job.Go(func() { w.erased() })
	time.Sleep(erasure.Patience - 2*time.Minute)
	lines, complete := w.shown(begun)
	if w.kept("a read from before", lines, true); !complete {
		t.Error("a read from before is incomplete")
	}
	if w.kept("a read from now", first(w.shown(w.plan())), false); t.Failed() {
		t.Log(w.keys("web"))
	}
	job.Wait()
}

func first[T any](value T, _ bool) T { return value }

// Two runs of different expressions at once: neither brings back what the other has erased.
func TestTwoExpressions(t *testing.T) {
	for at, more := 1, true; more; at += testkit.Share(1, 17) {
		synctest.Test(t, func(t *testing.T) { more = testTwo(t, at) })
	}
}

func testTwo(t *testing.T, at int) (reached bool) {
	w := small(t)
	var other sync.WaitGroup
	k := &killer{at: at, meets: func(storagetest.Op, string) {
		reached, w.ops = true, nil
		other.Go(func() {
			if _, err := w.erase(t.Context(), `user == "user1"`); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Millisecond) // it goes on while the first run waits
	}}
	w.ops = k.script
	_, err := w.erase(t.Context(), expr)
	w.must(err)
	other.Wait()
	for line := range w.stay {
		if strings.Contains(line, `"user":"user1"`) {
			delete(w.stay, line)
			w.gone++
		}
	}
	if reached {
		w.clean(fmt.Sprintf("another run at operation %d", at))
	}
	return reached
}

// A lone blob that compaction only compresses better is no exception.
func TestLargeAlone(t *testing.T) {
	for at, more := 1, true; more; at += testkit.Share(1, 17) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.blob("web", ago(3, 10), 12000, 100)
			w.close()
			more = testWithin(t, w, at)
		})
	}
}

// A run waits until an ingester that holds records from before has stored them, and erases these. One
// that does not run is a problem.
func TestHolding(t *testing.T) { synctest.Test(t, testHolding) }

func testHolding(t *testing.T) {
	w := small(t)
	row := w.ingester
	begun := time.Now()
	row("aaaaaaaa", begun, begun.Add(-time.Minute))
	go func() {
		for range 40 * 6 { // longer than the patience
			time.Sleep(10 * time.Second)
			row("aaaaaaaa", time.Now(), begun.Add(-time.Minute))
		}
		w.blob("web", ago(1, 3), 30, 5)
		for range 40 * 6 {
			row("aaaaaaaa", time.Now(), time.Time{})
			time.Sleep(10 * time.Second)
		}
	}()
	w.erased()
	w.clean("afterwards")
	w.blob("web", ago(1, 3), 30, 5)
	row("bbbbbbbb", time.Now().Add(-time.Hour), time.Now().Add(-2*time.Hour))
	r, err := w.erase(t.Context(), expr)
	if err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Error(), "start it (or ingest adopt, or forget)") {
		t.Errorf("with an ingester that does not run: %v, %v", err, r.Problems)
	}
	time.Sleep(time.Hour)
}

// A run ends while records that match come in, and tells of them. Those from before it are erased.
func TestComeIn(t *testing.T) { synctest.Test(t, testComeIn) }

func testComeIn(t *testing.T) {
	w := small(t)
	old, begun := w.gone, time.Now()
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			time.Sleep(time.Minute)
			w.blob("web", ago(0, 0), 4, 2)
			w.row(w.entries("web", time.Now().Add(-time.Minute), 4, 2))
		}
	}()
	r, err := w.erase(t.Context(), expr)
	stop()
	w.must(err)
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Error(), "that match came in meanwhile") || r.Records < int64(old) {
		t.Errorf("after %s: %+v, %v", time.Since(begun), r, r.Problems)
	}
	time.Sleep(2 * time.Minute)
	w.erased()
	w.grep("after another run")
}

// If nothing is found, and an ingester holds records, nobody knows that nothing is left.
func TestUnflushed(t *testing.T) { synctest.Test(t, testUnflushed) }

func testUnflushed(t *testing.T) {
	w := newWorld(t)
	w.blob("web", ago(0, 0), 10, 0)
	for oldest, problems := range map[time.Time]int{{}: 0, time.Now(): 1} {
		w.ingester("aaaaaaaa", time.Now(), oldest)
		r, err := w.erase(t.Context(), expr)
		if err != nil || len(r.Days) > 0 || len(r.Problems) != problems {
			t.Errorf("with the oldest record %s: %+v, %v", oldest, r, err)
		}
	}
	begun := time.Now() // with a confirmation it waits
	w.ingester("aaaaaaaa", begun, begun)
	go func() {
		for range 6 * 5 {
			time.Sleep(10 * time.Second)
			w.ingester("aaaaaaaa", time.Now(), begun)
		}
		w.blob("web", ago(0, 0), 10, 2)
		w.ingester("aaaaaaaa", time.Now(), time.Time{})
	}()
	o := w.options(expr)
	o.Confirm = "0123"
	r, err := erase.Run(t.Context(), w.store, w.tables, o)
	if !errors.As(err, new(*retention.ConfirmError)) || len(r.Days) != 1 || time.Since(begun) < 5*time.Minute {
		t.Errorf("with a confirmation: %+v, %v after %v", r, err, time.Since(begun))
	}
}

// ingester writes the row of an ingester that holds records, perhaps.
func (w *world) ingester(id string, at, oldest time.Time) {
	w.t.Helper()
	props := map[string]any{"format": int64(1), "process": "12345678", "state": "holding", "started": stamp(at), "at": stamp(at)}
	if !oldest.IsZero() {
		props["oldest"] = stamp(oldest)
	}
	w.must(w.tables.Upsert(context.Background(), lease.Table, lease.Partition, []storage.Row{{Key: id, Props: props}}))
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000Z") }
