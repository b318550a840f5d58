package reading_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/reading"
	"blobtail/reading/readingtest"
	"blobtail/record"
)

// A service in no blob is no error if ingesters have it, or may have it, and the answer says so. It
// says nothing if there are records of others.
func TestElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := readingtest.New(t, 2)
		time.Sleep(20 * time.Second) // each knows the other by its row
		h.Send(0, readingtest.Line{Service: "web", Msg: "web"})
		h.Flush()
		h.Send(0, readingtest.Line{Service: "fresh", Msg: "fresh"})
		h.Send(1, readingtest.Line{Service: "other", Msg: "other"})
		check := func(when, warnings string, services ...string) {
			t.Helper()
			ask := reading.Ask{Services: services, Range: reading.Always(), Levels: 1 << record.Critical}
			if services[0] == "web" {
				ask.Levels = 0
				ask.Range.To = time.Now().Add(-10 * time.Second).UnixNano()
			}
			_, out, err := h.Reader().For(nil).Histogram(t.Context(), ask, reading.Slices{})
			if got := fmt.Sprint(out.Warnings); err != nil || got != warnings {
				t.Errorf("%s: %v, %v", when, got, err)
			}
		}
		time.Sleep(20 * time.Second)
		h.Send(0, readingtest.Line{Service: "late", Msg: "late"})
		check("held, and none matches", "[late has records in no blob yet, and none that match]", "late")
		check("beside others", "[]", "web", "late")
		out, err := h.Reader().For(nil).Count(t.Context(), reading.Ask{LogQL: `{service=~"x.+"}`, Range: reading.Always()})
		if len(out.Warnings) > 0 { // nobody named a service
			t.Error(out.Warnings, err)
		}
		h.Kill(1)
		check("it may be held", `[no service "nosuch" in blobs]`, "nosuch")
	})
}
