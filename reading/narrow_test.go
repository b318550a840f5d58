package reading_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/reading"
	"blobtail/reading/readingtest"
	"blobtail/reading/unflushed"
)

// names are the absent ones of an outcome.
func names(o *reading.Outcome) (absent []string) {
	for _, none := range o.Absent {
		absent = append(absent, none.Name)
	}
	slices.Sort(absent)
	return absent
}

// A service that the holder of a token may not read is in no answer to any question, and is as
// absent as one that does not exist.
func TestHidden(t *testing.T) {
	h := readingtest.New(t, 1)
	h.Send(0, readingtest.Line{Service: "web", Msg: "mine"}, readingtest.Line{Service: "hidden", Msg: "theirs"})
	h.Flush()
	s := h.Reader().For(tokenOf(t, "web"))
	for _, c := range []struct{ asked, absent []string }{
		{[]string{"web", "hidden"}, []string{"hidden"}},
		{[]string{"hid*", "web", "nosuch"}, []string{"nosuch"}},
		{[]string{"hid*", "hidden"}, nil}, // no service for this client
		{[]string{"*"}, nil},
	} {
		a := reading.Ask{Services: c.asked, Range: reading.Always()}
		found := 0
		check := func(what string, o *reading.Outcome, err error) {
			t.Helper()
			switch {
			case !slices.Contains(c.asked, "web") && !slices.Contains(c.asked, "*"):
				if none, ok := errors.AsType[*reading.NoServiceError](err); !ok || len(none.Stored) > 0 || found > 0 {
					t.Errorf("%s of %q: %v, %d found", what, c.asked, err, found)
				}
			case err != nil || !o.Complete() || !slices.Equal(names(o), c.absent) || found != 1:
				t.Errorf("%s of %q: %v, absent %q, %d found", what, c.asked, err, names(o), found)
			}
			found = 0
		}
		out, err := s.Records(t.Context(), a, func(lines []byte) error { found += bytes.Count(lines, []byte("\n")); return nil })
		check("records", out, err)
		out, err = s.Count(t.Context(), a)
		found = int(out.Records)
		check("count", out, err)
		hist, out, err := s.Histogram(t.Context(), a, reading.Slices{Apart: func([]string) bool { return true }})
		found = len(hist.Buckets)
		check("histogram", out, err)
		days, out, err := s.Days(t.Context(), a)
		found = len(days)
		check("days", out, err)
		blobs, out, err := s.Blobs(t.Context(), a)
		found = len(blobs)
		check("blobs", out, err)
		facts, out, err := s.Survey(t.Context(), a, reading.SurveyOptions{})
		found = int(facts.Records)
		check("survey", out, err)
		_, out, err = s.Each(t.Context(), a, 10, func(lines []byte) error { found += bytes.Count(lines, []byte("\n")); return nil })
		check("each", out, err)
	}
}

// A service with all its records in the logs of ingesters exists also for a read of blobs alone,
// beside one that does not, and the outcome says where the records are: in each kind of answer.
func TestOnlyInLogs(t *testing.T) {
	h := readingtest.New(t, 1)
	h.Send(0, readingtest.Line{Service: "fresh", Msg: "x"})
	s := h.Reader().For(nil)
	a := reading.Ask{Services: []string{"nosuch", "fresh"}, Range: reading.Always(), Live: reading.Off}
	for what, read := range map[string]func() (*reading.Outcome, error){
		"count": func() (*reading.Outcome, error) { return s.Count(t.Context(), a) },
		"days":  func() (*reading.Outcome, error) { _, out, err := s.Days(t.Context(), a); return out, err },
		"blobs": func() (*reading.Outcome, error) { _, out, err := s.Blobs(t.Context(), a); return out, err },
		"survey": func() (*reading.Outcome, error) {
			_, out, err := s.Survey(t.Context(), a, reading.SurveyOptions{})
			return out, err
		},
	} {
		out, err := read()
		if err != nil || !out.Complete() || !slices.Equal(names(out), []string{"nosuch"}) || !strings.Contains(errors.Join(out.Warnings...).Error(), "fresh has no blob yet") {
			t.Errorf("%s: %v, absent %q, %v", what, err, names(out), out.Warnings)
		}
	}
}

// A selector asks for no name: nothing is absent because of it. If it chooses no service at all,
// that is an error.
func TestSelectorChoosesNone(t *testing.T) {
	h := readingtest.New(t, 1)
	h.Send(0, readingtest.Line{Service: "web", Msg: "x"})
	s := h.Reader().For(nil)
	a := reading.Ask{LogQL: `{service=~"web|nosuch"}`, Range: reading.Always()}
	if out, err := s.Count(t.Context(), a); err != nil || out.Records != 1 || len(out.Absent) > 0 {
		t.Errorf("%v, %+v", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	lines := 0
	a.Limit = 5
	_, err := s.Follow(ctx, a, reading.FollowOptions{
		Once: true, Emit: func([]byte) error { lines++; return nil }, Report: func(r *reading.Report) {
			if len(r.Absent) > 0 {
				t.Errorf("a tail misses %v", r.Absent)
			}
		},
	})
	if err != nil || lines != 1 {
		t.Error(lines, err)
	}
	a = reading.Ask{LogQL: `{service=~"x.+"}`, Range: reading.Always()}
	if _, err := s.Count(t.Context(), a); !errors.As(err, new(*reading.NoneChosenError)) {
		t.Errorf("none is chosen: %v", err)
	}
	if err := s.Exist(t.Context(), a); !errors.As(err, new(*reading.NoneChosenError)) {
		t.Errorf("none exists: %v", err)
	}
}

// A read that needs the names of services has those that globs match also if no ingester is asked,
// so that the store is looked at ahead.
func TestNamesAhead(t *testing.T) {
	h := readingtest.New(t, 1)
	h.Send(0, readingtest.Line{Service: "web", Msg: "x"}, readingtest.Line{Service: "api", Msg: "x"})
	h.Flush()
	s := h.Reader(func(o *unflushed.Options) { o.Announced = nil }).For(nil)
	a := reading.Ask{Services: []string{"*"}, Range: reading.Always()}
	counts := map[string]int{}
	all, _, err := s.Services(t.Context(), a)
	counts["services"] = len(all)
	days, _, derr := s.Days(t.Context(), a)
	counts["days"] = len(days)
	hist, _, herr := s.Histogram(t.Context(), a, reading.Slices{Apart: func([]string) bool { return true }})
	counts["histogram"] = len(hist.Buckets)
	fields, _, ferr := s.Survey(t.Context(), a, reading.SurveyOptions{})
	counts["survey"] = int(fields.Of)
	volumes, _, verr := s.Volumes(t.Context(), a)
	counts["volumes"] = len(volumes)
	_, _, eerr := s.Each(t.Context(), a, 5, func(lines []byte) error { counts["each"] += bytes.Count(lines, []byte("\n")); return nil })
	if err := errors.Join(err, derr, herr, ferr, verr, eerr); err != nil {
		t.Error(err)
	}
	for _, what := range []string{"services", "days", "histogram", "survey", "volumes", "each"} {
		if counts[what] != 2 {
			t.Errorf("%s: %d of 2", what, counts[what])
		}
	}
}
