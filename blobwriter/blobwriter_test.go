package blobwriter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"blobtail/blobfmt"
	"blobtail/blobwriter"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

var period = time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)

// batch is like a batch of the buffer, but in memory.
type batch struct {
	id       byte
	service  string
	texts    []string
	pin      []byte
	encoded  int
	attempts int
}

func (b *batch) ID() [16]byte      { return [16]byte{0: b.id, 15: 0xff} }
func (b *batch) Service() string   { return b.service }
func (b *batch) Period() time.Time { return period }
func (b *batch) Attempts() int     { return b.attempts }
func (b *batch) Pin() []byte       { return b.pin }
func (b *batch) Walk(pin []byte)   { b.pin = slices.Clone(pin) }

func (b *batch) Each(_ context.Context, f func([]byte, int64, record.Origin, uint32) error) error {
	b.encoded++
	for i, text := range b.texts {
		t := period.Add(time.Duration(i) * time.Second).UnixNano()
		line := append(record.AppendTime([]byte(`{"ts":"`), t), `","level":"info","service":"`+b.service+`","msg":"`+text+`"}`+"\n"...)
		if err := f(line, t, record.Origin{0: b.id}, uint32(i)); err != nil {
			return err
		}
	}
	return nil
}

func newWriter(t *testing.T, s blobwriter.Store, lane int) *blobwriter.Writer {
	t.Helper()
	w := blobwriter.New(s, blobwriter.Options{}, nil)
	if err := w.SetLane(lane); err != nil {
		t.Fatal(err)
	}
	return w
}

func plan(w *blobwriter.Writer, id byte, texts ...string) *batch {
	return &batch{id: id, service: "web", texts: texts, pin: w.Plan("web", period)}
}

func key(number int) string {
	return blobfmt.Name{Service: "web", Period: period, Number: number}.String()
}

// held returns the batch under each number of the store, and checks that each blob has
// its batch's content.
func held(t *testing.T, s storage.BlobStore) map[int]byte {
	t.Helper()
	got := map[int]byte{}
	for _, b := range storagetest.Objects(t, s, "web/") {
		name, err := blobfmt.ParseName(b.Key)
		if err != nil {
			t.Fatal(err)
		}
		m, err := blobfmt.ParseMeta(b.Metadata)
		if err != nil {
			continue // foreign
		}
		body := storagetest.Body(t, s, b.Key)
		for _, err := range blobfmt.Verify(b.Key, body, m) {
			t.Error(err)
		}
		got[name.Number] = m.Batch[0]
	}
	return got
}

func wantHeld(t *testing.T, s storage.BlobStore, want map[int]byte) {
	t.Helper()
	if got := held(t, s); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the store holds %v, want %v", got, want)
	}
}

// Batches get consecutive numbers of their lane. zstd readers print their blobs as lines.
func TestWrite(t *testing.T) {
	s := mem.New(mem.Options{})
	for _, lane := range []int{0, 7} {
		w := newWriter(t, s, lane)
		for i := range byte(3) {
			if err := w.Write(context.Background(), plan(w, byte(lane)*10+i, "x", "y")); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantHeld(t, s, map[int]byte{1: 0, 2: 1, 3: 2, 70001: 70, 70002: 71, 70003: 72})
	b, err := s.Stat(context.Background(), key(1))
	if err != nil || b.ContentType != "application/x-ndjson" || b.ContentEncoding != "zstd" || b.Metadata["records"] != "2" {
		t.Errorf("%+v, %v", b, err)
	}
	r, err := s.Get(context.Background(), key(1), 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d, err := zstd.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	text, err := io.ReadAll(d)
	if err != nil || bytes.Count(text, []byte("\n")) != 2 || !bytes.HasPrefix(text, []byte(`{"ts":"2026-11-20T15:00:00.000000000Z","level":"info","service":"web","msg":"x"}`)) {
		t.Errorf("%q, %v", text, err)
	}
}

// The outcome for each answer of the store.
func TestPut(t *testing.T) {
	lost := storagetest.Fault{After: storagetest.ErrFault}
	down := storagetest.Fault{Before: storagetest.ErrFault}
	gone := storagetest.Fault{Before: storage.ErrNotExist}
	for _, tc := range []struct {
		name   string
		taken  []int // numbers that other batches hold already
		script storagetest.Script
		ok     bool // result of the first Write
		again  bool // result of the second
		want   map[int]byte
	}{
		{"created", nil, nil, true, true, map[int]byte{1: 1}},
		// The answer was lost; the next try finds its own blob and recognises it.
		{"lost answer", nil, storagetest.Times(1, storagetest.Create, "", lost), false, true, map[int]byte{1: 1}},
		{"lost request", nil, storagetest.Times(1, storagetest.Create, "", down), false, true, map[int]byte{1: 1}},
		{"foreign", []int{1, 2}, nil, true, true, map[int]byte{1: 201, 2: 202, 3: 1}},
		// The name is taken, but the owner is unknown: the batch never gets another name.
		{"head fails", []int{1}, storagetest.Times(1, storagetest.Stat, "", down), false, true, map[int]byte{1: 201, 2: 1}},
		{"head finds nothing", []int{1}, storagetest.Times(1, storagetest.Stat, "", gone), false, true, map[int]byte{1: 201, 2: 1}},
		{"lost answer behind a foreign one", []int{1}, storagetest.Times(1, storagetest.Create, "000002", lost), false, true, map[int]byte{1: 201, 2: 1}},
		{"down for good", nil, storagetest.Times(-1, storagetest.Create, "", down), false, false, map[int]byte{}},
		{"list fails", []int{1, 2, 3}, storagetest.Times(1, storagetest.List, "", down), false, true, map[int]byte{1: 201, 2: 202, 3: 203, 4: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := mem.New(mem.Options{})
			w := newWriter(t, s, 0)
			for _, n := range tc.taken {
				if err := w.Write(context.Background(), plan(w, byte(200+n), "theirs")); err != nil {
					t.Fatal(err)
				}
			}
			var store blobwriter.Store = s
			if tc.script != nil {
				store = storagetest.Faulty(s, tc.script)
			}
			w = newWriter(t, store, 0) // a restart: the writer has lost its numbers
			b := plan(w, 1, "a", "b")
			err := w.Write(context.Background(), b)
			if (err == nil) != tc.ok {
				t.Fatalf("first write: %v", err)
			}
			if err != nil {
				b.attempts++
			}
			if err := w.Write(context.Background(), b); (err == nil) != tc.again {
				t.Fatalf("second write: %v", err)
			}
			wantHeld(t, s, tc.want)
		})
	}
}

// After a restart in a busy period the writer lists, and does not try every number.
func TestWalk(t *testing.T) {
	s := mem.New(mem.Options{})
	w := newWriter(t, s, 3)
	for i := range 50 {
		if err := w.Write(context.Background(), plan(w, byte(i+1), "x")); err != nil {
			t.Fatal(err)
		}
	}
	creates := 0
	count := storagetest.Faulty(s, func(op storagetest.Op, _ string) storagetest.Fault {
		if op == storagetest.Create {
			creates++
		}
		return storagetest.Fault{}
	})
	w = newWriter(t, count, 3)
	if err := w.Write(context.Background(), plan(w, 100, "x")); err != nil {
		t.Fatal(err)
	}
	if creates > 5 {
		t.Errorf("%d creates", creates)
	}
	if got := held(t, s)[30051]; got != 100 {
		t.Errorf("number 30051 is held by %d", got)
	}
	// After that, Plan continues behind the listed numbers.
	if err := w.Write(context.Background(), plan(w, 101, "x")); err != nil || creates > 6 {
		t.Errorf("%v; %d creates", err, creates)
	}
}

// An earlier life of the batch passed the numbers that are tried one by one, and its
// answer was lost. The writer finds that blob and does not store the batch again, though
// later numbers are taken too.
func TestWalkFindsItself(t *testing.T) {
	s := mem.New(mem.Options{})
	w := newWriter(t, s, 0)
	write := func(b *batch) {
		t.Helper()
		if err := w.Write(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
	pin := w.Plan("web", period) // number 1 is its first name
	for id := range byte(5) {
		write(&batch{id: 200 + id, service: "web", texts: []string{"theirs"}, pin: pin})
	}
	first := &batch{id: 1, service: "web", texts: []string{"ours"}, pin: pin}
	write(first)
	if got := blobwriter.Key(first); got != key(6) {
		t.Errorf("the blob is said to be %s", got)
	}
	write(&batch{id: 210, service: "web", texts: []string{"theirs"}, pin: first.pin})

	w = newWriter(t, s, 0)
	write(&batch{id: 1, service: "web", texts: []string{"ours"}, pin: pin})
	wantHeld(t, s, map[int]byte{1: 200, 2: 201, 3: 202, 4: 203, 5: 204, 6: 1, 7: 210})
}

// A number that no list shows is tried, even with numbers behind it: a request of this
// batch may be in transit to it.
func TestWalkStopsAtGaps(t *testing.T) {
	s := mem.New(mem.Options{})
	w := newWriter(t, s, 0)
	for _, n := range []byte{1, 2, 3, 4, 6} {
		b := &batch{id: 200 + n, service: "web", texts: []string{"theirs"}, pin: []byte{n}}
		if err := w.Write(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Write(context.Background(), &batch{id: 1, service: "web", texts: []string{"ours"}, pin: []byte{1}}); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, s, map[int]byte{1: 201, 2: 202, 3: 203, 4: 204, 5: 1, 6: 206})
}

// Another content under the same id is never stored, and never retried under another
// name.
func TestIDReuse(t *testing.T) {
	s := mem.New(mem.Options{})
	w := newWriter(t, s, 0)
	first := plan(w, 1, "a")
	if err := w.Write(context.Background(), first); err != nil {
		t.Fatal(err)
	}
	other := &batch{id: 1, service: "web", texts: []string{"b"}, pin: first.pin}
	if err := w.Write(context.Background(), other); !errors.Is(err, blobwriter.ErrIDReused) {
		t.Errorf("%v, want ErrIDReused", err)
	}
	if len(held(t, s)) != 1 {
		t.Errorf("%v", held(t, s))
	}
}

// A foreign object occupies its name like any other batch.
func TestForeignObject(t *testing.T) {
	s := mem.New(mem.Options{})
	storagetest.Put(t, s, key(1), []byte("hello"))
	w := newWriter(t, s, 0)
	if err := w.Write(context.Background(), plan(w, 1, "a")); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, s, map[int]byte{2: 1})
}

// While a store is down, it does not receive encoded batches again and again.
func TestDownStoreIsAskedCheaply(t *testing.T) {
	s := mem.New(mem.Options{})
	w := newWriter(t, storagetest.Faulty(s, func(storagetest.Op, string) storagetest.Fault {
		return storagetest.Fault{Before: storagetest.ErrFault}
	}), 0)
	b := plan(w, 1, "a")
	for ; b.attempts < 5; b.attempts++ {
		if err := w.Write(context.Background(), b); err == nil {
			t.Fatal("written to a store that is down")
		}
	}
	if b.encoded != 1 {
		t.Errorf("encoded %d times", b.encoded)
	}
}

// A later try of a batch looks at its name first. It takes a blob of its own for stored, passes the
// names of others and damaged ones, and stops at its own id with other content. It tries no PUT of a
// name that is taken.
func TestLaterTry(t *testing.T) {
	for _, tc := range []struct {
		name    string
		before  func(w *blobwriter.Writer, root string) error
		want    map[int]byte
		creates int
		err     error
	}{
		{"nothing is there", nil, map[int]byte{1: 1}, 1, nil},
		{"its own", func(w *blobwriter.Writer, _ string) error {
			return w.Write(t.Context(), &batch{id: 1, service: "web", texts: []string{"a"}, pin: []byte{1}})
		}, map[int]byte{1: 1}, 0, nil},
		{"its id with another content", func(w *blobwriter.Writer, _ string) error {
			return w.Write(t.Context(), &batch{id: 1, service: "web", texts: []string{"b"}, pin: []byte{1}})
		}, map[int]byte{1: 1}, 0, blobwriter.ErrIDReused},
		{"another's", func(w *blobwriter.Writer, _ string) error {
			return w.Write(t.Context(), &batch{id: 2, service: "web", texts: []string{"b"}, pin: []byte{1}})
		}, map[int]byte{1: 2, 2: 1}, 1, nil},
		{"a damaged one", func(w *blobwriter.Writer, root string) error {
			err := w.Write(t.Context(), &batch{id: 2, service: "web", texts: []string{"b"}, pin: []byte{1}})
			path := filepath.Join(root, key(1))
			return errors.Join(err, os.Chmod(path, 0o600), os.Truncate(path, 12), os.Chmod(path, 0o400))
		}, map[int]byte{2: 1}, 1, nil},
		{"another program's", func(_ *blobwriter.Writer, root string) error {
			path := filepath.Join(root, key(1))
			return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("hello"), 0o600))
		}, map[int]byte{2: 1}, 1, nil},
	} {
		root := t.TempDir()
		s, err := dir.Open(root, dir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if tc.before != nil {
			if err := tc.before(newWriter(t, s, 0), root); err != nil {
				t.Fatal(err)
			}
		}
		creates := 0
		w := newWriter(t, storagetest.Faulty(s, func(op storagetest.Op, _ string) storagetest.Fault {
			if op == storagetest.Create {
				creates++
			}
			return storagetest.Fault{}
		}), 0)
		err = w.Write(t.Context(), &batch{id: 1, service: "web", texts: []string{"a"}, pin: []byte{1}, attempts: 1})
		if !errors.Is(err, tc.err) || creates != tc.creates {
			t.Errorf("%s: %v after %d creates; want %v after %d", tc.name, err, creates, tc.err, tc.creates)
		}
		wantHeld(t, s, tc.want)
	}
}

// Eight writers share a lane by mistake: every batch is stored once, and none is
// overwritten.
func TestSharedLane(t *testing.T) {
	s := mem.New(mem.Options{})
	var wg sync.WaitGroup
	for id := range byte(8) {
		w := newWriter(t, s, 0)
		wg.Go(func() {
			for i := range byte(20) {
				if err := w.Write(context.Background(), plan(w, 1+id*20+i, "x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	seen := map[byte]bool{}
	for _, id := range held(t, s) {
		seen[id] = true
	}
	if len(seen) != 160 {
		t.Errorf("%d of 160 batches are stored", len(seen))
	}
}

func TestBadPins(t *testing.T) {
	w := newWriter(t, mem.New(mem.Options{}), 0)
	for _, pin := range [][]byte{nil, {0}, {0x80}, {1, 1}, {0xff, 0xff, 0xff, 0x7f}} {
		if err := w.Write(context.Background(), &batch{id: 1, service: "web", texts: []string{"a"}, pin: pin}); err == nil {
			t.Errorf("pin %x is taken", pin)
		}
	}
}
