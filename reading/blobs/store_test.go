package blobs_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// rec is one record as it is stored: one copy, if it is stored more than once.
type rec struct {
	service   string
	time      int64
	level     string
	origin    record.Origin
	index     uint32
	line      string
	msg       string // of a record that may be cut
	unflushed bool   // in no blob
}

func line(t int64, level, service, msg string) string {
	b := record.AppendTime([]byte(`{"ts":"`), t)
	return string(b) + fmt.Sprintf(`","level":%q,"service":%q,"msg":%q,"n":1}`, level, service, msg) + "\n"
}

func origin(n uint64) (o record.Origin) {
	binary.BigEndian.PutUint64(o[8:], n)
	return o
}

func compareRecs(a, b rec) int {
	return cmp.Or(cmp.Compare(a.time, b.time), bytes.Compare(a.origin[:], b.origin[:]),
		cmp.Compare(a.index, b.index), cmp.Compare(a.line, b.line))
}

// builder stores blobs.
type builder struct {
	t       testing.TB
	store   storage.BlobStore
	enc     *blobfmt.Encoder
	batches uint64
	numbers map[string]int
	number  int // added to the numbers
}

func newBuilder(t testing.TB, blockSize int) *builder {
	// Blobs of tests are small, and yet have filters.
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{BlockSize: blockSize, FilterPercent: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	return &builder{t: t, store: mem.New(mem.Options{}), enc: enc, numbers: map[string]int{}}
}

func (b *builder) batch() (id blobfmt.BatchID) {
	b.batches++
	binary.BigEndian.PutUint64(id[8:], b.batches)
	return id
}

// add stores one blob of records, all of one service and period.
func (b *builder) add(period time.Duration, recs []rec, replaces ...blobfmt.BatchID) (key string, id blobfmt.BatchID) {
	b.t.Helper()
	body, meta, id := b.encode(recs, replaces...)
	name := blobfmt.Name{Service: recs[0].service, Period: time.Unix(0, recs[0].time).UTC().Truncate(period)}
	prefix := blobfmt.PeriodPrefix(name.Service, name.Period)
	b.numbers[prefix]++
	name.Number = b.number + b.numbers[prefix]
	b.put(name.String(), body, meta.Map())
	return name.String(), id
}

// forget starts again with an empty store.
func (b *builder) forget() {
	b.store, b.numbers, b.number = mem.New(mem.Options{}), map[string]int{}, 0
}

// encode encodes the body of a blob.
func (b *builder) encode(recs []rec, replaces ...blobfmt.BatchID) (body []byte, meta blobfmt.Meta, id blobfmt.BatchID) {
	b.t.Helper()
	recs = slices.Clone(recs)
	slices.SortFunc(recs, compareRecs)
	b.enc.Reset()
	for _, r := range recs {
		if err := b.enc.Add([]byte(r.line), r.time, r.origin, r.index); err != nil {
			b.t.Fatal(err)
		}
	}
	if len(replaces) > 0 {
		b.enc.Replaces(replaces...)
	}
	id = b.batch()
	body, meta, err := b.enc.Finish(id)
	if err != nil {
		b.t.Fatal(err)
	}
	return bytes.Clone(body), meta, id
}

func (b *builder) put(key string, body []byte, meta map[string]string) {
	b.t.Helper()
	storagetest.Put(b.t, b.store, key, body, storage.Attrs{
		ContentType: blobfmt.ContentType, ContentEncoding: blobfmt.ContentEncoding, Metadata: meta,
	})
}

// failing is a store that fails the first n calls of op with part in the key; all of them if n < 0.
func failing(s storage.BlobStore, n int, op storagetest.Op, part string, err error) storage.BlobStore {
	return storagetest.Faulty(s, storagetest.Times(n, op, part, storagetest.Fault{Before: err}))
}

// beforeGet is a store that calls do before its first GET of a key that contains part.
func beforeGet(s storage.BlobStore, part string, do func()) storage.BlobStore {
	once := sync.OnceFunc(do)
	return storagetest.Faulty(s, func(op storagetest.Op, key string) storagetest.Fault {
		if op == storagetest.Get && strings.Contains(key, part) {
			once()
		}
		return storagetest.Fault{}
	})
}
