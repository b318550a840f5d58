package integration_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

// The log directory is replaced by a copy of it under a running ingester. No later
// start would find the ingester's new writes, so it accepts no more and ends.
func TestCompleteLogReplaced(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	p := &promises{}
	s := newStation(t, at, p, "a").start()
	s.take()
	s.rest()
	s.take()
	said := len(s.Log())
	if err := os.Rename(s.wal, s.wal+".old"); err != nil {
		t.Fatal(err)
	}
	cloneDir(t, s.wal+".old", s.wal)
	begun := time.Now()
	testkit.Until(t, "it ends", func() bool {
		if code, _ := s.offer(); code == 200 {
			t.Logf("a record was acknowledged %v after the log was replaced", time.Since(begun))
		}
		return s.Gone()
	})
	read := newAudit(t, at, p)
	switch {
	case s.Cmd.ProcessState.ExitCode() != 1:
		t.Errorf("exit code %d, want 1", s.Cmd.ProcessState.ExitCode())
	case !strings.Contains(s.Log()[said:], s.wal):
		t.Errorf("its log does not say that %s was replaced: %q", s.wal, s.Log()[said:])
	}
	s.kill()
	read.complete("ended")
	was := s.id()
	s.start()
	// It runs on a copy: only an operator knows whether the first one also runs.
	read.names("started on the copy", was)
	if !s.flushes() {
		t.Error("it does not flush")
	}
	age(t, at, was, time.Hour)
	read.names("an hour later", was)
	forgets(t, at, was, was)
	read.whole("the first one is given up")
}

// A log is damaged while its ingester is dead. The damage is counted, and reads
// report it until an operator gives up the lost records.
func TestCompleteLogDamaged(t *testing.T) {
	t.Parallel()
	beside(t, map[string]func(t *testing.T){
		"bit of the second record": func(t *testing.T) { testLogDamaged(t, 1) },
		"bit of the last record":   func(t *testing.T) { testLogDamaged(t, 2) },
		"segments are removed":     func(t *testing.T) { testLogDamaged(t, -1) },
	})
}

// testLogDamaged flips a bit of one of three records; -1: it removes the segments.
func testLogDamaged(t *testing.T, which int) {
	at, _ := dirStore(t)
	p := &promises{}
	s := newStation(t, at, p, "a").start()
	s.take()
	s.rest()
	ids := []string{s.take(), s.take(), s.take()}
	id := s.id()
	s.kill()
	lost := ids
	if which >= 0 {
		lost = ids[which : which+1]
	}
	spoil(t, s.wal, which >= 0, lost[0])
	s.start()
	read := newAudit(t, at, p)
	testkit.Until(t, "the log is replayed", func() bool { // only then it answers readers
		_, _, code := logquery(t, at, "web")
		return code != 3 || s.gauge("blobtail_buffer_log_damaged_total") > 0
	})
	for _, name := range []string{"blobtail_buffer_log_damaged_total", "blobtail_buffer_records_lost_total"} {
		if n := s.gauge(name); n < 1 {
			t.Errorf("%s is %v, want 1 or more", name, n)
		}
	}
	read.warns("started")
	if !s.flushes() {
		t.Error("it does not flush")
	}
	read.warns("flushed")
	if code, _ := s.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	read.names("stopped", id)
	s.start()
	read.names("started once more", id)
	forgets(t, at, id, "--lost", id)
	p.giveUp(lost...)
	read.whole("given up")
	s.take()
	if code, _ := s.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	read.whole("given up, and stopped")
}

// spoil flips a bit in the segment that holds a record, or removes all segments.
func spoil(t testing.TB, wal string, flip bool, id string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(wal, "*.seg"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("segments %q, %v", segments, err)
	}
	done := false
	for _, path := range segments {
		if !flip {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			done = true
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		i := bytes.Index(data, []byte(id+" is what happened"))
		if i < 0 {
			continue
		}
		data[i] ^= 0x10
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		done = true
	}
	if !done {
		t.Fatalf("no segment of %q holds record %s", segments, id)
	}
}

// Two ingesters start at the same time on copies of one log.
func TestCompleteLogCloned(t *testing.T) {
	t.Parallel()
	beside(t, map[string]func(t *testing.T){
		"stopped": func(t *testing.T) {
			testLogCloned(t, func(s *station) {
				if code, _ := s.stop(); code != 0 {
					t.Errorf("exit code %d", code)
				}
			})
		},
		"killed": func(t *testing.T) { testLogCloned(t, func(s *station) { s.kill() }) },
	})
}

func testLogCloned(t *testing.T, end func(*station)) {
	at, _ := dirStore(t)
	p := &promises{}
	a := newStation(t, at, p, "a").start()
	a.take()
	a.rest()
	end(a)
	b := newStation(t, at, p, "b")
	cloneDir(t, a.wal, b.wal)
	a.begin()
	b.begin()
	began := time.Now()
	a.awaitAdmin()
	b.awaitAdmin()
	read := newAudit(t, at, p).only(asRead, asCount, asTail)
	taken, pause := 0, 1500*time.Millisecond
	if _, long := torture(t); long {
		pause = 500 * time.Millisecond
	}
	for time.Since(began) < 15*time.Second || taken == 0 && time.Since(began) < testkit.Patience {
		taken += a.offers(1) + b.offers(1)
		read.complete("both run")
		if !a.Gone() {
			read.by("--live-url", a.base).complete("both run")
		}
		time.Sleep(pause)
	}
	if taken == 0 {
		t.Error("neither of both takes a record")
	}
	a.kill()
	read.complete("one is killed")
	b.kill()
	read.complete("both are killed")
}
