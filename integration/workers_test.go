package integration_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/reading"
	"blobtail/reading/fan"
	"blobtail/storage/dir"
	"blobtail/tailindex"
)

// Workers are killed and started again, one each second in the long form, while questions are shared with them. Each
// answer is that of the store without workers, or it is incomplete and names times.
func TestWorkersKilled(t *testing.T) {
	t.Parallel()
	seed := newSeed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	most := sized("BLOBTAIL_TORTURE", 20, 200)
	at, root := dirStore(t)
	p := start(t, at, t.TempDir())
	day := time.Now().UTC().AddDate(0, 0, -2).Truncate(24 * time.Hour)
	fillHours(p, rng, day, sized("BLOBTAIL_TORTURE", 6, 120))
	part := int64(sized("BLOBTAIL_TORTURE", 256<<10, 2<<20))

	alone, err := reading.Open(readsOf(t, at, root, nil))
	if err != nil {
		t.Fatal(err)
	}
	var workers []*server
	var places []string
	for range 5 {
		w := serve(t, at)
		workers, places = append(workers, w), append(places, w.url)
	}
	var failures atomic.Int64
	crew, err := fan.New(places, fan.Options{
		Part: part, Patience: 5 * time.Second, Rest: 50 * time.Millisecond, Failed: func(string, error) { failures.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	shared, err := reading.Open(readsOf(t, at, root, crew))
	if err != nil {
		t.Fatal(err)
	}
	const kinds = 6
	var right [kinds]string
	for kind := range kinds {
		text, out := reply(t, alone, kind)
		if right[kind] = text; out == nil || !out.Complete() {
			t.Fatalf("kind %d is incomplete without workers: %s", kind, text)
		}
	}
	var asked, incomplete, kills atomic.Int64
	over := make(chan struct{})
	go func() {
		defer close(over)
		for n := 0; (n < most || kills.Load() < 3) && !t.Failed(); n++ {
			text, out := reply(t, shared, n%kinds)
			asked.Add(1)
			switch {
			case text == right[n%kinds]:
			case out == nil || out.Complete():
				t.Errorf("question %d, of kind %d: complete, and\n%s\nalone:\n%s", n, n%kinds, text, right[n%kinds])
			default:
				incomplete.Add(1)
				for _, problem := range out.Problems() {
					if !strings.Contains(problem.Error(), day.Format(time.DateOnly)) {
						t.Errorf("question %d: a problem names no time: %v", n, problem)
					}
				}
			}
		}
	}()
	for tick := time.NewTicker(time.Duration(sized("BLOBTAIL_TORTURE", 100, 1000)) * time.Millisecond); ; kills.Add(1) {
		select {
		case <-over:
			t.Logf("%d questions, %d incomplete; %d kills, %d failures told",
				asked.Load(), incomplete.Load(), kills.Load(), failures.Load())
			if failures.Load() == 0 && kills.Load() > 20 {
				t.Error("no kill met a part")
			}
			return
		case <-tick.C:
			workers[int(kills.Load())%len(workers)].restart(false)
		}
	}
}

// fillHours has an ingester store records of some megabytes: of the first eight hours of a day and two
// services, many of equal times.
func fillHours(p *ingester, rng *rand.Rand, day time.Time, megabytes int) {
	p.t.Helper()
	for n, of := 0, megabytes; n < of; n++ {
		var body []byte
		for len(body) < 1<<20 {
			at := day.Add(time.Duration(rng.IntN(8*3600*10)) * 100 * time.Millisecond)
			level := []string{"info", "info", "info", "error"}[rng.IntN(4)]
			body = fmt.Appendf(body, `{"ts":"%s","level":"%s","msg":"request %d took %d ms","id":"%016x%016x%016x"}`+"\n",
				at.Format(time.RFC3339Nano), level, n, rng.IntN(1000), rng.Uint64(), rng.Uint64(), rng.Uint64())
		}
		p.mustPost([]string{"/ingest/web", "/ingest/api"}[n%2], body)
	}
	p.mustFlush()
	p.mustPost("/ingest/web", []byte(dated(day.Add(90*time.Minute), "request late took 1 ms"))) // in no blob for a while
}

// readsOf opens a store in a directory as logquery does.
func readsOf(t testing.TB, at place, root string, with reading.Sharing) reading.OpenOptions {
	t.Helper()
	blobs, err := dir.Open(root, dir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows, name := rowsOfPlace(t, at)
	tail := tailindex.Options{Prefix: "tail", Store: name}
	return reading.OpenOptions{Blobs: blobs, Tables: rows, Now: time.Now, Tail: tail, Sharing: with}
}

// reply is the answer of a question of a kind, in a form that is short.
func reply(t testing.TB, r *reading.Reader, kind int) (text string, out *reading.Outcome) {
	a := reading.Ask{Services: []string{"*"}, Range: reading.Always(), Reverse: kind == 1}
	s := r.For(nil)
	var err error
	switch kind {
	case 0, 1:
		sum, n := sha256.New(), 0
		out, err = s.Records(t.Context(), a, func(lines []byte) error {
			n += len(lines)
			_, err := sum.Write(lines)
			return err
		})
		text = fmt.Sprintf("%d bytes, %x", n, sum.Sum(nil))
	case 2:
		a.Texts = []string{"took 7"}
		out, err = s.Count(t.Context(), a)
	case 3:
		a.Services, a.Where = []string{"web"}, `level == "error"`
		out, err = s.Count(t.Context(), a)
	case 4:
		a.Texts = []string{"took 1"}
		var h *reading.Histogram
		if h, out, err = s.Histogram(t.Context(), a, reading.Slices{By: 10 * time.Minute, Zone: time.UTC}); err == nil {
			text = fmt.Sprint(h.Buckets)
		}
	case 5:
		a.LogQL, a.Services = `{service=~"web|api"} |= "took 99"`, nil
		out, err = s.Records(t.Context(), a, func(lines []byte) error { text += string(lines); return nil })
	}
	if err != nil {
		return fmt.Sprintf("error %v", err), nil
	}
	return fmt.Sprintf("%s; %d records, complete %v", text, out.Records, out.Complete()), out
}
