package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/reading/readingtest"
)

// heap is the memory in use, in bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A client that stops reading holds back its own answer, and nothing is gathered for it.
func TestSlowReader(t *testing.T) {
	testkit.FullOnly(t, "30 MB of records")
	h := readingtest.New(t, 1)
	var lines []readingtest.Line
	for i := range 30_000 {
		lines = append(lines, readingtest.Line{Time: then.Add(time.Duration(i) * time.Millisecond), Service: "web", Msg: fmt.Sprint(i, strings.Repeat(" text", 200))})
		if len(lines) == 1000 {
			h.Send(0, lines...)
			lines = lines[:0]
		}
	}
	h.Flush()
	s := serve(t, h)
	before := heap()
	var open []*http.Response
	for _, path := range []string{"records?service=web&limit=0", "records?service=web&limit=0&form=events", "tail?service=web&from=2026-11-20"} {
		resp, err := s.http.Client().Transport.RoundTrip(s.request(http.MethodGet, path))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, resp)
	}
	time.Sleep(500 * time.Millisecond)
	// On a busy machine the reads may still be on their way to the point where they stop.
	testkit.Until(t, "the answers of 30 MB that nobody reads hold less than 24 MiB", func() bool { return heap()-before < 24<<20 })
	if a := s.get("count?service=web"); a.status != http.StatusOK { // the others do not wait
		t.Errorf("%d %s", a.status, a.body)
	}
	n := 0
	from := bufio.NewReader(open[0].Body)
	for ; ; n++ {
		if _, err := from.ReadSlice('\n'); err == io.EOF {
			break
		} else if err != nil {
			t.Error(err)
			break
		}
	}
	if n != 30_000 || open[0].Trailer.Get("Blobtail-Complete") != "1" {
		t.Errorf("%d lines, %v", n, open[0].Trailer)
	}
	for _, resp := range open {
		resp.Body.Close()
	}
}

// Many tails at once have each record once, and one that stops
// reading delays none of the others.
func TestManyTails(t *testing.T) {
	const seconds, rate = 1, 1000
	tails := testkit.Share(20, 4)
	h := readingtest.New(t, 1)
	fill(h, 0, "web", then, 1)
	s := serve(t, h)
	stuck, err := s.http.Client().Transport.RoundTrip(s.request(http.MethodGet, "tail?service=web&n=0"))
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Body.Close()
	var all []*source
	for range tails {
		all = append(all, s.tail("tail?service=web&n=0"))
	}
	for _, src := range all {
		testkit.Until(t, "it has begun", func() bool { src.mu.Lock(); defer src.mu.Unlock(); return src.last != "" })
	}
	for i := range seconds * 10 {
		var lines []readingtest.Line
		for j := range rate / 10 {
			lines = append(lines, readingtest.Line{Service: "web", Msg: fmt.Sprint(i, " ", j)})
		}
		h.Send(0, lines...)
		time.Sleep(100 * time.Millisecond)
	}
	var ending sync.WaitGroup
	for i, src := range all {
		ending.Go(func() {
			testkit.Until(t, "all records come", func() bool { src.mu.Lock(); defer src.mu.Unlock(); return len(src.records) >= seconds*rate })
			src.close()
			if len(src.records) != seconds*rate || src.again > 0 {
				t.Errorf("tail %d has %d records, %d came again", i, len(src.records), src.again)
			}
		})
	}
	ending.Wait()
}
