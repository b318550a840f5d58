package scale_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/internal/dev/scale"
	"blobtail/record"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// estate is a store of some days up to now, whose services have blobs some hours apart. The first service has several blobs
// in such an hour, and each of the others has one.
type estate struct {
	services, days, blobs int
	every                 int            // hours
	lacks                 map[string]int // a day without blobs, by service, in days before today
}

// fill makes the blobs of an estate, each of five records.
func (e estate) fill(t *testing.T, now time.Time, add func(key string, body []byte, attrs storage.Attrs)) {
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made := uint64(0)
	put := func(name blobfmt.Name) {
		enc.Reset()
		made++
		var from record.Origin
		var id blobfmt.BatchID
		binary.BigEndian.PutUint64(from[8:], made)
		binary.BigEndian.PutUint64(id[8:], made)
		for i := range 5 {
			at := name.Period.Add(time.Duration(i)*time.Minute + time.Duration(name.Number)*time.Millisecond).UnixNano()
			line := fmt.Sprintf("{\"ts\":\"%s\",\"level\":\"info\",\"service\":\"%s\",\"msg\":\"paid %d\"}\n",
				record.AppendTime(nil, at), name.Service, made)
			if err := enc.Add([]byte(line), at, from, uint32(i)); err != nil {
				t.Fatal(err)
			}
		}
		body, meta, err := enc.Finish(id)
		if err != nil {
			t.Fatal(err)
		}
		attrs := storage.Attrs{ContentType: blobfmt.ContentType, ContentEncoding: blobfmt.ContentEncoding, Metadata: meta.Map()}
		add(name.String(), body, attrs)
	}
	for n := range e.services {
		first := now.Truncate(24*time.Hour).AddDate(0, 0, -e.days)
		for hour := first; hour.Before(now); hour = hour.Add(time.Duration(e.every) * time.Hour) {
			for number := range e.blobs {
				before, lacks := e.lacks[serviceName(n)]
				if (n == 0 || number == 0) && !(lacks && int(now.Sub(hour.Truncate(24*time.Hour)).Hours()/24) == before) {
					put(blobfmt.Name{Service: serviceName(n), Period: hour, Number: number + 1})
				}
			}
		}
	}
}

// A place is a store whose requests are counted.
type place struct {
	now  time.Time
	near bool // a directory
	// open opens it for a reader. Its requests are counted, by kind and by the part of the store.
	open   func() (storage.BlobStore, storage.TableStore)
	free   storage.BlobStore // not counted
	counts func() map[string]int64
}

// placeOf is the place of an account.
func placeOf(t *testing.T, a *scale.Account) *place {
	t.Helper()
	free, err := a.OpenFree()
	if err != nil {
		t.Fatal(err)
	}
	open := func() (storage.BlobStore, storage.TableStore) {
		s, err := a.Open()
		if err != nil {
			t.Fatal(err)
		}
		return s, s
	}
	return &place{now: time.Now(), open: open, free: free, counts: a.Detail}
}

// close closes all days that may be.
func (p *place) close(t *testing.T, o closing.Options) closing.Result {
	t.Helper()
	out, err := closing.Run(t.Context(), p.free, o)
	if err != nil || len(out.Problems) > 0 {
		t.Fatal(err, out.Problems)
	}
	return out
}

// compact compacts all days that may be.
func (p *place) compact(t *testing.T) compact.Result {
	t.Helper()
	out, err := compact.Run(t.Context(), p.free, compact.Options{})
	if err != nil || len(out.Problems) > 0 {
		t.Fatal(err, out.Problems)
	}
	return out
}

// without takes the accounts of closed days out of the store for the time of a call.
func (p *place) without(t *testing.T, call func()) {
	t.Helper()
	var parts []storage.Blob
	var bodies [][]byte
	for b, err := range p.free.List(t.Context(), "", "") {
		if err == nil && strings.Contains(b.Key, "_closed") {
			var body []byte
			body, err = catalog.Read(t.Context(), p.free, b.Key, 0, -1)
			parts, bodies = append(parts, b), append(bodies, body)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := p.free.Delete(t.Context(), parts...); err != nil || len(parts) == 0 {
		t.Fatalf("%d objects: %v", len(parts), err)
	}
	call()
	for i, b := range parts {
		storagetest.Put(t, p.free, b.Key, bodies[i], b.Attrs)
	}
}

// A door is a store for somebody who may read and list some prefixes alone; none: all. It counts the
// requests if it has counts.
type door struct {
	storage.BlobStore
	prefixes []string
	mu       *sync.Mutex
	counts   map[string]int64
}

func (d *door) pass(kind, key string) error {
	if d.counts != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		what := "blobs"
		switch {
		case strings.HasPrefix(key, closed.RootPrefix):
			what = "_closed"
		case strings.Contains(key, "/_closed."):
			what = "parts"
		}
		d.counts[kind+" "+what]++
	}
	if d.prefixes == nil || slices.ContainsFunc(d.prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
		return nil
	}
	return storage.AtKey(kind, key, storage.ErrUnauthorized)
}

func (d *door) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Blob, error] {
	if err := d.pass("list", prefix); err != nil {
		return func(yield func(storage.Blob, error) bool) { yield(storage.Blob{}, err) }
	}
	return d.BlobStore.List(ctx, prefix, after)
}

func (d *door) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	if err := d.pass("list", prefix); err != nil {
		return func(yield func(string, error) bool) { yield("", err) }
	}
	return d.BlobStore.Dirs(ctx, prefix)
}

func (d *door) Stat(ctx context.Context, key string) (storage.Blob, error) {
	if err := d.pass("head", key); err != nil {
		return storage.Blob{}, err
	}
	return d.BlobStore.Stat(ctx, key)
}

func (d *door) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if err := d.pass("get", key); err != nil {
		return nil, err
	}
	return d.BlobStore.Get(ctx, key, off, n)
}

// grants are the rights of readers: to the whole store, to the names of one service, and to what
// the store says of it too. A reader without a right to the tables reads blobs alone.
func grants() map[string][]string {
	one := serviceName(0) + "/"
	return map[string][]string{"all": nil, "names": {one}, "service": {one, "_horizon/" + one, "_dropped/" + one, "_store"}}
}
