package imports_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/azurelogs"
	"blobtail/internal/azurelogs/imports"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/mem"
)

// destination takes requests, and counts records by identity.
type destination struct {
	marks   *mem.Store
	records map[string]string // by identity: their lines
	pending int               // accepted and not flushed
	full    int               // how many requests meet a full log
	refuse  error             // of Flush
	most    int               // requests before Accept fails; 0: any number
	flushes int
}

func newDestination() *destination {
	return &destination{marks: mem.New(mem.Options{}), records: make(map[string]string)}
}

func (d *destination) accept(_ context.Context, r *record.Request) (record.Receipt, error) {
	if d.full > 0 {
		d.full--
		return record.Receipt{}, record.ErrFull
	}
	if d.most > 0 {
		if d.most--; d.most == 0 {
			return record.Receipt{}, errKilled
		}
	}
	for i, l := range r.Lines {
		id, line := fmt.Sprintf("%s/%d", r.Origin, r.Index(uint32(i))), string(r.Data[l.Off:l.Off+l.Len])
		if before, ok := d.records[id]; ok && before != line {
			return record.Receipt{}, fmt.Errorf("%s is %s and %s", id, before, line)
		}
		d.records[id] = line
	}
	d.pending += len(r.Lines)
	return record.Receipt{Wait: func(context.Context, bool) error { return nil }}, nil
}

func (d *destination) flush(context.Context) error {
	d.flushes++
	if d.refuse == nil {
		d.pending = 0
	}
	return d.refuse
}

// errKilled ends an import early.
var errKilled = errors.New("killed")

// run imports the service of a directory.
func (d *destination) run(t *testing.T, dir string, since time.Time, again bool) (imports.Result, error) {
	t.Helper()
	return d.runService(t, dir, "c", since, again)
}

func (d *destination) runService(t *testing.T, dir, service string, since time.Time, again bool) (imports.Result, error) {
	t.Helper()
	source := azurelogs.New(azurelogs.Options{Find: func(context.Context) ([]azurelogs.Container, error) { return azurelogs.Dir(dir) }})
	im := imports.New(imports.Options{Source: source, Accept: d.accept, Flush: d.flush, Marks: d.marks})
	if err := im.Service(t.Context(), service, since, again); err != nil {
		return im.Result(), err
	}
	return im.End(t.Context())
}

// write writes n records of an hour, and a tail.
func write(t *testing.T, dir string, hour, n int, tail string) {
	t.Helper()
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `{"time":"2026-11-22T%02d:00:01Z","n":%d}`+"\n", hour, i)
	}
	name := filepath.Join(dir, "insights-logs-c/resourceId=/x", fmt.Sprintf("y=2026/m=11/d=22/h=%02d/m=00/PT1H.json", hour))
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text.String()+tail), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// A repeated import skips whole hours, reads hours that have grown, and gives each record one
// identity.
func TestRepeated(t *testing.T) {
	dir, d := t.TempDir(), newDestination()
	for hour := range 3 {
		write(t, dir, hour, 5000, "")
	}
	step := func(hours, skipped int, records int64, all int) {
		t.Helper()
		r, err := d.run(t, dir, time.Time{}, false)
		if err != nil || r.Hours != hours || r.Skipped != skipped || r.Records != records || len(d.records) != all || d.pending != 0 {
			t.Fatalf("%+v, %v; %d records in all, %d pending", r, err, len(d.records), d.pending)
		}
	}
	step(3, 0, 15_000, 15_000)
	step(0, 3, 0, 15_000)
	write(t, dir, 2, 6000, `{"time":`) // still being written
	step(1, 2, 6000, 16_000)
	step(1, 2, 6000, 16_000) // its hour is over, so a part is missing
	write(t, dir, 2, 6001, "")
	write(t, dir, 3, 10, "")
	step(2, 2, 6011, 16_011)
	if r, err := d.run(t, dir, time.Date(2026, 11, 22, 2, 59, 0, 0, time.UTC), true); err != nil || r.Hours != 2 || r.Skipped != 0 || len(d.records) != 16_011 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A first part without logs is a problem of each import, and no hour.
func TestOddPart(t *testing.T) {
	dir, d := t.TempDir(), newDestination()
	write(t, dir, 2, 10, "")
	odd := filepath.Join(dir, "insights-logs-c/backup")
	if err := errors.Join(os.Mkdir(odd, 0o755), os.WriteFile(filepath.Join(odd, "x"), []byte("x"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		r, err := d.run(t, dir, time.Time{}, false)
		told := r.Problems.Len() == 1 && errors.Is(r.Problems.All()[0], azurelogs.ErrOdd)
		if err != nil || r.Hours != 1-i || r.Skipped != i || len(d.records) != 10 || !told {
			t.Errorf("%+v, %v; %d records", r, err, len(d.records))
		}
	}
}

// A last line without its newline is imported if it is a whole object. When the rest of the blob
// comes, with any white space at the end of that line, it is the same record, and a line that the
// blob has already stays left out.
func TestGrowingLastLine(t *testing.T) {
	hour := time.Now().UTC().Truncate(time.Hour)
	one := fmt.Sprintf(`{"time":"%s","correlationId":"1"}`, hour.Format(time.RFC3339))
	two := strings.Replace(one, `"1"`, `"2"`, 1)
	for _, end := range []string{"\n", "\r\n", " \n", "\t \r\n"} {
		dir, d := t.TempDir(), newDestination()
		name := filepath.Join(dir, "insights-logs-c/resourceId=/x", hour.Format("y=2006/m=01/d=02/h=15/m=00"), "PT1H.json")
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		text := one + end + two + end + one + end // the third is a copy
		for n := 1; n <= len(text); n++ {
			want, whole := 0, len(one)+len(end)+len(two)
			switch {
			case n >= whole:
				want = 2
			case n >= len(one):
				want = 1
			}
			if err := os.WriteFile(name, []byte(text[:n]), 0o644); err != nil {
				t.Fatal(err)
			}
			if r, err := d.run(t, dir, time.Time{}, false); err != nil || r.Problems.Len() > 0 || len(d.records) != want {
				t.Fatalf("%q: %d records, want %d; %v, %v", text[:n], len(d.records), want, err, r.Problems.All())
			}
		}
	}
}

// An hour with malformed lines is read each time, so that each import reports them.
func TestMalformed(t *testing.T) {
	dir, d := t.TempDir(), newDestination()
	write(t, dir, 0, 10, "broken\n")
	for range 2 {
		r, err := d.run(t, dir, time.Time{}, false)
		if err != nil || r.Problems.Len() != 1 || !strings.Contains(r.Problems.All()[0].Error(), "line 11") || r.Hours != 1 || len(d.records) != 10 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
}

// No hour is marked before its records are in blobs. A full log is waited for.
func TestOrder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, 0, 10, "")
	synctest.Test(t, func(t *testing.T) {
		d := newDestination()
		d.full, d.refuse = 7, errors.New("the store is away")
		if _, err := d.run(t, dir, time.Time{}, false); !errors.Is(err, d.refuse) {
			t.Fatal(err)
		}
		for o, err := range d.marks.List(t.Context(), "", "") {
			t.Errorf("marked before it is stored: %s, %v", o.Key, err)
		}
		d.refuse = nil
		if r, err := d.run(t, dir, time.Time{}, false); err != nil || r.Hours != 1 || d.full != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		d.full = 1 << 30
		source := azurelogs.New(azurelogs.Options{Find: func(context.Context) ([]azurelogs.Container, error) { return azurelogs.Dir(dir) }})
		im := imports.New(imports.Options{Source: source, Accept: d.accept, Flush: d.flush, Marks: d.marks})
		if err := im.Service(ctx, "c", time.Time{}, true); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a full log: %v", err)
		}
	})
}

// Storage Analytics logs a request up to three times in the blobs of an hour. The blobs come
// in any order and grow, and imports are cut off. Then each request is there once.
func TestCopiesInGrowingBlobs(t *testing.T) {
	const blobs, requests = 4, 60
	for seed := range uint64(testkit.Share(150, 15)) {
		r := rand.New(rand.NewPCG(seed, 1))
		dir, d := t.TempDir(), newDestination()
		var whole [blobs]string
		for range 2 * requests {
			id := 1 + r.IntN(requests)
			f := make([]string, 30)
			f[0], f[1], f[9], f[13], f[14] = "1.0", fmt.Sprintf("2026-11-22T03:00:%02dZ", id%60), "acct", fmt.Sprint("id", id), "0"
			f[5] = fmt.Sprint(r.IntN(1000)) // the copies of a request need not be equal
			f[29] = `"client"`
			at := r.IntN(blobs)
			whole[at] += strings.Join(f, ";") + "\n"
		}
		var lengths [blobs]int
		visible := func() map[string]bool {
			ids := make(map[string]bool)
			for i, text := range whole {
				for line := range strings.Lines(text[:lengths[i]]) {
					if f := strings.Split(line, ";"); len(f) == 30 && (strings.HasSuffix(line, "\n") || strings.HasSuffix(f[29], `t"`)) {
						ids[f[13]] = true
					}
				}
			}
			return ids
		}
		for step := range 6 {
			for i := range whole {
				if step == 5 {
					lengths[i] = len(whole[i])
				} else if r.IntN(2) == 0 {
					lengths[i] += r.IntN(len(whole[i]) - lengths[i] + 1)
				}
				for strings.HasSuffix(whole[i][:lengths[i]], ";") {
					lengths[i]++ // behind the last one the line would pass for whole
				}
				name := filepath.Join(dir, "$logs/blob/2026/11/22/0300", fmt.Sprintf("%06d.log", i))
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(whole[i][:lengths[i]]), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			if len(visible()) == 0 {
				continue // not even the account is known
			}
			if d.most = r.IntN(4); d.most > 0 {
				if _, err := d.runService(t, dir, "acct.blob", time.Time{}, false); err != nil && !errors.Is(err, errKilled) {
					t.Fatalf("seed %d: %v", seed, err)
				}
				d.most = 0
			}
			result, err := d.runService(t, dir, "acct.blob", time.Time{}, false)
			if err != nil || result.Problems.Len() > 0 {
				t.Fatalf("seed %d, step %d: %v %v", seed, step, err, result.Problems.All())
			}
			count := make(map[string]int)
			for _, line := range d.records {
				v, _ := record.Lookup([]byte(line), "request-id-header")
				count[strings.Trim(string(v), `"`)]++
			}
			want := visible()
			for id, n := range count {
				if n != 1 || !want[id] {
					t.Fatalf("seed %d, step %d: %s is there %d times", seed, step, id, n)
				}
			}
			if len(count) != len(want) {
				t.Fatalf("seed %d, step %d: %d of %d requests", seed, step, len(count), len(want))
			}
		}
	}
}

// Azure writes the blob of an hour anew during the import. The hour is there once, as it is in the
// end.
func TestWrittenAnew(t *testing.T) {
	dir, d := t.TempDir(), newDestination()
	name := filepath.Join(dir, "insights-logs-c/resourceId=/x/y=2026/m=11/d=22/h=03/m=00/PT1H.json")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	written := 0
	grow := func(n int) {
		t.Helper()
		var parts []string
		for i := range written + n {
			parts = append(parts, fmt.Sprintf(`{"time":"2026-11-22T03:00:01Z","n":%d}`, i))
		}
		written += n
		if err := os.WriteFile(name, []byte(`{"records":[`+strings.Join(parts, ",")+`]}`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	grow(100)
	source := azurelogs.New(azurelogs.Options{Find: func(context.Context) ([]azurelogs.Container, error) {
		all, err := azurelogs.Dir(dir)
		for i := range all {
			all[i].Objects = growing{all[i].Objects, func() { grow(3000) }}
		}
		return all, err
	}})
	for last := false; !last; {
		last = written >= 30_000
		accept := func(ctx context.Context, r *record.Request) (record.Receipt, error) {
			if written < 30_000 {
				grow(3000) // while it is read
			}
			return d.accept(ctx, r)
		}
		im := imports.New(imports.Options{Source: source, Accept: accept, Flush: d.flush, Marks: d.marks})
		if err := im.Service(t.Context(), "c", time.Time{}, false); err != nil {
			t.Fatal(err)
		}
		r, err := im.End(t.Context())
		if err != nil || r.Problems.Len() > 0 || last && len(d.records) != written {
			t.Fatalf("%d records of %d, %v, %v", len(d.records), written, err, r.Problems.All())
		}
	}
}

// growing are objects that grow behind each listing.
type growing struct {
	azurelogs.Objects
	grow func()
}

func (g growing) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		for b, err := range g.Objects.List(ctx, prefix, after) {
			if !yield(b, err) {
				break
			}
		}
		g.grow()
	}
}
