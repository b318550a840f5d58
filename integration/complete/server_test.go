package complete_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	served "blobtail/reading"
	"blobtail/reading/blobs"
	"blobtail/reading/blobs/indexcache"
	"blobtail/reading/unflushed"
	"blobtail/reading/unflushed/live"
	"blobtail/serve/api"
	"blobtail/serve/loki"
)

// An answer of a server that says that it is complete has every record that was acknowledged
// before the request, no record twice, and none that was never sent. Numbers of records are
// right in the same sense. No temporary file can be made in these worlds.
func TestServers(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	var total totals
	var asks counts
	first, done := testkit.Worlds(t, servers(), newServerWorld, func(w *serverWorld) {
		testkit.Add(&total, &w.totals)
		testkit.Add(&asks, &w.counts)
	})
	t.Logf("%d seeds from %d: %s; %d of %d requests acknowledged, %d kills, %d times stopped by SIGSTOP", done, first, &asks, total.Acked, total.Sent, total.Kills, total.Frozen)
	if done >= 200 && os.Getenv(mutatedEnv) == "" && asks.Complete*2 < asks.Asks {
		t.Errorf("only %d of %d answers are complete", asks.Complete, asks.Asks)
	}
}

// servers is the simulation with servers.
func servers() testkit.Simulation {
	s := simulation
	s.Test, s.Seeds = "TestServers", 500
	return s
}

// counts counts the asks of one world, or of many.
type counts struct {
	Asks, Complete, Bursts, Servers, Compacted int

	kinds, incomplete map[string]int
}

func (c *counts) String() string {
	return fmt.Sprintf("%d servers, %d bursts of %d asks, %d answers complete; asks for %s; incomplete for: %s; %d blobs compacted",
		c.Servers, c.Bursts, c.Asks, c.Complete, byCause(c.kinds), byCause(c.incomplete), c.Compacted)
}

// A serverWorld is a world with servers that read its stores.
type serverWorld struct {
	*world
	servers []*server
	// The world's lock guards the fields below.
	counts counts
	ids    map[string]string // of records that an answer had, by their names
}

// server is a long-lived reader of a store with its caches, behind the handlers of `logquery
// serve`.
type server struct {
	w         *serverWorld
	name      string
	s         *store
	url       string // the host that it asks; "": it finds one by the rows
	distant   bool   // ingesters may be out of its reach
	y         *way
	api, loki http.Handler
}

func newServerWorld(seed uint64) *serverWorld {
	rng := rand.New(rand.NewPCG(seed, 2))
	w := &serverWorld{world: worldOf(seed, serverProfile(rng), rng), ids: map[string]string{}}
	w.counts.kinds, w.counts.incomplete = map[string]int{}, map[string]int{}
	return w
}

// serverProfile draws a world with little time between events: a server shares results among its
// clients for seconds only.
func serverProfile(rng *rand.Rand) profile {
	pick := func(of ...int) int { return of[rng.IntN(len(of))] }
	return profile{
		Calm:      rng.IntN(8) == 0,
		Ingesters: pick(1, 2, 2, 3),
		Stores:    1,
		Steps:     pick(8, 12, 20),
		Segment:   int64(pick(4096, 8192)),
		Age:       time.Duration(pick(2, 5, 20, 60)) * time.Second,
		IdleAfter: time.Duration(pick(1, 5, 20)) * time.Second,
		Tail:      rng.IntN(6) == 0,
		Slow:      time.Duration(pick(2, 10, 50, 400)) * time.Millisecond,
		Begins:    rng.IntN(3) > 0,
	}
}

// serve starts a server, or starts it anew.
func (w *serverWorld) serve(n int) {
	rng := w.fate("server")
	in := w.all[rng.IntN(len(w.all))]
	s := &server{w: w, name: fmt.Sprint("server", n), s: in.to}
	if rng.IntN(4) == 0 {
		s.url = in.host
	}
	s.distant = rng.IntN(2) == 0
	s.y = &way{w: w.world, name: s.name, tables: &sky{}, writes: &sky{}, blobs: &sky{}, gets: &sky{}}
	blobs := blobs.New(s.y.blobsOf(s.s), blobs.Options{
		Workers: 2, Distant: w.distant, Indexes: indexcache.New(0), Findings: 1 << 20, Entries: 1 << 20, MaxAge: readAge,
	})
	o := s.y.optionsOf(s.s, blobs)
	o.Pace, o.Distant = time.Second, s.distant
	if s.url == "" {
		o.Announced = w.net.client(s.name, nil)
	} else {
		client, err := live.NewClient("http://"+s.url, live.ClientOptions{HTTP: w.net.client(s.name, nil), Hangs: &live.Hangs{}})
		if err != nil {
			w.trouble("client: %v", err)
		}
		o.Live = client
	}
	reader := served.New(served.Options{Blobs: blobs, Logs: unflushed.New(o)})
	s.api = api.New(api.Options{Reader: reader})
	s.loki = loki.New(loki.Options{Reader: reader})
	w.say("%s of %s starts, asks %q", s.name, s.s.container, s.url)
	w.counts.Servers++
	if n < len(w.servers) {
		w.servers[n] = s
	} else {
		w.servers = append(w.servers, s)
	}
}

// Run takes the steps. In some worlds it repairs all faults then, and answers must be complete.
func (w *serverWorld) Run() {
	time.Sleep(10 * time.Minute) // the newest records are of one hour
	for _, in := range w.all {
		w.startOn(in, in.to, in.host)
	}
	time.Sleep(5 * time.Second)
	if w.p.Calm { // the table exists, and all have seen it
		time.Sleep(10 * time.Second)
	}
	for n := range 1 + w.rng.IntN(2) {
		w.serve(n)
	}
	for range w.p.Steps {
		if w.violated() {
			break
		}
		for _, in := range w.all {
			in.reap()
		}
		w.step()
		time.Sleep(w.pace())
	}
	if in := w.all[0]; w.seed%32 == 19 && !w.violated() {
		w.turnover(in)
	}
	w.settle()
	if in := w.all[0]; w.seed%256 == 133 && !w.violated() {
		w.crowd(in)
	}
	if !w.violated() && !w.mutated && w.seed%16 == 0 {
		w.mend()
		w.clients.Wait()
		w.recovered()
	}
	w.end()
}

// pace returns the time between two steps.
func (w *serverWorld) pace() time.Duration {
	jitter := time.Duration(w.rng.Int64N(int64(time.Second)))
	switch k := w.rng.IntN(100); {
	case k < 70:
		return jitter
	case k < 94:
		return jitter + time.Duration(w.rng.IntN(4))*time.Second
	}
	return jitter + time.Duration(5+w.rng.IntN(20))*time.Second
}
