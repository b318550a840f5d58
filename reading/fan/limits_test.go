package fan_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/internal/door"
	"blobtail/reading"
	"blobtail/reading/blobs"
	"blobtail/reading/fan"
	"blobtail/reading/readingtest"
	"blobtail/reading/unflushed"
	"blobtail/storage"
)

// counting counts the bytes of blobs that were read. pace delays each read.
type counting struct {
	storage.BlobStore
	bytes *atomic.Int64
	pace  time.Duration
}

func (c counting) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	time.Sleep(c.pace)
	body, err := c.BlobStore.Get(ctx, key, off, n)
	if err != nil || !strings.HasSuffix(key, ".log") {
		return body, err
	}
	return counted{body, c.bytes}, nil
}

// counted counts the bytes of a body.
type counted struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// countingReader is a reader of a house that counts what it reads of blobs.
func countingReader(h *readingtest.House, n *atomic.Int64, pace time.Duration, of reading.Options) *reading.Reader {
	of.Blobs = blobs.New(counting{h.Store, n, pace}, blobs.Options{Workers: 2})
	o := h.Logs(of.Blobs)
	o.Pace = 20 * time.Millisecond
	of.Logs = unflushed.New(o)
	return reading.New(of)
}

// large fills a house with blobs of some 100 KB, several an hour. One record of some has a text.
func large(t *testing.T, rng *rand.Rand) *readingtest.House {
	h := readingtest.New(t, 1)
	rare, blobs := []int{3, 100, 600, 2000}[rng.IntN(4)], 1+rng.IntN(3)
	for quarter := range (8 + rng.IntN(20)) * 4 {
		if quarter%4 >= blobs {
			continue
		}
		var lines []readingtest.Line
		for i := range 50 + rng.IntN(150) {
			noise := make([]byte, 1000)
			for k := range noise {
				noise[k] = byte('a' + rng.IntN(26))
			}
			text := "k=1"
			if rng.IntN(rare) == 0 {
				text = "k=7"
			}
			at := noon.Add(time.Duration(quarter)*15*time.Minute + time.Duration(i)*time.Second)
			lines = append(lines, readingtest.Line{Time: at, Service: "web", Msg: fmt.Sprintf("m%d-%d %s %s", quarter, i, text, noise)})
		}
		h.Send(0, lines...)
		h.Flush()
	}
	return h
}

// Up to a limit all together read at most twice the stored bytes of one process, and workers that fail
// change no line.
func TestTwice(t *testing.T) {
	rounds, asked, askedIll := 8, int64(0), int64(0)
	if testing.Short() {
		rounds = 3
	}
	for round := range rounds {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			h := large(t, rng)
			var n atomic.Int64
			c := &crew{t: t}
			for i := range []int{2, 5, 16}[round%3] {
				c.places = append(c.places, c.serve(i, countingReader(h, &n, 0, reading.Options{}), door.Options{}))
			}
			sharing := c.open(int64(10_000+rng.IntN(1<<(12+rng.IntN(6)))), func(o *fan.Options) { o.Patience = 20 * time.Second })
			failing := newCrew(t, h, 3, mixed(seed))
			ill := h.ReaderWith(reading.Options{Sharing: failing.open(10_000)}).For(nil)
			alone := countingReader(h, &n, 0, reading.Options{}).For(nil)
			shared := countingReader(h, &n, 2*time.Millisecond, reading.Options{Sharing: sharing}).For(nil)
			for range 12 {
				a := all("web")
				if a.Reverse = rng.IntN(2) == 0; rng.IntN(3) > 0 {
					a.Exprs = []string{"k=[7]"}
				}
				if rng.IntN(3) == 0 {
					a.Parse = "<id> k=<k> <_>"
				}
				limit := 1 + rng.IntN(1<<rng.IntN(12))
				if a.Limit = limit; rng.IntN(2) == 0 {
					a.Limit, a.First = 0, limit
				}
				what := -rng.IntN(2) // records, or entries
				lines := func(s reading.Source) (text string, bytes int64) {
					n.Store(0)
					text, out, err := listed(t, s, a, what)
					if err != nil || !out.Complete() {
						t.Fatal(err, out.Problems())
					}
					return text, n.Load()
				}
				want, one := lines(alone)
				got, all := lines(shared)
				if got != want {
					t.Fatalf("%+v: %s\nalone: %s", a, differ(got, want), differ(want, got))
				}
				if all > 2*one {
					t.Errorf("%d bytes were read, and %d alone, of %+v", all, one, a)
				}
				if got, _ := lines(ill); got != want {
					t.Fatalf("workers that fail: %+v: %s\nalone: %s", a, differ(got, want), differ(want, got))
				}
			}
			asked, askedIll = asked+c.asked.Load(), askedIll+failing.asked.Load()
		})
	}
	if asked == 0 || askedIll == 0 {
		t.Errorf("workers were asked for %d parts, and those that fail for %d", asked, askedIll)
	}
}

// A blob that is missing is told once, by a worker or here.
func TestMissingOnce(t *testing.T) {
	h := readingtest.New(t, 1)
	for i := range 24 {
		var lines []readingtest.Line
		for n := range 60 {
			at := noon.AddDate(0, 0, -2).Add(time.Duration(i/2)*time.Hour + time.Duration(n)*time.Second)
			lines = append(lines, readingtest.Line{Time: at, Service: "web", Msg: fmt.Sprintf("m%d-%d %s", i, n, strings.Repeat("x", 50))})
		}
		h.Send(0, lines...)
		h.Flush()
	}
	h.Compact()
	if err := h.Store.Delete(t.Context(), storage.Blob{Key: h.Blobs("web")[3]}); err != nil {
		t.Fatal(err)
	}
	c := newCrew(t, h, 2, nil)
	a := all("web")
	a.Limit = 10000
	for try := 0; try < tries && (try < 20 || c.asked.Load() == 0); try++ {
		out, err := h.ReaderWith(reading.Options{Sharing: c.open(300)}).For(nil).Records(t.Context(), a, func([]byte) error { return nil })
		if err != nil || len(out.Problems()) != 1 {
			t.Fatalf("%d problems, %v: %q", len(out.Problems()), err, out.Problems())
		}
	}
	if c.asked.Load() == 0 {
		t.Error("no worker was asked")
	}
}
