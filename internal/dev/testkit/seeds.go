package testkit

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Setting is a number from the environment, or another one if it has none.
func Setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// World is a story that a seed tells.
type World interface {
	// Run takes the world to its end, in virtual time.
	Run()
	// Found returns the promises that the world broke, and failures of the simulation
	// itself.
	Found() (violations, troubles []string)
	// Story tells how.
	Story() string
}

// Worlds makes a world for each seed, runs it in virtual time, and fails t if it finds
// anything. Two run at a time, until one fails. Prefix_FIRST and Prefix_SEEDS choose the
// seeds; without them it takes the first ones, few with -short. It logs
// the story of a world that fails, and with Prefix_STORY each story. It calls ended with
// one world after another. It returns the first seed and the number of worlds that
// ended.
func Worlds[W World](t *testing.T, s Simulation, create func(seed uint64) W, ended func(W)) (first, done int) {
	first = Setting(s.Prefix+"_FIRST", 0)
	count := Setting(s.Prefix+"_SEEDS", Share(cmp.Or(s.Seeds, 2000), cmp.Or(s.Few, 25)))
	var next, over atomic.Int64
	var mu sync.Mutex
	t.Run("seeds", func(t *testing.T) {
		for worker := range 2 {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				for n := int(next.Add(1) - 1); n < count; n = int(next.Add(1) - 1) {
					var w W
					seed := first + n
					synctest.Test(t, func(*testing.T) {
						w = create(uint64(seed))
						w.Run()
					})
					if Report(t, uint64(seed), w); t.Failed() || os.Getenv(s.Prefix+"_STORY") != "" {
						t.Logf("%s\nagain: %s_FIRST=%d %s_SEEDS=1 go test ./%s -run %s -v", w.Story(), s.Prefix, seed, s.Prefix, s.Package, s.Test)
					}
					mu.Lock()
					ended(w)
					mu.Unlock()
					Collect(over.Add(1))
					if t.Failed() {
						next.Store(int64(count)) // the other one stops too
					}
				}
			})
		}
	})
	return first, int(over.Load())
}

// Report fails t with the findings of a world.
func Report(t *testing.T, seed uint64, w World) {
	t.Helper()
	violations, troubles := w.Found()
	for _, v := range violations {
		t.Errorf("violation: seed %d: %s", seed, v)
	}
	for _, v := range troubles {
		t.Errorf("trouble: seed %d: %s", seed, v)
	}
}

// Add adds the counts of one world to a sum: the fields of a struct that are of type int
// or map[string]int.
func Add[Counts any](sum, more *Counts) {
	all, one := reflect.ValueOf(sum).Elem(), reflect.ValueOf(more).Elem()
	for i := range all.NumField() {
		to, from := all.Field(i).Addr().UnsafePointer(), one.Field(i).Addr().UnsafePointer()
		switch all.Field(i).Type() {
		case reflect.TypeFor[int]():
			*(*int)(to) += *(*int)(from)
		case reflect.TypeFor[map[string]int]():
			counts := (*map[string]int)(to)
			if *counts == nil {
				*counts = map[string]int{}
			}
			for k, n := range *(*map[string]int)(from) {
				(*counts)[k] += n
			}
		}
	}
}

// Collect is called after each world and frees the memory of all that ended. The
// collector alone takes all that is made while it marks for alive, and lets the heap
// grow by that each time.
func Collect(done int64) {
	if done%50 == 0 {
		runtime.GC()
	}
}
