package fan_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit/box"
	"blobtail/internal/door"
	"blobtail/reading"
	"blobtail/reading/readingtest"
	"blobtail/serve/loki"
)

// values fills a house with records of four hours that have fields.
func values(t *testing.T) *readingtest.House {
	h := readingtest.New(t, 1)
	for hour := range 4 {
		var lines []readingtest.Line
		for i := range 40 {
			at := noon.Add(time.Duration(hour)*time.Hour + time.Duration(i)*time.Minute)
			fields := fmt.Sprintf(`"n":%d,"v":%v`, i%3, 1/float64(1+hour*40+i))
			if hour+i == 0 || hour*i == 39 {
				fields = `"n":"none"`
			}
			lines = append(lines, readingtest.Line{Time: at, Service: "web", Msg: fmt.Sprintf("m%d took %d ms", hour, i), Fields: fields})
		}
		h.Send(0, lines...)
		h.Flush()
	}
	return h
}

// Workers that are well read parts of each kind of joint question, and none is told to fail.
func TestKinds(t *testing.T) {
	h := values(t)
	c := newCrew(t, h, 2, nil)
	s := h.ReaderWith(reading.Options{Sharing: c.open(300)}).For(nil)
	missing := func() (kinds []string) {
		for _, kind := range []string{"Slices", "Survey", "Window", "Numbers"} {
			if _, ok := c.joints.Load(kind); !ok {
				kinds = append(kinds, kind)
			}
		}
		return kinds
	}
	for try := 0; try < tries && len(missing()) > 0; try++ {
		a := all("*")
		a.Texts = []string{"m"}
		for what := range 4 {
			said(t, s, a, 5+4*try+what)
		}
	}
	if kinds := missing(); len(kinds) > 0 || c.told() {
		t.Errorf("workers were not asked for %v; some failed: %v", kinds, c.told())
	}
}

// A record that a query fails on gives the error of the earliest one, and is no fault of a worker.
func TestMistake(t *testing.T) {
	h := values(t)
	c := newCrew(t, h, 2, nil)
	alone, shared := h.Reader().For(nil), h.ReaderWith(reading.Options{Sharing: c.open(300)}).For(nil)
	day := reading.Range{From: noon.UnixNano(), To: noon.Add(5 * time.Hour).UnixNano()}
	table := reading.Table{LogQL: `sum_over_time({service="web"} | unwrap n [5h])`, Range: day}
	_, _, want := alone.Table(t.Context(), table)
	for range 20 {
		if _, _, err := shared.Table(t.Context(), table); want == nil || err == nil || err.Error() != want.Error() {
			t.Fatalf("%v, not %v", err, want)
		}
	}
	if c.asked.Load() == 0 || c.told() {
		t.Errorf("%d parts were asked for; a worker failed: %v", c.asked.Load(), c.told())
	}
}

// What all say of a condition is said once, whoever has read.
func TestNotes(t *testing.T) {
	h := hours(t, 4)
	c := newCrew(t, h, 2, nil)
	alone, shared := h.Reader().For(nil), h.ReaderWith(reading.Options{Sharing: c.open(300)}).For(nil)
	a := all("*")
	a.Parse = "<a> no such form <b>"
	for range 20 {
		_, want, err := listed(t, alone, a, 0)
		_, got, err2 := listed(t, shared, a, 0)
		if err != nil || err2 != nil || len(want.Notes) != 1 || fmt.Sprint(got.Notes) != fmt.Sprint(want.Notes) {
			t.Fatalf("%q, not %q (%v, %v)", got.Notes, want.Notes, err, err2)
		}
	}
	// Those of some parts are other than those of all: in 40 records, none of 40 messages.
	for _, of := range []reading.Ask{{Where: "nosuch > 3"}, {Where: "msg > 3"}, {Parse: "<a> no such form <b>"}} {
		a.Parse, a.Where = of.Parse, of.Where
		for try, last := 0, int64(0); try < tries && (try < 20 || last == 0); try++ {
			before := c.asked.Load()
			_, want, err := alone.Survey(t.Context(), a, reading.SurveyOptions{})
			_, got, err2 := shared.Survey(t.Context(), a, reading.SurveyOptions{})
			if err != nil || err2 != nil || len(want.Notes) != 1 || len(got.Notes) != 1 || general(got.Notes[0]) != general(want.Notes[0]) {
				t.Fatalf("%q, not %q (%v, %v)", got.Notes, want.Notes, err, err2)
			}
			last = c.asked.Load() - before
		}
	}
}

// general is a note without the message that is an example.
func general(note string) string {
	before, _, _ := strings.Cut(note, ", and one is ")
	return before
}

// The holder of a token that reads one service gets numbers of that one, by workers that may read all.
func TestNarrowNumbers(t *testing.T) {
	h := values(t)
	for hour := range 4 {
		at := noon.Add(time.Duration(hour)*time.Hour + time.Minute)
		h.Send(0, readingtest.Line{Time: at, Service: "api", Msg: "m of the hidden", Fields: `"n":1,"v":1,"path":"hidden"`})
	}
	h.Flush()
	token, _, _ := tokenOf(t, "web")
	c := newCrew(t, h, 2, nil)
	alone, shared := h.Reader().For(token), h.ReaderWith(reading.Options{Sharing: c.open(300)}).For(token)
	a := all("*")
	a.Texts = []string{"m"}
	table := reading.Table{Range: reading.Range{From: noon.UnixNano(), To: noon.Add(4 * time.Hour).UnixNano()}, Step: time.Hour}
	table.LogQL = `sum by (service) (sum_over_time({service=~".+"} | n != "none" | unwrap v [1h]))`
	for try := 0; try < tries && (try < 40 || c.asked.Load() == 0); try++ {
		if got, want := said(t, shared, a, 5+try), said(t, alone, a, 5+try); got != want || strings.Contains(got, "hidden") {
			t.Fatalf("%s\nalone: %s", differ(got, want), differ(want, got))
		}
		got, _, err := shared.Table(t.Context(), table)
		want, _, err2 := alone.Table(t.Context(), table)
		if err != nil || err2 != nil || len(want) != 1 || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%v, not %v (%v, %v)", got, want, err, err2)
		}
	}
	if c.asked.Load() == 0 {
		t.Error("no worker was asked")
	}
}

// An answer lacks what the parts of workers lack.
func TestDamagedPart(t *testing.T) {
	h := values(t)
	h.Damage(h.Blobs("web")[1])
	c := newCrew(t, h, 2, nil)
	alone, shared := h.Reader().For(nil), h.ReaderWith(reading.Options{Sharing: c.open(300)}).For(nil)
	a := all("*")
	a.Texts = []string{"m"}
	for try := 0; try < tries && (try < 40 || c.asked.Load() == 0); try++ {
		want := said(t, alone, a, 5+try)
		if got := said(t, shared, a, 5+try); strings.Contains(want, "complete false") != strings.Contains(got, "complete false") {
			t.Fatalf("%s\nalone: %s", differ(got, want), differ(want, got))
		}
	}
	if c.asked.Load() == 0 {
		t.Error("no worker was asked")
	}
}

// Numbers for Grafana are shared too.
func TestLoki(t *testing.T) {
	h := values(t)
	c := newCrew(t, h, 2, nil)
	params := url.Values{
		"query": {`sum by (n) (sum_over_time({service="web"} | n != "none" | unwrap v [10m]))`}, "step": {"600"},
		"start": {fmt.Sprint(noon.Unix())}, "end": {fmt.Sprint(noon.Add(4 * time.Hour).Unix())},
	}
	ask := func(r *reading.Reader) string {
		w := httptest.NewRecorder()
		q := httptest.NewRequest(http.MethodGet, "/loki/api/v1/query_range?"+params.Encode(), nil)
		loki.New(loki.Options{Reader: r}).ServeHTTP(w, q)
		if w.Code != http.StatusOK {
			t.Fatalf("%d: %s", w.Code, w.Body)
		}
		result, _, _ := strings.Cut(w.Body.String(), `"stats"`)
		return result
	}
	want, sharing := ask(h.Reader()), h.ReaderWith(reading.Options{Sharing: c.open(300)})
	for try := 0; try < tries && (try < 10 || c.asked.Load() == 0); try++ {
		if got := ask(sharing); got != want || !strings.Contains(got, `"values":[[`) {
			t.Fatalf("%s\nalone: %s", got, want)
		}
	}
	if c.asked.Load() == 0 || c.told() {
		t.Errorf("%d parts were asked for; a worker failed: %v", c.asked.Load(), c.told())
	}
}

// A question that is none, or that cannot be joined, is a mistake.
func TestJointMistakes(t *testing.T) {
	h := hours(t, 2)
	c := &crew{t: t}
	place := c.serve(0, h.Reader(), door.Options{})
	grid := `"Grid":{"Start":1795219200000000000,"End":1795219200000000000}`
	for joint, want := range map[string]string{
		`{"Slices":{"By":60000000000}}`: "", `{"Window":1}`: "", `{"Survey":{"Fields":["n"]}}`: "",
		`{"Numbers":{"Text":"count_over_time({service=\"web\"}[1h])",` + grid + `}}`: "",
		`{`: "joint", `{}`: "joined", `{"Window":2}`: "joined", `{"Window":-1}`: "joined", `{"Slices":{"By":0}}`: "joined",
		`{"Numbers":{"Text":"{service=\"web\"}",` + grid + `}}`:                                                "no such aggregation",
		`{"Numbers":{"Text":"count_over_time({service=\"web\"}[1h])",` + grid + `},"Request":1}`:               "no such aggregation",
		`{"Numbers":{"Text":"stddev_over_time({service=\"web\"} | unwrap n [1h])",` + grid + `}}`:              "no such aggregation",
		`{"Numbers":{"Text":"count_over_time({service=\"web\"}[1h])","Grid":{"Start":0,"End":9000,"Step":0}}}`: "step",
	} {
		resp, err := http.Get(place + "/api/v1/parts/1?service=web&part=3." + box.StoreID + ".1000&joint=" + url.QueryEscape(joint))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		ok := resp.StatusCode == 200
		if err != nil || ok != (want == "") || !ok && (resp.StatusCode != 400 || !strings.Contains(string(body), want)) {
			t.Errorf("%s: %d %.300s, not %s", joint, resp.StatusCode, body, want)
		}
	}
}
