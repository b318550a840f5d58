package peers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/unflushed/live"
	"blobtail/storage"
)

// The list of peers is as fresh as the question needs. While the table is away it is
// the last list, and the roll has its time.
func TestPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rows []lease.Ingester
		var failure error
		looks := 0
		var listed time.Time
		o := New(Options{
			Self: func() string { return "aaaaaaaa" },
			List: func(context.Context) ([]lease.Ingester, error) {
				looks++
				return rows, failure
			},
			Now: time.Now,
		})
		ask := func(fresh bool, wantLooks int, want string) {
			t.Helper()
			time.Sleep(time.Millisecond)
			looks = 0
			roll, err := o.Roll(t.Context(), fresh)
			synctest.Wait()
			var got []string
			for _, p := range roll.Peers {
				got = append(got, p.ID+map[bool]string{true: " holding"}[p.State == lease.Holding]+map[bool]string{true: " silent"}[!p.Live(roll.Now)])
			}
			if err != nil {
				got = append(got, err.Error())
			}
			if text := strings.Join(got, ", "); text != want || looks != wantLooks {
				t.Errorf("after %d looks: %s; want %d, %s", looks, text, wantLooks, want)
			}
			if looks > 0 && failure == nil {
				listed = time.Now()
			}
			if !roll.Listed.Equal(listed) {
				t.Errorf("listed at %v, want %v", roll.Listed, listed)
			}
		}
		row := func(id string, ago time.Duration, state lease.State) lease.Ingester {
			return lease.Ingester{ID: id, At: time.Now().Add(-ago), State: state}
		}
		// There is no table yet. That is no reason to pause.
		failure = fmt.Errorf("list: %w", storage.ErrNotExist)
		ask(true, 1, "list: does not exist")
		ask(true, 1, "list: does not exist")
		// Nothing is known, and the table is not read for a while.
		failure = errors.New("the store is away")
		ask(true, 1, "the store is away")
		ask(true, 0, "the store is away")
		time.Sleep(listPause)
		failure = nil
		rows = []lease.Ingester{
			row("aaaaaaaa", 0, lease.Holding), row("bbbbbbbb", 0, lease.Holding), row("cccccccc", 2*time.Minute, lease.Holding),
			row("dddddddd", time.Second, lease.Stopped), row("eeeeeeee", 48*time.Hour, lease.Holding),
			row("ffffffff", time.Second, lease.Idle), row("00000001", 2*time.Minute, lease.Idle), row("00000002", 2*time.Hour, lease.Stopped),
		}
		known := "bbbbbbbb holding, cccccccc holding silent, eeeeeeee holding silent, ffffffff"
		ask(true, 1, known)
		ask(true, 1, known)
		ask(false, 0, known)
		rows = rows[:2]
		ask(false, 0, known)
		time.Sleep(recent)
		ask(false, 1, "bbbbbbbb holding")
		// Away: the last list is used, and no ingester becomes silent by it.
		failure = errors.New("the store is away")
		ask(true, 1, "bbbbbbbb holding")
		time.Sleep(2 * time.Minute)
		ask(true, 1, "bbbbbbbb holding")
		ask(true, 0, "bbbbbbbb holding")
		ask(false, 0, "bbbbbbbb holding")
		time.Sleep(listPause)
		failure = nil
		ask(true, 1, "bbbbbbbb holding silent")
		failure = fmt.Errorf("list: %w", &lease.RowError{ID: "12345678", Reason: errors.New("too new")})
		looks, listed = 0, time.Now().Add(time.Millisecond)
		ask(true, 1, "bbbbbbbb holding silent, list: row 12345678 of table ingesters: too new")
	})
}

// If the row of the asked ingester is of another start, that start may hold records, or
// have found a loss that this one does not know of yet. Readers get this error, and followers do not.
func TestAnotherStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		row := lease.Ingester{ID: "aaaaaaaa", Process: "01234567", State: lease.Holding}
		o := New(Options{
			Self: func() string { return "aaaaaaaa" }, Process: "01234567",
			List: func(context.Context) ([]lease.Ingester, error) { return []lease.Ingester{row}, nil },
			Now:  time.Now,
		})
		ask := func(fresh, told bool) {
			t.Helper()
			time.Sleep(2 * recent)
			roll, err := o.Roll(t.Context(), fresh)
			synctest.Wait()
			if errors.Is(err, errAnother) != told || (err != nil) != told || len(roll.Peers) > 0 {
				t.Errorf("of %+v comes %+v, %v", row, roll, err)
			}
		}
		ask(true, false)
		row.Process = "89abcdef"
		ask(true, true)
		ask(false, false)
		row.State = lease.Idle
		ask(true, false)
		row.Lost.Until = time.Now()
		ask(true, true)
		row.Process = "01234567"
		ask(true, false)
	})
}

// Callers that come while the table is being read use the result if the reading began
// after their question.
func TestPeersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		o := New(Options{
			Self: func() string { return "aaaaaaaa" },
			List: func(context.Context) ([]lease.Ingester, error) {
				looks++
				time.Sleep(time.Second)
				return []lease.Ingester{{ID: "bbbbbbbb", Process: "01234567", Address: "http://b", Host: "b", At: time.Now(), State: lease.Holding}}, nil
			},
			Now: time.Now,
		})
		type asked struct {
			roll live.Roll
			at   time.Time
		}
		done := make(chan asked)
		for range 50 {
			go func() {
				at := time.Now()
				roll, _ := o.Roll(t.Context(), true)
				done <- asked{roll, at}
			}()
			time.Sleep(time.Millisecond)
		}
		for range 50 {
			a := <-done
			if len(a.roll.Peers) != 1 || a.roll.Peers[0].ID != "bbbbbbbb" || a.roll.Peers[0].Address != "http://b" {
				t.Errorf("%+v", a.roll.Peers)
			}
			if a.roll.Listed.Before(a.at) {
				t.Errorf("asked at %v, listed at %v", a.at, a.roll.Listed)
			}
		}
		if looks != 2 {
			t.Errorf("%d looks at the table", looks)
		}
	})
}

// Run keeps the list young without any question. So a question that comes while the
// table is away still finds the peers. Run ends with its context.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := false
		o := New(Options{
			Self: func() string { return "aaaaaaaa" },
			List: func(context.Context) ([]lease.Ingester, error) {
				if away {
					return nil, errors.New("the store is away")
				}
				return []lease.Ingester{{ID: "aaaaaaaa"}, {ID: "bbbbbbbb", At: time.Now(), State: lease.Holding}}, nil
			},
			Now: time.Now,
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			o.Run(ctx)
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		away = true
		roll, err := o.Roll(t.Context(), true)
		if err != nil || len(roll.Peers) != 1 || time.Since(roll.Listed) > lookEvery {
			t.Errorf("%+v, %v", roll, err)
		}
		cancel()
		<-done
	})
}
