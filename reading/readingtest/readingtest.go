// Package readingtest has tests of readers, and the tests that every [reading.Source] passes.
//
// [New] makes a [House], which is a [box.House] with running ingesters. [House.Reader] reads all of
// it. [House.Damage], [House.Compact] and [House.Faults] change the store.
//
// [Run] puts fixed questions to a source over such houses, and knows the right answers.
package readingtest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/catalog/closed"
	"blobtail/internal/dev/testkit/box"
	"blobtail/internal/lease"
	"blobtail/reading"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// House is a store with running ingesters.
type House struct {
	*box.House
	t testing.TB
}

// Line is a record to be sent.
type Line = box.Line

// New makes a store with so many running ingesters. They end with the test. An ingester
// flushes only if [House.Flush] is called.
func New(t testing.TB, ingesters int) *House {
	h := &House{box.New(t, ingesters), t}
	for n := range ingesters {
		h.Start(n)
	}
	return h
}

// Reader reads the store and the ingesters. A change is made to the options of its reader of
// logs.
func (h *House) Reader(change ...func(*unflushed.Options)) *reading.Reader {
	return h.ReaderWith(reading.Options{}, change...)
}

// ReaderWith is Reader with further options, but for Blobs and Logs.
func (h *House) ReaderWith(of reading.Options, change ...func(*unflushed.Options)) *reading.Reader {
	return h.ReaderOf(of, blobs.Options{Workers: 2}, change...)
}

// ReaderOf is ReaderWith with options of its reader of blobs.
func (h *House) ReaderOf(of reading.Options, ofBlobs blobs.Options, change ...func(*unflushed.Options)) *reading.Reader {
	store, _ := h.Faulty()
	blobs := blobs.New(store, ofBlobs)
	o := h.Logs(blobs)
	o.Pace = 20 * time.Millisecond
	for _, f := range change {
		f(&o)
	}
	of.Blobs, of.Logs, of.Ingesters = blobs, unflushed.New(o), h.ingestersOf
	return reading.New(of)
}

// ingestersOf is List as a reader has it.
func (h *House) ingestersOf(ctx context.Context) (rows []lease.Ingester, now time.Time, unread, err error) {
	rows, now, err = h.List(ctx)
	unread, err = lease.Unread(err)
	return rows, now, unread, err
}

// Start starts an ingester on the log of its disk.
func (h *House) Start(n int) {
	h.t.Helper()
	h.Ingester(n).Start()
}

// Kill ends an ingester as SIGKILL does. Its records stay on its disk.
func (h *House) Kill(n int) { h.Ingester(n).Kill() }

// Running reports whether an ingester runs.
func (h *House) Running(n int) bool { return h.Ingester(n).Process() != nil }

// Send has ingester n accept lines as one request, and waits for the acknowledgement.
func (h *House) Send(n int, lines ...Line) {
	h.t.Helper()
	if err := h.Accept(n, lines...); err != nil {
		h.t.Fatal(err)
	}
}

// Accept is Send with the error.
func (h *House) Accept(n int, lines ...Line) error {
	return h.Ingester(n).Accept(h.Request(lines...), true)
}

// Blobs are the keys of the blobs of a service, in order.
func (h *House) Blobs(service string) []string {
	h.t.Helper()
	return slices.DeleteFunc(storagetest.KeysOf(h.t, h.Store, service+"/"), func(key string) bool { return !strings.HasSuffix(key, ".log") })
}

// Compact closes the days that are over for one more, replaces the blobs of each of their hours by one,
// and deletes them. There have to be some.
func (h *House) Compact() {
	h.t.Helper()
	done, err := closing.Run(context.Background(), h.Store, closing.Options{After: closed.Soonest, Log: zerolog.Nop()})
	if err != nil || len(done.Problems) > 0 {
		h.t.Fatalf("closing fails: %v %v", err, done.Problems)
	}
	deleted := 0
	for range 2 { // the second run deletes
		result, err := compact.Run(context.Background(), h.Store, compact.Options{Grace: -1, Log: zerolog.Nop()})
		if err != nil || len(result.Problems) > 0 {
			h.t.Fatalf("compaction fails: %v %v", err, result.Problems)
		}
		deleted += result.Deleted
	}
	if deleted == 0 {
		h.t.Fatal("compaction replaces no blob")
	}
}

// Copy returns a house with a copy of the store, as it is now, and without ingesters of its own. Its
// readers reach those of h.
func (h *House) Copy() *House {
	h.t.Helper()
	ctx, c := context.Background(), &House{h.Over(mem.New(mem.Options{})), h.t}
	for row, err := range h.Store.Scan(ctx, lease.Table, lease.Partition, "", "", 0) {
		if err == nil {
			err = c.Store.Upsert(ctx, lease.Table, lease.Partition, []storage.Row{row})
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
	storagetest.Copy(h.t, h.Store, c.Store)
	return c
}

// Damage changes a byte in the middle of a blob.
func (h *House) Damage(key string) {
	h.t.Helper()
	storagetest.Edit(h.t, h.Store, key, func(_ *storage.Blob, body []byte) []byte {
		body[len(body)/4] ^= 0x55
		return body
	})
}
