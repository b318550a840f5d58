package reading_test

import (
	"fmt"
	"testing"
	"time"

	"blobtail/reading"
	"blobtail/reading/readingtest"
)

// The counts of level and service are those of all records, and of records in no blob too, by one
// gathering; other fields are of the newest ones.
func TestSurvey(t *testing.T) {
	h := readingtest.New(t, 1)
	from := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i := range 30 {
		level := "info"
		if i%3 == 0 {
			level = "error"
		}
		h.Send(0, readingtest.Line{Time: from.Add(time.Duration(i) * time.Second), Service: fmt.Sprint("s", i%2), Level: level, Msg: "x", Fields: fmt.Sprintf(`"n":%d`, i)})
		if i == 20 {
			h.Flush()
		}
	}
	s := h.Reader().For(nil)
	for _, o := range []reading.SurveyOptions{{Sample: 5}, {}, {Sample: 7, Fields: []string{"n", "level"}, Top: 1}} {
		got, out, err := s.Survey(t.Context(), reading.Ask{Services: []string{"s*"}, Range: reading.Always(), Limit: 3}, o)
		if err != nil || !out.Complete() || got.Of != 30 || got.Newest != (o.Sample > 0) || o.Sample > 0 && got.Records != int64(o.Sample) {
			t.Errorf("%+v: %v, %+v", o, err, got)
			continue
		}
		level, n := got.Fields[0], got.Fields[len(got.Fields)-1]
		if level.Name != "level" || !level.Exact || level.Values[0].Text != "info" || level.Values[0].Count != 20 || n.Name != "n" || n.Type != "int" || n.Exact || n.Present != got.Records {
			t.Errorf("%+v: level %+v, n %+v", o, level, n)
		}
		if len(o.Fields) > 0 && (len(got.Fields) != 2 || len(n.Values) != 1) {
			t.Errorf("%+v: %+v", o, got.Fields)
		}
	}
	// The two parts tell the same as all lines do.
	all, _, err := s.Survey(t.Context(), reading.Ask{Services: []string{"s*"}, Range: reading.Always(), Texts: []string{"x"}}, reading.SurveyOptions{})
	if err != nil || all.Of != 30 || all.Newest || all.Fields[0].Exact || all.Fields[0].Values[0].Count != 20 {
		t.Errorf("%v, %+v", err, all)
	}
}

// A value that is counted has all of its records, also those of blocks that have more values than are
// counted.
func TestSurveyOfManyValues(t *testing.T) {
	h := readingtest.New(t, 1)
	from := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	send := func(i int, id string) {
		h.Send(0, readingtest.Line{Time: from.Add(time.Duration(i) * time.Millisecond), Service: "web", Level: "info", Msg: "x", Fields: fmt.Sprintf(`"id":%q`, id)})
	}
	n := 0
	for range 10 {
		send(n, "often")
		n++
	}
	h.Flush()
	for i := range reading.MostValues + 100 {
		send(n, fmt.Sprint("once ", i))
		n++
	}
	for range 5 {
		send(n, "often")
		n++
	}
	h.Flush()
	for range 2 {
		got, out, err := h.Reader().For(nil).Survey(t.Context(), reading.Ask{Services: []string{"web"}, Range: reading.Always()}, reading.SurveyOptions{Fields: []string{"id"}})
		if err != nil || !out.Complete() {
			t.Fatal(out, err)
		}
		if f := got.Fields[0]; f.Present != int64(n) || !f.Capped || f.Distinct != reading.MostValues || f.Values[0].Text != "often" || f.Values[0].Count != 15 {
			t.Errorf("%d present, %d distinct, capped %v, %+v", f.Present, f.Distinct, f.Capped, f.Values[0])
		}
	}
}
