package imports_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/azurelogs"
	"blobtail/internal/azurelogs/imports"
	"blobtail/record"
	"blobtail/storage/mem"
)

// destination takes requests, and counts records by identity.
type destination struct {
	marks   *mem.Store
	records map[string]string // by identity: their lines
	pending int               // accepted and not flushed
	full    int               // how many requests meet a full log
	refuse  error             // of Flush
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

// run imports the service of a directory.
func (d *destination) run(t *testing.T, dir string, since time.Time, again bool) (imports.Result, error) {
	t.Helper()
	source := azurelogs.New(azurelogs.Options{Find: func(context.Context) ([]azurelogs.Container, error) { return azurelogs.Dir(dir) }})
	im := imports.New(imports.Options{Source: source, Accept: d.accept, Flush: d.flush, Marks: d.marks})
	if err := im.Service(t.Context(), "c", since, again); err != nil {
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

// An import that is repeated skips what is whole, reads what has grown, and gives each
// record one identity.
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
	step(0, 3, 0, 16_000)
	write(t, dir, 2, 6001, "")
	write(t, dir, 3, 10, "")
	step(2, 2, 6011, 16_011)
	if r, err := d.run(t, dir, time.Date(2026, 11, 22, 2, 59, 0, 0, time.UTC), true); err != nil || r.Hours != 2 || r.Skipped != 0 || len(d.records) != 16_011 {
		t.Errorf("%+v, %v", r, err)
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
