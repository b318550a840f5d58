package reading_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/reading"
	"blobtail/reading/readingtest"
	"blobtail/record"
	"blobtail/storage/storagetest"
)

// A query ends at once when its client has gone, at any call in which the store hangs, alone and
// among others.
func TestCancelled(t *testing.T) {
	for _, op := range []storagetest.Op{storagetest.List, storagetest.Get, storagetest.Scan} {
		for _, company := range []int{1, 5} {
			t.Run(fmt.Sprint(op, " ", company), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := readingtest.New(t, 1)
					time.Sleep(time.Second)
					h.Send(0, readingtest.Line{Service: "web", Msg: "stored"})
					h.Flush()
					h.Send(0, readingtest.Line{Service: "web", Msg: "held"})
					r := h.Reader()
					h.Faults(func(o storagetest.Op, key string) storagetest.Fault {
						if o == op {
							return storagetest.Fault{Delay: time.Hour}
						}
						return storagetest.Fault{}
					})
					defer h.Faults(nil)
					ctx, cancel := context.WithCancel(t.Context())
					var queries sync.WaitGroup
					for n := range company {
						queries.Go(func() {
							q := reading.Ask{Services: []string{"web"}, Range: reading.Always(), Limit: n % 2 * 10}
							if _, _, err := lines(ctx, r.For(nil), q); !errors.Is(err, context.Canceled) {
								t.Errorf("it ends with %v", err)
							}
						})
					}
					time.Sleep(3 * time.Second)
					begun := time.Now()
					cancel()
					queries.Wait()
					if took := time.Since(begun); took > 0 {
						t.Errorf("it ends after %v", took)
					}
				})
			})
		}
	}
}

// A query asks its filter no more when its client has gone, also within a block of many records.
func TestCancelledFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := readingtest.New(t, 1)
		time.Sleep(time.Second)
		for range 100 {
			h.Send(0, readingtest.Line{Service: "web", Msg: "one of many"})
		}
		h.Flush()
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		_, err := h.Reader().For(nil).Filtered(ctx, reading.Ask{Services: []string{"web"}, Range: reading.Always()}, func([]byte) bool {
			asked++
			cancel()
			return true
		})
		if !errors.Is(err, context.Canceled) || asked != 1 {
			t.Errorf("it ends with %v after %d questions, want one", err, asked)
		}
	})
}

// Each question ends at once when its client has gone, while the store hangs.
func TestCancelledNumbers(t *testing.T) {
	a := reading.Ask{Services: []string{"*"}, Range: reading.Always()}
	with := func(change func(a *reading.Ask)) reading.Ask {
		a := a
		change(&a)
		return a
	}
	text := with(func(a *reading.Ask) { a.Without = []string{"nothing"} })
	for name, ask := range map[string]func(ctx context.Context, s *reading.Store) error{
		"count":    func(ctx context.Context, s *reading.Store) error { _, err := s.Count(ctx, text); return err },
		"services": func(ctx context.Context, s *reading.Store) error { _, _, err := s.Services(ctx, a); return err },
		"histogram": func(ctx context.Context, s *reading.Store) error {
			_, _, err := s.Histogram(ctx, a, reading.Slices{By: time.Second})
			return err
		},
		"split": func(ctx context.Context, s *reading.Store) error {
			_, _, err := s.Histogram(ctx, a, reading.Slices{Split: []string{"msg"}})
			return err
		},
		"split by index": func(ctx context.Context, s *reading.Store) error {
			_, _, err := s.Histogram(ctx, a, reading.Slices{Split: []string{"level", "service"}})
			return err
		},
		"survey": func(ctx context.Context, s *reading.Store) error {
			_, _, err := s.Survey(ctx, a, reading.SurveyOptions{})
			return err
		},
		"around": func(ctx context.Context, s *reading.Store) error {
			_, _, err := s.Around(ctx, a, reading.Place{Service: "web", Time: time.Now().UnixNano(), Before: 1, After: 1})
			return err
		},
		"page": func(ctx context.Context, s *reading.Store) error {
			_, err := s.Records(ctx, with(func(a *reading.Ask) { a.Edges.Before, a.Limit = &record.Key{Time: time.Now().UnixNano()}, 10 }), func([]byte) error { return nil })
			return err
		},
	} {
		for _, op := range []storagetest.Op{storagetest.List, storagetest.Get} {
			t.Run(fmt.Sprint(name, " ", op), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := readingtest.New(t, 1)
					time.Sleep(time.Second)
					h.Send(0, readingtest.Line{Service: "web", Msg: "stored"}, readingtest.Line{Service: "web", Msg: "too", Time: time.Now().Add(time.Second)})
					h.Flush()
					s := h.Reader().For(nil)
					h.Faults(func(o storagetest.Op, key string) storagetest.Fault {
						if o == op {
							return storagetest.Fault{Delay: time.Hour}
						}
						return storagetest.Fault{}
					})
					defer h.Faults(nil)
					ctx, cancel := context.WithCancel(t.Context())
					ended := make(chan error, 1)
					go func() { ended <- ask(ctx, s) }()
					time.Sleep(3 * time.Second)
					select {
					case err := <-ended: // indexes were not needed, or are kept
						if err != nil {
							t.Error(err)
						}
						cancel()
						return
					default:
					}
					begun := time.Now()
					cancel()
					if err := <-ended; !errors.Is(err, context.Canceled) || time.Since(begun) > 0 {
						t.Errorf("it ends after %v with %v", time.Since(begun), err)
					}
				})
			})
		}
	}
}

// A histogram by fields ends within a block of its records when its client has gone.
func TestCancelledSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := readingtest.New(t, 1)
		time.Sleep(time.Second)
		for range 50 {
			h.Send(0, readingtest.Line{Service: "web", Msg: "one of many"})
			h.Flush()
		}
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Int64
		h.Faults(func(storagetest.Op, string) storagetest.Fault {
			if calls.Add(1) == 10 {
				cancel()
			}
			return storagetest.Fault{}
		})
		defer h.Faults(nil)
		if _, _, err := h.Reader().For(nil).Histogram(ctx, reading.Ask{Services: []string{"web"}, Range: reading.Always()}, reading.Slices{Split: []string{"msg"}}); !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
	})
}
