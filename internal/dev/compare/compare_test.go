package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/compare/canon"
	"blobtail/internal/dev/compare/result"
)

// leaky is a system that keeps lines, and changes them before it shows them.
type leaky struct {
	*httptest.Server
	mu      sync.Mutex
	lines   [][]byte
	form    canon.Form
	change  func([][]byte) [][]byte
	refuses bool
}

func newLeaky(t *testing.T, form canon.Form, change func([][]byte) [][]byte) *leaky {
	l := &leaky{form: form, change: change}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || l.refuses {
			http.Error(w, "no room", http.StatusServiceUnavailable)
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		for line := range bytes.Lines(body) {
			l.lines = append(l.lines, line)
		}
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *leaky) target(p rig.Protocol) (string, http.Header, error) {
	return l.URL + p.Path, p.Header(), nil
}
func (l *leaky) pid() int                    { return os.Getpid() }
func (l *leaky) flush(context.Context) error { return nil }
func (l *leaky) stop(context.Context) error  { return nil }
func (l *leaky) records(_ context.Context, h *holding, _ string, _ time.Time) error {
	return h.read(l.form, bytes.NewReader(bytes.Join(l.change(l.lines), nil)))
}

// corpusOf writes a small corpus. Two of its records are equal, as in real logs.
func corpusOf(t *testing.T, form canon.Form, n int) *corpus {
	t.Helper()
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"ts":"2026-11-10T12:00:%02d.%03dZ","level":"info","service":"web","n":%d,"msg":"request %d took 7.250 ms"}`+"\n", i/1000, i%1000, max(1, i), max(1, i))
		if i == 0 {
			b.Reset()
			b.WriteString(`{"ts":"2026-11-10T12:00:00.001Z","level":"info","service":"web","n":1,"msg":"request 1 took 7.250 ms"}` + "\n")
		}
	}
	c := &corpus{file: filepath.Join(t.TempDir(), "corpus.ndjson"), from: rig.ReferenceStart, Corpus: result.Corpus{Name: "small", Records: n, Bytes: int64(b.Len())}}
	if err := os.WriteFile(c.file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.all, err = expect(form, c.file, n); err != nil {
		t.Fatal(err)
	}
	return c
}

// A load counts only if the store has each record of the corpus once, as it was sent.
func TestLoad(t *testing.T) {
	form := canon.Corpus(maphash.MakeSeed())
	c := corpusOf(t, form, 250)
	for _, test := range []struct {
		name   string
		change func([][]byte) [][]byte
		want   string // of the error; "" for none
	}{
		{"as sent", func(l [][]byte) [][]byte { return l }, ""},
		{"another order", func(l [][]byte) [][]byte { slices.Reverse(l); return l }, ""},
		{"one missing", func(l [][]byte) [][]byte { return l[1:] }, "1 are missing, 0 are there too often, and 0 are not"},
		{"one doubled", func(l [][]byte) [][]byte { return append(l, l[100]) }, "0 are missing, 1 are there too often, and 0 are not"},
		{"one in place of another", func(l [][]byte) [][]byte { l[100] = l[200]; return l }, "1 are missing, 1 are there too often, and 0 are not"},
		{"one of two equal ones missing", func(l [][]byte) [][]byte {
			return slices.Delete(l, slices.IndexFunc(l, equalOnes), slices.IndexFunc(l, equalOnes)+1)
		}, "1 are missing"},
		{"one altered", func(l [][]byte) [][]byte {
			l[100] = bytes.Replace(bytes.Clone(l[100]), []byte("took"), []byte("took "), 1)
			return l
		}, "1 are missing, 0 are there too often, and 1 are not of the corpus"},
		{"another time", func(l [][]byte) [][]byte {
			l[100] = bytes.Replace(bytes.Clone(l[100]), []byte("Z"), []byte("1Z"), 1)
			return l
		}, "1 are not of the corpus"},
		{"a field more", func(l [][]byte) [][]byte {
			l[100] = bytes.Replace(bytes.Clone(l[100]), []byte(`"n"`), []byte(`"m":1,"n"`), 1)
			return l
		}, "1 are not of the corpus"},
		{"nothing", func([][]byte) [][]byte { return nil }, "250 are missing"},
		{"no record", func(l [][]byte) [][]byte { return append(l, []byte("error\n")) }, "no record"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := delivery{protocol: rig.Protocols()[0], connections: 3, want: c.all, corpus: c}
			var err error
			if d.bodies, err = linesOf(c.file, c.Records, 7); err != nil || len(d.bodies) != 36 {
				t.Fatalf("%d bodies, %v", len(d.bodies), err)
			}
			_, err = d.load(t.Context(), newLeaky(t, form, test.change))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, not %q", err, test.want)
			}
		})
	}
	full := newLeaky(t, form, func(l [][]byte) [][]byte { return l })
	full.refuses = true
	d := delivery{protocol: rig.Protocols()[0], connections: 3, want: c.all, corpus: c, bodies: [][]byte{[]byte("{}\n")}}
	if _, err := d.load(t.Context(), full); err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "no room") {
		t.Errorf("a refused request: %v", err)
	}
}

func equalOnes(line []byte) bool { return bytes.Contains(line, []byte("request 1 ")) }

// Bodies have all lines in order, up to the asked number.
func TestLinesOf(t *testing.T) {
	c := corpusOf(t, canon.Corpus(maphash.MakeSeed()), 10)
	all, err := os.ReadFile(c.file)
	if err != nil {
		t.Fatal(err)
	}
	for _, per := range []int{1, 3, 10, 11} {
		bodies, err := linesOf(c.file, 10, per)
		if err != nil || !bytes.Equal(bytes.Join(bodies, nil), all) || len(bodies) != (10+per-1)/per {
			t.Errorf("%d a body: %d bodies, %v", per, len(bodies), err)
		}
	}
	if bodies, err := linesOf(c.file, 4, 3); err != nil || len(bodies) != 2 || bytes.Count(bodies[1], []byte("\n")) != 1 {
		t.Errorf("the first four: %q, %v", bodies, err)
	}
	if _, err := linesOf(c.file, 11, 3); err == nil {
		t.Error("a line that is not there is no error")
	}
}

// The second corpus has each record of each log as often as it is repeated, in order of time, within
// six hours.
func TestRepeat(t *testing.T) {
	dir := t.TempDir()
	logs := map[string]string{
		"a.ndjson": `{"time":"2016-03-17T16:13:38.811000Z","service":"a","level":"D","message":"say \"a\" <b>","pid":"7"}
{"time":"2016-04-17T16:13:38.811000Z","service":"a","level":"W","message":"late","pid":"8"}
{"time":"2016-03-18T16:13:38.811000Z","service":"a","level":"notice","message":"early","pid":"9"}
`,
		"b.ndjson": `{"time":"2005-12-04T04:47:44Z","service":"b","message":"alone"}` + "\n",
	}
	var names []string
	for name, text := range logs {
		names = append(names, filepath.Join(dir, name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	file := filepath.Join(dir, "out")
	made, err := repeat(file, names, 5, rig.ReferenceStart)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || made.Records != 20 || made.Bytes != int64(len(text)) {
		t.Fatalf("%+v of %d bytes, %v", made, len(text), err)
	}
	last := rig.ReferenceStart
	count := map[string]int{}
	for line := range bytes.Lines(text) {
		var r map[string]string
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339Nano, r["ts"])
		if err != nil || at.Before(last) || !at.Before(rig.ReferenceStart.Add(hours*time.Hour)) {
			t.Errorf("%s comes after %s: %v", r["ts"], last, err)
		}
		last = at
		delete(r, "ts")
		count[fmt.Sprint(r)]++
	}
	for _, want := range []string{`map[level:debug msg:say "a" <b> pid:7 service:a]`, "map[level:info msg:early pid:9 service:a]", "map[level:warn msg:late pid:8 service:a]", "map[level:info msg:alone service:b]"} {
		if count[want] != 5 {
			t.Errorf("%s is there %d times: %v", want, count[want], count)
		}
	}
	if err := os.WriteFile(names[1], []byte(`{"time":"2005-12-04T04:47:44Z","service":"b","level":"loud","message":"m"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := repeat(file, names, 5, rig.ReferenceStart); err == nil || !strings.Contains(err.Error(), "loud") {
		t.Errorf("an unknown level: %v", err)
	}
}

// The order of the sides changes with each round. A late row ends with its third.
func TestInTurn(t *testing.T) {
	for _, c := range []struct {
		rounds int
		late   bool
		want   []string
	}{
		{3, false, []string{"ofalse", "tfalse", "tfalse", "ofalse", "otrue", "ttrue"}},
		{5, true, []string{"ofalse", "tfalse", "tfalse", "ofalse", "otrue", "ttrue"}},
		{2, true, []string{"ofalse", "tfalse", "ttrue", "otrue"}},
		{4, false, []string{"ofalse", "tfalse", "tfalse", "ofalse", "ofalse", "tfalse", "ttrue", "otrue"}},
	} {
		var order []string
		side := func(name string) func(bool) error {
			return func(last bool) error { order = append(order, fmt.Sprint(name, last)); return nil }
		}
		if err := inTurn(c.rounds, func() bool { return c.late }, side("o"), side("t")); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(order, c.want) {
			t.Errorf("%d rounds, late %v: %v, not %v", c.rounds, c.late, order, c.want)
		}
	}
}

// A whole run puts its result beside the page, and the tables into it. A quick one, or one of some
// rows, leaves the page alone.
func TestFinish(t *testing.T) {
	row := result.Row{ID: "ingest.x", Group: "ingest", Title: "x", Unit: "ms", Corpus: "reference", Ours: []float64{1}, Theirs: []float64{2}}
	for _, o := range []options{{}, {quick: true}, {rows: rig.Globs{"ingest.*"}}} {
		docs := t.TempDir()
		const page = "# Page\n\nAbove.\n\n" + result.Begin + "old\n" + result.End + "\nBelow.\n"
		if err := os.WriteFile(filepath.Join(docs, "COMPARISON.md"), []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		o.docs, o.out = docs, filepath.Join(docs, "out.json")
		c := &comparison{o: o, begun: time.Now(), busy: rig.BusyNow()}
		c.result = result.Result{Date: "2026-11-27T01:00:00Z", Ours: result.Side{Name: "blobtail"}, Theirs: result.Side{Name: "Other"}, Corpora: []result.Corpus{{Name: "reference"}}}
		c.add(row, result.Row{ID: "read.y"})
		if len(o.rows) == 0 {
			c.result.Rows = c.result.Rows[:1]
		}
		if err := c.finish(); err != nil {
			t.Fatal(err)
		}
		if r, err := result.Read(o.out); err != nil || len(r.Rows) != 1 {
			t.Errorf("%+v: the result has %d rows, %v", o, len(r.Rows), err)
		}
		now, err := os.ReadFile(filepath.Join(docs, "COMPARISON.md"))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := result.Latest(filepath.Join(docs, "compare"))
		if whole := !o.quick && len(o.rows) == 0; whole != (err == nil) || whole == (string(now) == page) {
			t.Errorf("%+v: the page became %s, %v", o, now, err)
		} else if whole && (!strings.HasPrefix(string(now), "# Page\n\nAbove.\n\n"+result.Begin+"Other is ahead in none") || !strings.HasSuffix(string(now), result.End+"\nBelow.\n") || kept.Rows[0].ID != "ingest.x") {
			t.Errorf("the page became %s", now)
		}
	}
	if err := (&comparison{o: options{rows: rig.Globs{"nothing"}}, begun: time.Now(), busy: rig.BusyNow()}).finish(); err == nil {
		t.Error("a run without rows is no error")
	}
}

// agree fails if two runs differ.
func TestAgree(t *testing.T) {
	write := func(name string, ours float64) string {
		r := result.Result{Rows: []result.Row{{ID: "read.x", Group: "read", Title: "x", Unit: "ms", Corpus: "reference", Ours: []float64{ours}, Theirs: []float64{50}}}}
		name = filepath.Join(t.TempDir(), name)
		if err := r.Write(name); err != nil {
			t.Fatal(err)
		}
		return name
	}
	a, same, other := write("a", 100), write("b", 120), write("c", 130)
	if err := run([]string{"agree", a, same}); err != nil {
		t.Error(err)
	}
	if err := run([]string{"agree", a, other}); err == nil {
		t.Error("130 ms agree with 100")
	}
}

// Without the generator, or the logs of the second corpus, nothing is compared.
func TestWithoutTools(t *testing.T) {
	if err := run([]string{"-tools", filepath.Join(t.TempDir(), "none")}); err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{{"-rows", "["}, {"more"}, {"-no-such-flag"}} {
		if err := run(args); err == nil {
			t.Errorf("%q is no error", args)
		}
	}
}
