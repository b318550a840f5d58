package runlog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"blobtail/buffer/runlog"
	"blobtail/buffer/wal"
	"blobtail/record"
)

// request has one line for each service, in the order given, with one origin.
func request(origin byte, services ...string) *record.Request {
	r := &record.Request{Origin: record.Origin{15: origin}, Services: services}
	for i, s := range services {
		line := fmt.Sprintf(`{"service":%q,"msg":"%d"}`+"\n", s, origin)
		r.Lines = append(r.Lines, record.Line{Time: int64(origin) * 1e9, Off: uint32(len(r.Data)), Len: uint32(len(line)), Service: uint32(i)})
		r.Data = append(r.Data, line...)
	}
	return r
}

// filled is a log of ten requests, each with runs of two services.
func filled(t *testing.T, dir string) (log *wal.Log, runs map[string]*runlog.Extents) {
	t.Helper()
	log, err := wal.Open(dir, wal.Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	e := runlog.NewEncoder(time.Hour, nil)
	runs = map[string]*runlog.Extents{"a": {}, "b": {}}
	for i := range 10 {
		e.Encode(request(byte(i+1), "a", "b"), time.Now())
		pos, err := log.Append(runlog.TypeRuns, e.Payload)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range e.Runs {
			runs[w.Service].Add(runlog.Extent{Pos: pos + wal.Pos(w.Off), Len: uint32(w.Len)})
		}
	}
	if err := log.Check(); err != nil { // brings the records into their file
		t.Fatal(err)
	}
	return log, runs
}

// flip damages a byte of the log's only segment.
func flip(t *testing.T, dir string, off uint32) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	f, err := os.OpenFile(names[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, int64(off)); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b, int64(off)); err != nil {
		t.Fatal(err)
	}
}

// A strict reading ends at the first run that cannot be read. A lenient one reports it
// and reads all others, whether one run is damaged, or a whole list is elsewhere.
func TestStrictAndLenient(t *testing.T) {
	dir := t.TempDir()
	log, runs := filled(t, dir)
	bin := runlog.Bin{Service: "a"}
	var bad runlog.Extent
	n := 0
	for e := range runs["a"].All() {
		if n++; n == 4 {
			bad = e
		}
	}
	flip(t, dir, bad.Pos.Offset()+bad.Len-3)
	r := runlog.NewReader(log)
	origins := 0
	count := func(run *runlog.Run) error {
		if run.Service != "a" || run.Records != 1 || run.Origin[15] == 4 {
			t.Errorf("read %+v", run)
		}
		origins += int(run.Origin[15])
		return nil
	}
	if err := r.Read(t.Context(), runs["a"], bin, count, nil); !runlog.Rotten(err) || origins != 1+2+3 {
		t.Errorf("strict: %v after origins of %d", err, origins)
	}
	origins = 0
	var lost []runlog.Extent
	lenient := func(e runlog.Extent, err error) error {
		if !runlog.Rotten(err) {
			t.Errorf("at %d: %v", e.Pos, err)
		}
		lost = append(lost, e)
		return nil
	}
	if err := r.Read(t.Context(), runs["a"], bin, count, lenient); err != nil || origins != 55-4 || len(lost) != 1 || lost[0] != bad {
		t.Errorf("lenient: %v, origins of %d, lost %v", err, origins, lost)
	}

	// Runs of another bin, of a missing segment, and behind the end.
	lost = nil
	wrong := *runs["b"]
	wrong.Add(runlog.Extent{Pos: wal.Pos(log.Active())<<32 | wal.Pos(log.Size()) - 4, Len: 100})
	wrong.Add(runlog.Extent{Pos: wal.Pos(log.Active()+5) << 32, Len: 100})
	if err := r.Read(t.Context(), &wrong, bin, count, lenient); err != nil || len(lost) != 12 {
		t.Errorf("elsewhere: %v, lost %d", err, len(lost))
	}
	mine := errors.New("mine")
	stop := func(runlog.Extent, error) error { return mine }
	if err := r.Read(t.Context(), &wrong, bin, count, stop); !errors.Is(err, mine) {
		t.Errorf("an error of bad is lost: %v", err)
	}
}

// If a batch has a request twice, it keeps the lines once, in order. A batch that lacks a
// run does not load.
func TestLoader(t *testing.T) {
	log, runs := filled(t, t.TempDir())
	e := runlog.NewEncoder(time.Hour, nil)
	e.Encode(request(7, "a"), time.Now())
	pos, err := log.Append(runlog.TypeRuns, e.Payload)
	if err != nil {
		t.Fatal(err)
	}
	all := runs["a"]
	all.Add(runlog.Extent{Pos: pos + wal.Pos(e.Runs[0].Off), Len: uint32(e.Runs[0].Len)})
	rec := &runlog.BatchRecord{Bin: runlog.Bin{Service: "a"}, Records: 11, Runs: *all}
	for range 11 {
		rec.Bytes += e.Runs[0].Bytes
	}
	rec.Bytes++ // the line with the text 10 is one byte longer
	l := runlog.NewLoader(log)
	if err := l.Load(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	want := byte(1)
	if err := l.Each(func(line []byte, at int64, origin record.Origin, _ uint32) error {
		if origin[15] != want || at != int64(want)*1e9 {
			t.Errorf("line %s at %d, want origin %d", line, at, want)
		}
		want++
		return nil
	}); err != nil || want != 11 {
		t.Errorf("%v before origin %d", err, want)
	}
	rec.Records++
	var rot *runlog.RotError
	if err := l.Load(t.Context(), rec); !errors.As(err, &rot) {
		t.Errorf("a batch that lacks a record loads: %v", err)
	}
}
