package unflushed_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"blobtail/catalog/horizon"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
)

// Expired records are hidden in logs, rows and blobs, and do not hide records that have
// not expired.
func TestExpiredIsHidden(t *testing.T) {
	for _, where := range []struct {
		name   string
		stored bool // in blobs before it is read
		change func(*unflushed.Options)
	}{
		{"live", false, func(*unflushed.Options) {}},
		{"rows", false, withoutLive},
		{"blobs", true, func(*unflushed.Options) {}},
	} {
		for _, dropped := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s dropped %v", where.name, dropped), func(t *testing.T) {
				scene(t, 2, func(t *testing.T, c *company, s *screen) {
					time.Sleep(12 * time.Hour) // noon
					c.all[0].start()
					c.all[1].start()
					var old, today []*sentRecord
					for i := range 5 {
						in := c.all[i%2]
						old = append(old, in.send(line{service: "web", at: -24 * time.Hour}, line{service: "web", at: -24 * time.Hour})...)
						today = append(today, in.send(line{service: "web"})...)
						time.Sleep(1100 * time.Millisecond)
					}
					other := c.all[0].send(line{service: "db", at: -24 * time.Hour}, line{service: "db"})
					time.Sleep(1500 * time.Millisecond)
					if where.stored {
						time.Sleep(time.Minute)
					}
					day, want := horizon.DayOf(time.Now()), today
					var err error
					if dropped { // as after a secret was logged
						want = old
						err = horizon.Drop(t.Context(), c.Store, "web", day)
					} else {
						err = horizon.Publish(t.Context(), c.Store, "web", day)
					}
					if err != nil {
						t.Fatal(err)
					}
					r := c.reader(where.change)
					got, _ := c.read(r, always("web"))
					c.same("read", got, namesOf(want))
					got, _ = c.read(r, always("db", "web"))
					if len(got) != len(want)+len(other) {
						t.Errorf("of all services %v, want %v and %v", got, namesOf(want), namesOf(other))
					}
					for _, n := range []int{1, 3, 100} {
						q := always("web")
						q.Limit = n
						got, report := c.tail(r, q)
						c.same(fmt.Sprintf("tail %d", n), got, namesOf(want)[max(0, len(want)-n):])
						if len(report.Problems) > 0 && where.name != "rows" {
							t.Errorf("tail %d: %v", n, report.Problems)
						}
					}
				})
			})
		}
	}
}

func (c *company) same(what string, got, want []string) {
	c.t.Helper()
	if !slices.Equal(got, want) {
		c.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// A follower hides a day within a minute of its horizon. While the store is away it goes
// on with the days it knows.
func TestFollowHidesWhatExpires(t *testing.T) {
	for name, change := range map[string]func(*unflushed.Options){"live": func(*unflushed.Options) {}, "rows": withoutLive} {
		t.Run(name, func(t *testing.T) {
			scene(t, 1, func(t *testing.T, c *company, s *screen) {
				time.Sleep(12 * time.Hour)
				c.all[0].start()
				q := blobs.Query{Services: []string{"db", "web"}, Range: blobs.Always()}
				f := follow(c.reader(change), s.options(q))
				time.Sleep(12 * time.Second)
				var want []*sentRecord
				late := func() []*sentRecord {
					return c.all[0].send(line{service: "web", at: -24 * time.Hour}, line{service: "db", at: -24 * time.Hour}, line{service: "web"}, line{service: "db"})
				}
				want = append(want, late()...)
				time.Sleep(3 * time.Second)
				if err := horizon.Publish(t.Context(), c.Store, "web", horizon.DayOf(time.Now())); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				want = append(want, late()[1:]...)
				time.Sleep(3 * time.Second)
				f.end(t)
				s.shows(namesOf(want)...)
				says(t, s.get(&s.problems), 0)
			})
		})
	}
}
