package unflushed_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/unflushed"
	"blobtail/reading/unflushed/live"
)

// stalling is a client that one host does not answer now and then, as if it hung.
type stalling struct {
	under http.RoundTripper
	host  string
	on    atomic.Bool
}

// RoundTrip implements [http.RoundTripper].
func (s *stalling) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.on.Load() && r.URL.Host == s.host {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return s.under.RoundTrip(r)
}

// An ingester that hangs delays no record of another. A follower says so after two seconds, asks it
// until it answers, shows its records once, and another one can go on where it ended.
func TestFollowBesideHang(t *testing.T) {
	scene(t, 3, func(t *testing.T, c *company, s *screen) {
		c.running()
		wire := &stalling{under: c.Wire, host: "i1"}
		announced := func(o *unflushed.Options) { o.Announced = &http.Client{Transport: wire} }
		f := follow(c.reader(announced), s.options(always("web")))
		time.Sleep(3 * time.Second)
		shown := s.names()
		add := func(in int, within time.Duration) {
			t.Helper()
			shown = append(shown, namesOf(c.all[in].send(line{service: "web"}))...)
			time.Sleep(within)
			s.shows(shown...)
		}
		add(1, 1200*time.Millisecond)
		wire.on.Store(true)
		for range 10 { // before the hang is found, and later
			add(0, 1500*time.Millisecond)
			add(2, 1500*time.Millisecond)
		}
		says(t, s.get(&s.problems), 1, "ingester 00000002 on i1", "sign of life since", "asked again until it answers")
		held := c.all[1].send(line{service: "web"})
		time.Sleep(3 * time.Second)
		s.shows(shown...)
		wire.on.Store(false)
		shown = append(shown, namesOf(held)...)
		add(1, 3*time.Second)
		add(0, 1200*time.Millisecond)
		time.Sleep(5 * time.Second)
		says(t, s.get(&s.notes), 1, "the ingesters answer again")
		cursor := f.end(t)
		if len(cursor.Positions) != 3 {
			t.Errorf("the cursor has %v", cursor.Positions)
		}
		later := namesOf(c.all[0].send(line{service: "web"}), c.all[1].send(line{service: "web", at: -time.Minute}))
		s2 := &screen{c: c}
		o := s2.options(always("web"))
		o.After = cursor
		f = follow(c.reader(announced), o)
		time.Sleep(3 * time.Second)
		f.end(t)
		s2.shows(later...)
	})
}

// A follower of one ingester, which asks its peers, is held up two seconds by a peer that hangs.
func TestFollowPeerHangs(t *testing.T) {
	scene(t, 3, func(t *testing.T, c *company, s *screen) {
		c.running()
		f := follow(c.reader(func(o *unflushed.Options) {
			client, err := live.NewClient("http://i0", live.ClientOptions{HTTP: c.Wire.Client(), Hangs: &live.Hangs{}})
			if err != nil {
				t.Fatal(err)
			}
			o.Live = client
		}), s.options(always("web")))
		time.Sleep(3 * time.Second)
		shown := s.names()
		c.Wire.Up("i1", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		for _, within := range []time.Duration{3500 * time.Millisecond, 1500 * time.Millisecond, 1500 * time.Millisecond} {
			shown = append(shown, namesOf(c.all[2].send(line{service: "web"}))...)
			time.Sleep(within)
			s.shows(shown...)
		}
		f.end(t)
	})
}

// Reads that find a hang at once share the two seconds, and none counts as complete.
func TestReadsBesideHang(t *testing.T) {
	scene(t, 3, func(t *testing.T, c *company, _ *screen) {
		c.running()
		wire := &stalling{under: c.Wire, host: "i1"}
		r := c.reader(func(o *unflushed.Options) { o.Announced = &http.Client{Transport: wire} })
		wire.on.Store(true)
		for _, within := range []time.Duration{2 * time.Second, 200 * time.Millisecond, 200 * time.Millisecond} {
			begun := time.Now()
			names, g := c.read(r, always("web"))
			c.tells(g, "ingester 00000002 on i1")
			if took := time.Since(begun); g.Live || took > within || len(names) == 0 {
				t.Errorf("read are %v in %v", names, took)
			}
			time.Sleep(time.Second)
		}
		wire.on.Store(false)
		want := namesOf(c.all[1].send(line{service: "web"}))
		if names, g := c.read(r, always("web")); !g.Live || !slices.Contains(names, want[0]) {
			t.Errorf("read are %v, %v", names, problemsOf(g))
		}
	})
}

// While the rows of the ingesters cannot be read, a follower asks those that it knows.
func TestFollowWithoutRows(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, s *screen) {
		c.running()
		var away atomic.Bool
		f := follow(c.reader(func(o *unflushed.Options) {
			list := o.Ingesters
			o.Ingesters = func(ctx context.Context) ([]lease.Ingester, time.Time, error) {
				if away.Load() {
					return nil, time.Time{}, errors.New("the tables are away")
				}
				return list(ctx)
			}
		}), s.options(always("web")))
		time.Sleep(3 * time.Second)
		away.Store(true)
		shown := s.names()
		for range 20 {
			time.Sleep(3 * time.Second)
			shown = append(shown, namesOf(c.all[0].send(line{service: "web"}), c.all[1].send(line{service: "web"}))...)
			time.Sleep(1200 * time.Millisecond)
			s.shows(shown...)
		}
		f.end(t)
	})
}
