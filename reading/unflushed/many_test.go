package unflushed_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/reading/unflushed"
	"blobtail/reading/unflushed/live"
	"blobtail/record"
	"blobtail/storage/storagetest"
)

// numbered are names of services with numbers.
func numbered(form string, from, to int) (names []string) {
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf(form, i))
	}
	return names
}

// A question names any number of services. Beyond its size it has globs that match all of them,
// and the records of others are left out.
func TestQuestionOfManyServices(t *testing.T) {
	testkit.FullOnly(t, "hundreds of services")
	for _, services := range [][]string{
		numbered("checkout-api-v2-%d", 0, 250), numbered("s%06d", 0, 40_000), append(numbered("a%d", 0, 1000), numbered("_z%d", 0, 1000)...),
		numbered("_sys%d", 0, 2000), append(numbered("team-%d-*", 0, 900), "x?", "[ab]-*", "_rejected"), append(numbered("*-%d", 0, 1500), "a"),
		numbered("%d-web", 100, 1500), append(numbered("web-%d", 0, 600), strings.Repeat("x", 63), "/", ".."),
	} {
		list, wide := unflushed.Askable(services)
		if !wide || len(list) > live.MaxService {
			t.Errorf("%.30s...: %d bytes, wide %v", services[0], len(list), wide)
		}
		globs := strings.Split(list, ",")
		has := unflushed.Sift(services)
		may := func(service string) bool {
			return slices.ContainsFunc(globs, func(g string) bool { return record.MatchService(g, service) })
		}
		example := strings.NewReplacer("*", "q7", "?", "b", "[ab]", "a")
		for _, name := range services {
			service := example.Replace(name)
			if !record.ValidStored(service) {
				continue
			}
			if !may(service) || !has(fmt.Appendf(nil, `{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"%s","msg":"m"}`, service)) {
				t.Errorf("%s is not asked for by %.200s", service, list)
			}
		}
		if other := []byte(`{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"other_one","msg":"m"}`); has(other) {
			t.Errorf("%.30s...: a service comes that nobody asked for", services[0])
		}
		for _, g := range globs {
			if !record.ValidPattern(g) {
				t.Errorf("%q is no glob", g)
			}
		}
	}
	if list, wide := unflushed.Askable([]string{"b", "a-*"}); list != "b,a-*" || wide {
		t.Error(list, wide)
	}
}

// Reads and followers of more services than a question can name are complete. They have no records
// of others, and the newest ones although others have newer ones.
func TestManyServices(t *testing.T) {
	testkit.FullOnly(t, "hundreds of services")
	const n = 300
	scene(t, 2, func(t *testing.T, c *company, s *screen) {
		c.running()
		wanted := numbered("checkout-api-v2-%d", 0, n)
		var all []*sentRecord
		for i, service := range wanted {
			all = append(all, c.all[i%2].send(line{service: service})...)
		}
		for i := range n { // they begin as the others do
			c.all[i%2].send(line{service: fmt.Sprintf("checkout-api-v2-%d", n+i)})
		}
		r := c.reader()
		f := follow(r, s.options(always(wanted...)))
		time.Sleep(time.Second)
		names, g := c.read(r, always(wanted...))
		if !g.Live || len(g.Report.Problems) > 0 || !slices.Equal(names, namesOf(all)) {
			t.Errorf("%d records of %d, %q", len(names), len(all), problemsOf(g))
		}
		for _, u := range g.Query.Unflushed {
			if held := u.Services(); len(held) > n {
				t.Errorf("records of %d services are held", len(held))
			}
		}
		q := always(wanted...)
		q.Limit = 20
		if names, report := c.tail(r, q); len(report.Problems) > 0 || !slices.Equal(names, namesOf(all)[n-20:]) {
			t.Errorf("the newest are %v; %q", names, report.Problems)
		}
		fresh := c.all[0].send(line{service: wanted[7]}, line{service: "checkout-api-v2-500"}, line{service: wanted[200]})
		time.Sleep(3 * time.Second)
		f.end(t)
		s.shows(fresh[0].name, fresh[2].name)
		if len(s.problems) > 0 {
			t.Error(s.problems)
		}
	})
}

// A token for the services by their beginning reads any number of them. One for single names reads
// as many as a question names; the rest is told.
func TestManyServicesOfToken(t *testing.T) {
	wanted := numbered("checkout-api-v2-%d", 0, 300)
	for globs, complete := range map[string]bool{"checkout-*": true, strings.Join(wanted[:100], ","): false} {
		scene(t, 1, func(t *testing.T, c *company, _ *screen) {
			c.guard = func(*http.Request) (live.Reader, error) { return live.Reader{Globs: strings.Split(globs, ",")}, nil }
			c.running()
			for _, service := range wanted {
				c.all[0].send(line{service: service})
			}
			if complete {
				if names, g := c.read(c.reader(), always(wanted...)); !g.Live || len(names) != len(wanted) || len(g.Report.Problems) > 0 {
					t.Errorf("%d records, %q", len(names), problemsOf(g))
				}
				return
			}
			g, err := c.reader().Gather(t.Context(), always(wanted...), unflushed.Auto)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			says(t, problemsOf(g), 1, "the token may read only checkout-api-v2-0,", " and others: records of other services")
		})
	}
}

// The tables of the tail may take longer for many services, so that a tail of them is complete
// without an ingester to ask.
func TestTailOfManyServices(t *testing.T) {
	const n = 1500
	scene(t, 1, func(t *testing.T, c *company, _ *screen) {
		c.running()
		var lines []line
		for _, service := range numbered("s%d", 0, n) {
			lines = append(lines, line{service: service})
		}
		c.all[0].send(lines...)
		c.all[0].Flush()
		all := c.all[0].send(lines[:10]...)
		time.Sleep(5 * time.Second)
		c.Faults(func(op storagetest.Op, key string) storagetest.Fault {
			if op == storagetest.Scan && strings.HasPrefix(key, "tail") {
				return storagetest.Fault{Delay: 12 * time.Millisecond} // 4.5 s for all and two tables, by eight at once
			}
			return storagetest.Fault{}
		})
		q := always("*")
		q.Limit = 10
		names, report := c.tail(c.reader(func(o *unflushed.Options) { o.Unasked = true }), q)
		if len(report.Problems) > 0 || !slices.Equal(names, namesOf(all)) {
			t.Errorf("%v; %q", names, report.Problems)
		}
	})
}
