package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/door"
	"blobtail/reading"
	"blobtail/reading/form"
	"blobtail/reading/readingtest"
	"blobtail/reading/remote"
	"blobtail/serve/api"
)

// parter answers slices of joints: a store, or a client.
type parter interface {
	Part(ctx context.Context, j reading.Joint) (*reading.Part, *reading.Outcome, error)
}

// world is drawn records with the readers of them.
type world struct {
	*testing.T
	rng   *rand.Rand
	times []int64 // of the records
	store *reading.Store
	from  []parter
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{T: t, rng: rand.New(rand.NewPCG(seed, 61))}
	h := readingtest.New(t, 1)
	for range 1 + w.rng.IntN(4) {
		var lines []readingtest.Line
		for range 40 + w.rng.IntN(80) {
			at := noon.Add(time.Duration(w.rng.IntN(4*3600)) * time.Second)
			w.times = append(w.times, at.UnixNano())
			lines = append(lines, readingtest.Line{
				Time: at, Service: pick(w, "web", "api", "db"), Level: pick(w, "info", "info", "warn", "error", "loud"),
				Msg: w.msg(), Fields: w.fields(),
			})
		}
		h.Send(0, lines...)
		if w.rng.IntN(4) > 0 {
			h.Flush()
		}
	}
	w.store = h.Reader().For(nil)
	w.from = []parter{w.store, serve(t, h)}
	return w
}

func pick[T any](w *world, all ...T) T { return all[w.rng.IntN(len(all))] }

func (w *world) msg() string {
	switch w.rng.IntN(5) {
	case 0:
		return fmt.Sprintf("user %s logged in from 10.0.0.%d", pick(w, "ann", "bob", "cat", "dan", "eve", "fay", "gil"), w.rng.IntN(9))
	case 1:
		return pick(w, "", "disk is full", "disk was full", "cache is full", "é \" \\ <*> 7")
	case 2:
		return strings.Repeat("long text ", w.rng.IntN(150)) + fmt.Sprint(w.rng.IntN(99))
	}
	return fmt.Sprintf("GET /p%d took %d ms, %s", w.rng.IntN(5), w.rng.IntN(900), pick(w, "hit", "miss", "stale"))
}

func (w *world) fields() string {
	all := []string{fmt.Sprintf(`"v":%v`, w.rng.NormFloat64()*1000), fmt.Sprintf(`"n":%d`, w.rng.IntN(4)),
		fmt.Sprintf(`"path":"/p%d"`, w.rng.IntN(9))}
	if w.rng.IntN(3) == 0 {
		all = append(all, pick(w, `"a":1`, `"a":"1"`, `"a":null`, `"a":{"b":"x,y"}`, `"a":"\"1\""`,
			fmt.Sprintf(`"f%d":true`, w.rng.IntN(9)), `"v":"Inf"`, `"v":1e300`))
	}
	if w.rng.IntN(9) == 0 {
		all = append(all, `"big":"`+strings.Repeat("é", w.rng.IntN(300))+`"`)
	}
	w.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return strings.Join(all, ",")
}

// cuts divides a range into 1 to 16 slices, some of them without records.
func (w *world) cuts(rng reading.Range) (all []reading.Range) {
	var edges []int64
	for range w.rng.IntN(16) {
		at := pick(w, w.times...) + int64(w.rng.IntN(3)-1)*int64(w.rng.IntN(2))
		if w.rng.IntN(3) == 0 {
			at = noon.Add(time.Duration(w.rng.IntN(10*3600)-3*3600) * time.Second).UnixNano()
		}
		if at > rng.From && at < rng.To {
			edges = append(edges, at)
		}
	}
	slices.Sort(edges)
	from := rng.From
	for _, at := range append(slices.Compact(edges), rng.To) {
		all = append(all, reading.Range{From: from, To: at})
		from = at
	}
	return all
}

// join joins the parts of the slices of a range to p. The outcome has their problems alone.
func (w *world) join(p *reading.Part, j reading.Joint, rng reading.Range) *reading.Outcome {
	out := &reading.Outcome{}
	for _, slice := range w.cuts(rng) {
		j.Ask.Range = slice
		from := pick(w, w.from...)
		part, of, err := from.Part(w.Context(), j)
		if err == nil {
			if from == w.from[0] {
				part, err = j.Decode(part.Encode())
			}
		}
		if err == nil {
			err = p.Join(w.Context(), part)
		}
		if err != nil {
			w.Fatalf("%+v: %v", j, err)
		}
		out.Lack(of.Problems()...)
		out.Records += of.Records
	}
	return out
}

func (w *world) ask() reading.Ask {
	a := reading.Ask{Services: pick(w, []string{"*"}, []string{"web"}, []string{"web", "db"}), Range: reading.Always()}
	if w.rng.IntN(2) == 0 {
		from := w.rng.IntN(3600)
		a.Range = reading.Range{From: noon.Unix()*1e9 + int64(from)*1e9, To: noon.UnixNano() + int64(3600+w.rng.IntN(3*3600))*1e9}
	}
	switch w.rng.IntN(6) {
	case 0:
		a.Texts = []string{"took"}
	case 1:
		a.Where = "n > 1"
	case 2:
		a.Levels = 1<<2 | 1<<3
	case 3:
		a.Parse, a.Where = "GET <path> took <took> ms<rest>", pick(w, "", "took > 200")
	case 4:
		a = reading.Ask{LogQL: `{service=~"web|api"} | n > 1`, Range: a.Range}
	}
	return a
}

func text(w *world, v any, out *reading.Outcome) string {
	w.Helper()
	var warnings []string
	for _, err := range out.Warnings {
		if strings.Contains(err.Error(), "in no blob yet") { // slices have others
			continue
		}
		warnings = append(warnings, err.Error())
	}
	b, err := json.Marshal([]any{v, warnings})
	if err != nil {
		w.Fatal(err)
	}
	return string(b)
}

// same compares a joined answer with the whole one.
func (w *world) same(j reading.Joint, got, want string) {
	w.Helper()
	if got != want {
		w.Fatalf("%+v %+v %+v %+v %+v:\n%s\nand not\n%s", j.Ask, j.Split, j.Survey, j.Patterns, j.Table, got, want)
	}
}

func (w *world) split() {
	a := w.ask()
	j := reading.Joint{Ask: a, Split: &reading.Slices{
		By: pick(w, time.Minute, 17*time.Second, time.Hour, 24*time.Hour), Top: w.rng.IntN(9),
		Zone: pick(w, nil, time.FixedZone("+05:30", 19800)),
		Split: pick(w, []string{"level"}, []string{"service", "level"}, []string{"a"},
			[]string{"n", "path"}, []string{"big", "level"}, []string{"service"}, []string{"v"}),
	}}
	want, whole, err := w.store.Histogram(w.Context(), a, *j.Split)
	p, err2 := j.Part(w.Context())
	if err != nil || err2 != nil {
		w.Fatal(err, err2)
	}
	out := w.join(p, j, a.Range)
	got, err := p.Histogram(w.Context(), out)
	if err != nil || out.Records != whole.Records && len(a.Services) < 2 {
		w.Fatalf("%v, %d records of %d", err, out.Records, whole.Records)
	}
	w.same(j, text(w, got, out), text(w, want, whole))
}

func (w *world) survey() {
	a := w.ask()
	j := reading.Joint{Ask: a, Survey: &reading.SurveyOptions{
		Fields: pick(w, nil, []string{"level"}, []string{"path", "service", "v"}, []string{"nosuch"}), Top: w.rng.IntN(5),
	}}
	want, whole, err := w.store.Survey(w.Context(), a, *j.Survey)
	p, err2 := j.Part(w.Context())
	if err != nil || err2 != nil {
		w.Fatal(err, err2)
	}
	out := w.join(p, j, a.Range)
	w.same(j, text(w, form.FacetsOf(p.Survey(out), &reading.Outcome{}), out), text(w, form.FacetsOf(want, &reading.Outcome{}), whole))
}

func (w *world) patterns() {
	a := w.ask()
	j := reading.Joint{Ask: a, Patterns: &reading.PatternOptions{Top: w.rng.IntN(5)}}
	if w.rng.IntN(2) == 0 {
		j.Patterns.Against = &reading.Range{From: noon.UnixNano(), To: noon.Add(time.Duration(w.rng.IntN(3*3600)) * time.Second).UnixNano()}
	}
	want, whole, err := w.store.Patterns(w.Context(), a, *j.Patterns)
	p, err2 := j.Part(w.Context())
	if err != nil || err2 != nil {
		w.Fatal(err, err2)
	}
	out, second := w.join(p, j, a.Range), (*reading.Outcome)(nil)
	if j.Patterns.Against != nil {
		j.Second = true
		second = w.join(p, j, *j.Patterns.Against)
	}
	got, err := p.Patterns(a.Range, out, second)
	if err != nil {
		w.Fatal(err)
	}
	w.same(j, text(w, form.PatternsOf(got, &reading.Outcome{}), out), text(w, form.PatternsOf(want, &reading.Outcome{}), whole))
}

func (w *world) table() {
	range1 := pick(w, "1m", "10m", "1h", "7m", "5h")
	selector := pick(w, `{service=~".+"}`, `{service="web"}`, `{service=~"web|db"} | level=~"info|error"`, `{service=~".+"} |= "took"`)
	op := pick(w, "sum_over_time", "avg_over_time", "min_over_time", "max_over_time", "first_over_time", "last_over_time", "rate")
	numbers := fmt.Sprintf(`%s(%s | unwrap %s | __error__="" [%s])`, op, selector, pick(w, "v", "v", "n"), range1)
	op = pick(w, "count_over_time", "rate", "bytes_over_time", "bytes_rate", "absent_over_time")
	records := fmt.Sprintf(`%s(%s [%s]%s)`, op, selector, range1, pick(w, "", " offset 10m", " offset -10m"))
	query := pick(w, numbers, "sum by (path) ("+numbers+")", "avg by (level) ("+numbers+")", "topk(2, "+records+")", records,
		"sum by (service, level) ("+records+")", "sum("+records+" / 3) / sum("+numbers+")",
		"quantile_over_time(0.5, "+selector+" | unwrap n [1h])")
	day := reading.Range{From: noon.UnixNano(), To: noon.Add(4 * time.Hour).UnixNano()}
	t := reading.Table{LogQL: query, Range: day, Step: pick(w, 0, time.Minute, 13*time.Minute, time.Hour)}
	j := reading.Joint{Table: &t}
	if stays := strings.HasPrefix(query, "quantile"); stays == j.Joinable() {
		w.Fatalf("%s: joinable %v", query, !stays)
	} else if stays {
		return
	}
	want, whole, err := w.store.Table(w.Context(), t)
	p, err2 := j.Part(w.Context())
	rng, err3 := t.Reads()
	if err2 != nil || err3 != nil {
		w.Fatal(err, err2, err3)
	}
	if err != nil { // of too many series, which is found at the end
		out := w.join(p, j, rng)
		if _, got := p.Rows(w.Context()); got == nil || got.Error() != err.Error() {
			w.Fatalf("%s: %v, not %v (%v)", query, got, err, out)
		}
		return
	}
	out := w.join(p, j, rng)
	got, err := p.Rows(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	w.same(j, fmt.Sprintf("%v %q", got, out.Warnings), fmt.Sprintf("%v %q", want, whole.Warnings))
}

// Answers that are joined of those to slices of time are the same as those of one reader, byte for byte.
func TestJoined(t *testing.T) {
	seed := rand.Uint64()
	defer func() {
		if t.Failed() {
			t.Log("seed", seed)
		}
	}()
	for n := range uint64(12) {
		w := newWorld(t, seed+n)
		for range 12 {
			w.split()
			w.survey()
			w.patterns()
			w.table()
		}
	}
}

// A server of another version has no such parts, and a bad answer or a bad question is an error.
func TestPartErrors(t *testing.T) {
	h := readingtest.New(t, 1)
	h.Send(0, readingtest.Line{Time: noon, Service: "web", Msg: "hello", Fields: `"n":1`})
	h.Flush()
	good := serve(t, h)
	j := reading.Joint{Ask: reading.Ask{Services: []string{"web"}, Range: reading.Always()}, Survey: &reading.SurveyOptions{}}
	whole, out, err := good.Part(t.Context(), j)
	if err != nil || out.Records != 1 || !out.Complete() {
		t.Fatal(out, err)
	}
	body, err := (&form.Part{Of: whole}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	status, sent := http.StatusOK, body
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/"+form.Parts {
			t.Error(r.URL.Path)
		}
		w.Header().Set("Content-Type", form.Portable)
		if status != http.StatusOK {
			api.Refuse(w, door.Refuse(status, "no"))
			return
		}
		_, _ = w.Write(sent)
	}))
	defer srv.Close()
	c, err := remote.New(srv.URL, remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Part(t.Context(), j); err != nil {
		t.Error(err)
	}
	sent = body[:len(body)-1]
	if _, _, err := c.Part(t.Context(), j); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
	sent = nil
	if _, _, err := c.Part(t.Context(), j); err == nil || !strings.Contains(err.Error(), "no part") {
		t.Error(err)
	}
	status = http.StatusNotFound
	if _, _, err := c.Part(t.Context(), j); !errors.As(err, new(*remote.VersionError)) {
		t.Error(err)
	}
	for _, bad := range []reading.Joint{
		{Ask: j.Ask},
		{Ask: j.Ask, Split: &reading.Slices{Split: []string{"n"}}}, {Ask: j.Ask, Patterns: &reading.PatternOptions{Sample: 3}},
		{Ask: j.Ask, Table: &reading.Table{LogQL: `stddev_over_time({job="a"} | unwrap n [1h])`, Range: reading.Range{From: 1, To: 2}}},
	} {
		if _, _, err := good.Part(t.Context(), bad); bad.Joinable() || err == nil || !strings.Contains(err.Error(), "ask one process") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, _, err := serve(t, h, "api").Part(t.Context(), j); !errors.As(err, new(*reading.NoServiceError)) {
		t.Errorf("by a token that may not read it: %v", err)
	}
	j.Ask.Services = []string{"nosuch"}
	if _, _, err := good.Part(t.Context(), j); !errors.As(err, new(*reading.NoServiceError)) {
		t.Error(err)
	}
	// A failed record is the same mistake everywhere.
	hour := reading.Range{From: noon.UnixNano(), To: noon.Add(time.Minute).UnixNano()}
	bad := reading.Table{LogQL: `sum_over_time({service="web"} | unwrap msg [1h])`, Range: hour}
	_, _, want := h.Reader().For(nil).Table(t.Context(), bad)
	rng, err := bad.Reads()
	_, _, got := good.Part(t.Context(), reading.Joint{Ask: reading.Ask{Range: rng}, Table: &bad})
	if want == nil || err != nil || got == nil || !strings.Contains(got.Error(), want.Error()) {
		t.Errorf("%v, not %v (%v)", got, want, err)
	}
}
