package integration_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

// Persons go from blobs of closed and of open days, from compacted ones, from rejected lines, from the
// tables of the newest records, and from the memory of a server, also if an ingester holds some still.
// All other records stay, byte for byte, and readers agree on them.
func TestErase(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		size := sized("BLOBTAIL_TORTURE", 250, 2500)
		c := &people{estate: newEstate(t, at, "default: keep"), lines: map[string]int{}}
		wal := t.TempDir()
		p := start(t, at, wal, c.flag)
		for _, ago := range []int{3, 2} {
			for h := range 8 {
				for _, service := range []string{"web", "orders"} {
					c.post(p, service, c.day(ago).Start().Add(time.Duration(h)*time.Hour), size, 100)
				}
			}
			p.mustFlush()
		}
		c.close()
		c.must(0, "compact", "--grace", "0s", "--service", "web")
		for h := range 3 { // late ones, for days that are closed
			c.post(p, "web", c.day(3).Start().Add(time.Duration(h)*time.Hour+time.Minute), size, 100)
		}
		c.post(p, "orders", time.Now().Add(-time.Minute), size, 100)
		p.mustFlush()
		c.close()
		s := serve(t, at, c.flag)
		c.post(p, "web", time.Now().Add(-time.Minute), size, 100) // it is not flushed
		testkit.Until(t, "the tail has rows of persons", func() bool {
			found, _ := c.left()
			return slices.Contains(found, "tail")
		})
		if found, _ := c.left(); len(found) < 30 {
			t.Errorf("before, persons are in %v", found)
		}
		seen := s.points("query", `sum by (level) (count_over_time({service_name=~".+"} |= "person" [120h]))`, 0, time.Now().Unix())
		if len(seen) != 3 {
			t.Errorf("the server finds %v", seen)
		}

		p.mustFlush() // else the first run would wait for it
		third := len(c.persons) / 3
		in, either := c.persons[:third], c.persons[third:2*third]
		list := `user in ["` + strings.Join(in, `", "`) + `"] || ` // rejected lines have no fields
		c.erase(list+`msg contains "`+strings.Join(in, `" || msg contains "`)+`"`, "--grace", "0s")
		c.erase(`user == "`+strings.Join(either, `" || user == "`)+`"`, "--grace", "0s", "--service", "web")
		c.post(p, "orders", time.Now().Add(-time.Minute), size, 100)
		flush := time.AfterFunc(3*time.Second, p.mustFlush)
		defer flush.Stop()
		testkit.Until(t, "the tail has rows of both services", func() bool { return len(c.bodies()) >= 5 })
		bodies := c.bodies()
		c.erase(`user startsWith "person" || msg contains "person"`, "--grace", "0s")
		if root, ok := strings.CutPrefix(at.store, "dir:"); ok {
			stay := strings.Join(c.bodies(), "")
			var gone []string
			for _, b := range bodies {
				if some := b[len(b)/2:][:min(32, len(b)/2)]; !strings.Contains(stay, some) {
					gone = append(gone, some)
				}
			}
			if found := within(t, root, gone...); len(found) > 0 || len(gone) < 2 {
				t.Errorf("%d erased rows of the tail, which are in %v", len(gone), found)
			}
		}
		c.agrees("erased", s)
		out, _ := c.must(1, "erase", "--where", `user startsWith "person" || msg contains "person"`)
		if !strings.HasPrefix(out, "nothing left: searched ") {
			t.Errorf("a second run prints %q", out)
		}
		c.must(0, "compact", "--grace", "0s")
		c.must(0, "compact", "--grace", "0s")
		c.agrees("compacted", s)
		s.forgets(fmt.Sprintf("/api/v1/count?service=web&text=%%22kind%%22:%%223%%22&from=%s&to=%s", c.day(3), c.day(2)))
		if len(within(t, wal, "person")) == 0 {
			t.Error("the log of the ingester has no text of a person before")
		}
		p.stop()
		start(t, at, wal, c.flag)
		if found := within(t, wal, "person"); len(found) > 0 {
			t.Errorf("the log of an ingester that was started again: persons are in %v", found)
		}
	})
}

// A run is killed at any moment and repeated, beside an ingester, a compaction and readers. No read that
// says that it is whole lacks a record that stays, or shows one twice, and after the last run nothing of
// a person is left.
func TestEraseKilled(t *testing.T) {
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		c := &people{estate: newEstate(t, at, "default: keep"), lines: map[string]int{}}
		p := start(t, at, t.TempDir(), c.flag)
		rnd := rand.New(rand.NewPCG(newSeed(t), 3))
		const where = `user startsWith "person" || msg contains "person"`
		fill := func() {
			for _, ago := range []int{3, 2} {
				for h := range 2 {
					c.post(p, "web", c.day(ago).Start().Add(time.Duration(60*h+rnd.IntN(30))*time.Minute), 20, 4)
				}
			}
			c.post(p, "orders", time.Now().Add(-time.Minute), 20, 4)
			p.mustFlush()
			c.close()
		}
		for range 3 {
			fill()
		}
		var work sync.WaitGroup
		over := make(chan struct{})
		defer work.Wait()
		end := sync.OnceFunc(func() { close(over) })
		defer end()
		beside := func(pause time.Duration, do func()) {
			work.Go(func() {
				for !t.Failed() {
					select {
					case <-over:
						return
					case <-time.After(pause):
						do()
					}
				}
			})
		}
		whole, compactions := 0, 0
		beside(500*time.Millisecond, func() { c.post(p, "web", time.Now().Add(-time.Minute), 2, 0) })
		beside(5*time.Second, p.mustFlush)
		beside(time.Second, func() {
			if out, errs, code := c.run("compact", "--grace", "20s"); code != 0 && !tooSlow(errs, code) {
				t.Errorf("compact exits %d: %s%s", code, out, errs)
			}
			compactions++
		})
		beside(0, func() {
			c.mu.Lock()
			want := maps.Clone(c.lines)
			c.mu.Unlock()
			out, errs, code := logquery(t, at, "*", "-o", "json")
			if code != 0 {
				return // it says that it is not whole
			}
			whole++
			shown := map[string]int{}
			for line := range bytes.Lines(out) {
				if shown[string(line)]++; shown[string(line)] > 1 {
					t.Errorf("a read shows twice: %s", line)
				}
			}
			for line := range want {
				if shown[line] == 0 {
					t.Errorf("a whole read lacks %s%s", line, errs)
				}
			}
		})
		killed, last := 0, ""
		for i := range kills(t, 6) {
			if i%5 == 4 {
				fill()
			}
			out, errs, code := c.run("erase", "--where", where)
			if code == 1 || code == 3 && !planLine.MatchString(out) { // nothing is left, or it is not flushed
				fill()
				continue
			}
			if code != 2 {
				t.Fatalf("erase exits %d: %s%s", code, out, errs)
			}
			after := time.Duration(rnd.IntN(4000)) * time.Millisecond
			last = planHash(t, out)
			if killRetention(t, c.estate, after, "erase", "--where", where, "--grace", "1s", "--confirm", last) {
				killed++
			}
		}
		end()
		work.Wait()
		p.mustFlush()
		testkit.Until(t, "nothing is left", func() bool {
			out, errs, code := c.run("erase", "--where", where)
			if code == 2 {
				c.must(0, "erase", "--where", where, "--grace", "1s", "--confirm", planHash(t, out))
			} else if code == 3 && !strings.Contains(errs, "not stored:") {
				t.Error(errs)
			}
			return code == 1
		})
		// The run that was killed last is repeated, as always: it may have left a file that was not complete.
		if out, errs, code := c.run("erase", "--where", where, "--grace", "1s", "--confirm", last); code > 1 {
			t.Errorf("erase exits %d: %s%s", code, out, errs)
		}
		t.Logf("erase killed %d times, beside %d compactions; %d reads were whole", killed, compactions, whole)
		if killed < 2 || compactions == 0 || whole == 0 {
			t.Error("that proves nothing")
		}
		c.agrees("afterwards", serve(t, at, c.flag))
	})
}
