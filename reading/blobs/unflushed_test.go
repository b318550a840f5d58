package blobs_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/storage/mem"
)

func entry(r rec) *record.Entry {
	return &record.Entry{Time: r.time, ID: record.ID{Origin: r.origin, Index: r.index}, Line: []byte(r.line)}
}

// unflushed holds some records, added in the given order.
func unflushed(t interface {
	Helper()
	Fatal(...any)
}, entries ...*record.Entry) *blobs.Unflushed {
	t.Helper()
	l := blobs.NewUnflushed("the log")
	for _, e := range entries {
		if err := l.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func entries(recs []rec) []*record.Entry {
	var out []*record.Entry
	for _, r := range recs {
		out = append(out, entry(r))
	}
	return out
}

// A service with unflushed records only is listed in its place among the others.
func TestListUnflushed(t *testing.T) {
	b := newBuilder(t, 500)
	b.add(time.Hour, some("web", 10, 1))
	b.add(time.Hour, some("api", 10, 1))
	l := unflushed(t, append(entries(some("worker", 5, 1)), entries(some("orders", 5, 1))...)...)
	defer l.Close()
	list, _, err := blobs.New(b.store, blobs.Options{}).List(t.Context(), blobs.Query{Unflushed: []*blobs.Unflushed{l}}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, total := range list {
		names = append(names, total.Name)
	}
	if want := []string{"api", "orders", "web", "worker"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// Unflushed records are read in their place among the stored ones. A record that is
// both is read once.
func TestUnflushed(t *testing.T) {
	b := newBuilder(t, 500)
	recs := some("web", 100, 1)
	b.add(time.Hour, recs[:60])
	l := unflushed(t, entries(recs[40:])...)
	defer l.Close()
	again := unflushed(t, entries(recs[50:])...)
	r := blobs.New(b.store, blobs.Options{})
	for _, reverse := range []bool{false, true} {
		got, sum := read(t, r, blobs.Query{Services: []string{"w*"}, Range: blobs.Always(), Reverse: reverse, Unflushed: []*blobs.Unflushed{l, again}})
		want := lines(recs)
		if reverse {
			slices.Reverse(want)
		}
		if !slices.Equal(got, want) || sum.Unflushed != 40 || sum.Copies != 20+50 || !sum.Complete() {
			t.Errorf("%d lines, %+v", len(got), sum)
		}
	}
}

// Services without stored records are services too; those that the query does not
// name are left out.
func TestUnflushedServices(t *testing.T) {
	api, web := some("api", 10, 1), some("web", 20, 2)
	l := unflushed(t, append(entries(api), entries(web)...)...)
	r := blobs.New(mem.New(mem.Options{}), blobs.Options{})
	for pattern, want := range map[string]int{"web": 20, "*": 30, "a*": 10} {
		got, _ := read(t, r, blobs.Query{Services: []string{pattern}, Range: blobs.Always(), Unflushed: []*blobs.Unflushed{l}})
		if len(got) != want {
			t.Errorf("%s: %d lines", pattern, len(got))
		}
	}
	for _, pattern := range []string{"db", "d*"} {
		_, err := r.Plan(t.Context(), blobs.Query{Services: []string{pattern}, Range: blobs.Always(), Unflushed: []*blobs.Unflushed{l}})
		if none := (*blobs.NoServiceError)(nil); !errors.As(err, &none) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
	if got := l.Services(); !slices.Equal(got, []string{"api", "web"}) {
		t.Errorf("%v", got)
	}
}

// Records of one time and identity with different bytes are records of their own, in
// the order of their bytes; there is a bound on them.
func TestUnflushedSame(t *testing.T) {
	same := func(msgs ...string) []*record.Entry {
		var out []*record.Entry
		for _, msg := range msgs {
			out = append(out, entry(rec{time: noon, origin: origin(1), line: line(noon, "info", "web", msg)}))
		}
		return out
	}
	first, last := same("b", "a", "b", "c", "a"), same("c", "a")
	l, again := unflushed(t, first...), unflushed(t, last...)
	want := []string{string(first[1].Line), string(first[0].Line), string(first[3].Line)}
	got, sum := read(t, blobs.New(mem.New(mem.Options{}), blobs.Options{}),
		blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Unflushed: []*blobs.Unflushed{l, again}})
	if !slices.Equal(got, want) || sum.Copies != 2 || sum.Unflushed != 3 {
		t.Errorf("%q, %+v", got, sum)
	}
	many := blobs.NewUnflushed("the log")
	defer many.Close()
	for i := range 10_000 {
		if err := many.Add(same(fmt.Sprint(i))[0]); err != nil {
			if i < 100 {
				t.Errorf("only %d: %v", i, err)
			}
			return
		}
	}
	t.Error("any number of them")
}

// Records of very many hours are read like any, in order and each once. There is a bound
// on the days and services, and records of known days are accepted beyond it.
func TestUnflushedManyHours(t *testing.T) {
	testkit.FullOnly(t, "34,000 records in one goroutine")
	const hours = 17_000
	from := noon - hours*int64(time.Hour)
	at := func(i int, span time.Duration) *record.Entry {
		n := from + int64(i)*int64(span)
		return entry(rec{time: n, origin: origin(1), index: uint32(i), line: line(n, "info", "web", fmt.Sprint(i))})
	}
	l := blobs.NewUnflushed("the log")
	defer l.Close()
	var want []string
	for i := range hours {
		e := at(i, time.Hour)
		for range 2 { // a copy
			if err := l.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		want = append(want, string(e.Line))
	}
	q := blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Unflushed: []*blobs.Unflushed{l}}
	r := blobs.New(mem.New(mem.Options{}), blobs.Options{})
	if got, sum := read(t, r, q); !slices.Equal(got, want) || sum.Unflushed != hours {
		t.Errorf("%d lines, %+v", len(got), sum)
	}
	plan, err := r.Plan(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if n, _, err := plan.Count(t.Context()); err != nil || n != hours {
		t.Errorf("%d are counted, %v", n, err)
	}
	q.Limit = 30 // more than a day
	var newest []string
	_, err = r.Newest(t.Context(), q, func(lines []byte) error {
		newest = append(newest, strings.SplitAfter(strings.TrimSuffix(string(lines), "\n"), "\n")...)
		return nil
	})
	if err != nil || len(newest) != 30 || newest[0] != want[hours-30] || newest[29]+"\n" != want[hours-1] {
		t.Errorf("the newest are %d lines, %v", len(newest), err)
	}

	testkit.FullOnly(t, "262,144 bodies")
	many := blobs.NewUnflushed("the log")
	defer many.Close()
	for service := 0; ; service++ {
		name := fmt.Sprintf("web-%d", service)
		for i := range 60_000 {
			n := from + int64(i)*int64(24*time.Hour)
			err := many.Add(entry(rec{time: n, origin: origin(1), line: line(n, "info", name, "x")}))
			if err == nil {
				continue
			}
			if !strings.Contains(err.Error(), "too many days and services") || service != 4 {
				t.Errorf("service %d, day %d: %v", service, i, err)
			}
			return
		}
	}
}

// Records that exceed the memory limit go to an unnamed file.
func TestUnflushedSpill(t *testing.T) {
	testkit.FullOnly(t, "many MiB in one goroutine")
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	text := strings.Repeat("many words ", 1000)
	make := func(i int) *record.Entry {
		at := noon + int64(i/3)*1e6
		return entry(rec{time: at, origin: origin(1), index: uint32(i),
			line: line(at, "info", fmt.Sprintf("service-%d", i%3), fmt.Sprintf("%d %s", i, text))})
	}
	l := blobs.NewUnflushed("the log")
	n := 15_000 // of 11 kB each, which is more than is kept in memory
	for i := range n {
		e := make(i)
		for range 1 + i%2 { // some twice
			if err := l.Add(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Add(make(0)); err == nil {
		t.Error("out of order beyond what memory is for")
	}
	l.Close()
	if err := l.Add(make(n)); err == nil {
		t.Error("closed, and something added")
	}

	l = blobs.NewUnflushed("the log")
	defer l.Close()
	for i := range n {
		if err := l.Add(make(i)); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := os.ReadDir(dir); len(names) > 0 || err != nil {
		t.Errorf("left in the directory: %v, %v", names, err)
	}
	readSpilled(t, l, n)
}

// readSpilled reads all of n numbered records of three services in several concurrent
// ways, and counts those of one.
func readSpilled(t *testing.T, l *blobs.Unflushed, n int) {
	t.Helper()
	r := blobs.New(mem.New(mem.Options{}), blobs.Options{})
	var reads sync.WaitGroup
	for _, q := range []blobs.Query{{}, {Reverse: true}, {Filter: blobs.Filter{Texts: []string{"words"}}}} {
		q.Services, q.Range, q.Unflushed = []string{"*"}, blobs.Always(), []*blobs.Unflushed{l}
		reads.Go(func() {
			at, step := 0, 1
			if q.Reverse {
				at, step = n-1, -1
			}
			plan, err := r.Plan(t.Context(), q)
			if err != nil {
				t.Error(err)
				return
			}
			sum, err := plan.Read(t.Context(), func(lines []byte) error {
				for l := range bytes.Lines(lines) {
					if want := fmt.Sprintf(`"msg":"%d many`, at); !bytes.Contains(l[:100], []byte(want)) {
						return fmt.Errorf("%.100s, want %d", l, at)
					}
					at += step
				}
				return nil
			})
			if err != nil || sum.Records != int64(n) || sum.Unflushed != int64(n) || !sum.Complete() {
				t.Errorf("%+v, %v", sum, err)
			}
		})
	}
	reads.Wait()
	plan, err := r.Plan(t.Context(), blobs.Query{Services: []string{"service-1"}, Range: blobs.Always(), Unflushed: []*blobs.Unflushed{l}})
	if err != nil {
		t.Fatal(err)
	}
	if count, _, err := plan.Count(t.Context()); err != nil || count != int64(n/3) {
		t.Errorf("count %d, %v", count, err)
	}
}

// A temporary file that is cut short is a problem, and the read goes on.
func TestUnflushedFileDamaged(t *testing.T) {
	testkit.FullOnly(t, "many MiB in one goroutine")
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	l := blobs.NewUnflushed("the log")
	defer l.Close()
	text := strings.Repeat("many words ", 10_000)
	for i := range 700 { // 110 kB each
		at := noon + int64(i)*1e6
		if err := l.Add(entry(rec{time: at, origin: origin(1), index: uint32(i), line: line(at, "info", "web", text)})); err != nil {
			t.Fatal(err)
		}
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no way to a file without a name")
	}
	cut := false
	for _, fd := range fds {
		path := "/proc/self/fd/" + fd.Name()
		if to, _ := os.Readlink(path); strings.HasPrefix(to, dir) {
			cut = true
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err == nil {
				err = errors.Join(f.Truncate(30<<20), f.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if !cut {
		t.Fatal("nothing was put aside")
	}
	got, sum := read(t, blobs.New(mem.New(mem.Options{}), blobs.Options{}), blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Unflushed: []*blobs.Unflushed{l}})
	if sum.Complete() || len(got) == 0 || len(got) >= 700 || !strings.HasPrefix(sum.Problems[0].Error(), "the log: ") {
		t.Errorf("%d lines, %v", len(got), sum.Problems)
	}
}

// Records from outside are checked.
func TestUnflushedRefuses(t *testing.T) {
	good := entry(some("web", 1, 1)[0])
	l := blobs.NewUnflushed("the log")
	for name, change := range map[string]func(e *record.Entry){
		"empty":       func(e *record.Entry) { e.Line = nil },
		"no newline":  func(e *record.Entry) { e.Line = e.Line[:len(e.Line)-1] },
		"two lines":   func(e *record.Entry) { e.Line = append(e.Line, e.Line...) },
		"other time":  func(e *record.Entry) { e.Time++ },
		"no service":  func(e *record.Entry) { e.Line = bytes.Replace(e.Line, []byte(`"web"`), []byte(`"../x"`), 1) },
		"not ours":    func(e *record.Entry) { e.Line = []byte("{\"a\":1}\n") },
		"system name": func(e *record.Entry) { e.Line = bytes.Replace(e.Line, []byte(`"web"`), []byte(`"_other"`), 1) },
	} {
		e := *good
		e.Line = bytes.Clone(good.Line)
		change(&e)
		if err := l.Add(&e); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if err := l.Add(good); err != nil {
		t.Error(err)
	}
	// A read has all records that were added before it.
	r, q := blobs.New(mem.New(mem.Options{}), blobs.Options{}), blobs.Query{Services: []string{"*"}, Range: blobs.Always(), Unflushed: []*blobs.Unflushed{l}}
	if got, _ := read(t, r, q); len(got) != 1 {
		t.Errorf("%q", got)
	}
	later := entry(rec{time: good.Time + 1, line: line(good.Time+1, "info", "web", "later")})
	if err := l.Add(later); err != nil {
		t.Error(err)
	}
	if got, _ := read(t, r, q); len(got) != 2 {
		t.Errorf("%q", got)
	}
	l.Close()
	l.Close()
}

// However little memory it has, all of its records are read.
func TestUnflushedWithinLittle(t *testing.T) {
	l := blobs.NewUnflushed("the log")
	defer l.Close()
	l.Within(1)
	recs := some("web", 500, 1)
	for _, e := range entries(recs) {
		if err := l.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	got, sum := read(t, blobs.Without(blobs.Options{}), blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Unflushed: []*blobs.Unflushed{l}})
	if !slices.Equal(got, lines(recs)) || !sum.Complete() {
		t.Errorf("%d lines, %v", len(got), sum.Problems)
	}
}
