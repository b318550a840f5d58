package closing_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/blobfmt"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/retention"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

var day = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// world is a store with a clock.
type world struct {
	t     *testing.T
	store *mem.Store
	now   time.Time
	made  uint64
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: day.Add(50 * time.Hour)}
	w.store = mem.New(mem.Options{Now: func() time.Time { return w.now }})
	return w
}

// blob stores a blob of some records, a minute apart, and returns its key.
func (w *world) blob(service string, period time.Time, number, records int) string {
	w.t.Helper()
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.made++
	var o record.Origin
	binary.BigEndian.PutUint64(o[8:], w.made)
	for i := range records {
		at := period.Add(time.Duration(i) * time.Minute).UnixNano()
		line := fmt.Appendf(record.AppendTime([]byte(`{"ts":"`), at),
			`","level":"info","service":%q,"msg":"record %d of %d"}`+"\n", service, i, w.made)
		if err := enc.Add(line, at, o, uint32(i)); err != nil {
			w.t.Fatal(err)
		}
	}
	var id blobfmt.BatchID
	binary.BigEndian.PutUint64(id[:], w.made)
	body, meta, err := enc.Finish(id)
	if err != nil {
		w.t.Fatal(err)
	}
	name := blobfmt.Name{Service: service, Period: period, Number: number}
	meta.Place = name.Place()
	key := name.String()
	storagetest.Put(w.t, w.store, key, body, storage.Attrs{ContentType: blobfmt.ContentType,
		ContentEncoding: blobfmt.ContentEncoding, Metadata: meta.Map()})
	return key
}

// hours stores blobs in some hours of the day.
func (w *world) hours(service string) (keys []string) {
	for _, h := range []int{3, 15, 16, 23} {
		for n := range 3 {
			keys = append(keys, w.blob(service, day.Add(time.Duration(h)*time.Hour), n+1, 10))
		}
	}
	return keys
}

func (w *world) remove(keys ...string) {
	w.t.Helper()
	for _, key := range keys {
		if err := w.store.Delete(context.Background(), storage.Blob{Key: key}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) close() closing.Result {
	w.t.Helper()
	got, err := closing.Run(context.Background(), w.store, closing.Options{Log: zerolog.Nop()})
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// read returns the number of records that reads of a range find, and their problems. Reads of a near
// and of a distant store must agree, and so must those of the newest records.
func (w *world) read(service string, from, to time.Duration) (records int64, problems, warnings []string) {
	w.t.Helper()
	q := blobs.Query{Services: []string{service}, Range: blobs.Range{From: day.Add(from).UnixNano(), To: day.Add(to).UnixNano()}}
	for i, o := range []blobs.Options{{}, {Distant: true}, {}} {
		o.Now = func() time.Time { return w.now }
		r := blobs.New(w.store, o)
		var sum blobs.Summary
		var err error
		if i == 2 {
			q.Limit = 1000
			sum, err = r.Newest(context.Background(), q, func([]byte) error { return nil })
		} else {
			var p *blobs.Plan
			if p, err = r.Plan(context.Background(), q); err == nil {
				sum, err = p.Read(context.Background(), func([]byte) error { return nil })
			}
		}
		if err != nil {
			w.t.Fatal(err)
		}
		var got, told []string
		for _, err := range sum.Problems {
			got = append(got, err.Error())
		}
		for _, err := range sum.Warnings {
			told = append(told, err.Error())
		}
		slices.Sort(got)
		if i > 0 && (records != sum.Records || !slices.Equal(problems, got) || !slices.Equal(warnings, told)) {
			w.t.Errorf("reader %d: %d records, problems %q, warnings %q; the first had %d, %q, %q", i,
				sum.Records, got, told, records, problems, warnings)
		}
		records, problems, warnings = sum.Records, got, told
	}
	return records, problems, warnings
}

// A day has an account once it is over for long enough. A blob that is removed by hand is then
// missing to each read that asks for its hour, and to no other.
func TestRemoved(t *testing.T) {
	w := newWorld(t)
	w.now = day.Add(50*time.Hour - time.Second)
	keys := w.hours("web")
	if got := w.close(); got.Parts != 0 {
		t.Errorf("too early: %+v", got)
	}
	w.now = day.Add(50 * time.Hour)
	if got := w.close(); got.Parts != 1 || got.Blobs != 12 || got.Records != 120 || len(got.Problems) > 0 {
		t.Errorf("closed: %+v", got)
	}
	if got := w.close(); got.Parts != 0 || got.Days != 1 {
		t.Errorf("closed again: %+v", got)
	}
	if n, problems, warnings := w.read("web", 0, 24*time.Hour); n != 120 || len(problems)+len(warnings) > 0 {
		t.Errorf("%d records, %q, %q", n, problems, warnings)
	}
	w.remove(keys[4])
	for _, c := range []struct {
		from, to time.Duration
		records  int64
		told     bool
	}{
		{0, 24 * time.Hour, 110, true}, {15 * time.Hour, 16 * time.Hour, 20, true},
		{15*time.Hour + 5*time.Minute, 16 * time.Hour, 10, true},
		{14 * time.Hour, 15 * time.Hour, 0, false}, {16 * time.Hour, 24 * time.Hour, 60, false},
		{-48 * time.Hour, 48 * time.Hour, 110, true},
	} {
		n, problems, _ := w.read("web", c.from, c.to)
		if n != c.records || (len(problems) == 1) != c.told {
			t.Errorf("%v to %v: %d records, %q", c.from, c.to, n, problems)
		}
		const told = ": it is missing: the account of 2026-11-20 has it, with 10 records from 15:00:00 to 15:09:00"
		if c.told && !strings.Contains(problems[0], keys[4]+told) {
			t.Errorf("it says %q", problems)
		}
	}
	if got := w.close(); got.Parts != 0 || len(got.Problems) != 1 {
		t.Errorf("closed again: %+v", got)
	}
}

// The same in each hour, though the names of some hours have a longer prefix in common than those of
// the day, and for ranges that begin there.
func TestRemovedInEachHour(t *testing.T) {
	w := newWorld(t)
	var keys []string
	for h := range 48 {
		w.blob("web", day.Add(time.Duration(h-24)*time.Hour), 1, 1)
		keys = append(keys, w.blob("web", day.Add(time.Duration(h-24)*time.Hour), 2, 1))
	}
	w.close()
	for h, key := range keys[:24] {
		body := storagetest.Body(t, w.store, key)
		o, err := w.store.Stat(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		w.remove(key)
		at := time.Duration(h-24) * time.Hour
		for _, to := range []time.Duration{at + time.Hour, min(at+4*time.Hour, 0), 0, time.Hour, 24 * time.Hour} {
			if _, problems, _ := w.read("web", at, to); len(problems) != 1 {
				t.Errorf("without %s, read to %v: %q", key, to, problems)
			}
		}
		storagetest.Put(t, w.store, key, body, o.Attrs)
	}
}

// A service whose every blob is gone is found by its account, also under a glob.
func TestAllRemoved(t *testing.T) {
	w := newWorld(t)
	w.hours("shop")
	keys := w.hours("web")
	w.close()
	w.remove(keys...)
	for _, name := range []string{"web", "w*"} {
		if n, problems, _ := w.read(name, 0, 24*time.Hour); n != 0 || len(problems) != 12 {
			t.Errorf("%s: %d records, %q", name, n, problems)
		}
	}
}

// Late blobs are read, and are no losses. The next run accounts for them.
func TestLate(t *testing.T) {
	w := newWorld(t)
	w.hours("web")
	w.close()
	late := w.blob("web", day.Add(15*time.Hour), 4, 10)
	if n, problems, warnings := w.read("web", 0, 24*time.Hour); n != 130 || len(problems)+len(warnings) > 0 {
		t.Errorf("%d records, %q, %q", n, problems, warnings)
	}
	if got := w.close(); got.Parts != 1 || got.Blobs != 13 {
		t.Errorf("%+v", got)
	}
	w.remove(late)
	if n, problems, _ := w.read("web", 0, 24*time.Hour); n != 120 || len(problems) != 1 {
		t.Errorf("%d records, %q", n, problems)
	}
}

// Compaction has each of its steps in the account before it deletes, and reads never miss a record.
func TestCompacted(t *testing.T) {
	w := newWorld(t)
	keys := w.hours("web")
	run := func() compact.Result {
		t.Helper()
		got, err := compact.Run(context.Background(), w.store, compact.Options{Log: zerolog.Nop()})
		if err != nil || len(got.Problems) > 0 {
			t.Fatal(got, err)
		}
		return got
	}
	whole := func() {
		t.Helper()
		if n, problems, warnings := w.read("web", 0, 24*time.Hour); n != 120 || len(problems)+len(warnings) > 0 {
			t.Errorf("%d records, %q, %q", n, problems, warnings)
		}
	}
	if got := run(); got.Out != 0 {
		t.Errorf("a day without an account was compacted: %+v", got)
	}
	w.close()
	if got := run(); got.Out != 4 || got.Deleted != 0 {
		t.Errorf("%+v", got)
	}
	whole()
	w.now = w.now.Add(2 * time.Hour)
	if got := run(); got.Out != 0 || got.Deleted != 12 {
		t.Errorf("%+v", got)
	}
	whole()
	if got := run(); got.Out != 0 || got.Deleted != 0 {
		t.Errorf("%+v", got)
	}
	if got := w.close(); got.Parts != 0 {
		t.Errorf("%+v", got)
	}
	left := storagetest.KeysOf(t, w.store, "web/")
	if len(left) != 6 { // four blobs and two parts
		t.Errorf("the store has %v", left)
	}
	w.remove(left[1])
	if n, problems, _ := w.read("web", 0, 24*time.Hour); n != 90 || len(problems) != 1 || !strings.Contains(problems[0], left[1]) {
		t.Errorf("%d records, %q", n, problems)
	}
	_ = keys
}

// A compactor that knows no accounts deletes what it replaced. Nothing is missing.
func TestOlderCompactor(t *testing.T) {
	w := newWorld(t)
	keys := w.hours("web")
	w.close()
	var parts []storage.Blob
	for _, o := range storagetest.Objects(t, w.store, "web/") {
		if _, ok := closed.ParseName(o.Key); ok {
			parts = append(parts, o)
		}
	}
	if _, err := compact.Run(context.Background(), w.store, compact.Options{Log: zerolog.Nop()}); err != nil {
		t.Fatal(err)
	}
	for _, o := range storagetest.Objects(t, w.store, "web/") {
		if n, ok := closed.ParseName(o.Key); ok && n.Number > 1 {
			w.remove(o.Key)
		}
	}
	w.remove(keys...)
	if n, problems, warnings := w.read("web", 0, 24*time.Hour); n != 120 || len(problems)+len(warnings) > 0 || len(parts) != 1 {
		t.Errorf("%d records, %q, %q", n, problems, warnings)
	}
	if got := w.close(); got.Parts != 1 || len(got.Problems) > 0 {
		t.Errorf("%+v", got)
	}
}

// Numbers that lack when a day is closed are known losses: reads say so, and are complete.
func TestGap(t *testing.T) {
	w := newWorld(t)
	keys := w.hours("web")
	w.remove(keys[4])
	if got := w.close(); got.Parts != 1 || len(got.Problems) != 1 {
		t.Errorf("%+v", got)
	}
	n, problems, warnings := w.read("web", 0, 24*time.Hour)
	if n != 110 || len(problems) > 0 || len(warnings) != 1 || !strings.Contains(warnings[0], keys[4]) {
		t.Errorf("%d records, %q, %q", n, problems, warnings)
	}
	if _, _, warnings := w.read("web", 16*time.Hour, 17*time.Hour); len(warnings) > 0 {
		t.Errorf("another hour: %q", warnings)
	}
	w.blob("web", day.Add(15*time.Hour), 2, 10) // it was late
	w.close()
	if n, problems, warnings := w.read("web", 0, 24*time.Hour); n != 120 || len(problems)+len(warnings) > 0 {
		t.Errorf("%d records, %q, %q", n, problems, warnings)
	}
}

// Nothing is missing of a day that was dropped, and such a day gets no account.
func TestDropped(t *testing.T) {
	w := newWorld(t)
	keys := w.hours("web")
	w.close()
	if err := horizon.Drop(context.Background(), w.store, "web", horizon.DayOf(day)); err != nil {
		t.Fatal(err)
	}
	w.remove(keys[3], keys[4])
	if n, problems, _ := w.read("web", 0, 24*time.Hour); n != 0 || len(problems) > 0 {
		t.Errorf("%d records, %q", n, problems)
	}
	if got := w.close(); got.Parts != 0 || len(got.Problems) > 0 {
		t.Errorf("%+v", got)
	}
}

// Each part has the hash of the one before.
// A run may hang after it has listed a day. By then another one has deleted the parts below a horizon.
func TestDroppedAndGone(t *testing.T) {
	w := newWorld(t)
	w.hours("web")
	w.close()
	var gone []string
	hung := storagetest.Faulty(w.store, func(op storagetest.Op, key string) storagetest.Fault {
		if op == storagetest.Get && strings.Contains(key, "/_closed.") {
			gone = append(gone, key)
			w.remove(key)
		}
		return storagetest.Fault{}
	})
	if err := closing.NewCloser(hung, w.now).Drop(context.Background(), "web", horizon.DayOf(day)); err != nil || len(gone) != 1 {
		t.Errorf("%v, gone are %v", err, gone)
	}
	if parts := storagetest.KeysOf(t, w.store, "web/"+day.Format("2006/01/02/")+"_"); len(parts) != 0 {
		t.Errorf("of a day without an account: %v", parts)
	}
}

func TestChain(t *testing.T) {
	w := newWorld(t)
	w.hours("web")
	for n := range 4 {
		w.blob("web", day.Add(time.Duration(n)*time.Hour), 9, 1)
		w.close()
	}
	var before closed.Hash
	for n := 1; n <= 4; n++ {
		key := closed.Name{Service: "web", Day: horizon.DayOf(day), Number: n}.String()
		body := storagetest.Body(t, w.store, key)
		p, err := closed.Parse(key, body)
		if err != nil || p.Before != before {
			t.Fatalf("%s: %v, %v", key, p, err)
		}
		if before = closed.HashOf(body); before != p.Sum || bytes.Count(body, []byte("\n")) != 1+len(p.Blobs) {
			t.Errorf("%s: %x", key, before)
		}
	}
}

// A part that was cut is no part.
func TestCut(t *testing.T) {
	w := newWorld(t)
	w.hours("web")
	w.close()
	key := "web/2026/11/20/_closed.000001"
	body := storagetest.Body(t, w.store, key)
	for n := range body {
		if _, err := closed.Parse(key, body[:n]); !errors.Is(err, closed.ErrUnread) && n < len(body)-1 {
			t.Fatalf("cut to %d of %d bytes: %v", n, len(body), err)
		}
	}
}

// A run of the retention job closes the days since the last one, leaves a root each day, and takes
// the accounts of deleted days away behind it.
func TestApply(t *testing.T) {
	w := newWorld(t)
	apply := func() *retention.Result {
		t.Helper()
		j := retention.New(w.store, w.store, retention.Options{Policy: retention.Policy{Default: 30 * 24 * time.Hour}, Grace: time.Hour,
			Clock: func() time.Time { return w.now }, Closing: &closing.Options{}})
		p, err := j.Plan(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		r, err := j.Apply(context.Background(), p.Hash)
		if err != nil || len(r.Problems) > 0 {
			t.Fatal(err, r.Problems)
		}
		return r
	}
	w.blob("web", day.Add(-24*time.Hour), 1, 1)
	w.hours("web")
	if got := apply(); got.Closed.Parts != 2 || got.Closed.Root == nil {
		t.Errorf("%+v", got.Closed)
	}
	for range 3 {
		w.now = w.now.Add(24 * time.Hour)
		w.hours("shop") // late, as an operator imports
		w.blob("web", w.now.Add(-50*time.Hour).Truncate(24*time.Hour), 1, 1)
		if got := apply(); got.Closed.Parts != 1 || got.Closed.Root == nil {
			t.Errorf("%+v", got.Closed)
		}
		w.remove(storagetest.KeysOf(t, w.store, "shop/")...)
	}
	if found := w.verify(); len(found) > 0 {
		t.Errorf("verify: %q", found)
	}
	w.now = w.now.Add(40 * 24 * time.Hour)
	apply()
	w.now = w.now.Add(2 * time.Hour)
	apply()
	if left := storagetest.KeysOf(t, w.store, "web/"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if roots := storagetest.KeysOf(t, w.store, closed.RootPrefix); len(roots) != 6 {
		t.Errorf("roots: %v", roots)
	}
	if found := w.verify(); len(found) > 0 {
		t.Errorf("verify: %q", found)
	}
}
