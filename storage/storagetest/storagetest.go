// Package storagetest has the tests that every driver of package storage runs: the
// contracts of its interfaces, spelt out. Each subtest gets a fresh and empty store.
// The package also holds benchmarks that compare drivers, and [Faulty], which makes a
// store fail as scripted by the tests of other packages.
package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/storage"
)

// Open makes an empty store for one test. Either part may be nil: its subtests are
// skipped then.
type Open func(t *testing.T) (storage.BlobStore, storage.TableStore)

// Run runs all tests of the contracts.
func Run(t *testing.T, open Open) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, storage.BlobStore)
	}{
		{"CreateThenRead", testCreateThenRead},
		{"CreateNeverOverwrites", testCreateNeverOverwrites},
		{"CreateRace", testCreateRace},
		{"CreateRefuses", testCreateRefuses},
		{"Sizes", testSizes},
		{"Ranges", testRanges},
		{"Open", testOpen},
		{"Attributes", testAttributes},
		{"Absent", testAbsent},
		{"ListOrder", testListOrder},
		{"ListPages", testListPages},
		{"ListStops", testListStops},
		{"Dirs", testDirs},
		{"Delete", testDelete},
		{"DeleteMany", testDeleteMany},
		{"DeleteAndCreate", testDeleteAndCreate},
		{"DeleteVersion", testDeleteVersion},
		{"DeleteVersions", testDeleteVersions},
		{"DeleteVersionRace", testDeleteVersionRace},
		{"Cancelled", testCancelled},
		{"TryCreate", testTryCreate},
	} {
		t.Run("Blobs/"+test.name, func(t *testing.T) {
			blobs, _ := open(t)
			if blobs == nil {
				t.Skip("this driver keeps no blobs")
			}
			test.run(t, blobs)
		})
	}
	runTables(t, open)
}

// clockTolerance is the most that the clocks of a store and of a test may differ.
const clockTolerance = 5 * time.Second

// attrs returns attributes as blobs of the pipeline have them.
func attrs() storage.Attrs {
	return storage.Attrs{
		ContentType:     "application/x-ndjson",
		ContentEncoding: "zstd",
		Metadata: map[string]string{
			"format": "1", "batch": "00112233445566778899aabbccddeeff", "records": "12",
			"firsttimestamp": "2026-11-20T15:04:05.000000000Z", "levels": "0.0.12.0.0.0.0",
		},
	}
}

func testCreateThenRead(t *testing.T, s storage.BlobStore) {
	body := random(1234)
	sent := bytes.Clone(body)
	create(t, s, "web/2026/11/20/1500/000001.log", sent)
	clear(sent) // the store keeps its own copy
	want := storage.Blob{Key: "web/2026/11/20/1500/000001.log", Size: 1234, Attrs: attrs()}
	got, err := s.Stat(t.Context(), want.Key)
	if age := time.Since(got.Created); age.Abs() > clockTolerance || got.Version == "" {
		t.Errorf("Stat: created %v ago, version %q", age, got.Version)
	}
	want.Created, want.Version = got.Created, got.Version
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Stat = %+v, %v, want %+v", got, err, want)
	}
	if got := read(t, s, want.Key, 0, -1); !bytes.Equal(got, body) {
		t.Errorf("Get gives %d other bytes", len(got))
	}
	list := collect(t, s.List(t.Context(), "", ""))
	if len(list) == 1 && list[0].Created.Equal(want.Created) {
		list[0].Created = want.Created // perhaps of another zone
	}
	if !reflect.DeepEqual(list, []storage.Blob{want}) {
		t.Errorf("List = %+v, want one %+v", list, want)
	}
}

func testCreateNeverOverwrites(t *testing.T, s storage.BlobStore) {
	create(t, s, "web/a.log", []byte("first"))
	other := storage.Attrs{ContentType: "text/plain", Metadata: map[string]string{"batch": "other"}}
	for range 3 {
		if err := s.Create(t.Context(), "web/a.log", []byte("second!"), other); !errors.Is(err, storage.ErrExist) {
			t.Fatalf("second Create: %v, want ErrExist", err)
		}
	}
	if got := read(t, s, "web/a.log", 0, -1); string(got) != "first" {
		t.Errorf("the body is %q now", got)
	}
	b, err := s.Stat(t.Context(), "web/a.log")
	if err != nil || b.Metadata["batch"] != attrs().Metadata["batch"] || b.Size != 5 {
		t.Errorf("Stat = %+v, %v", b, err)
	}
}

// One of eight writers wins, and body and attributes are both the winner's.
func testCreateRace(t *testing.T, s storage.BlobStore) {
	for round := range 10 {
		key := fmt.Sprintf("web/2026/11/20/%02d00/000001.log", round)
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for w := range errs {
			wg.Go(func() {
				a := storage.Attrs{ContentType: "text/plain", Metadata: map[string]string{"batch": fmt.Sprint("writer", w)}}
				errs[w] = s.Create(t.Context(), key, bytes.Repeat([]byte{byte('0' + w)}, 5000+w), a)
			})
		}
		wg.Wait()
		winner := -1
		for w, err := range errs {
			switch {
			case err == nil && winner < 0:
				winner = w
			case !errors.Is(err, storage.ErrExist):
				t.Fatalf("writer %d: %v (writer %d has won)", w, err, winner)
			}
		}
		if winner < 0 {
			t.Fatal("nobody has won")
		}
		b, err := s.Stat(t.Context(), key)
		if err != nil || b.Metadata["batch"] != fmt.Sprint("writer", winner) || b.Size != int64(5000+winner) {
			t.Errorf("writer %d won, but Stat = %+v, %v", winner, b, err)
		}
		want := bytes.Repeat([]byte{byte('0' + winner)}, 5000+winner)
		if got := read(t, s, key, 0, -1); !bytes.Equal(got, want) {
			t.Errorf("writer %d won, but the body is another's", winner)
		}
	}
}

// Data that a driver could not keep faithfully is refused, and leaves nothing.
func testCreateRefuses(t *testing.T, s storage.BlobStore) {
	keys := []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", ".hidden", "a/.tmp-1", ".tables/x",
		"a\x00b", "a\nb", "a\xffb", `a\b`, "a/" + strings.Repeat("x", 241), strings.Repeat("a/", 520) + "a",
	}
	for _, key := range keys {
		if err := s.Create(t.Context(), key, nil, attrs()); err == nil || errors.Is(err, storage.ErrExist) {
			t.Errorf("Create %.40q: %v", key, err)
		}
	}
	for _, meta := range []map[string]string{
		{"Batch": "x"}, {"": "x"}, {"a-b": "x"}, {"a1": "x"}, {"a": ""}, {"a": "two words"}, {"a": "é"}, {"a": "x\n"},
		{"a": strings.Repeat("x", 1024)},
	} {
		if err := s.Create(t.Context(), "a", nil, storage.Attrs{Metadata: meta}); err == nil {
			t.Errorf("Create with metadata %.60q succeeds", meta)
		}
	}
	if err := s.Create(t.Context(), "a", nil, storage.Attrs{ContentType: "a\r\nb"}); err == nil {
		t.Error("Create with a content type of two lines succeeds")
	}
	if list := collect(t, s.List(t.Context(), "", "")); len(list) > 0 {
		t.Errorf("%d objects are there", len(list))
	}
	for _, key := range keys { // none of them escapes from the store
		if _, err := s.Stat(t.Context(), key); err == nil {
			t.Errorf("Stat %.40q finds something", key)
		}
	}
}

func testSizes(t *testing.T, s storage.BlobStore) {
	for i, n := range []int{0, 1, 20, 4095, 4096, 4097, 5 << 20} {
		key := fmt.Sprintf("web/%d.log", i)
		body := random(n)
		create(t, s, key, body)
		if b, err := s.Stat(t.Context(), key); err != nil || b.Size != int64(n) {
			t.Errorf("%d bytes: Stat = %+v, %v", n, b, err)
		}
		if got := read(t, s, key, 0, -1); !bytes.Equal(got, body) {
			t.Errorf("%d bytes come back as %d, or changed", n, len(got))
		}
	}
	sizes := []int64{}
	for _, b := range collect(t, s.List(t.Context(), "web/", "")) {
		sizes = append(sizes, b.Size)
	}
	if want := []int64{0, 1, 20, 4095, 4096, 4097, 5 << 20}; !slices.Equal(sizes, want) {
		t.Errorf("List gives sizes %d, want %d", sizes, want)
	}
}

func testRanges(t *testing.T, s storage.BlobStore) {
	body := []byte("0123456789")
	create(t, s, "ten", body)
	create(t, s, "none", nil)
	for _, c := range []struct {
		key    string
		off, n int64
		want   string
	}{
		{"ten", 0, 10, "0123456789"},
		{"ten", 0, -1, "0123456789"},
		{"ten", 0, 0, ""},
		{"ten", 3, 4, "3456"},
		{"ten", 3, -1, "3456789"},
		{"ten", 9, 1, "9"},
		{"ten", 8, 100, "89"},
		{"ten", 5, 1<<63 - 1, "56789"},
		{"ten", 10, 1, ""},
		{"ten", 10, -1, ""},
		{"ten", 11, 5, ""},
		{"ten", 1 << 40, -1, ""},
		{"none", 0, -1, ""},
		{"none", 0, 5, ""},
		{"none", 1, 5, ""},
	} {
		if got := read(t, s, c.key, c.off, c.n); string(got) != c.want {
			t.Errorf("Get %s %d+%d = %q, want %q", c.key, c.off, c.n, got, c.want)
		}
	}
	if _, err := s.Get(t.Context(), "ten", -1, 3); err == nil {
		t.Error("a negative offset is taken")
	}
}

func testAttributes(t *testing.T, s storage.BlobStore) {
	long := map[string]string{}
	for c := 'a'; c < 'a'+10; c++ {
		long[strings.Repeat(string(c), 20)] = strings.Repeat("v", 82)
	}
	for name, a := range map[string]storage.Attrs{
		"all":     attrs(),
		"no meta": {ContentType: "text/plain; charset=utf-8"},
		"odd values": {ContentType: "application/octet-stream", Metadata: map[string]string{
			"a": `!"#$%&'()*+,-./0:;<=>?@A[\]^_{|}~`, "z": "=", "mixed": "UPPERlower",
		}},
		"nearly 1 KiB": {ContentType: "a/b", ContentEncoding: "gzip", Metadata: long},
	} {
		key := "attrs/" + strings.ReplaceAll(name, " ", "-")
		if err := s.Create(t.Context(), key, []byte("x"), a); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := s.Stat(t.Context(), key)
		if err != nil || !sameAttrs(got.Attrs, a) {
			t.Errorf("%s: Stat = %+v, %v, want %+v", name, got.Attrs, err, a)
		}
		list := collect(t, s.List(t.Context(), key, ""))
		if len(list) != 1 || !sameAttrs(list[0].Attrs, a) {
			t.Errorf("%s: List = %+v, want %+v", name, list, a)
		}
	}
}

func testAbsent(t *testing.T, s storage.BlobStore) {
	create(t, s, "web/a", nil)
	for _, key := range []string{"nothing", "web", "web/", "web/b", "web/a/b", "we", ""} {
		if _, err := s.Stat(t.Context(), key); !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("Stat %q: %v, want ErrNotExist", key, err)
		}
		r, err := s.Get(t.Context(), key, 0, -1)
		if err == nil {
			_, err = io.ReadAll(r)
			r.Close()
		}
		if !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("Get %q: %v, want ErrNotExist", key, err)
		}
	}
	for _, prefix := range []string{"nothing", "web/a/", "web/a/b", "nothing/at/all", "../", "/", "web//", "./"} {
		if list := collect(t, s.List(t.Context(), prefix, "")); len(list) > 0 {
			t.Errorf("List %q = %+v, want nothing", prefix, list)
		}
	}
}

func testDelete(t *testing.T, s storage.BlobStore) {
	for _, key := range []string{"web/a/1", "web/a/2", "web/b/1"} {
		create(t, s, key, nil)
	}
	if err := s.Delete(t.Context()); err != nil {
		t.Errorf("Delete of nothing: %v", err)
	}
	// A missing object is fine, and so is a name that cannot be an object. A name that
	// only looks like an object (a level) is not touched.
	if err := s.Delete(t.Context(), Keys("web/a/1", "web/a/1", "nothing", "web/a", "web/a/", "", "..", "web/a/2/x", "no/where/at/all")...); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if got := keys(collect(t, s.List(t.Context(), "", ""))); !slices.Equal(got, []string{"web/a/2", "web/b/1"}) {
		t.Errorf("%q are left", got)
	}
	if err := s.Delete(t.Context(), Keys("web/b/1", "web/a/2")...); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if got := collect(t, s.List(t.Context(), "", "")); len(got) > 0 {
		t.Errorf("%+v are left", got)
	}
	create(t, s, "web/a/1", []byte("again")) // the name is free
}

// More keys than fit into one request of any service.
func testDeleteMany(t *testing.T, s storage.BlobStore) {
	var all []string
	for i := range 300 {
		key := fmt.Sprintf("web/%d", i)
		all = append(all, key)
		if i%20 == 0 { // the others are absent
			create(t, s, key, nil)
		}
	}
	create(t, s, "web/stays", nil)
	if err := s.Delete(t.Context(), Keys(all...)...); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if got := keys(collect(t, s.List(t.Context(), "", ""))); !slices.Equal(got, []string{"web/stays"}) {
		t.Errorf("%q are left", got)
	}
}

// Emptying a level while others create in it loses nothing.
func testDeleteAndCreate(t *testing.T, s storage.BlobStore) {
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := range 15 {
				mine, kept := fmt.Sprintf("web/x/y/%d-%d", w, i), fmt.Sprintf("kept/%d/%d", i, w)
				for _, key := range []string{mine, kept} {
					if err := s.Create(t.Context(), key, []byte("x"), attrs()); err != nil {
						t.Errorf("Create: %v", err)
					}
				}
				if err := s.Delete(t.Context(), Keys(mine, fmt.Sprintf("kept/%d/absent", i))...); err != nil {
					t.Errorf("Delete: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(collect(t, s.List(t.Context(), "kept/", ""))); n != 3*15 {
		t.Errorf("%d of %d objects are there", n, 3*15)
	}
	if got := collect(t, s.List(t.Context(), "web/", "")); len(got) > 0 {
		t.Errorf("%+v are left", got)
	}
}

func testCancelled(t *testing.T, s storage.BlobStore) {
	create(t, s, "web/a", []byte("x"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, statErr := s.Stat(ctx, "web/a")
	r, getErr := s.Get(ctx, "web/a", 0, -1)
	if getErr == nil {
		_, getErr = io.ReadAll(r)
		r.Close()
	}
	for op, err := range map[string]error{
		"Create": s.Create(ctx, "web/b", nil, attrs()),
		"Stat":   statErr,
		"Get":    getErr,
		"List":   last(s.List(ctx, "", "")),
		"Dirs":   last(s.Dirs(ctx, "")),
		"Delete": s.Delete(ctx, storage.Blob{Key: "web/a"}),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", op, err)
		}
	}
	if got := keys(collect(t, s.List(t.Context(), "", ""))); !slices.Equal(got, []string{"web/a"}) {
		t.Errorf("%q are there", got)
	}
	// The error of a Delete names each key that stays.
	var ke *storage.KeyError
	if err := s.Delete(ctx, storage.Blob{Key: "web/a"}); !errors.As(err, &ke) || ke.Key != "web/a" {
		t.Errorf("Delete names no key: %v", err)
	}
}

func create(t testing.TB, s storage.BlobStore, key string, body []byte) {
	t.Helper()
	if err := s.Create(t.Context(), key, body, attrs()); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, s storage.BlobStore, key string, off, n int64) []byte {
	t.Helper()
	r, err := s.Get(t.Context(), key, off, n)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

func collect[T any](t testing.TB, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var all []T
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

func last[T any](seq iter.Seq2[T, error]) (err error) {
	for _, err = range seq {
	}
	return err
}

func keys(blobs []storage.Blob) []string {
	var all []string
	for _, b := range blobs {
		all = append(all, b.Key)
	}
	return all
}

func sameAttrs(a, b storage.Attrs) bool {
	if len(a.Metadata)+len(b.Metadata) == 0 {
		a.Metadata, b.Metadata = nil, nil
	}
	return reflect.DeepEqual(a, b)
}

func random(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n)})
	r.Read(b)
	return b
}

// Keys makes arguments for [storage.BlobStore.Delete] from keys alone: any object with
// them goes.
func Keys(keys ...string) []storage.Blob {
	blobs := make([]storage.Blob, len(keys))
	for i, key := range keys {
		blobs[i].Key = key
	}
	return blobs
}
