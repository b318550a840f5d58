package unflushed_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"blobtail/reading/unflushed"
)

// The function of a filter decides before limits, for records of each origin: blobs, the logs of
// ingesters, and rows of the tail.
func TestAcceptBeforeLimits(t *testing.T) {
	for name, change := range map[string]func(*unflushed.Options){"live": func(*unflushed.Options) {}, "rows": withoutLive} {
		t.Run(name, func(t *testing.T) {
			scene(t, 1, func(t *testing.T, c *company, s *screen) {
				in := c.all[0]
				in.start()
				time.Sleep(time.Second)
				var wanted, others []*sentRecord
				send := func() {
					for range 3 {
						wanted = append(wanted, in.send(line{service: "web"})...)
						others = append(others, in.send(line{service: "web"}, line{service: "web"})...)
						time.Sleep(500 * time.Millisecond)
					}
				}
				q := always("web")
				q.Filter.Accept = func(line []byte) bool {
					return line[len(line)-1] == '\n' && !slices.Contains(namesOf(others), nameOf(line))
				}
				send()
				in.Flush()
				send()
				time.Sleep(2 * time.Second)
				if names, _ := c.read(c.reader(change), q); !slices.Equal(names, namesOf(wanted)) {
					t.Errorf("read are %v, want %v", names, namesOf(wanted))
				}
				// 50 times the third is no int.
				for _, q.Limit = range []int{2, 5, 184467440737095517, math.MaxInt} {
					want := namesOf(wanted[6-min(q.Limit, 6):])
					if names, report := c.tail(c.reader(change), q); !slices.Equal(names, want) || name == "live" && len(report.Problems) > 0 {
						t.Errorf("the newest %d are %v, want %v; %v", q.Limit, names, want, report.Problems)
					}
				}
				q.Limit = 4
				f := follow(c.reader(change), s.options(q))
				time.Sleep(2 * time.Second)
				shown := slices.Clone(wanted[2:])
				more := in.send(line{service: "web"})
				time.Sleep(3 * time.Second)
				f.end(t)
				s.shows(namesOf(shown, more)...)
			})
		})
	}
}
