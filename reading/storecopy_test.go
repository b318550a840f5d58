package reading_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/access"
	"blobtail/reading"
	"blobtail/reading/readingtest"
)

// copied reports whether an outcome says that the store is a copy, and nothing else.
func copied(out *reading.Outcome) bool {
	all := out.Problems()
	for _, err := range all {
		if !strings.Contains(err.Error(), "is this a copy of that ingester's store") {
			return false
		}
	}
	return len(all) > 0
}

// Every kind of question to a copy of a store is whole while the ingesters of the first one hold all
// that came since. Once these have stored it, every answer lacks something, and says so. It does not
// matter whether the copy has a blob of the service, and whether the range has that of the ingester.
func TestStoreCopy(t *testing.T) {
	h := readingtest.New(t, 2)
	early := time.Now().Add(-5 * time.Hour)
	h.Send(0, readingtest.Line{Service: "web", Msg: "one"}, readingtest.Line{Service: "web", Msg: "early", Time: early})
	h.Flush()
	h.Send(0, readingtest.Line{Service: "web", Msg: "two"}, readingtest.Line{Service: "app", Msg: "three"})
	h.Send(1, readingtest.Line{Service: "app", Msg: "four"})
	c := h.Copy()
	reader := c.Reader()
	between := reading.Range{From: early.Add(-time.Minute).UnixNano(), To: time.Now().Add(-time.Minute).UnixNano()}
	asks := map[string]reading.Ask{
		"a name":             {Services: []string{"web"}, Range: reading.Always()},
		"a new name":         {Services: []string{"app"}, Range: reading.Always()},
		"a glob of new ones": {Services: []string{"a*"}, Range: reading.Always()},
		"all":                {Services: []string{"*"}, Range: reading.Always()},
		"a selector":         {LogQL: `{service=~"a.+"}`, Range: reading.Always()},
		"the newest":         {Services: []string{"*"}, Range: reading.Always(), Limit: 2},
		"the oldest":         {Services: []string{"*"}, Range: reading.Always(), First: 1},
		"hours before":       {Services: []string{"web"}, Range: between},
	}
	none := func([]byte) error { return nil }
	questions := map[string]func(s *reading.Store, a reading.Ask) (*reading.Outcome, error){
		"records": func(s *reading.Store, a reading.Ask) (*reading.Outcome, error) {
			return s.Records(t.Context(), a, none)
		},
		"count": func(s *reading.Store, a reading.Ask) (*reading.Outcome, error) { return s.Count(t.Context(), a) },
		"histogram": func(s *reading.Store, a reading.Ask) (out *reading.Outcome, err error) {
			_, out, err = s.Histogram(t.Context(), a, reading.Slices{})
			return out, err
		},
		"survey": func(s *reading.Store, a reading.Ask) (out *reading.Outcome, err error) {
			_, out, err = s.Survey(t.Context(), a, reading.SurveyOptions{})
			return out, err
		},
		"patterns": func(s *reading.Store, a reading.Ask) (out *reading.Outcome, err error) {
			_, out, err = s.Patterns(t.Context(), a, reading.PatternOptions{})
			return out, err
		},
		"tail": func(s *reading.Store, a reading.Ask) (*reading.Outcome, error) {
			a.Limit, a.First = max(a.Limit, 1), 0
			return s.Tail(t.Context(), a, none)
		},
		"days": func(s *reading.Store, a reading.Ask) (out *reading.Outcome, err error) {
			_, out, err = s.Days(t.Context(), a)
			return out, err
		},
		"services": func(s *reading.Store, a reading.Ask) (out *reading.Outcome, err error) {
			_, out, err = s.Services(t.Context(), reading.Ask{Range: a.Range})
			return out, err
		},
	}
	every := func(of string, s *reading.Store, right func(name string, out *reading.Outcome, err error) bool) {
		t.Helper()
		for what, a := range asks {
			for kind, ask := range questions {
				if a.LogQL != "" && (kind == "days" || kind == "services") || a.First > 0 && kind != "records" || a.Limit > 0 && (kind == "histogram" || kind == "survey" || kind == "patterns") {
					continue
				}
				if out, err := ask(s, a); !right(what, out, err) {
					t.Errorf("%s: %s of %s: %v, %v", of, kind, what, err, out.Problems())
				}
			}
		}
	}
	whole := func(_ string, out *reading.Outcome, err error) bool { return err == nil && out.Complete() }
	every("before the flush", reader.For(nil), whole)
	h.Flush()
	lacks := func(_ string, out *reading.Outcome, err error) bool { return err == nil && copied(out) }
	every("after the flush", reader.For(nil), lacks)
	every("after the flush, by another reader", c.Reader().For(nil), lacks)
	every("the first store", h.Reader().For(nil), whole)

	// A token for one service learns no name of another.
	h.Send(1, readingtest.Line{Service: "hidden", Msg: "five"})
	h.Flush()
	for of, token := range map[string]*access.Token{"web": tokenOf(t, "web"), "we?": tokenOf(t, "we?")} {
		out, err := c.Reader().For(token).Count(t.Context(), reading.Ask{Services: []string{"*"}, Range: reading.Always()})
		if text := fmt.Sprint(out.Problems()); err != nil || !copied(out) || strings.Contains(text, "app") || strings.Contains(text, "hidden") {
			t.Errorf("%s: %v, %s", of, err, text)
		}
	}
	if _, err := c.Reader().For(tokenOf(t, "other")).Count(t.Context(), reading.Ask{Services: []string{"hidden"}, Range: reading.Always()}); !errors.As(err, new(*reading.NoServiceError)) {
		t.Error(err)
	}

	// Questions that come together share what ingesters named.
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			if out, err := reader.For(nil).Count(t.Context(), reading.Ask{Services: []string{"app"}, Range: reading.Always()}); err != nil || !copied(out) {
				t.Errorf("together: %v, %v", err, out.Problems())
			}
		})
	}
	asking.Wait()

	// Blobs alone are what the copy has, and live records alone are whole.
	if out, err := reader.For(nil).Count(t.Context(), reading.Ask{Services: []string{"web"}, Range: reading.Always(), Live: reading.Off}); err != nil || !out.Complete() {
		t.Errorf("blobs alone: %v, %v", err, out.Problems())
	}
	if out, err := reader.For(nil).Count(t.Context(), reading.Ask{Services: []string{"web"}, Range: reading.Always(), Live: reading.Only}); err != nil || !out.Complete() {
		t.Errorf("live records alone: %v, %v", err, out.Problems())
	}
}

// Compaction takes away the blobs that ingesters name. No answer is incomplete because of that.
func TestStoreIsNoCopyAfterCompaction(t *testing.T) {
	h := readingtest.New(t, 1)
	old := time.Now().Add(-50 * time.Hour)
	r := h.Reader()
	for n := range 3 {
		h.Send(0, readingtest.Line{Service: "web", Msg: fmt.Sprint(n), Time: old.Add(time.Duration(n) * time.Second)})
		h.Flush()
	}
	for range 2 {
		h.Compact()
		for _, rng := range []reading.Range{reading.Always(), {From: time.Now().Add(-time.Hour).UnixNano(), To: reading.Newest}} {
			for range 2 {
				for _, s := range []*reading.Store{r.For(nil), h.Reader().For(nil)} {
					if out, err := s.Count(t.Context(), reading.Ask{Services: []string{"web"}, Range: rng}); err != nil || !out.Complete() {
						t.Errorf("%v: %v, %v", rng, err, out.Problems())
					}
				}
			}
		}
		h.Send(0, readingtest.Line{Service: "web", Msg: "late", Time: old.Add(-time.Second)})
		h.Flush()
	}
}
