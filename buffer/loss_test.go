package buffer_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"blobtail/buffer"
	"blobtail/internal/count"
	"blobtail/internal/dev/testkit"
)

// lossCase is a log of two services that is damaged between two starts. The store refuses
// db.
type lossCase struct {
	name    string
	damage  func(t *testing.T, dir string)
	lost    int  // records
	unknown bool // the start of the loss is unknown
}

var lossCases = []lossCase{
	{"nothing", func(*testing.T, string) {}, 0, false},
	{"a request that is in a blob", func(t *testing.T, dir string) { spoil(t, dir, "stored-one") }, 0, false},
	{"a batch that is not", func(t *testing.T, dir string) { spoil(t, dir, "cut-one") }, 3, false},
	{"two requests of a batch", func(t *testing.T, dir string) {
		spoil(t, dir, "cut-one")
		spoil(t, dir, "cut-two")
	}, 4, false},
	{"a request that is in no batch, the last of the log", func(t *testing.T, dir string) { spoil(t, dir, "open-one") }, 1, false},
	{"the newest segment is removed", func(t *testing.T, dir string) {
		files, err := filepath.Glob(filepath.Join(dir, "*.seg"))
		if err == nil {
			err = os.Remove(files[len(files)-1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}, 1, true},
	{"of a segment without records, a copy of the header", func(t *testing.T, dir string) {
		files, err := filepath.Glob(filepath.Join(dir, "*.seg"))
		if err != nil {
			t.Fatal(err)
		}
		damage(t, files[0], 20)
	}, 0, false},
	{"the header of the newest segment", func(t *testing.T, dir string) {
		files, err := filepath.Glob(filepath.Join(dir, "*.seg"))
		if err != nil {
			t.Fatal(err)
		}
		damage(t, files[len(files)-1], 20)
		damage(t, files[len(files)-1], 84)
	}, 1, true},
}

// A start counts the loss by damage. It does not count records that are in blobs or still
// come out of the log. It counts all other known records, and at least one for each span.
// The next start counts them again while the segment exists.
func TestLossFoundByStart(t *testing.T) {
	before := time.Now()
	var whole string
	var sink *memSink
	// On a slow machine a try to store db may begin a segment behind the last record.
	testkit.Until(t, "the newest segment has the last record", func() bool {
		whole, sink = lossyLog(t)
		return newestHolds(t, whole, "open-one")
	})
	for _, c := range lossCases {
		t.Run(c.name, func(t *testing.T) {
			dir := copyDir(t, whole)
			c.damage(t, dir)
			c.check(t, dir, sink, before)
			if left, err := filepath.Glob(filepath.Join(dir, "00000001.seg")); err != nil || len(left) == 0 {
				return // nothing held the damaged segment any more
			}
			c.check(t, dir, sink, before)
		})
	}
}

// lossyLog makes the log that the cases damage, and its sink.
func lossyLog(t *testing.T) (dir string, sink *memSink) {
	t.Helper()
	dir, sink = t.TempDir(), &memSink{}
	sink.setRefuse(func(service string) error {
		if service == "db" {
			return errors.New("not now")
		}
		return nil
	})
	p := start(t, dir, sink, buffer.Options{}, true)
	p.accept(request(1, line{"web", at(1), "stored-one"}))
	p.accept(request(2, line{"db", at(1), "cut-one"}, line{"db", at(2), "and its"}, line{"db", at(3), "siblings"}))
	p.accept(request(3, line{"db", at(4), "cut-two"}))
	p.accept(request(4, line{"db", at(5), "whole"}))
	p.flushAllBut(1)
	p.accept(request(5, line{"db", at(6), "open-one"}))
	if _, ok := p.buf.Lost(); ok {
		t.Error("lost before anything was damaged")
	}
	p.stop()
	return dir, sink
}

// newestHolds reports whether the newest segment of a log has a text.
func newestHolds(t *testing.T, dir, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	body, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(body, []byte(text))
}

func (c *lossCase) check(t *testing.T, dir string, sink *memSink, before time.Time) {
	t.Helper()
	reg := new(count.Registry)
	p := start(t, dir, sink, buffer.Options{Metrics: reg}, true)
	testkit.Until(t, "the log is replayed", p.buf.Replayed)
	p.flushFor(200 * time.Millisecond)
	p.stop()
	loss, ok := p.buf.Lost()
	if ok != (c.lost > 0) || loss.Records != c.lost || counted(t, reg, "blobtail_buffer_records_lost_total") != c.lost {
		t.Fatalf("lost %+v, counted %v, want %d", loss, counted(t, reg, "blobtail_buffer_records_lost_total"), c.lost)
	}
	if !ok {
		return
	}
	if loss.Since.IsZero() != c.unknown || !c.unknown && (loss.Since.Before(before) || loss.Since.After(loss.Until)) || time.Since(loss.Until) > time.Since(before) {
		t.Errorf("since %v, until %v, began at %v", loss.Since, loss.Until, before)
	}
}

// A record that rots in a running process counts as lost since its batch began.
func TestLossWhileRunning(t *testing.T) {
	dir, sink := t.TempDir(), &memSink{}
	sink.setRefuse(refuseAll)
	p := start(t, dir, sink, buffer.Options{}, true)
	before := time.Now()
	p.accept(request(1, line{"web", at(1), "rotten"}, line{"web", at(2), "too"}))
	p.accept(request(2, line{"web", at(3), "fine"}))
	after := time.Now()
	p.flushFor(100 * time.Millisecond)
	spoil(t, dir, "rotten")
	sink.setRefuse(nil)
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	if left, err := p.buf.Flush(ctx); err == nil || left.Aside != 1 {
		t.Fatalf("flush: %v, left %+v", err, left)
	}
	loss, ok := p.buf.Lost()
	if !ok || loss.Records != 2 || loss.Since.Before(before) || loss.Since.After(after) || loss.Until.Before(after) {
		t.Errorf("lost %+v, %v; accepted from %v to %v", loss, ok, before, after)
	}
}
