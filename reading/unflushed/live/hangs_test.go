package live_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/unflushed/live"
)

// stuck is an ingester that hangs now and then, as under SIGSTOP, or whose log is slow.
type stuck struct {
	http.Handler
	hung atomic.Bool
	slow atomic.Int64 // until a question is looked at
}

// ServeHTTP implements [http.Handler].
func (s *stuck) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.hung.Load() {
		<-r.Context().Done()
		return
	}
	if r.Method == http.MethodGet {
		time.Sleep(time.Duration(s.slow.Load()))
	}
	s.Handler.ServeHTTP(w, r)
}

// beside returns a way to ask an ingester for the records of all. It tells how long an answer took,
// and if it lacks those of the other one, which is stuck.
func (n network) beside(t *testing.T) (other *stuck, ask func() (took time.Duration, whole bool)) {
	n.ingester(t, "aaaaaaaa", peer(lease.Ingester{ID: "bbbbbbbb", Address: "http://bbbbbbbb"})).log.add(entry(1, 1, 0, "web"))
	b := &ingester{id: "bbbbbbbb", log: &journal{}}
	b.log.add(entry(2, 2, 0, "web"))
	other = &stuck{Handler: live.NewHandler(live.Options{Self: selfOf("bbbbbbbb"), Journal: b.log})}
	n.serve(t, "bbbbbbbb", other)
	return other, func() (time.Duration, bool) {
		begun := time.Now()
		answer, err := n.ask(t, "aaaaaaaa")
		if err != nil {
			t.Error(err)
			return 0, false
		}
		defer answer.Close()
		got, err := rest(answer)
		whole := len(got) == 2
		if !whole {
			if m := incomplete(t, err, 1, 0); len(got) != 1 || !strings.Contains(m.Reason, "sign of life since ") {
				t.Errorf("%d records, %+v", len(got), m)
			}
		}
		return time.Since(begun), whole
	}
}

// The first question finds in two seconds that an ingester hangs. Those that wait share that, and
// later ones wait 200 ms. All are incomplete, until it answers.
func TestHangRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other, ask := network{}.beside(t)
		if took, whole := ask(); took != 0 || !whole {
			t.Fatalf("%v %v", took, whole)
		}
		other.hung.Store(true)
		var asking sync.WaitGroup
		for _, after := range []time.Duration{0, 0, time.Second, 1900 * time.Millisecond} {
			asking.Go(func() {
				time.Sleep(after)
				if took, whole := ask(); whole || took > 2*time.Second-after+200*time.Millisecond {
					t.Errorf("after %v it takes %v, %v", after, took, whole)
				}
			})
		}
		asking.Wait()
		long := 0
		for range 100 { // one in ten seconds has two seconds: the way may be long
			time.Sleep(500 * time.Millisecond)
			took, whole := ask()
			if whole || took > 200*time.Millisecond && took != 2*time.Second {
				t.Errorf("it takes %v, %v", took, whole)
			}
			if took > 200*time.Millisecond {
				long++
			}
		}
		if long < 4 || long > 12 {
			t.Errorf("%d questions have waited long", long)
		}
		other.hung.Store(false)
		time.Sleep(500 * time.Millisecond)
		if took, whole := ask(); took != 0 || !whole {
			t.Errorf("it is back: %v %v", took, whole)
		}
		other.hung.Store(true)
		if took, _ := ask(); took != 2*time.Second {
			t.Errorf("another hang is found after %v", took)
		}
	})
}

// An ingester whose log is slow does not hang: its answer is waited for, also while it counts as
// hung.
func TestSlowIsNotHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other, ask := network{}.beside(t)
		other.slow.Store(int64(9 * time.Second))
		for range 2 {
			if took, whole := ask(); took != 9*time.Second || !whole {
				t.Errorf("%v %v", took, whole)
			}
		}
		other.hung.Store(true)
		ask()
		time.Sleep(time.Second)
		other.hung.Store(false)
		if took, whole := ask(); took != 9*time.Second || !whole {
			t.Errorf("behind a hang: %v %v", took, whole)
		}
	})
}

// A hang in the middle of an answer is remembered as well.
func TestHangInAnswerRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network{}
		n.serve(t, "bbbbbbbb", hangs(true, wire(entry(1, 2, 0, "web")), false))
		n.ingester(t, "aaaaaaaa", peer(lease.Ingester{ID: "bbbbbbbb", Address: "http://bbbbbbbb"}))
		for _, want := range []time.Duration{2 * time.Second, 200 * time.Millisecond} {
			begun := time.Now()
			answer, err := n.ask(t, "aaaaaaaa")
			if err != nil {
				t.Fatal(err)
			}
			_, err = rest(answer)
			incomplete(t, err, 1, 0)
			answer.Close()
			if took := time.Since(begun); took != want {
				t.Errorf("it takes %v, want %v", took, want)
			}
			time.Sleep(time.Second)
		}
	})
}
