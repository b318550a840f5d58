package asblobs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/internal/azurelogs"
	"blobtail/internal/azurelogs/asblobs"
	"blobtail/internal/dev/testkit"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/storage"
)

const layout = "2006-01-02T15:04:05.0000000Z"

// logs are files of resource logs of the service c, made by the hour in which records came.
type logs struct {
	dir  string
	text map[time.Time]string
	made int
}

func newLogs(t testing.TB) *logs { return &logs{dir: t.TempDir(), text: make(map[time.Time]string)} }

// add adds a record that came some time after its own, and returns its number.
func (l *logs) add(at time.Time, late time.Duration) string {
	hour := at.Add(late).Truncate(time.Hour)
	l.made++
	l.text[hour] += fmt.Sprintf(`{"time":%q,"level":%q,"n":"n%06d"}`+"\n", at.Format(layout), []string{"Informational", "Error"}[l.made%2], l.made)
	return fmt.Sprintf("n%06d", l.made)
}

func (l *logs) write(t testing.TB) {
	t.Helper()
	for hour, text := range l.text {
		dir := filepath.Join(l.dir, "insights-logs-c", "resourceId=", "x", hour.Format("y=2006/m=01/d=02/h=15/m=00"))
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "PT1H.json"), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func (l *logs) open(t testing.TB, o asblobs.Options) *asblobs.Store {
	t.Helper()
	l.write(t)
	s := asblobs.New(azurelogs.New(azurelogs.Options{Find: func(context.Context) ([]azurelogs.Container, error) { return azurelogs.Dir(l.dir) }}), o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// read returns the numbers of the records of a query, in order of time.
func read(t testing.TB, s *asblobs.Store, q blobs.Query) (numbers []string) {
	t.Helper()
	q.Services = []string{"c"}
	last := ""
	sum, err := func() (blobs.Summary, error) {
		emit := func(lines []byte) error {
			for line := range bytes.Lines(lines) {
				at := string(line[:37])
				if at < last {
					t.Fatalf("%s comes after %s", at, last)
				}
				last = at
				v, _ := record.Lookup(line, "n")
				numbers = append(numbers, strings.Trim(string(v), `"`))
			}
			return nil
		}
		r := blobs.New(s, blobs.Options{})
		if q.Limit > 0 {
			return r.Newest(t.Context(), q, emit)
		}
		plan, err := r.Plan(t.Context(), q)
		if err != nil {
			return blobs.Summary{}, err
		}
		return plan.Read(t.Context(), emit)
	}()
	if err != nil || !sum.Complete() {
		t.Fatal(err, sum.Problems)
	}
	return numbers
}

// Any range has its records, even if they came in other hours, and the newest are the newest.
func TestRanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	l, begin := newLogs(t), time.Date(2026, 2, 27, 20, 0, 0, 0, time.UTC)
	type made struct {
		at time.Time
		n  string
	}
	var all []made
	for range 4000 {
		at := begin.Add(time.Duration(rng.Int64N(int64(80 * time.Hour)))).Truncate(time.Microsecond)
		all = append(all, made{at, l.add(at, time.Duration(rng.Int64N(int64(2*time.Hour))))})
	}
	slices.SortFunc(all, func(a, b made) int { return a.at.Compare(b.at) })
	whole := l.open(t, asblobs.Options{})
	if got := read(t, whole, blobs.Query{Range: blobs.Always()}); len(got) != len(all) {
		t.Fatalf("%d records, want %d", len(got), len(all))
	}
	for range testkit.Share(60, 6) {
		from := begin.Add(time.Duration(rng.Int64N(int64(85*time.Hour))) - 3*time.Hour)
		to := from.Add(time.Duration(rng.Int64N(int64(30 * time.Hour))))
		q := blobs.Query{Range: blobs.Range{From: from.UnixNano(), To: to.UnixNano()}}
		switch rng.IntN(4) {
		case 0:
			q.Range.From = blobs.Oldest
		case 1:
			q.Range.To = blobs.Newest
		}
		var want []string
		for _, m := range all {
			if at := m.at.UnixNano(); at >= q.Range.From && (at < q.Range.To || q.Range.To == blobs.Newest) {
				want = append(want, m.n)
			}
		}
		if rng.IntN(3) == 0 {
			q.Limit = 1 + rng.IntN(300)
			want = want[max(0, len(want)-q.Limit):]
		}
		s := l.open(t, asblobs.Options{Workers: 1 + rng.IntN(4)})
		if got := read(t, s, q); !slices.Equal(got, want) {
			t.Fatalf("%v to %v, limit %d: %d records, want %d", from, to, q.Limit, len(got), len(want))
		}
	}
}

// A record that came later than the store looks ahead is in a larger range, with a note that
// tells the option for the smaller one.
func TestLate(t *testing.T) {
	l, at := newLogs(t), time.Date(2026, 11, 22, 3, 10, 0, 0, time.UTC)
	onTime, late := l.add(at, time.Hour), l.add(at, 7*time.Hour)
	hour := blobs.Query{Range: blobs.Range{From: at.Add(-10 * time.Minute).UnixNano(), To: at.Add(50 * time.Minute).UnixNano()}}
	for _, test := range []struct {
		q     blobs.Query
		late  time.Duration
		want  []string
		notes int
	}{
		{hour, 0, []string{onTime}, 0}, {hour, 7 * time.Hour, []string{onTime, late}, 0}, {blobs.Query{Range: blobs.Always()}, 0, []string{onTime, late}, 1},
	} {
		s := l.open(t, asblobs.Options{Late: test.late})
		if got := read(t, s, test.q); !slices.Equal(got, test.want) || len(s.Notes()) != test.notes {
			t.Errorf("late %v: %v, notes %q, want %v", test.late, got, s.Notes(), test.want)
		}
		for _, note := range s.Notes() {
			if !strings.Contains(note, "1 record came more than 2h0m0s after its time") || !strings.Contains(note, "--late 7h") {
				t.Error(note)
			}
		}
	}
}

// Directories are found by names, without reading a log.
func TestDirs(t *testing.T) {
	l := newLogs(t)
	l.add(time.Date(2026, 1, 1, 0, 30, 0, 0, time.UTC), 0)
	s := l.open(t, asblobs.Options{})
	for prefix, want := range map[string]string{
		"": "c", "c/": "2025 2026", "c/2025/": "12", "c/2026/": "01", "c/2025/12/": "31", "c/2026/01/": "01", "c/2025/12/31/": "2200 2300",
		"c/2026/01/01/": "0000", "c/2026/02/": "", "c/2024/": "", "d/": "", "d/2026/": "", "_horizon/": "",
	} {
		var got []string
		for dir, err := range s.Dirs(t.Context(), prefix) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, dir)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %q", prefix, got, want)
		}
	}
}

// A listed blob is sound, and can be read whole, in part, and by a name that was never
// listed. Nothing can be written.
func TestBlobs(t *testing.T) {
	l, at := newLogs(t), time.Date(2026, 11, 22, 3, 10, 0, 0, time.UTC)
	for i := range 10_000 {
		l.add(at.Add(time.Duration(i)*time.Millisecond), time.Hour)
	}
	s := l.open(t, asblobs.Options{})
	d, n := blobfmt.NewDecoder(1), 0
	var last storage.Blob
	for e, err := range catalog.Blobs(t.Context(), s, "c", catalog.Range{}) {
		if err != nil || e.State != catalog.Sound {
			t.Fatal(err, e.Err)
		}
		n += int(e.Meta.Records)
		last = storage.Blob{Key: e.Key, Size: e.Size}
	}
	if n != 10_000 || last.Key != "c/2026/11/22/0300/000003.log" {
		t.Errorf("%d records, the last blob is %s", n, last.Key)
	}
	fresh := l.open(t, asblobs.Options{})
	get := func(off, n int64) []byte {
		r, err := fresh.Get(t.Context(), last.Key, off, n)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	whole := get(0, -1)
	for frame, err := range d.Walk(last.Key, whole) {
		if err != nil {
			t.Fatal(err)
		}
		n -= bytes.Count(frame.Lines, []byte{'\n'})
	}
	if n != 2*4096 || !bytes.Equal(get(5, 7), whole[5:12]) || !bytes.Equal(get(100, 1<<40), whole[100:]) || len(get(1<<40, 5)) != 0 {
		t.Errorf("%d records are in the other blobs", n)
	}
	for _, key := range []string{"c/2026/11/22/0300/000004.log", "c/2026/11/22/0400/000001.log", "d/2026/11/22/0300/000001.log", "_store", "", "c"} {
		if _, err := fresh.Stat(t.Context(), key); !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if err := s.Create(t.Context(), "c/x", nil, storage.Attrs{}); err == nil {
		t.Error("it can be written")
	}
	if err := s.Delete(t.Context(), last); err == nil {
		t.Error("it can be deleted")
	}
}

// A store is a snapshot: a second listing has the same blobs, even if the logs have grown.
func TestSnapshot(t *testing.T) {
	l, at := newLogs(t), time.Date(2026, 11, 22, 3, 10, 0, 0, time.UTC)
	l.add(at, 0)
	s := l.open(t, asblobs.Options{})
	before := read(t, s, blobs.Query{Range: blobs.Always()})
	l.add(at, 0)
	l.write(t)
	if got := read(t, s, blobs.Query{Range: blobs.Always()}); !slices.Equal(got, before) {
		t.Errorf("%v, before %v", got, before)
	}
	if got := read(t, l.open(t, asblobs.Options{}), blobs.Query{Range: blobs.Always()}); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

// Malformed lines are problems, once, and a blob that cannot be read leaves the others.
func TestProblems(t *testing.T) {
	l, at := newLogs(t), time.Date(2026, 11, 22, 3, 10, 0, 0, time.UTC)
	l.add(at, 0)
	l.text[at.Truncate(time.Hour)] += "broken\n"
	l.add(at, 0)
	l.add(at.Add(time.Hour), 0)
	s := l.open(t, asblobs.Options{})
	for range 2 {
		if got := read(t, s, blobs.Query{Range: blobs.Always()}); len(got) != 3 {
			t.Errorf("%v", got)
		}
	}
	problems := s.Problems()
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), "insights-logs-c/resourceId=/x/y=2026/m=11/d=22/h=03/m=00/PT1H.json: line 2: ") {
		t.Errorf("%v", problems)
	}
	if os.Geteuid() == 0 {
		return // nothing is unreadable for root
	}
	if err := os.Chmod(filepath.Join(l.dir, "insights-logs-c/resourceId=/x/y=2026/m=11/d=22/h=03/m=00/PT1H.json"), 0); err != nil {
		t.Fatal(err)
	}
	if got := read(t, l.open(t, asblobs.Options{}), blobs.Query{Range: blobs.Always()}); len(got) != 1 {
		t.Errorf("%v", got)
	}
}
