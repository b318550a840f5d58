package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/heartbeat"
	"blobtail/live"
)

// Who has to be asked is as fresh as the question needs, and while the table is
// away it is who was there the last time.
func TestOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rows []heartbeat.Ingester
		var failure error
		looks := 0
		o := newOthers(func() string { return "aaaaaaaa" }, func(context.Context) ([]heartbeat.Ingester, error) {
			looks++
			return rows, failure
		}, time.Now)
		ask := func(fresh bool, wantLooks int, want string) {
			t.Helper()
			time.Sleep(time.Millisecond)
			looks = 0
			peers, err := o.peers(t.Context(), fresh)
			var got []string
			for _, p := range peers {
				got = append(got, p.ID+map[bool]string{true: " silent"}[p.Silent])
			}
			if err != nil {
				got = append(got, err.Error())
			}
			if text := strings.Join(got, ", "); text != want || looks != wantLooks {
				t.Errorf("after %d looks: %s; want %d, %s", looks, text, wantLooks, want)
			}
		}
		row := func(id string, ago time.Duration) heartbeat.Ingester {
			return heartbeat.Ingester{ID: id, At: time.Now().Add(-ago)}
		}
		// Nothing is known, and the table is left alone for a while.
		failure = errors.New("the store is away")
		ask(true, 1, "the store is away")
		ask(true, 0, "the store is away")
		time.Sleep(listPause)
		failure = nil
		stopped, left := row("dddddddd", time.Second), row("eeeeeeee", 48*time.Hour)
		stopped.Stopped, left.Oldest = true, time.Now().Add(-49*time.Hour)
		rows = []heartbeat.Ingester{row("aaaaaaaa", 0), row("bbbbbbbb", 0), row("cccccccc", 2*time.Minute), stopped, left, row("ffffffff", 2*time.Hour)}
		known := "bbbbbbbb, cccccccc silent, eeeeeeee silent"
		ask(true, 1, known)
		ask(true, 1, known)
		ask(false, 0, known)
		rows = rows[:2]
		ask(false, 0, known)
		time.Sleep(recent)
		ask(false, 1, "bbbbbbbb")
		// Away: the list stands, and nobody grows silent by it.
		failure = errors.New("the store is away")
		ask(true, 1, "bbbbbbbb")
		time.Sleep(2 * time.Minute)
		ask(true, 1, "bbbbbbbb")
		ask(true, 0, "bbbbbbbb")
		ask(false, 0, "bbbbbbbb")
		time.Sleep(listPause)
		failure = fmt.Errorf("list: %w", &heartbeat.RowError{ID: "12345678", Reason: "too new"})
		ask(true, 1, "bbbbbbbb silent, list: row 12345678 of table ingesters: too new")
	})
}

// Those who ask while the table is being read use what comes of that, if it was
// asked for after them.
func TestOthersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		o := newOthers(func() string { return "aaaaaaaa" }, func(context.Context) ([]heartbeat.Ingester, error) {
			looks++
			time.Sleep(time.Second)
			return []heartbeat.Ingester{{ID: "bbbbbbbb", Address: "http://b", Host: "b", At: time.Now()}}, nil
		}, time.Now)
		done := make(chan []live.Peer)
		for range 50 {
			go func() {
				peers, _ := o.peers(t.Context(), true)
				done <- peers
			}()
			time.Sleep(time.Millisecond)
		}
		for range 50 {
			if p := <-done; !slices.Equal(p, []live.Peer{{ID: "bbbbbbbb", Address: "http://b", Host: "b"}}) {
				t.Errorf("%+v", p)
			}
		}
		if looks != 2 {
			t.Errorf("%d looks at the table", looks)
		}
	})
}
