package erase_test

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

	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"

	"blobtail/blobfmt"
	"blobtail/internal/where"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/retention"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
	"blobtail/retention/erase"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
	"blobtail/tailindex"
)

// expr matches the records of these tests that are erased.
const expr = `user startsWith "jane" || msg contains "jane"`

// world is a store with virtual time, and the records that it was given.
type world struct {
	t        testing.TB
	store    storage.BlobStore
	tables   storage.TableStore
	tail     string // prefix of the tables of the newest records
	enc      *blobfmt.Encoder
	stay     map[string]int // lines that do not match; each is there once
	gone     int            // how many others
	number   int
	next     map[string]int     // numbers of blobs, by service and period
	ops      storagetest.Script // of the job; nil: none
	patience time.Duration
}

func newWorld(t testing.TB) *world {
	s := mem.New(mem.Options{Now: time.Now})
	return worldOf(t, s, s)
}

func worldOf(t testing.TB, blobs storage.BlobStore, tables storage.TableStore) *world {
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{BlockSize: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, store: blobs, tables: tables, tail: "tail", enc: enc, stay: map[string]int{}, next: map[string]int{}}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// ago is the beginning of an hour some days ago.
func ago(days, hour int) time.Time {
	return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -days).Add(time.Duration(hour) * time.Hour)
}

// entries are n records of a service from a time on. Each nth is of Jane; 0: none.
func (w *world) entries(service string, at time.Time, n, nth int) (out []record.Entry) {
	w.number++
	for i := range n {
		e := record.Entry{Time: at.Add(time.Duration(i) * time.Second / 4).UnixNano()}
		binary.BigEndian.PutUint64(e.ID.Origin[8:], uint64(w.number))
		e.ID.Index = uint32(i)
		user := fmt.Sprintf("user%d", i)
		if nth > 0 && i%nth == nth-1 {
			user = fmt.Sprintf("jane-%d-%d", w.number, i)
		}
		field := fmt.Sprintf(`"msg":"request %d of %d","user":%q`, i, w.number, user)
		if service == record.RejectedService {
			field = fmt.Sprintf(`"msg":"{broken %d %s","reason":"no JSON","service.name":"web"`, w.number, user)
		}
		level := []string{"info", "warn", "error"}[i%3]
		e.Line = fmt.Appendf(nil, `{"ts":%q,"level":%q,"service":%q,%s}`+"\n", record.AppendTime(nil, e.Time), level, service, field)
		if out = append(out, e); strings.HasPrefix(user, "jane") {
			w.gone++
		} else {
			w.stay[string(e.Line)] = 1
		}
	}
	return out
}

// put stores a blob of some records as an ingester does, and returns its key, body and metadata.
func (w *world) put(service string, period time.Time, entries []record.Entry) (key string, body []byte, attrs storage.Attrs) {
	w.t.Helper()
	w.enc.Reset()
	for _, e := range entries {
		w.must(w.enc.Add(e.Line, e.Time, e.ID.Origin, e.ID.Index))
	}
	var id blobfmt.BatchID
	binary.BigEndian.PutUint64(id[:], binary.BigEndian.Uint64(entries[0].ID.Origin[8:]))
	body, meta, err := w.enc.Finish(id)
	w.must(err)
	at := service + period.String()
	w.next[at]++
	name := blobfmt.Name{Service: service, Period: period, Number: w.next[at]}
	meta.Place = name.Place()
	attrs = storage.Attrs{ContentType: blobfmt.ContentType, ContentEncoding: blobfmt.ContentEncoding, Metadata: meta.Map()}
	w.must(w.store.Create(context.Background(), name.String(), body, attrs))
	return name.String(), bytes.Clone(body), attrs
}

// blob stores a new blob.
func (w *world) blob(service string, period time.Time, n, nth int) {
	w.t.Helper()
	w.put(service, period, w.entries(service, period, n, nth))
}

func (w *world) close() {
	w.t.Helper()
	_, err := closing.Run(context.Background(), w.store, closing.Options{Now: time.Now(), Log: zerolog.Nop()})
	w.must(err)
}

func (w *world) compact(store storage.BlobStore) (compact.Result, error) {
	return compact.Run(context.Background(), store, compact.Options{Log: zerolog.Nop()})
}

func (w *world) options(text string) erase.Options {
	w.t.Helper()
	e, err := where.Parse(nil, text, false)
	w.must(err)
	return erase.Options{Where: e, Tail: tailindex.Options{Prefix: w.tail}, Log: zerolog.Nop()}
}

// erase plans and confirms a run of an expression.
func (w *world) erase(ctx context.Context, text string) (*erase.Result, error) {
	w.t.Helper()
	o := w.options(text)
	o.Patience = w.patience
	r, err := erase.Run(ctx, w.store, w.tables, o)
	if confirm := (*retention.ConfirmError)(nil); !errors.As(err, &confirm) {
		return r, err
	}
	o = w.options(text)
	o.Confirm, o.Patience = r.Hash, w.patience
	if w.ops == nil {
		return erase.Run(ctx, w.store, w.tables, o)
	}
	faulty := clocked{storagetest.Faulty(w.store, w.ops), w.store.(storage.Clock)}
	return erase.Run(ctx, faulty, storagetest.FaultyTables(w.tables, w.ops), o)
}

// clocked gives a store that is wrapped its clock.
type clocked struct {
	storage.BlobStore
	storage.Clock
}

// erased erases, and expects that it works.
func (w *world) erased() *erase.Result {
	w.t.Helper()
	r, err := w.erase(context.Background(), expr)
	w.must(err)
	for _, p := range r.Problems {
		w.t.Errorf("problem: %v", p)
	}
	return r
}

// shown is what a read of all services shows; complete is false if it says so.
func (w *world) shown(plan *blobs.Plan) (lines map[string]int, complete bool) {
	w.t.Helper()
	lines = map[string]int{}
	sum, err := plan.Read(context.Background(), func(text []byte) error {
		for line := range bytes.Lines(text) {
			lines[string(line)]++
		}
		return nil
	})
	w.must(err)
	return lines, sum.Complete()
}

func (w *world) plan() *blobs.Plan {
	w.t.Helper()
	q := blobs.Query{Services: []string{"*", record.RejectedService}, Range: blobs.Always()}
	p, err := blobs.New(w.store, blobs.Options{Workers: 1}).Plan(context.Background(), q)
	w.must(err)
	return p
}

// kept checks that a read shows each record that does not match once, and of the others only some if
// they may be there.
func (w *world) kept(when string, lines map[string]int, janes bool) {
	w.t.Helper()
	lost, more, shown := 0, 0, 0
	for line := range w.stay {
		if lines[line] != 1 {
			lost++
		}
	}
	for line, n := range lines {
		if w.stay[line] == 0 {
			shown++
			more += n - 1
		}
	}
	if lost > 0 || more > 0 || shown > 0 && !janes || shown > w.gone {
		w.t.Errorf("%s: %d of %d records are lost or shown more than once, %d erased ones are shown, %d of them again",
			when, lost, len(w.stay), shown, more)
	}
}

// clean checks that reads, counts and histograms have what stays, and no object and no row has more.
func (w *world) clean(when string) {
	w.t.Helper()
	plan := w.plan()
	lines, complete := w.shown(plan)
	w.kept(when, lines, false)
	n, sum, err := plan.Count(context.Background())
	w.must(err)
	buckets, more, err := plan.Histogram(context.Background(), blobs.Buckets{Length: time.Minute})
	w.must(err)
	of := int64(0)
	for _, b := range buckets {
		for _, levels := range b.Levels {
			of += levels
		}
	}
	if !complete || !sum.Complete() || !more.Complete() || n != int64(len(w.stay)) || of != n {
		w.t.Errorf("%s: complete: %v, %d records counted, %d in a histogram, of %d: %v", when, complete, n, of, len(w.stay), sum.Problems)
	}
	w.verify(when)
	w.grep(when)
}

func (w *world) verify(when string) {
	w.t.Helper()
	found := func(f blobs.Finding) { w.t.Errorf("%s: verify: %s: %v", when, f.Key, f.Err) }
	all := blobs.Query{Range: blobs.Always()}
	_, err := blobs.New(w.store, blobs.Options{}).Verify(context.Background(), all, blobs.VerifyOptions{}, found)
	w.must(err)
}

// grep looks for Jane in all objects and rows, decompressed.
func (w *world) grep(when string) {
	w.t.Helper()
	for line := range w.janes("") {
		w.t.Errorf("%s: an object has an erased record: %s", when, line)
	}
	n, err := tailindex.Erase(context.Background(), w.tables, tailindex.Options{Prefix: w.tail},
		[]string{"web", "orders", record.RejectedService}, true,
		func(_ string, line []byte) bool { return bytes.Contains(line, []byte("jane")) })
	if n > 0 || err != nil {
		w.t.Errorf("%s: the tail has %d erased records, %v", when, n, err)
	}
}

// janes are the lines with Jane in all objects with a prefix, decompressed.
func (w *world) janes(prefix string) map[string]bool {
	w.t.Helper()
	z, err := zstd.NewReader(nil)
	w.must(err)
	defer z.Close()
	found := map[string]bool{}
	for _, o := range storagetest.Objects(w.t, w.store, prefix) {
		body := storagetest.Body(w.t, w.store, o.Key)
		if strings.HasSuffix(o.Key, ".log") {
			lines, err := z.DecodeAll(body, nil)
			w.must(err)
			body = slices.Concat(body, []byte("\n"), lines)
		}
		for line := range bytes.Lines(body) {
			if bytes.Contains(line, []byte("jane")) {
				found[string(line)] = true
			}
		}
	}
	return found
}

// keys are those of the blobs of a service.
func (w *world) keys(service string) (keys []string) {
	for _, key := range storagetest.KeysOf(w.t, w.store, service+"/") {
		if strings.HasSuffix(key, ".log") {
			keys = append(keys, key)
		}
	}
	return keys
}
