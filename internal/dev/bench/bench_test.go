package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/internal/dev/bench/result"
	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/testkit"
)

// TestMain lets this binary be the child that runs commands.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "launch" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// failure returns the error with which f ends a run.
func failure(f func()) (err error) {
	defer func() {
		if e, ok := recover().(fault); ok {
			err = e.error
		}
	}()
	f()
	return nil
}

// linesOf changes the lines of a body.
func linesOf(f func([][]byte) [][]byte) func([]byte) []byte {
	return func(body []byte) []byte { return bytes.Join(f(slices.Collect(bytes.Lines(body))), nil) }
}

// change answers for a server. Requests with a text in their URL get answers as alter makes them, from the
// given request of the text on. Each second request is refused at first, if busy is set.
func change(t *testing.T, of *rig.Server, with string, from int64, busy bool, alter func([]byte) []byte) *rig.Server {
	t.Helper()
	to, err := url.Parse(of.URL())
	if err != nil {
		t.Fatal(err)
	}
	var requests, all atomic.Int64
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			text, err := url.QueryUnescape(r.Request.URL.String())
			if err != nil || !strings.Contains(text, with) || requests.Add(1) < from {
				return err
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			r.Body.Close()
			body = alter(body)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Length", strconv.Itoa(len(body)))
			return nil
		},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := all.Add(1); busy && n%2 == 1 && n < 13 {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "later", http.StatusTooManyRequests)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return of.At(s.URL)
}

// reader has one server, which answers some questions.
func (d *driver) reader(server *rig.Server, question string) *reader {
	d.rows, d.result.Rows, d.sides[0].server = rig.Globs{"read." + question + ".*"}, nil, server
	return &reader{driver: d, servers: d.sides}
}

// TestRun measures a small corpus with real processes: questions to a server, and all of the table that
// is not remote. A wrong answer ends a run.
func TestRun(t *testing.T) {
	testkit.FullOnly(t, "it builds and runs processes")
	bin := t.TempDir()
	for _, name := range []string{"ingest", "logquery", "retention"} {
		if err := testkit.Build("../../..", bin, name); err != nil {
			t.Fatal(err)
		}
	}
	o := options{bin: bin, quick: true, size: size{records: 20_000, plain: 2000, protocols: 2000, loads: 1, rounds: 1, reads: 1, budget: time.Hour}}
	d := newDriver(t.Context(), o, t.TempDir())
	d.whole(t.Context(), d.logOf(d.result.Corpora[0], d.corpus.File, ""), func(context.Context, *rig.Victoria) {
		s := must(rig.Serve(t.Context(), d.sides[0].command("logquery"), d.env, "dir:"+d.sides[0].store))
		defer s.Kill()
		d.right(t, s)
		d.wrong(t, s)
	})
	d.result.Rows, d.quick = nil, false
	d.rows = rig.Globs{"ingest*", "storage*", "i", "iii-*", "v*", "serve-*"}
	d.table(t.Context())
	if err := d.result.Check(); err != nil || len(d.result.Rows) < 20 {
		t.Errorf("%d rows, %v", len(d.result.Rows), err)
	}
	for _, r := range d.result.Rows {
		if r.ID == "i" && (r.Also["cpu_s"].Median <= 0 || r.Also["peak_rss_mb"].Median <= 0 || r.Records == 0 || r.OursCommand == "") {
			t.Errorf("%+v", r)
		}
	}
}

// right asks all questions. A server that is busy gets its requests again, and the wait counts.
func (d *driver) right(t *testing.T, s *rig.Server) {
	d.reader(s, "*").all(t.Context())
	kinds := map[string][]string{}
	for _, r := range d.result.Rows {
		if parts := strings.SplitN(r.ID, ".", 3); parts[0] == "read" {
			kinds[parts[1]] = append(kinds[parts[1]], parts[2])
		}
		if len(r.Ours) != 1 || r.OursCommand == "" || r.TheirsCommand == "" {
			t.Errorf("%+v", r)
		}
	}
	for q, got := range kinds {
		want := []string{"process", "server.1", "server.8", "cpu", "server.32"}
		if strings.HasSuffix(q, "-again") {
			want = want[1:4]
		}
		if !slices.Equal(got, want) || len(kinds) != 16 {
			t.Errorf("%s, one of %d, has rows %v, want %v", q, len(kinds), got, want)
		}
	}
	d.reader(change(t, s, "none", 0, true, nil), "window").all(t.Context())
	if r := d.result.Rows[1]; r.ID != "read.window.server.1" || r.Ours[0] < 500 || !strings.Contains(r.Note, "blobtail refused requests") {
		t.Errorf("%+v", r)
	}
}

// wrong asks a server with wrong answers, from the first or from a later one on.
func (d *driver) wrong(t *testing.T, s *rig.Server) {
	loses := func(l [][]byte) [][]byte { return append(l[:1:1], l[2:]...) }
	beheads := func(l [][]byte) [][]byte { return l[1:] }
	alters := func(l [][]byte) [][]byte {
		l[1] = bytes.Replace(l[1], []byte(`"user_id":"u1`), []byte(`"user_id":"u2`), 1)
		return l
	}
	reorders := func(l [][]byte) [][]byte { l[0], l[1] = l[1], l[0]; return l }
	doubles := func(l [][]byte) [][]byte { l[1] = l[2]; return l }
	for _, c := range []struct {
		name, question, with string
		from                 int64
		alter                func([]byte) []byte
		want                 string // of the error
	}{
		{"loses a record", "window", "level=error,critical", 1, linesOf(loses), "1 are missing"},
		{"alters a record later", "window", "level=error,critical", 2, linesOf(alters), "1 are not right, such as {"},
		{"reorders records in the burst of eight", "window", "level=error,critical", 40, linesOf(reorders), "out of order"},
		{"has no line", "window", "level=error,critical", 2, func([]byte) []byte { return nil }, "0 records, and"},
		{"breaks a line", "window", "level=error,critical", 1, func(b []byte) []byte { return b[:len(b)-10] }, "this is no record"},
		{"loses a record of many", "hour", "service=", 3, linesOf(loses), "1 are missing"},
		{"has one of many for another", "hour", "service=", 5, linesOf(doubles), "1 are missing, 1 are there too often"},
		{"loses one of the newest", "newest", "limit=100&", 1, linesOf(loses), "99 records, and 100 are right"},
		{"loses one of the newest of all", "newest-all", "limit=100&", 2, linesOf(loses), "99 records, and 100 are right"},
		{"counts one less", "minutes", "by=1m", 2, func(b []byte) []byte { return bytes.Replace(b, []byte(`"info":`), []byte(`"info":1`), 1) }, "1 of"},
		{"counts a service wrong", "services", "split=service", 2, func(b []byte) []byte { return bytes.Replace(b, []byte(`"auth":`), []byte(`"auth":9`), 1) }, "auth has 9"},
		{"counts a value wrong", "facet", "fields=status", 2, func(b []byte) []byte { return bytes.Replace(b, []byte(`"count":`), []byte(`"count":9`), 1) }, "numbers are wrong"},
		{"lacks an id", "id", "words=", 2, linesOf(beheads), "0 records, and 1 are right"},
		{"lacks a token", "word", "words=", 2, linesOf(beheads), "1 are missing"},
		{"lacks characters of a token", "token-text", "text=", 2, linesOf(beheads), "1 are missing"},
		{"lacks characters", "text", "text=", 2, linesOf(beheads), "1 are missing"},
		{"lacks a seldom word", "rare", "words=", 2, linesOf(beheads), "1 are missing"},
		{"lacks a match", "expression", "expr=", 2, linesOf(beheads), "1 are missing"},
	} {
		r := d.reader(change(t, s, c.with, c.from, false, c.alter), c.question)
		if err := failure(func() { r.all(t.Context()) }); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "the answer of blobtail") {
			t.Errorf("%s: %v, not %q", c.name, err, c.want)
		}
	}
	logquery, bin := d.sides[0].command("logquery"), d.sides[0].bin
	defer func() { d.sides[0].bin = bin }()
	for script, want := range map[string]string{`"` + logquery + `" "$@" | sed 1d`: "1 are missing", "exit 3": "exit code 3"} {
		d.sides[0].bin = t.TempDir()
		check(os.WriteFile(d.sides[0].command("logquery"), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
		r := d.reader(s, "window")
		if err := failure(func() { r.all(t.Context()) }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
}

// The second corpus has each record of each log as often as it is repeated, in order of time, within
// six hours.
func TestRepeat(t *testing.T) {
	dir := t.TempDir()
	names := []string{filepath.Join(dir, "a.ndjson"), filepath.Join(dir, "b.ndjson")}
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(names[0], `{"time":"2016-03-17T16:13:38.811000Z","service":"a","level":"D","message":"say \"a\" <b>","pid":"7"}
{"time":"2016-04-17T16:13:38.811000Z","service":"a","level":"W","message":"late","pid":"8"}
{"time":"2016-03-18T16:13:38.811000Z","service":"a","level":"notice","message":"early","pid":"9"}
`)
	write(names[1], `{"time":"2005-12-04T04:47:44Z","service":"b","message":"alone"}`+"\n")
	file := filepath.Join(dir, "out")
	made, err := repeat(file, names, 5)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || made.Records != 20 || made.Bytes != int64(len(text)) {
		t.Fatalf("%+v of %d bytes, %v", made, len(text), err)
	}
	last, count := rig.Start, map[string]int{}
	for line := range bytes.Lines(text) {
		var r map[string]string
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339Nano, r["ts"])
		if err != nil || at.Before(last) || !at.Before(rig.Start.Add(rig.Hours*time.Hour)) {
			t.Errorf("%s comes after %s: %v", r["ts"], last, err)
		}
		last = at
		delete(r, "ts")
		count[fmt.Sprint(r)]++
	}
	for _, want := range []string{`map[level:debug msg:say "a" <b> pid:7 service:a]`, "map[level:info msg:early pid:9 service:a]",
		"map[level:warn msg:late pid:8 service:a]", "map[level:info msg:alone service:b]"} {
		if count[want] != 5 {
			t.Errorf("%s is there %d times: %v", want, count[want], count)
		}
	}
	write(names[1], `{"time":"2005-12-04T04:47:44Z","service":"b","level":"loud","message":"m"}`)
	if _, err := repeat(file, names, 5); err == nil || !strings.Contains(err.Error(), "loud") {
		t.Errorf("an unknown level: %v", err)
	}
}

// The order of the sides changes with each round. A late row ends with its third.
func TestEachRound(t *testing.T) {
	for _, c := range []struct {
		rounds int
		late   bool
		want   string
	}{
		{3, false, "ofalse tfalse tfalse ofalse otrue ttrue"}, {5, true, "ofalse tfalse tfalse ofalse otrue ttrue"},
		{2, true, "ofalse tfalse ttrue otrue"}, {4, false, "ofalse tfalse tfalse ofalse ofalse tfalse ttrue otrue"},
	} {
		var order []string
		eachRound(c.rounds, func() bool { return c.late }, []*side{{name: "o"}, {name: "t"}}, func(_ int, last bool, s *side) { order = append(order, fmt.Sprint(s.name, last)) })
		if got := strings.Join(order, " "); got != c.want {
			t.Errorf("%d rounds, late %v: %v, not %v", c.rounds, c.late, got, c.want)
		}
	}
}

// A whole comparison puts its result beside the page, and the tables into it. A quick one, or one of
// some rows or without the second corpus, leaves the page alone.
func TestFinish(t *testing.T) {
	both := []result.Corpus{{Name: "reference"}, {Name: "loghub"}}
	for _, r := range []result.Result{{Corpora: both}, {Corpora: both, Quick: true}, {Corpora: both[:1]}} {
		docs := t.TempDir()
		const page = "# Page\n\nAbove.\n\n" + result.Begin + "old\n" + result.End + "\nBelow.\n"
		name := filepath.Join(docs, "comparison.md")
		if err := errors.Join(os.WriteFile(name, []byte(page), 0o600), os.Mkdir(filepath.Join(docs, "compare"), 0o700)); err != nil {
			t.Fatal(err)
		}
		r.Date, r.Ours.Name, r.Theirs.Name = "2026-11-27T01:00:00Z", "blobtail", "Other"
		d := &driver{options: options{docs: docs, out: filepath.Join(docs, "out.json")}, result: r, begun: time.Now(), busy: rig.BusyNow()}
		d.add(result.Row{ID: "ingest.x", Group: "ingest", Title: "x", Unit: "ms", Corpus: "reference", Ours: []float64{1}, Theirs: []float64{2}})
		if err := d.finish(true); err != nil {
			t.Fatal(err)
		}
		if r, err := result.Read(d.out); err != nil || len(r.Rows) != 1 {
			t.Errorf("the result has %d rows, %v", len(r.Rows), err)
		}
		now := string(must(os.ReadFile(name)))
		_, err := result.Latest(filepath.Join(docs, "compare"))
		if whole := !r.Quick && len(r.Corpora) > 1; whole != (err == nil) || whole == (now == page) ||
			whole && (!strings.HasPrefix(now, "# Page\n\nAbove.\n\n"+result.Begin+"Other is ahead in none") || !strings.HasSuffix(now, result.End+"\nBelow.\n")) {
			t.Errorf("%+v: the page became %s, %v", r, now, err)
		}
	}
	if err := (&driver{options: options{rows: rig.Globs{"nothing"}}, begun: time.Now(), busy: rig.BusyNow()}).finish(true); err == nil {
		t.Error("a run without rows is no error")
	}
}

// agree fails if two runs differ. A flag or a verb that is none is an error.
func TestVerbs(t *testing.T) {
	write := func(name string, ours float64) string {
		r := result.Result{Rows: []result.Row{{ID: "read.x", Group: "read", Title: "x", Unit: "ms", Corpus: "reference", Ours: []float64{ours}, Theirs: []float64{50}}}}
		name = filepath.Join(t.TempDir(), name)
		check(r.Write(name))
		return name
	}
	a, same, other := write("a", 100), write("b", 120), write("c", 130)
	if err := run([]string{"agree", a, same}); err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{{"agree", a, other}, {"agree", a}, nil, {"more"}, {"table", "-rows", "["}, {"table", "more"}, {"compare", "-no-such-flag"}, {"table", "-n", "10"},
		{"compare", "-bin", t.TempDir(), "-n", "100000"}} {
		if err := run(args); err == nil {
			t.Errorf("%q is no error", args)
		}
	}
}
