package compact_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/blobfmt"
	"blobtail/catalog/closed"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// hour is the time of the records of these tests, and now the time of their
// compaction.
var (
	hour = time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
	now  = hour.Add(30 * time.Hour)
)

// rec is one record.
type rec struct {
	time   int64
	origin record.Origin
	index  uint32
	line   string
}

func line(service string, t int64, level, msg string) string {
	b := record.AppendTime([]byte(`{"ts":"`), t)
	return string(b) + fmt.Sprintf(`","level":%q,"service":%q,"msg":%q}`, level, service, msg) + "\n"
}

func origin(n uint64) (o record.Origin) {
	binary.BigEndian.PutUint64(o[8:], n)
	return o
}

// request makes the records of one request, spread over a part of the hour.
func request(n uint64, lines int, from, span time.Duration) []rec {
	levels := []string{"trace", "debug", "info", "warn", "error", "critical", "odd"}
	var out []rec
	for i := range lines {
		t := hour.Add(from + span*time.Duration(i)/time.Duration(lines)).UnixNano()
		out = append(out, rec{t, origin(n), uint32(i), line("web", t, levels[(int(n)+i)%len(levels)], fmt.Sprintf("request %d line %d", n, i))})
	}
	return out
}

// world is a store with a clock.
type world struct {
	t     testing.TB
	store *mem.Store
	now   time.Time
	enc   *blobfmt.Encoder
	ids   uint64
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, now: now}
	w.store = mem.New(mem.Options{Now: func() time.Time { return w.now }})
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{BlockSize: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	w.enc = enc
	return w
}

// encode makes the blob of a batch. It keeps one of several copies of a record.
func (w *world) encode(id uint64, recs []rec, replaces ...blobfmt.BatchID) ([]byte, blobfmt.Meta) {
	recs = slices.Clone(recs)
	slices.SortFunc(recs, func(a, b rec) int {
		return cmp.Or(cmp.Compare(a.time, b.time), bytes.Compare(a.origin[:], b.origin[:]), cmp.Compare(a.index, b.index))
	})
	w.enc.Reset()
	for _, r := range slices.Compact(recs) {
		if err := w.enc.Add([]byte(r.line), r.time, r.origin, r.index); err != nil {
			w.t.Fatal(err)
		}
	}
	w.enc.Replaces(replaces...)
	body, meta, err := w.enc.Finish(batch(id))
	if err != nil {
		w.t.Fatal(err)
	}
	return body, meta
}

func batch(n uint64) (id blobfmt.BatchID) {
	id[0] = 0xb
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}

// put stores a new batch and returns its key and id.
func (w *world) put(number int, period time.Time, recs []rec) (string, uint64) {
	w.t.Helper()
	w.ids++
	return w.putAs(w.ids, number, period, recs), w.ids
}

func (w *world) putAs(id uint64, number int, period time.Time, recs []rec, replaces ...blobfmt.BatchID) string {
	w.t.Helper()
	body, meta := w.encode(id, recs, replaces...)
	key := blobfmt.Name{Service: "web", Period: period, Number: number}.String()
	w.create(key, body, meta.Map())
	return key
}

func (w *world) create(key string, body []byte, meta map[string]string) {
	w.t.Helper()
	storagetest.Put(w.t, w.store, key, body, storage.Attrs{
		ContentType: blobfmt.ContentType, ContentEncoding: blobfmt.ContentEncoding, Metadata: meta,
	})
}

// minutes stores a small blob for each minute of the hour and returns their ids.
func (w *world) minutes(n int) (ids []uint64) {
	for i := range n {
		_, id := w.put(i+1, hour, request(uint64(1000+i), 10, time.Duration(i)*time.Minute, time.Minute))
		ids = append(ids, id)
	}
	return ids
}

func (w *world) compact(ctx context.Context, store storage.BlobStore, o compact.Options) (compact.Result, error) {
	w.close(ctx)
	return w.compactClosed(ctx, store, o)
}

// compactClosed compacts the days that are closed.
func (w *world) compactClosed(ctx context.Context, store storage.BlobStore, o compact.Options) (compact.Result, error) {
	o.Now, o.Log = func() time.Time { return w.now }, zerolog.Nop()
	return compact.Run(ctx, store, o)
}

// close closes the days that are over.
func (w *world) close(ctx context.Context) {
	w.t.Helper()
	if _, err := closing.Run(ctx, w.store, closing.Options{After: 20 * time.Hour, Now: w.now, Log: zerolog.Nop()}); err != nil {
		w.t.Fatal(err)
	}
}

// run compacts once, and must succeed.
func (w *world) run(o compact.Options) compact.Result {
	w.t.Helper()
	got, err := w.compact(context.Background(), w.store, o)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, err := range got.Problems {
		w.t.Errorf("problem: %v", err)
	}
	return got
}

// blobs are the objects of the store but for accounts.
func (w *world) blobs() []storage.Blob {
	return slices.DeleteFunc(storagetest.Objects(w.t, w.store, ""), func(o storage.Blob) bool {
		_, account := closed.ParseName(o.Key)
		return account || strings.HasPrefix(o.Key, closed.RootPrefix)
	})
}

func (w *world) keys() (keys []string) {
	for _, o := range w.blobs() {
		keys = append(keys, o.Key)
	}
	return keys
}

// dump is the contents of a store, without the times of storing.
func (w *world) dump() string {
	var out strings.Builder
	for _, b := range w.blobs() {
		all := storagetest.Body(w.t, w.store, b.Key)
		fmt.Fprintf(&out, "%s %v %x\n", b.Key, b.Metadata, all)
	}
	return out.String()
}

// answer is everything that a reader gets of the store: the lines, their number, and
// a histogram by the minute and one in ranges.
func (w *world) answer() string {
	w.t.Helper()
	r := blobs.New(w.store, blobs.Options{Workers: 1})
	var out strings.Builder
	for _, rng := range []blobs.Range{
		blobs.Always(),
		{From: hour.Add(10*time.Minute + time.Second).UnixNano(), To: hour.Add(31 * time.Minute).UnixNano()},
		{From: hour.Add(45 * time.Minute).UnixNano(), To: blobs.Newest},
	} {
		plan, err := r.Plan(context.Background(), blobs.Query{Services: []string{"*"}, Range: rng})
		if err != nil {
			w.t.Fatal(err)
		}
		sum, err := plan.Read(context.Background(), func(lines []byte) error { out.Write(lines); return nil })
		if err != nil || !sum.Complete() {
			w.t.Fatalf("read: %v, %v", err, sum.Problems)
		}
		n, sum, err := plan.Count(context.Background())
		if err != nil || !sum.Complete() {
			w.t.Fatalf("count: %v, %v", err, sum.Problems)
		}
		buckets, sum, err := plan.Histogram(context.Background(), blobs.Buckets{Length: time.Minute})
		if err != nil || !sum.Complete() {
			w.t.Fatalf("histogram: %v, %v", err, sum.Problems)
		}
		fmt.Fprintf(&out, "%d\n%+v\n", n, buckets)
	}
	return out.String()
}

// calls counts the calls of a store by method.
type calls struct {
	mu sync.Mutex
	n  map[storagetest.Op]int
}

// of returns a store that counts the calls to s.
func (c *calls) of(s storage.BlobStore) storage.BlobStore {
	c.n = map[storagetest.Op]int{}
	return storagetest.Faulty(s, func(op storagetest.Op, _ string) storagetest.Fault {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n[op]++
		return storagetest.Fault{}
	})
}

// On a full disk nothing can be rewritten, but the blobs that were replaced before go, and
// so make room.
func TestFullDisk(t *testing.T) {
	w := newWorld(t)
	late := func(lane int) {
		for i := range 5 {
			back := time.Duration(i+1) * -time.Hour
			w.put(lane, hour.Add(back), shifted(request(uint64(lane), 5, 0, time.Minute), back))
			w.put(lane+1, hour.Add(back), shifted(request(uint64(lane+1), 5, 0, time.Minute), back))
		}
	}
	late(1)
	w.run(compact.Options{})
	w.now = w.now.Add(2 * time.Hour)
	late(11)
	full := storagetest.Faulty(w.store, storagetest.Times(-1, storagetest.Create, "", storagetest.Fault{Before: syscall.ENOSPC}))
	before := len(w.keys())
	got, err := w.compact(t.Context(), full, compact.Options{})
	if err == nil && len(got.Problems) == 0 || got.Deleted == 0 || len(w.keys()) != before-got.Deleted {
		t.Errorf("deleted %d of %d, %v, %v", got.Deleted, before, got.Problems, err)
	}
}
