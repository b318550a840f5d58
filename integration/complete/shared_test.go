package complete_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/dev/testkit/box"
	door "blobtail/reading"
	"blobtail/reading/blobs"
	"blobtail/reading/blobs/indexcache"
	"blobtail/reading/fan"
	"blobtail/reading/remote"
	"blobtail/reading/unflushed"
	"blobtail/record"
	"blobtail/serve/api"
)

// So it is with readers that share their questions with workers (package fan), which die, hang, answer
// late, break off, read another store, or are of another version, and which reach their store some of
// the time. Counts are right too.
func TestShared(t *testing.T) {
	s := simulation
	s.Test, s.Seeds, s.Few = "TestShared", 60, 4
	var total totals
	var parts sharedCounts
	first, done := testkit.Worlds(t, s, newSharedWorld, func(w *world) {
		testkit.Add(&total, &w.totals)
		testkit.Add(&parts, &w.crew.counts)
	})
	t.Logf("%d seeds from %d: %d reads, %d complete; workers were asked for %d parts: %s; %d failures told",
		done, first, total.Reads, total.Complete, parts.Parts, byCause(parts.fates), parts.Told)
	few := total.Complete*3 < total.Reads || parts.Parts*2 < total.Reads || parts.fates["answers"]*4 < total.Reads
	if done >= 40 && os.Getenv(mutatedEnv) == "" && few {
		t.Errorf("only %d of %d reads are complete, and %d parts were asked for", total.Complete, total.Reads, parts.Parts)
	}
}

type sharedCounts struct {
	Parts, Told int
	fates       map[string]int
}

// workers are some workers of a world. Each reads one of its stores.
type workers struct {
	w        *world
	net      box.Wire
	ways     []*way
	sharing  *fan.Crew
	patience time.Duration
	counts   sharedCounts // the world's lock guards them
}

// hosts of the workers.
var workerHosts = []string{"w0", "w1", "w2", "w3"}

func newSharedWorld(seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 45))
	p := drawProfile(rng)
	p.Reads += 10
	w := worldOf(seed, p, rng)
	c := &workers{w: w, patience: []time.Duration{time.Second, 5 * time.Second, 20 * time.Second}[rng.IntN(3)]}
	w.crew, c.counts.fates = c, map[string]int{}
	o := fan.Options{Part: []int64{300, 1000, 3000}[rng.IntN(3)], Patience: c.patience}
	o.Rest = time.Duration(1+rng.IntN(1000)) * time.Millisecond
	o.Remote = remote.Options{Transport: c}
	o.Failed = func(string, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		c.counts.Told++
	}
	var places []string
	for n, host := range workerHosts[:1+rng.IntN(len(workerHosts))] {
		c.start(host, w.stores[n%len(w.stores)])
		places = append(places, "http://"+host)
	}
	var err error
	if c.sharing, err = fan.New(places, o); err != nil {
		w.trouble("workers: %v", err)
	}
	return w
}

// start starts a worker, which keeps what it has read of its store.
func (c *workers) start(host string, s *store) {
	y := &way{w: c.w, name: host, tables: &sky{}, writes: &sky{}, blobs: &sky{}, gets: &sky{}}
	blobs := blobs.New(y.blobsOf(s), blobs.Options{Workers: 2, Indexes: indexcache.New(0), Findings: 1 << 20, Entries: 1 << 20})
	o := y.optionsOf(s, blobs)
	o.Announced = &http.Client{Transport: nobody{c.w, host}}
	c.ways = append(c.ways, y)
	reader := door.New(door.Options{Blobs: blobs, Logs: unflushed.New(o)})
	c.net.UpAt(host, "GET /api/v1/", api.New(api.Options{Reader: reader, Forms: "json"}))
}

// nobody is how workers reach ingesters.
type nobody struct {
	w    *world
	host string
}

// RoundTrip implements [http.RoundTripper].
func (n nobody) RoundTrip(r *http.Request) (*http.Response, error) {
	n.w.violation("the worker %s asks an ingester: %s", n.host, r.URL)
	return nil, box.ErrRefused
}

var errSilent = errors.New("no header came in time")

// RoundTrip implements [http.RoundTripper]. It draws how a worker answers.
func (c *workers) RoundTrip(r *http.Request) (*http.Response, error) {
	w := c.w
	rng := w.fate("worker " + r.URL.Host)
	fates := []string{
		"answers", "answers", "answers", "answers", "dies", "breaks off", "breaks off", "stalls", "hangs", "late", "late", "429", "503",
		"another version",
	}
	fate := fates[rng.IntN(len(fates))]
	if w.p.Calm || w.mended.Load() {
		fate = "answers"
	}
	w.mu.Lock()
	c.counts.Parts++
	c.counts.fates[fate]++
	w.mu.Unlock()
	if !pause(r.Context(), w.latency(rng)) {
		return nil, r.Context().Err()
	}
	cut := -1
	switch fate {
	case "dies":
		return nil, box.ErrReset
	case "breaks off":
		cut = rng.IntN([]int{300, 2000, 8000}[rng.IntN(3)])
	case "hangs":
		if pause(r.Context(), c.patience) { // as a transport of HTTP
			return nil, errSilent
		}
		return nil, r.Context().Err()
	case "late":
		if !pause(r.Context(), time.Duration(rng.Int64N(int64(c.patience)))) {
			return nil, r.Context().Err()
		}
	case "429", "503":
		answer := httptest.NewRecorder()
		http.Error(answer, "busy", map[string]int{"429": 429, "503": 503}[fate])
		return answer.Result(), nil
	case "another version":
		r = r.Clone(r.Context())
		q := r.URL.Query()
		q.Set("part", "0"+q.Get("part"))
		r.URL.RawQuery = q.Encode()
	}
	resp, err := c.net.At(r.URL.Host).Serve(r, cut)
	if err == nil && fate == "stalls" {
		resp.Body = &stalling{resp.Body, r.Context(), rng.IntN(3000)}
	}
	return resp, err
}

// stalling is an answer that stops in its middle.
type stalling struct {
	io.ReadCloser
	ctx  context.Context
	left int
}

// Read implements [io.Reader].
func (s *stalling) Read(p []byte) (int, error) {
	if s.left == 0 {
		s.Close() // a worker that waits with a lock would keep the time from passing
		<-s.ctx.Done()
		return 0, s.ctx.Err()
	}
	n, err := s.ReadCloser.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// turn changes the weather between the workers and their stores.
func (c *workers) turn(rng *rand.Rand) {
	for _, y := range c.ways {
		y.blobs.set([]weather{fair, fair, fair, fair, fair, fails, loses, denied}[rng.IntN(8)])
		y.gets.set([]weather{fair, fair, fair, fair, fails, mixed}[rng.IntN(6)])
		if c.w.p.Calm || c.w.mended.Load() {
			y.blobs.set(fair)
			y.gets.set(fair)
		}
	}
}

// shared reads with the workers: records in one of the two orders, entries, or numbers of them.
func (r *reading) shared(ctx context.Context, o door.Options) {
	rng := r.w.fate("shared")
	r.w.crew.turn(rng)
	store := door.New(o).For(nil)
	a := door.Ask{Services: r.q.Services, Range: r.q.Range, Levels: r.q.Filter.Levels, Reverse: rng.IntN(2) == 0}
	var out *door.Outcome
	if r.sums = max(0, rng.IntN(5)-2); r.sums > 0 {
		a.Texts = []string{"r"} // all records have it
	}
	switch r.sums {
	case 0:
		last := int64(blobs.Oldest)
		emit := func(lines []byte) error {
			for line := range bytes.Lines(lines) {
				at, ok := record.LineTime(line)
				if a.Reverse {
					at = -at
				}
				if !ok || at < last {
					r.w.violation("%s: a complete answer has a record at a wrong place: %s", r.name, line)
				}
				last, r.got = at, append(r.got, nameOf(line))
			}
			return nil
		}
		if rng.IntN(2) == 0 {
			out, r.err = store.Records(ctx, a, emit)
		} else {
			out, r.err = store.Entries(ctx, a, func(e *record.Entry) error { return emit(e.Line) })
		}
	case 1:
		if out, r.err = store.Count(ctx, a); r.err == nil {
			r.counted = out.Records
		}
	case 2:
		var h *door.Histogram
		h, out, r.err = store.Histogram(ctx, a, door.Slices{By: 7 * time.Second, Zone: time.UTC})
		for i := 0; r.err == nil && i < len(h.Buckets); i++ {
			for _, n := range h.Buckets[i].Levels {
				r.counted += n
			}
		}
	}
	r.problems = out.Problems()
}

// miscounted tells of a number of a complete answer that cannot be. w.mu is held.
func (r *reading) miscounted(counts func(a ack) bool) []string {
	least, most := int64(0), int64(0)
	for _, s := range r.w.records {
		if !r.wants(s) || !s.stores[r.s] {
			continue
		}
		if most++; r.owed(s, counts) != nil {
			least++
		}
	}
	if least <= r.counted && r.counted <= most {
		return nil
	}
	return []string{fmt.Sprintf("a complete answer counts %d records, and there are %d to %d", r.counted, least, most)}
}
