package unflushed_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"blobtail/reading/unflushed"
	"blobtail/record"
)

// Followers that end without a word are followed by others that go on from their last mark.
// The records up to the marks are all records, each once.
func TestMarks(t *testing.T) {
	for seed := range uint64(6) {
		scene(t, 2, func(t *testing.T, c *company, s *screen) {
			rng := rand.New(rand.NewPCG(seed, 1))
			for _, in := range c.all {
				in.Segment, in.Buffer.Size = 1<<20, 1<<20 // they remember all records
				in.start()
			}
			time.Sleep(time.Second)
			var after *unflushed.Cursor
			var shown, since []string
			var mu sync.Mutex // senders and followers
			marks := 0
			options := func() unflushed.FollowOptions {
				o := s.options(always("web"))
				o.Emit, o.After = nil, after
				since = nil
				o.Visit = func(e *record.Entry) error {
					mu.Lock()
					defer mu.Unlock()
					since = append(since, nameOf(e.Line))
					if e.ID.Origin.IsZero() {
						t.Errorf("a record has no identity: %s", e.Line)
					}
					return nil
				}
				o.Mark = func(c unflushed.Cursor) error {
					mu.Lock()
					defer mu.Unlock()
					marks++
					shown, since, after = append(shown, since...), nil, &c
					return nil
				}
				return o
			}
			f := follow(c.reader(), options())
			time.Sleep(3 * time.Second) // it has met the ingesters, and given its first cursor
			var all []*sentRecord
			sending := make(chan struct{})
			go func() {
				defer close(sending)
				for range 1500 {
					late := time.Duration(0)
					if rng.IntN(5) == 0 {
						late = -time.Duration(rng.IntN(5000)) * time.Millisecond
					}
					sent := c.all[rng.IntN(2)].send(line{service: "web", at: late}, line{service: "web", at: late / 2})
					mu.Lock()
					all = append(all, sent...)
					mu.Unlock()
					time.Sleep(time.Duration(rng.IntN(40)) * time.Millisecond)
				}
			}()
			ends := rand.New(rand.NewPCG(seed, 2))
			for sent := false; !sent; {
				time.Sleep(time.Duration(200+ends.IntN(4000)) * time.Millisecond)
				f.end(t)
				f = follow(c.reader(), options())
				select {
				case <-sending:
					sent = true
				default:
				}
			}
			time.Sleep(15 * time.Second)
			f.end(t)
			s.lines = nil
			for _, name := range shown {
				s.lines = append(s.lines, struct {
					name string
					at   time.Time
				}{name, time.Now()})
			}
			s.shows(namesOf(all)...)
			if marks < 10 || len(since) > 0 {
				t.Errorf("%d marks; behind the last one are %v", marks, since)
			}
		})
	}
}
