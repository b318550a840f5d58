package tailindex_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testenv/stores"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
	"blobtail/tailindex"
)

// counting is a table store that counts scans.
type counting struct {
	storage.TableStore
	scans atomic.Int64
}

func (s *counting) Scan(ctx context.Context, table, partition, from, to string, limit int, props ...string) iter.Seq2[storage.Row, error] {
	s.scans.Add(1)
	return s.TableStore.Scan(ctx, table, partition, from, to, limit, props...)
}

// Rows are read back from every kind of store. Their lines fit into a string, or into
// many compressed parts, or not at all. Reading the newest costs at most two ranges a
// shard.
func TestStores(t *testing.T) {
	stores.Each(t, &env, func(t *testing.T, open stores.Open) {
		t.Parallel()
		_, s := open()
		inEachStore(t, &counting{TableStore: s})
	})
}

func inEachStore(t *testing.T, s *counting) {
	prefix := "t" + strings.ToLower(strings.Map(func(r rune) rune { return 'a' + r%26 }, testenv.Name("x")))
	w, stop := start(t, s, tailindex.Options{Prefix: prefix, Store: "logs", Log: zerolog.New(zerolog.NewTestWriter(t))})
	defer stop()
	rnd := rand.NewChaCha8([32]byte{1})
	noise := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[rnd.Uint64()%64]
		}
		return string(b)
	}
	// The lines of small fit into a string, those of packed into some parts. Those of
	// large are compressed and do not fit.
	sent := map[string][]record.Entry{}
	for service, size := range map[string]int{"small": 10, "packed": 1000, "large": 16_000} {
		var lines []string
		for i := range 100 {
			at := time.Now().Add(time.Duration(i-100) * time.Millisecond)
			lines = append(lines, line(at, []string{"info", "error"}[i%2], service, fmt.Sprint(i, `é \" <&>`, noise(size))))
		}
		run := newRun(service, 1, lines...)
		sent[service] = entries(run)
		w.Accepted(1, run)
	}
	r := tailindex.NewReader(s, tailindex.Options{Prefix: prefix, Store: "logs"})
	for service, want := range sent {
		row := waitRow(t, r, service)
		s.scans.Store(0)
		if _, err := r.Newest(t.Context(), service, false, 100); err != nil {
			t.Fatal(err)
		}
		if n := s.scans.Load(); n > 2*tailindex.DefaultShards {
			t.Errorf("%d ranges for %d shards", n, tailindex.DefaultShards)
		}
		if service == "large" {
			if n := len(row.Entries); n < 40 || n == 100 || row.Omitted != 100-n || row.Count != 100 {
				t.Errorf("%d entries, %d of %d omitted", n, row.Omitted, row.Count)
			}
			want = want[100-len(row.Entries):]
		}
		if show(row.Entries) != show(want) {
			t.Errorf("%s: got\n%swant\n%s", service, show(row.Entries), show(want))
		}
		since, err := r.Written(t.Context(), service, true, row.Arrived.Add(-time.Second))
		if err != nil || len(since) != 1 || since[0].Count != 50 || !since[0].Errors {
			t.Errorf("%s: errors %v, %v", service, since, err)
		}
		watch := r.Watch(service, false, row.Arrived.Add(-time.Second))
		for i := range 2 {
			rows, missed, err := watch.Poll(t.Context())
			if err != nil || len(rows) != 1-i || len(missed) != 0 {
				t.Errorf("%s: poll %d: %d rows, %v, %v", service, i+1, len(rows), missed, err)
			}
		}
	}
	if rows, err := tailindex.NewReader(s, tailindex.Options{Prefix: "none"}).Newest(t.Context(), "small", false, 1); len(rows) > 0 || err != nil {
		t.Errorf("no tables: %v, %v", rows, err)
	}
}

// waitRow waits for the first row of a service.
func waitRow(t *testing.T, r *tailindex.Reader, service string) (row tailindex.Row) {
	t.Helper()
	testkit.Until(t, service+" has a row", func() bool {
		rows, err := r.Newest(t.Context(), service, false, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) > 0 {
			row = rows[0]
		}
		return len(rows) > 0
	})
	return row
}

// Rows of another store do not shorten the answer, and unreadable rows do not hide the
// rest.
func TestRowsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New(mem.Options{})
		ours, stopOurs := start(t, s, tailindex.Options{Store: "a"})
		defer stopOurs()
		theirs, stopTheirs := start(t, s, tailindex.Options{Store: "b"})
		defer stopTheirs()
		for i := range 100 {
			ours.Accepted(1, newRun("web", uint64(i), line(time.Now(), "info", "web", fmt.Sprint("ours ", i))))
			theirs.Accepted(1, newRun("web", uint64(i), line(time.Now().Add(time.Minute), "info", "web", "theirs")))
			time.Sleep(2 * time.Second)
		}
		key := func(n int) string { return fmt.Sprintf("a-%019d-0badcafe-%d", 2516000000000000000+n, n+1) }
		bad := map[string]map[string]any{
			key(0): {"format": int64(3), "store": "a", "arrived": "2026-11-20T15:04:05.000000000Z"},
			key(1): {"store": "a"},
			strings.Replace(key(2), "cafe", "CAFE", 1): {"format": int64(2), "store": "a", "arrived": "2026-11-20T15:04:05.000000000Z"},
			"a-x": {"format": int64(2), "store": "a"},
		}
		for key, props := range bad {
			if err := s.Upsert(t.Context(), tailindex.Table("tail", time.Now()), "web~0", []storage.Row{{Key: key, Props: props}}); err != nil {
				t.Fatal(err)
			}
		}
		r := tailindex.NewReader(s, tailindex.Options{Store: "a"})
		rows, err := r.Newest(t.Context(), "web", false, 10)
		got := merged(rows)
		if len(got) < 10 || !strings.Contains(string(got[len(got)-1].Line), "ours 99") || strings.Contains(show(got), "theirs") {
			t.Errorf("%d records:\n%s", len(got), show(got))
		}
		var row *tailindex.RowError
		if !errors.As(err, &row) || row.Key != key(0) || row.More < 1 ||
			!strings.Contains(err.Error(), "it is in format 3, and this version reads format 2: use a newer one") {
			t.Errorf("%v", err)
		}
		since, err := r.Written(t.Context(), "web", false, time.Now().Add(-11*time.Second))
		if len(since) != 5 || !errors.As(err, &row) {
			t.Errorf("%d rows, %v", len(since), err)
		}
		// A watch reports it once.
		w := r.Watch("web", false, time.Now().Add(-11*time.Second))
		for i := range 3 {
			rows, _, err := w.Poll(t.Context())
			if i == 0 && (len(rows) != 5 || !errors.As(err, &row)) || i > 0 && (len(rows) > 0 || err != nil) {
				t.Errorf("poll %d: %d rows, %v", i, len(rows), err)
			}
		}
	})
}

// If reading one shard fails, no rows are returned, of any shard.
func TestReadFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New(mem.Options{})
		w, stop := start(t, s, tailindex.Options{})
		defer stop()
		w.Accepted(1, newRun("web", 1, line(time.Now(), "info", "web", "x")))
		time.Sleep(time.Second)
		// The failing reads are of one shard's partition, in a table that exists.
		down := storagetest.FaultyTables(s, storagetest.Times(3, storagetest.Scan, tailindex.Table("tail", time.Now())+"/web~2", storagetest.Fault{Before: storagetest.ErrFault}))
		r := tailindex.NewReader(down, tailindex.Options{})
		if rows, err := r.Newest(t.Context(), "web", false, 1); len(rows) != 0 || !errors.Is(err, storagetest.ErrFault) {
			t.Errorf("%v, %v", rows, err)
		}
		if rows, err := r.Written(t.Context(), "web", false, time.Now().Add(-time.Minute)); len(rows) != 0 || !errors.Is(err, storagetest.ErrFault) {
			t.Errorf("%v, %v", rows, err)
		}
		watch := r.Watch("web", false, time.Now().Add(-time.Minute))
		if rows, _, err := watch.Poll(t.Context()); len(rows) != 0 || !errors.Is(err, storagetest.ErrFault) {
			t.Errorf("%v, %v", rows, err)
		}
		if rows, _, err := watch.Poll(t.Context()); len(rows) != 1 || err != nil {
			t.Errorf("after the failure: %v, %v", rows, err)
		}
	})
}

// A watch returns every row once, soon after it was written, over midnight, with late
// records, and reports missing rows.
func TestWatch(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) { watch(t, rand.New(rand.NewPCG(seed, 2))) })
	}
}

func watch(t *testing.T, rnd *rand.Rand) {
	offset := time.Until(time.Date(2026, 11, 20, 23, 58, 0, 0, time.UTC))
	clock := func() time.Time { return time.Now().Add(offset) }
	s := mem.New(mem.Options{})
	// One write of the second writer is lost for ever, though the writer gets a success.
	lost := &losing{TableStore: s}
	writers := []*tailindex.Writer{}
	for lane, store := range []storage.TableStore{s, lost, s} {
		w, stop := start(t, store, tailindex.Options{Lane: func() int { return lane }, Now: clock})
		defer stop()
		writers = append(writers, w)
	}
	scans := &counting{TableStore: s}
	r := tailindex.NewReader(scans, tailindex.Options{Now: clock})
	follow := r.Watch("web", false, clock())
	var got []tailindex.Row
	var missed []tailindex.Missed
	sent := 0
	for i := range 240 {
		for lane, w := range writers {
			// The third ingester's records are two minutes late.
			at := clock().Add(-time.Duration(rnd.Int64N(1e9)) - time.Duration(lane/2)*2*time.Minute)
			w.Accepted(1, newRun("web", uint64(i), line(at, "info", "web", fmt.Sprint(i))))
			sent++
		}
		lost.lose.Store(i == 100)
		time.Sleep(time.Second)
		rows, miss, err := follow.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, rows...)
		missed = append(missed, miss...)
		for _, row := range rows {
			if age := clock().Sub(row.Arrived); age > 2500*time.Millisecond && i > 20 {
				t.Errorf("a row is found after %v", age)
			}
		}
	}
	time.Sleep(12 * time.Second)
	rows, miss, err := follow.Poll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, missed = append(got, rows...), append(missed, miss...)
	keys := map[string]bool{}
	told := 0
	for _, row := range got {
		if keys[row.Key] {
			t.Errorf("row %s came twice", row.Key)
		}
		keys[row.Key] = true
		told += row.Count
	}
	if told != sent-int(lost.records.Load()) {
		t.Errorf("told of %d records of %d", told, sent)
	}
	if len(missed) != 1 || missed[0].Process != writers[1].Process() || missed[0].Rows != int(lost.rows.Load()) || !missed[0].From.Before(missed[0].To) {
		t.Errorf("missed %+v; %d rows were lost", missed, lost.rows.Load())
	}
	// In the long run a poll is one list of keys and one list of rows for each shard.
	scans.scans.Store(0)
	for range 10 {
		time.Sleep(100 * time.Millisecond)
		if _, _, err := follow.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := scans.scans.Load(); n > 10*2*tailindex.DefaultShards {
		t.Errorf("%d scans in 10 polls", n)
	}
}

// losing is a table store that loses writes on command.
type losing struct {
	storage.TableStore
	lose          atomic.Bool
	rows, records atomic.Int64
}

func (s *losing) Upsert(ctx context.Context, table, partition string, rows []storage.Row) error {
	if s.lose.Load() && len(rows) > 0 {
		s.rows.Add(1)
		count, _ := binary.Uvarint(rows[0].Props["d"].([]byte)[1:]) // behind the flags
		s.records.Add(int64(count))
		return nil
	}
	return s.TableStore.Upsert(ctx, table, partition, rows)
}

// Memory is bounded for any number of services, and lines dropped for the bound are
// counted.
func TestMemory(t *testing.T) {
	testkit.FullOnly(t, "encodes 240 MB")
	for _, services := range []int{3, 20_000} {
		synctest.Test(t, func(t *testing.T) {
			down := make(chan struct{})
			s := storagetest.FaultyTables(mem.New(mem.Options{}), storagetest.Times(-1, storagetest.Upsert, "", storagetest.Fault{Block: down}))
			const most = 4 << 20
			w, stop := start(t, s, tailindex.Options{Memory: most})
			defer stop()
			text := strings.Repeat("x", 12_000)
			sent := map[string][]int64{}
			for i := range 20_000 {
				service := fmt.Sprint("s", i%services)
				now := time.Now().Add(time.Duration(i))
				w.Accepted(1, newRun(service, uint64(i), line(now, "error", service, text[:i%len(text)])))
				sent[service] = append(sent[service], now.UnixNano())
				if i%100 == 0 {
					time.Sleep(10 * time.Millisecond)
					if held := tailindex.Held(w); held > most*5/4 {
						t.Fatalf("%d bytes are held", held)
					}
				}
			}
			close(down)
			time.Sleep(time.Minute)
			r := tailindex.NewReader(s, tailindex.Options{})
			holes := 0
			for service, times := range sent {
				rows, err := r.Written(t.Context(), service, true, time.Now().Add(-time.Hour))
				if err != nil {
					t.Fatal(err)
				}
				told := 0
				for _, row := range rows {
					told += row.Count
					if !row.OldestOmitted() {
						holes++
					} else if row.Omitted > 0 {
						oldest, _ := slices.BinarySearch(times, row.Entries[0].Time)
						newest, _ := slices.BinarySearch(times, row.Last)
						if newest-oldest+1 != len(row.Entries) {
							t.Fatalf("%s: %d records since the oldest of %d entries", service, newest-oldest+1, len(row.Entries))
						}
					}
				}
				if told != len(times) {
					t.Fatalf("%s: told of %d records of %d", service, told, len(times))
				}
				if len(sent) > 100 && len(sent) < 1000 {
					break
				}
			}
			if holes == 0 {
				t.Error("nothing went for memory")
			}
			time.Sleep(time.Minute)
			if held := tailindex.Held(w); held != 0 {
				t.Errorf("%d bytes are held by nobody", held)
			}
		})
	}
}

// Lines of a row are in order, in any order of arrival.
func TestOrderWithinRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New(mem.Options{})
		w, stop := start(t, s, tailindex.Options{})
		defer stop()
		rnd := rand.New(rand.NewPCG(1, 1))
		for i := range 50 {
			var lines []string
			for range rnd.IntN(20) + 1 {
				lines = append(lines, line(time.Now().Add(-time.Duration(rnd.IntN(5))*time.Second), "info", "web", fmt.Sprint(i)))
			}
			w.Accepted(1, newRun("web", rnd.Uint64(), lines...))
		}
		time.Sleep(time.Second)
		rows, err := tailindex.NewReader(s, tailindex.Options{}).Newest(t.Context(), "web", false, 100)
		if err != nil || len(rows) != 1 || len(rows[0].Entries) != tailindex.MaxLines {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		if !slices.IsSortedFunc(rows[0].Entries, func(a, b record.Entry) int { return a.Compare(&b) }) {
			t.Error("not in order")
		}
	})
}
