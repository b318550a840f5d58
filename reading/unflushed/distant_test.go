package unflushed_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
)

// counting notes the hosts that a client asks.
type counting struct {
	under http.RoundTripper
	mu    sync.Mutex
	asked []string
}

// RoundTrip implements [http.RoundTripper].
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.asked = append(c.asked, r.URL.Host)
	c.mu.Unlock()
	return c.under.RoundTrip(r)
}

// took are the hosts that were asked since the last call, in order.
func (c *counting) took() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked = nil
	slices.Sort(asked)
	return asked
}

// distant has a reader far from its ingesters, which counts its requests to them.
func (c *company) distant() (*counting, func(*unflushed.Options)) {
	count := &counting{under: c.Wire}
	return count, func(o *unflushed.Options) { o.Distant, o.Announced = true, &http.Client{Transport: count} }
}

// A read asks each ingester that may hold records, all at the same time, and no other. One that
// hangs costs two seconds in all, and is named.
func TestDistantReads(t *testing.T) {
	scene(t, 4, func(t *testing.T, c *company, _ *screen) {
		count, far := c.distant()
		r := c.reader(far)
		c.running()
		time.Sleep(11 * time.Minute) // the first one's records are in blobs, and its row is idle
		held := c.all[1].send(line{service: "web"})
		for _, in := range c.all[2:] {
			held = append(held, in.send(line{service: "web"})...)
		}
		time.Sleep(time.Second)
		stored := len(c.ackedNow(func(*sentRecord) bool { return true })) - len(held)
		begun := time.Now()
		names, g := c.read(r, always("web"))
		if len(names) != stored+3 || !g.Live || time.Since(begun) > time.Second {
			t.Errorf("read are %d in %s, %v", len(names), time.Since(begun), problemsOf(g))
		}
		if asked := count.took(); !slices.Equal(asked, []string{"i1", "i2", "i3"}) {
			t.Errorf("asked are %v", asked)
		}
		hang := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		c.Wire.Up("i1", hang)
		c.Wire.Up("i3", hang)
		begun = time.Now()
		names, g = c.read(r, always("web"))
		c.tells(g, "ingester 00000002 on i1", "ingester 00000004 on i3")
		if took := time.Since(begun); g.Live || took < time.Second || took > 2500*time.Millisecond || !slices.Contains(names, held[1].name) {
			t.Errorf("read are %v in %s", names, took)
		}
	})
}

// A follower that reaches no ingester goes by the tables of the tail, and says so. One that
// reaches any asks it.
func TestDistantFollows(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, s *screen) {
		_, far := c.distant()
		c.running()
		c.Wire.Refuse(func(host string) bool { return host == "i0" })
		f := follow(c.reader(far), s.options(always("web")))
		time.Sleep(3 * time.Second)
		all := append(c.all[0].send(line{service: "web"}), c.all[1].send(line{service: "web"}, line{service: "web", at: -time.Hour})...)
		time.Sleep(3 * time.Second)
		f.end(t)
		if names := s.names(); !slices.Contains(names, all[1].name) || !slices.Contains(names, all[2].name) {
			t.Errorf("shown are %v", names)
		}
		c.Wire.Refuse(func(string) bool { return true })
		s2 := &screen{c: c}
		f = follow(c.reader(far), s2.options(always("web")))
		time.Sleep(5 * time.Second)
		new := append(c.all[0].send(line{service: "web"}), c.all[1].send(line{service: "web"})...)
		time.Sleep(3 * time.Second)
		f.end(t)
		s2.shows(namesOf(new)...)
		if told := s2.get(&s2.problems); len(told) != 1 || !strings.Contains(told[0], "come from the tables of the tail") {
			t.Errorf("problems are %q", told)
		}
	})
}

// A request that was sent to two ingesters is in the records of a read once, in the order of time.
func TestCopiesOfTwo(t *testing.T) {
	scene(t, 2, func(t *testing.T, c *company, _ *screen) {
		c.running()
		r, all := c.request(line{service: "web"}, line{service: "web", at: -time.Hour})
		for _, in := range c.all {
			if err := in.accept(r, all, true); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		for _, n := range []int{0, 2, 100} {
			q := always("web")
			q.Limit = n
			g, err := c.reader().Gather(t.Context(), q, unflushed.Auto)
			if err != nil {
				t.Fatal(err)
			}
			volumes, _, err := blobs.Without(blobs.Options{}).Volume(t.Context(), g.Query)
			if err != nil {
				t.Fatal(err)
			}
			g.Close()
			sum := int64(0)
			for _, v := range volumes {
				sum += v.Records
			}
			if want := int64(len(c.ackedNow(func(*sentRecord) bool { return true }))); len(g.Query.Unflushed) != 1 || n != 2 && sum != want {
				t.Errorf("-n %d: %d records in %d parts, want %d", n, sum, len(g.Query.Unflushed), want)
			}
		}
	})
}
