package indexcache_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/internal/dev/testkit"
	"blobtail/reading/blobs/indexcache"
	"blobtail/record"
)

// index makes the detached index of a blob with a number of records, ten to an origin.
func index(t testing.TB, key string, records int) *blobfmt.Index {
	t.Helper()
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{BlockSize: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC).UnixNano()
	for i := range records {
		at := start + int64(i)*int64(time.Hour)/int64(records)
		line := record.AppendTime([]byte(`{"ts":"`), at)
		line = fmt.Appendf(line, `","level":"info","service":"web","msg":"request %d of some text","n":%d}`+"\n", i, i)
		var o record.Origin
		binary.BigEndian.PutUint64(o[:], uint64(i/10)<<16)
		if err := enc.Add(line, at, o, uint32(i%10)); err != nil {
			t.Fatal(err)
		}
	}
	body, _, err := enc.Finish(blobfmt.BatchID{1})
	if err != nil {
		t.Fatal(err)
	}
	x, err := blobfmt.ReadIndex(key, int64(len(body)), func(off, n int64) ([]byte, error) { return body[off:][:n], nil })
	if err != nil {
		t.Fatal(err)
	}
	dict, err := x.Dict()
	if err != nil {
		t.Fatal(err)
	}
	return x.Detached(dict)
}

// The cache counts the memory that its indexes take, as the runtime counts it.
func TestSizeIsHonest(t *testing.T) {
	testkit.FullOnly(t, "it measures memory")
	for _, records := range []int{20, 1000, 50_000} {
		n := max(4, 20_000/records)
		c := indexcache.New(1 << 40)
		keys := make([]string, n)
		for i := range keys {
			keys[i] = fmt.Sprintf("web/2026/11/20/1300/%06d.log", i)
		}
		heap := func() int64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := heap()
		for _, key := range keys {
			c.Put(key, blobfmt.BatchID{1}, index(t, key, records))
		}
		used := heap() - before
		count, size := c.Size()
		t.Logf("%d records a blob: %d bytes an index, %d counted", records, used/int64(n), size/int64(n))
		if count != n || size < used*8/10 || size > used*13/10 {
			t.Errorf("%d indexes of %d records take %d bytes, and %d are counted", count, records, used, size)
		}
		runtime.KeepAlive(c)
	}
}

// The index that nobody asked for longest goes first, and one that is too large is not kept.
func TestLeastRecentlyUsed(t *testing.T) {
	small := index(t, "a", 100)
	one := small.Memory() + 200
	c := indexcache.New(4*one + one/2)
	for i := range 4 {
		c.Put(fmt.Sprint(i), blobfmt.BatchID{}, small)
	}
	c.Get("0", blobfmt.BatchID{})
	c.Put("4", blobfmt.BatchID{}, small)
	c.Put("2", blobfmt.BatchID{}, small) // again
	c.Put("large", blobfmt.BatchID{}, index(t, "large", 20_000))
	for key, kept := range map[string]bool{"0": true, "1": false, "2": true, "3": true, "4": true, "large": false} {
		if got := c.Get(key, blobfmt.BatchID{}) != nil; got != kept {
			t.Errorf("%s is kept: %v", key, got)
		}
	}
	if c.Get("0", blobfmt.BatchID{1}) != nil {
		t.Error("the index of another batch is returned")
	}
	if n, size := c.Size(); n != 4 || size != 4*one {
		t.Errorf("%d indexes of %d bytes, want 4 of %d", n, size, one)
	}
}

// Many readers share it.
func TestConcurrent(t *testing.T) {
	x := index(t, "a", 100)
	c := indexcache.New(20 * x.Memory())
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 2000 {
				key := fmt.Sprint((i * (g + 1)) % 50)
				if c.Get(key, blobfmt.BatchID{}) == nil {
					c.Put(key, blobfmt.BatchID{}, x)
				}
			}
		})
	}
	all.Wait()
	if n, size := c.Size(); n == 0 || size > 20*x.Memory() {
		t.Errorf("%d indexes of %d bytes", n, size)
	}
}
