package reading_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/access"
	"blobtail/internal/dev/testkit"
	"blobtail/reading"
	"blobtail/reading/readingtest"
	"blobtail/storage/storagetest"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// tokenOf returns a token that may read the services of some globs.
func tokenOf(t *testing.T, globs ...string) *access.Token {
	t.Helper()
	_, hash := access.NewSecret()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	text := fmt.Sprintf("tokens:\n  - id: reader\n    sha256: [%q]\n    read: [%q]\n", hash, strings.Join(globs, `","`))
	text = strings.ReplaceAll(text, `\"`, `"`)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := access.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return tokens[0]
}

// counter counts the listings of a store by the name at the top of it. Each takes a while.
type counter struct {
	pause time.Duration
	mu    sync.Mutex
	lists map[string]int
}

func (c *counter) count(h *readingtest.House) {
	h.Faults(func(op storagetest.Op, key string) storagetest.Fault {
		if op == storagetest.List {
			c.mu.Lock()
			defer c.mu.Unlock()
			top, _, _ := strings.Cut(key, "/")
			c.lists[top]++
		}
		return storagetest.Fault{Delay: c.pause}
	})
}

func (c *counter) reset() (lists map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lists, c.lists = c.lists, map[string]int{}
	return lists
}

// lines reads a question whole.
func lines(ctx context.Context, s *reading.Store, a reading.Ask) (out []string, result *reading.Outcome, err error) {
	result, err = s.Records(ctx, a, func(lines []byte) error {
		for line := range bytes.Lines(lines) {
			out = append(out, string(line))
		}
		return nil
	})
	return out, result, err
}

// The panels of a dashboard make one listing of each service for all their questions, from the
// second refresh on. A query that comes alone makes its requests at once.
func TestDashboard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := readingtest.New(t, 2)
		time.Sleep(time.Second)
		for i := range 20 {
			h.Send(i%2, readingtest.Line{Service: "web", Msg: fmt.Sprint(i)}, readingtest.Line{Service: "api", Msg: fmt.Sprint(i), Level: "error"})
			if i == 10 {
				h.Flush()
			}
			time.Sleep(time.Second)
		}
		c := counter{pause: 2 * time.Millisecond}
		c.count(h)
		r := h.Reader()
		errors, _ := reading.ParseLevels("error")
		refresh := func(panels int) (lists map[string]int, took time.Duration) {
			c.reset()
			var all sync.WaitGroup
			begun := time.Now()
			for n := range panels {
				q := reading.Ask{Range: reading.Range{From: begun.Add(-time.Hour + time.Duration(n)*time.Second).UnixNano(), To: reading.Newest}}
				q.Services = [][]string{{"web"}, {"api", "web"}, {"*"}}[n%3]
				want := []int{20, 40, 40}[n%3]
				if n%4 == 1 {
					q.Levels, want = errors, []int{0, 20, 20}[n%3]
				}
				all.Go(func() {
					time.Sleep(time.Duration(n) * 100 * time.Microsecond)
					got, result, err := lines(t.Context(), r.For(nil), q)
					if err != nil || !result.Complete() || len(got) != want {
						t.Errorf("panel %d: %d lines, want %d: %v %v", n, len(got), want, err, result.Problems())
					}
				})
			}
			all.Wait()
			return c.reset(), time.Since(begun)
		}
		time.Sleep(time.Second)
		_, alone := refresh(1)
		for round := range 4 {
			lists, took := refresh(12)
			t.Logf("round %d: %v in %v", round, lists, took)
			if round > 0 && (lists["web"] != 1 || lists["api"] != 1) || took > alone+20*time.Millisecond {
				t.Errorf("round %d: %v in %v", round, lists, took)
			}
			time.Sleep(10 * time.Second)
		}
		refresh(1) // it waits for others
		time.Sleep(time.Second)
		if _, took := refresh(1); took > alone {
			t.Errorf("a lone query takes %v after a dashboard is gone", took)
		}
	})
}

// Under load a query has all records that were acknowledged before it came, while others begin
// and end, records move to blobs, and blobs are compacted.
func TestNothingMissing(t *testing.T) {
	h := readingtest.New(t, 2)
	for n := range 2 { // they have announced themselves then
		h.Send(n, readingtest.Line{Service: "early"})
	}
	r := h.Reader()
	until := time.Now().Add(time.Duration(testkit.Share(4, 2)) * time.Second)
	var acked [2][]string // by service
	var mu sync.Mutex
	services := []string{"web", "api"}
	var work sync.WaitGroup
	for s := range 4 {
		work.Go(func() {
			for n := 0; time.Now().Before(until); n++ {
				msg := fmt.Sprintf("<%d-%d>", s, n)
				h.Send(s%2, readingtest.Line{Service: services[s/2], Msg: msg})
				mu.Lock()
				acked[s/2] = append(acked[s/2], msg)
				mu.Unlock()
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	work.Go(func() {
		for time.Now().Before(until) {
			h.Flush()
			time.Sleep(30 * time.Millisecond)
		}
	})
	var asked atomic.Int64
	for n := range 12 {
		client := r.For(nil)
		if n%3 == 0 {
			client = r.For(tokenOf(t, "web", "ap*"))
		}
		work.Go(func() {
			for round := 0; time.Now().Before(until); round++ {
				kind := (n + round) % 4
				q := reading.Ask{Services: [][]string{{"web"}, {"api"}, {"*"}, {"api", "w*"}}[kind], Range: reading.Range{From: time.Now().Add(-time.Hour).UnixNano(), To: reading.Newest}}
				if round%3 == 0 {
					q.Limit = 1_000_000
				}
				mu.Lock()
				var want []string
				for i := range acked {
					if kind != i^1 || kind > 1 {
						want = append(want, acked[i]...)
					}
				}
				mu.Unlock()
				got, result, err := lines(t.Context(), client, q)
				if err != nil || !result.Complete() {
					t.Error(err, result.Problems())
					return
				}
				asked.Add(1)
				all := strings.Join(got, "")
				for _, msg := range want {
					if strings.Count(all, msg) != 1 {
						t.Errorf("%v: %s is there %d times", q.Services, msg, strings.Count(all, msg))
						return
					}
				}
			}
		})
	}
	work.Wait()
	t.Logf("%d queries, %d records", asked.Load(), len(acked[0])+len(acked[1]))
}

// A token never sees a service that it may not read, though others ask for it at the same time.
func TestSharedByTokens(t *testing.T) {
	h := readingtest.New(t, 1)
	h.Send(0, readingtest.Line{Service: "web", Msg: "seen"}, readingtest.Line{Service: "secret", Msg: "hidden"})
	h.Flush()
	h.Send(0, readingtest.Line{Service: "web", Msg: "seen"}, readingtest.Line{Service: "secret", Msg: "hidden"})
	r := h.Reader()
	some, all := tokenOf(t, "web*", "other"), tokenOf(t, "*")
	for range 10 {
		var work sync.WaitGroup
		for n := range 12 {
			work.Go(func() {
				token, want := []*access.Token{some, all, nil}[n%3], []int{2, 4, 4}[n%3]
				services := [][]string{{"*"}, {"?*"}}[n/3%2]
				got, result, err := lines(t.Context(), r.For(token), reading.Ask{Services: services, Range: reading.Always()})
				text := strings.Join(got, "")
				if err != nil || !result.Complete() || len(got) != want || strings.Contains(text, "secret") != (want == 4) {
					t.Errorf("%d: %d lines, want %d: %v %v", n, len(got), want, err, result)
				}
				if n%3 == 0 {
					if _, _, err := lines(t.Context(), r.For(token), reading.Ask{Services: []string{"secret"}, Range: reading.Always()}); err == nil || err.Error() != `no service "secret"` {
						t.Errorf("%v", err)
					}
				}
			})
		}
		work.Wait()
	}
	names, err := r.For(some).Names(t.Context())
	if err != nil || !slices.Equal(names, []string{"web"}) {
		t.Errorf("%v %v", names, err)
	}
}

// One of several queries gives up at any moment; the others have their answers.
func TestOneLeaves(t *testing.T) {
	h := readingtest.New(t, 1)
	h.Send(0, readingtest.Line{Service: "web", Msg: "a"})
	h.Flush()
	h.Send(0, readingtest.Line{Service: "web", Msg: "b"})
	r := h.Reader()
	for round := range 60 {
		var work sync.WaitGroup
		for n := range 6 {
			work.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if n < 3 {
					time.AfterFunc(time.Duration(round*n)*50*time.Microsecond, cancel)
				}
				got, result, err := lines(ctx, r.For(nil), reading.Ask{Services: []string{"web"}, Range: reading.Always()})
				if err != nil && n >= 3 || err == nil && (len(got) != 2 || !result.Complete()) {
					t.Errorf("%d lines, %v", len(got), err)
				}
			})
		}
		work.Wait()
	}
}

// A follower of a glob gets the records of services that appear later, as far as its token may
// read them.
func TestFollowNewServices(t *testing.T) {
	for name, c := range map[string]struct {
		globs, asked []string
		want         string
	}{
		"a token of some":  {[]string{"web*", "db"}, []string{"*"}, "db web-1 web-2"},
		"a narrower query": {[]string{"web*", "db"}, []string{"*-2", "db"}, "db web-2"},
		"a token of all":   {[]string{"*"}, []string{"w*"}, "web-1 web-2 wind"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := readingtest.New(t, 1)
				time.Sleep(time.Second)
				h.Send(0, readingtest.Line{Service: "web-1", Msg: "before"})
				var mu sync.Mutex
				seen := map[string]bool{}
				ctx, cancel := context.WithCancel(t.Context())
				var following sync.WaitGroup
				following.Go(func() {
					_, err := h.Reader().For(tokenOf(t, c.globs...)).Follow(ctx, reading.Ask{Services: c.asked, Range: reading.Always()}, reading.FollowOptions{
						Emit: func(lines []byte) error {
							mu.Lock()
							defer mu.Unlock()
							for line := range bytes.Lines(lines) {
								_, rest, _ := strings.Cut(string(line), `"service":"`)
								service, _, _ := strings.Cut(rest, `"`)
								seen[service] = true
							}
							return nil
						},
						Report: func(r *reading.Report) {
							if len(r.Problems) > 0 {
								t.Error(r.Problems)
							}
						},
					})
					if ctx.Err() == nil {
						t.Error(err)
					}
				})
				time.Sleep(5 * time.Second)
				for _, service := range []string{"web-1", "web-2", "db", "wind", "secret"} {
					h.Send(0, readingtest.Line{Service: service, Msg: "after"})
					time.Sleep(time.Second)
				}
				cancel()
				following.Wait()
				var got []string
				for service := range seen {
					got = append(got, service)
				}
				slices.Sort(got)
				if strings.Join(got, " ") != c.want {
					t.Errorf("it shows %v, want %s", got, c.want)
				}
			})
		})
	}
}
