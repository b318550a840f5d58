package door_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/access"
	"blobtail/internal/count"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/door"
)

var shares = testkit.Simulation{
	Package: "internal/door", Test: "TestShares", Prefix: "BLOBTAIL_SHARES", Seeds: 120, Few: 6,
	Broken: regexp.MustCompile(`violation: (seed \d+: .*)`),
}

// Whatever the holders of some tokens do, that of another one is answered. They send as many queries as
// they like, heavy ones too, take nothing of the answers or take them slowly, hang up, and come
// again.
func TestShares(t *testing.T) {
	tokens, _ := tokensOf(t, `good , read: ["*"]`, `pager , read: ["*"]`, `hog0 , read: ["*"]`, `hog1 , read: ["*"]`)
	first, done := testkit.Worlds(t, shares, func(seed uint64) *sharesWorld { return newShares(seed, tokens) }, func(*sharesWorld) {})
	t.Logf("%d seeds from %d", done, first)
}

// The simulation notices each rule that is left out.
func TestMutants(t *testing.T) {
	testkit.FullOnly(t, "the mutants are built without the race detector")
	shares.Catch(t, []testkit.Mutant{
		{Name: "places as they come", Edits: []testkit.Edit{{"internal/door/gate.go", `return c.taken < g.places-g.taken }`, `return g.taken < g.places }`}}},
		{Name: "a client that takes nothing keeps its place", Edits: []testkit.Edit{{"internal/door/gate.go", `if !s.writing || !s.has {`, `if true {`}}},
		{Name: "the oldest parked one is ended", Edits: []testkit.Edit{{"internal/door/gate.go", `if one.client.parked > oldest.client.parked {`, `if false {`}}},
		{Name: "a parked query goes on without a place", Edits: []testkit.Edit{{"internal/door/gate.go", `case s.has, ctx.Err() != nil:`, `case true:`}}},
	})
}

// sharesWorld is one server with its clients.
type sharesWorld struct {
	bubble
	rnd    *rand.Rand
	places int
	hogs   int
	end    time.Time

	mu    sync.Mutex
	found []string
	story strings.Builder
}

func newShares(seed uint64, tokens *access.Tokens) *sharesWorld {
	w := &sharesWorld{bubble: bubble{l: testkit.NewPipes(nil), log: new(journal), reg: new(count.Registry)}, rnd: rand.New(rand.NewPCG(seed, 53))}
	w.hogs = 1 + w.rnd.IntN(2)
	w.places = 8 + w.rnd.IntN(9)
	log := zerolog.New(w.log)
	reads := door.NewReads(door.ReadsOptions{
		Guard: door.New(door.Options{Tokens: tokens, AnyName: true, Log: log, Refused: door.NewRefused(w.reg, "blobtail_serve_refused_total", "Refusals.", "crowded")}),
		Route: routes, Metrics: w.reg, Log: log, Queries: w.places, Waiting: 2 * w.places,
	})
	srv := reads.NewServer(reads.Wrap(http.HandlerFunc(works)), log)
	go func() { _ = srv.Serve(w.l) }()
	return w
}

func (w *sharesWorld) Found() (violations, troubles []string) { return w.found, nil }
func (w *sharesWorld) Story() string                          { return w.story.String() + w.log.String() }

func (w *sharesWorld) tell(violation bool, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(&w.story, "%s %s\n", time.Now().Format("15:04:05.000"), text)
	if violation {
		w.found = append(w.found, text)
	}
}

// dice returns the dice of one client: the order in which clients throw is not known.
func (w *sharesWorld) dice() *rand.Rand { return rand.New(rand.NewPCG(w.rnd.Uint64(), 1)) }

// Run takes the world to its end.
func (w *sharesWorld) Run() {
	w.end = time.Now().Add(time.Duration(20+w.rnd.IntN(40)) * time.Second)
	var all sync.WaitGroup
	for i := range w.hogs {
		for range 4 + w.rnd.IntN(12) {
			dice := w.dice()
			all.Go(func() { w.hog(fmt.Sprint("hog", i), dice) })
		}
	}
	good, pager := w.dice(), w.dice()
	all.Go(func() { w.good(good) })
	all.Go(func() { w.pager(pager) })
	all.Wait()
	w.quiet()
	w.l.Close()
}

// hog sends one query after another.
func (w *sharesWorld) hog(id string, dice *rand.Rand) {
	for time.Now().Before(w.end) {
		conn := w.send(id, fmt.Sprintf("/q?for=%dms&bytes=%d", []int{0, 300, 90_000}[dice.IntN(3)], dice.IntN(400_000)))
		until := time.Now().Add(time.Duration(dice.IntN(40)) * time.Second)
		pause := time.Duration(dice.IntN(3)) * 400 * time.Millisecond
		silent := dice.IntN(2) == 0
		buf := make([]byte, 8<<10)
		for time.Now().Before(until) && time.Now().Before(w.end) {
			if time.Sleep(pause + 50*time.Millisecond); silent {
				continue
			}
			_ = conn.SetReadDeadline(until)
			if _, err := conn.Read(buf); err != nil {
				break
			}
		}
		conn.Close()
	}
}

// good sends some queries at once, now and then.
func (w *sharesWorld) good(dice *rand.Rand) {
	for time.Now().Before(w.end) {
		time.Sleep(time.Duration(dice.IntN(3000)) * time.Millisecond)
		var asking sync.WaitGroup
		for range 1 + dice.IntN(3) {
			asking.Go(func() {
				begun := time.Now()
				status, body, err := w.ask("good", "/q?for=200ms&bytes=100000")
				if took := time.Since(begun); status != 200 || err != nil || len(body) != 100_000 || took > time.Second {
					w.tell(true, "a query of the holder of another token: %d, %d bytes after %s, %v", status, len(body), took, err)
				}
			})
		}
		asking.Wait()
	}
}

// pager reads an answer as a person does, who stops at each page.
func (w *sharesWorld) pager(dice *rand.Rand) {
	buf := make([]byte, 64<<10)
	for time.Now().Before(w.end) {
		conn, got := w.send("pager", "/q?bytes=300000"), 0
		for {
			n, err := conn.Read(buf)
			if got += n; err != nil || strings.HasSuffix(string(buf[:n]), "\r\n0\r\n\r\n") {
				break
			}
			if dice.IntN(8) == 0 {
				time.Sleep(time.Duration(dice.IntN(15_000)) * time.Millisecond)
			}
		}
		if got < 300_000 {
			w.tell(true, "a query of a person who reads slowly: %d bytes", got)
		}
		conn.Close()
	}
}

// quiet wants that no place is kept by clients that take nothing, and that none is lost.
func (w *sharesWorld) quiet() {
	for range 3 {
		conn := w.send("hog0", "/q?bytes=300000")
		defer conn.Close()
	}
	time.Sleep(2500 * time.Millisecond)
	synctest.Wait()
	for _, want := range []string{"blobtail_serve_queries 0\n", "blobtail_serve_queries_waiting 0\n"} {
		if page := string(w.reg.Page()); !strings.Contains(page, want) {
			_, rest, _ := strings.Cut(page, "\nblobtail_serve_queries")
			w.tell(true, "at the end the metrics have no %q: %.200s", want, rest)
		}
	}
	begun := time.Now()
	for range w.places / 2 {
		conn := w.send("good", "/q?for=1s")
		defer conn.Close()
		go func() { _, _ = io.Copy(io.Discard, conn) }()
	}
	time.Sleep(500 * time.Millisecond)
	if page := string(w.reg.Page()); !strings.Contains(page, fmt.Sprintf("blobtail_serve_queries %d\n", w.places/2)) {
		w.tell(true, "%s after they were sent, not all queries of half of the places run", time.Since(begun))
	}
	time.Sleep(time.Second)
}
