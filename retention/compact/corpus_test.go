package compact_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/blobfmt"
	"blobtail/catalog/closed"
	"blobtail/internal/dev/corpus"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// layout stores records like ingesters that cut their batches in some way.
type layout struct {
	name   string
	bodies int   // requests after which all batches are cut; 0: never
	limit  int64 // bytes of lines of a batch

	store *mem.Store
	enc   *blobfmt.Encoder
	open  map[string]*open // by the prefix of the period
	made  uint64
	raw   int64
}

// open is a batch that can still grow.
type open struct {
	name blobfmt.Name
	recs []stored
	size int64
	last int64
}

// stored is a record of the corpus.
type stored struct {
	time   int64
	origin record.Origin
	index  uint32
	line   []byte
}

func newLayout(t testing.TB, name string, bodies int, limit int64) *layout {
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &layout{name: name, bodies: bodies, limit: limit, store: mem.New(mem.Options{}), enc: enc, open: map[string]*open{}}
}

func (l *layout) add(t testing.TB, service string, r stored) {
	name := blobfmt.Name{Service: service, Period: time.Unix(0, r.time).UTC().Truncate(time.Hour)}
	prefix := blobfmt.PeriodPrefix(service, name.Period)
	b := l.open[prefix]
	if b == nil {
		b = &open{name: name}
		l.open[prefix] = b
	}
	b.recs = append(b.recs, r)
	b.last = r.time
	if b.size += int64(len(r.line)); b.size >= l.limit {
		l.cut(t, b)
	}
}

// cut stores an open batch.
func (l *layout) cut(t testing.TB, b *open) {
	if len(b.recs) == 0 {
		return
	}
	slices.SortStableFunc(b.recs, func(a, b stored) int {
		return cmp.Or(cmp.Compare(a.time, b.time), bytes.Compare(a.origin[:], b.origin[:]), cmp.Compare(a.index, b.index))
	})
	l.enc.Reset()
	for _, r := range b.recs {
		if err := l.enc.Add(r.line, r.time, r.origin, r.index); err != nil {
			t.Fatal(err)
		}
	}
	l.made++
	body, meta, err := l.enc.Finish(batch(l.made))
	if err != nil {
		t.Fatal(err)
	}
	l.raw += meta.RawBytes
	b.name.Number++
	storagetest.Put(t, l.store, b.name.String(), body, storage.Attrs{Metadata: meta.Map()})
	b.recs, b.size = nil, 0
}

// cutAll cuts the open batches, or only those without a record since a time.
func (l *layout) cutAll(t testing.TB, before int64) {
	for _, b := range l.open {
		if b.last < before {
			l.cut(t, b)
		}
	}
}

func (l *layout) stored(t testing.TB) (blobs int, bytes int64) {
	for _, b := range storagetest.Objects(t, l.store, "") {
		if _, account := closed.ParseName(b.Key); !account && !strings.HasPrefix(b.Key, closed.RootPrefix) {
			blobs++
			bytes += b.Size
		}
	}
	return blobs, bytes
}

// readCorpus feeds the records of the reference corpus to the layouts, in requests of
// 1,000.
func readCorpus(t *testing.T, records int, layouts []*layout) {
	body := make([]own, 0, 1000)
	p, n := meaning.NewReader(), 0
	for r := range (corpus.Options{Seed: corpus.ReferenceSeed, Records: records}).All() {
		if _, err := p.Scan(r.Line); err != nil {
			t.Fatalf("%v: %s", err, r.Line)
		}
		line, stamp := p.AppendLine(nil, &meaning.Defaults{})
		if body = append(body, own{stored{time: stamp.Time, line: line}, stamp.Service}); len(body) < cap(body) {
			continue
		}
		n++
		addBody(t, body, uint64(n), layouts)
		for _, l := range layouts {
			if l.bodies > 0 && n%l.bodies == 0 {
				l.cutAll(t, 1<<62)
			}
		}
		body = body[:0]
	}
	for _, l := range layouts {
		l.cutAll(t, 1<<62)
	}
}

// own is a record with its service.
type own struct {
	stored
	service string
}

// addBody adds the records of a request.
func addBody(t *testing.T, recs []own, body uint64, layouts []*layout) {
	slices.SortStableFunc(recs, func(a, b own) int { return cmp.Compare(a.time, b.time) })
	next := map[string]uint32{}
	var o record.Origin
	binary.BigEndian.PutUint64(o[:], uint64(recs[0].time/1e6)<<16)
	binary.BigEndian.PutUint64(o[8:], body*0x9e3779b97f4a7c15)
	for _, r := range recs {
		key := blobfmt.PeriodPrefix(r.service, time.Unix(0, r.time).Truncate(time.Hour))
		r.origin, r.index = o, next[key]
		next[key]++
		for _, l := range layouts {
			l.add(t, r.service, r.stored)
		}
	}
	for _, l := range layouts {
		l.cutAll(t, recs[0].time-int64(time.Hour)) // of an hour that is over
	}
}

// The reference corpus is at least 5.3 times smaller after compaction, filters included, however
// it was cut before. `make test` takes an eighth of it.
func TestReferenceCorpus(t *testing.T) {
	const all, part = corpus.ReferenceRecords, corpus.ReferenceRecords / 8
	records, want := testkit.Portion(all, part, 0), 5.3
	if records == part { // its last blobs are small
		want = 5.17
	}
	testkit.FullOnly(t, "compresses much")
	layouts := []*layout{newLayout(t, "one blob a minute of each service", 2000/360, 32<<20)}
	if os.Getenv("BLOBTAIL_CORPUS") == "all" { // both, for docs/measured/performance.md
		layouts = append(layouts, newLayout(t, "as ingesters cut when much comes", 0, 32<<20))
	}
	readCorpus(t, records, layouts)
	for _, l := range layouts {
		blobs, before := l.stored(t)
		if _, err := closing.Run(t.Context(), l.store, closing.Options{After: -48 * time.Hour, Log: zerolog.Nop()}); err != nil {
			t.Fatal(err)
		}
		o := compact.Options{Grace: -1, Now: func() time.Time { return time.Now().Add(time.Hour) }, Log: zerolog.Nop()}
		var runs [2]calls
		var took [2]time.Duration
		for i := range runs {
			begun := cpu()
			got, err := compact.Run(t.Context(), runs[i].of(l.store), o)
			if err != nil || len(got.Problems) > 0 {
				t.Fatalf("%s: %v, %v", l.name, err, got.Problems)
			}
			took[i] = cpu() - begun
		}
		after, size := l.stored(t)
		t.Logf("%s: %d blobs, %.3f; compacted %d, %.3f", l.name, blobs, float64(l.raw)/float64(before), after, float64(l.raw)/float64(size))
		t.Logf("  CPU %.2f s and %.2f s; %+v; %+v", took[0].Seconds(), took[1].Seconds(), runs[0].n, runs[1].n)
		if ratio := float64(l.raw) / float64(size); ratio < want {
			t.Errorf("%s: %.3f times smaller after compaction, want %.2f", l.name, ratio, want)
		}
	}
}
