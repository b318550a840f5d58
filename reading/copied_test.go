package reading_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/dev/testkit/box"
	"blobtail/internal/storeid"
	"blobtail/reading"
	"blobtail/reading/readingtest"
	"blobtail/retention/copying"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
	"blobtail/tailindex"
)

// A read of a copy asks no ingester. It is whole before the time up to which the copy is, and lacks
// something beyond it, but for blobs alone. A copy of which no run has come to its end is never whole,
// and a promoted one is a store like others.
func TestReadsOfACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := readingtest.New(t, 1)
		defer h.Stop()
		storagetest.Put(t, h.Store, storeid.Key, fmt.Appendf(nil, "{\"format\":1,\"id\":%q}\n", box.StoreID))
		time.Sleep(time.Minute)
		h.Send(0, readingtest.Line{Service: "web", Msg: "one"})
		h.Flush()
		time.Sleep(time.Hour)
		h.Send(0, readingtest.Line{Service: "web", Msg: "two"}) // it is in no blob
		to := mem.New(mem.Options{})
		run := func() copying.Result {
			t.Helper()
			r, err := copying.Run(t.Context(), h.Store, to, copying.Options{Tables: h.Store, Now: h.Now})
			if err != nil || len(r.Problems) > 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			return r
		}
		open := func(o reading.OpenOptions) *reading.Store {
			t.Helper()
			o.Blobs, o.Tables, o.Now, o.Tail = to, to, h.Now, tailindex.Options{Prefix: "tail"}
			r, err := reading.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			return r.For(nil)
		}
		count := func(s *reading.Store, rng reading.Range, live reading.Mode) (records int64, problems string) {
			t.Helper()
			out, err := s.Count(t.Context(), reading.Ask{Services: []string{"web"}, Range: rng, Live: live})
			if err != nil {
				t.Fatal(err)
			}
			return int64(out.Records), fmt.Sprint(out.Problems())
		}
		check := func(what string, s *reading.Store, rng reading.Range, live reading.Mode, want string) {
			t.Helper()
			if n, problems := count(s, rng, live); n != 1 || want == "" && problems != "[]" || !strings.Contains(problems, want) {
				t.Errorf("%s: %d records, %s, want %q", what, n, problems, want)
			}
		}

		whole := run().Whole.Through
		until := func(at time.Time) reading.Range {
			return reading.Range{From: h.Now().Add(-24 * time.Hour).UnixNano(), To: at.UnixNano()}
		}
		for what, s := range map[string]*reading.Store{
			"a copy": open(reading.OpenOptions{}), "with an ingester": open(reading.OpenOptions{Live: "http://127.0.0.1:1"}),
		} {
			check(what+", before", s, until(whole), reading.Auto, "")
			check(what+", beyond", s, until(whole.Add(1)), reading.Auto, "whole before "+whole.UTC().Format(time.RFC3339))
			check(what+", the newest", s, reading.Always(), reading.Auto, "whole before")
			check(what+", blobs alone", s, reading.Always(), reading.Off, "")
			none := func([]byte) error { return nil }
			out, err := s.Tail(t.Context(), reading.Ask{Services: []string{"web"}, Range: reading.Always(), Limit: 5}, none)
			if err != nil || out.Complete() || int64(out.Records) != 1 {
				t.Errorf("%s: tail: %+v, %v", what, out, err)
			}
		}
		following, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		said := ""
		newest := reading.Ask{Services: []string{"web"}, Range: reading.Always(), Limit: 5}
		_, _ = open(reading.OpenOptions{}).Follow(following, newest, reading.FollowOptions{
			Emit:   func([]byte) error { return nil },
			Report: func(r *reading.Report) { said += fmt.Sprint(r.Problems, r.Notes) },
		})
		if !strings.Contains(said, "whole before") {
			t.Errorf("a follower: %s", said)
		}

		// No run has come to its end: the object that says so is not there.
		for _, b := range storagetest.Objects(t, to, "_copy/") {
			if err := to.Delete(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		check("half a copy", open(reading.OpenOptions{}), until(whole), reading.Auto, "no run of retention copy has come to its end")
		check("half a copy, blobs alone", open(reading.OpenOptions{}), until(whole), reading.Off, "")
		run()
		if err := storeid.Promote(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		check("a promoted one", open(reading.OpenOptions{}), reading.Always(), reading.Auto, "table of ingesters is gone")
	})
}
