package reading_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/reading"
	"blobtail/reading/readingtest"
	"blobtail/reading/unflushed"
)

// A report of a follower comes also if all of its gaps are of other services: its problems are of
// all of them.
func TestReportBesideGaps(t *testing.T) {
	s := readingtest.New(t, 1).Reader().For(nil)
	other := reading.Gap{Service: "api", Records: 3}
	for name, c := range map[string]struct {
		report unflushed.Report
		comes  bool
	}{
		"a problem":        {unflushed.Report{Problems: []error{errors.New("a blob is damaged")}, Gaps: []reading.Gap{other}}, true},
		"a note":           {unflushed.Report{Notes: []string{"late"}, Gaps: []reading.Gap{other}}, true},
		"well again":       {unflushed.Report{Well: true, Gaps: []reading.Gap{other}}, true},
		"a gap of another": {unflushed.Report{Gaps: []reading.Gap{other}}, false},
		"its own gap":      {unflushed.Report{Gaps: []reading.Gap{other, {Service: "web"}}}, true},
		"nothing":          {unflushed.Report{}, true},
	} {
		came := false
		s.Sifted([]string{"web*"}, func(r *reading.Report) {
			came = len(r.Gaps) < 2 && len(r.Problems) == len(c.report.Problems)
		})(&c.report)
		if came != c.comes {
			t.Errorf("%s: it comes %v", name, came)
		}
	}
}

// A follower by a selector of no level gets nothing.
func TestFollowImpossible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := readingtest.New(t, 1)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		time.AfterFunc(3*time.Second, func() { h.Send(0, readingtest.Line{Service: "web", Msg: "info"}) })
		_, err := h.Reader().For(nil).Follow(ctx, reading.Ask{LogQL: `{service="web",level="fatal",detected_level="info"}`, Range: reading.Always()}, reading.FollowOptions{
			Emit: func(lines []byte) error { return fmt.Errorf("it gets %s", lines) },
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// The newest records of each service come, however many newer ones another service has in no blob.
func TestEachUnflushed(t *testing.T) {
	h := readingtest.New(t, 1)
	h.Send(0, readingtest.Line{Service: "api", Msg: "old", Time: time.Now().Add(-time.Hour)})
	for n := range 30 {
		h.Send(0, readingtest.Line{Service: "web", Msg: fmt.Sprint(n)})
	}
	got := map[string]int{}
	_, out, err := h.Reader().For(nil).Each(t.Context(), reading.Ask{Services: []string{"*"}, Range: reading.Always(), Limit: 3}, 10, func(lines []byte) error {
		for line := range bytes.Lines(lines) {
			got[string(line[bytes.Index(line, []byte(`"service":"`))+11:][:3])]++
		}
		return nil
	})
	if err != nil || !out.Complete() || got["api"] != 1 || got["web"] != 3 {
		t.Errorf("%v, %v", got, err)
	}
}

// Fields are made of messages of the system's services too.
func TestParseSystem(t *testing.T) {
	h := readingtest.New(t, 1)
	h.Send(0, readingtest.Line{Service: "_rejected", Msg: "number 7"})
	h.Flush()
	got, out, err := lines(t.Context(), h.Reader().For(nil), reading.Ask{Services: []string{"_rejected"}, Range: reading.Always(), Parse: "number <n>", Where: "n == 7"})
	if err != nil || !out.Complete() || len(got) != 1 || !strings.Contains(got[0], `"n":7`) {
		t.Errorf("%q, %v", got, err)
	}
}

// A list of fields leaves out names that it would change.
func TestFieldsText(t *testing.T) {
	for _, c := range []struct {
		fields []string
		text   string
	}{{[]string{"a", "b.c"}, "a,b.c"}, {[]string{"x,y"}, ""}, {[]string{"a", " b"}, ""}} {
		a := reading.Ask{Fields: c.fields}
		got := a.Order().Get("fields")
		if got != c.text || c.text != "" && !slices.Equal(reading.Params{"fields": {got}}.List("fields"), c.fields) {
			t.Errorf("%q becomes %q", c.fields, got)
		}
	}
}
