package live_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/lease"
	"blobtail/reading/unflushed/live"
)

// An answer names its ingester, the ingesters with records in it, and the age of the
// list of peers.
func TestAnswerSaysWhose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := network{}
		b := n.ingester(t, "bbbbbbbb")
		b.log.add(entry(1, 2, 0, "web"))
		n.ingester(t, "dddddddd")
		idle := peer(lease.Ingester{ID: "dddddddd", Address: "http://dddddddd"})
		idle.State = lease.Idle
		roll := live.Roll{Now: listed, Peers: []lease.Ingester{peer(lease.Ingester{ID: "bbbbbbbb", Address: "http://bbbbbbbb"}), peer(lease.Ingester{ID: "cccccccc"}), idle}}
		h := live.NewHandler(live.Options{
			Self: selfOf("aaaaaaaa"), Journal: &journal{}, HTTP: n.http(t),
			Peers: func(context.Context, bool) (live.Roll, error) { return roll, nil },
		})
		n.serve(t, "aaaaaaaa", h)
		for _, c := range []struct {
			listed time.Time
			age    time.Duration
		}{
			{time.Time{}, -time.Millisecond},
			{time.Now(), 0},
			{time.Now().Add(time.Second), 0}, // after the question
			{time.Now().Add(-time.Nanosecond), time.Millisecond},
			{time.Now().Add(-time.Hour), time.Hour},
		} {
			roll.Listed = c.listed
			answer, err := n.ask(t, "aaaaaaaa")
			if err != nil {
				t.Fatal(err)
			}
			if answer.RowsAge != c.age {
				t.Errorf("a list of %v is %v old", c.listed, answer.RowsAge)
			}
			want := map[string]string{}
			for _, id := range []string{"aaaaaaaa", "bbbbbbbb", "dddddddd"} { // and not cccccccc
				want[id] = processOf(id)
			}
			if got := answer.Snapshots; !maps.Equal(got, want) || answer.Self != selfOf("aaaaaaaa")() {
				t.Errorf("the answer of %+v has %v", answer.Self, got)
			}
			_, err = rest(answer)
			incomplete(t, err, 3, 2)
			answer.Close()
		}
		// The list of a follower is not read after its question, or not always.
		roll.Listed = time.Now().Add(time.Second)
		q := all("web")
		q.Follow = true
		answer, err := n.askFor(t, "aaaaaaaa", q)
		if err != nil || answer.RowsAge != time.Millisecond {
			t.Fatalf("a follower: %+v, %v", answer, err)
		}
		answer.Close()
	})
}

// An answer of an ingester of another store is no answer, even if that store is not
// known yet.
func TestAnotherStore(t *testing.T) {
	for name, store := range map[string]string{"another": strings.Repeat("f", 32), "not known": ""} {
		t.Run(name, func(t *testing.T) {
			of := func(store string) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					headers(w.Header(), "bbbbbbbb")
					w.Header().Set("Blobtail-Store", store)
					io.WriteString(w, wire(entry(1, 2, 0, "web"))+"end 1 0 0\n")
				})
			}
			for _, s := range []string{store, storeID} {
				a := newIngester(t, "aaaaaaaa", peer(lease.Ingester{ID: "bbbbbbbb", Address: serve(t, of(s))}))
				got, answer, err := read(t, a.url, all("web"))
				if s == storeID {
					if err != io.EOF || len(got) != 1 {
						t.Errorf("of the same store: %d records, %v", len(got), err)
					}
					continue
				}
				if m := incomplete(t, err, 1, 0); len(got) != 0 || !strings.Contains(m.Reason, "answers for another store") {
					t.Errorf("%d records, %+v", len(got), m)
				}
				if _, there := answer.Snapshots["bbbbbbbb"]; there {
					t.Error("it counts as one that answered")
				}
			}
		})
	}
}

// An ingester that breaks off its answer is named as missing, in part. Its snapshot was
// taken all the same.
func TestBreaksOff(t *testing.T) {
	one := entry(1, 2, 0, "web")
	a := newIngester(t, "aaaaaaaa", peer(lease.Ingester{ID: "bbbbbbbb", Address: serve(t, script("bbbbbbbb", wire(one)))}))
	got, answer, err := read(t, a.url, all("web"))
	var lacks *live.IncompleteError
	if !errors.As(err, &lacks) || len(lacks.Missing) != 1 || !lacks.Missing[0].Partly || len(got) != 1 {
		t.Errorf("%d records, %v", len(got), err)
	}
	if answer.Snapshots["bbbbbbbb"] != processOf("bbbbbbbb") {
		t.Error("whose snapshot was taken is not known")
	}
}
