// Package testkit is shared by the tests of several packages. It waits for events, finds
// goroutines that a package leaves behind, says how many cases a test has, runs simulated
// worlds by their seeds, and hunts mutants. It starts processes that end with the tests, and has
// the command of test scripts that checks an exit code.
package testkit

import (
	"errors"
	"fmt"
	"math"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Patience is how long a test waits for an event before it declares the program
// stuck. No claim about speed rests on it: a busy machine needs a small part of it.
const Patience = 4 * time.Minute

// Until polls until happened returns true. A program that takes longer than [Patience]
// fails the test, which names the event.
func Until(t testing.TB, event string, happened func() bool) {
	t.Helper()
	if err := Poll(event, func() (bool, error) { return happened(), nil }); err != nil {
		t.Fatal(err)
	}
}

// Poll is [Until] for helpers that return an error. It ends with the first error of happened.
func Poll(event string, happened func() (bool, error)) error {
	pause := time.Millisecond
	for begun := time.Now(); ; time.Sleep(pause) {
		switch ok, err := happened(); {
		case ok || err != nil:
			return err
		case time.Since(begun) > Patience:
			return fmt.Errorf("%v, and not yet: %s", Patience, event)
		}
		pause = min(2*pause, 50*time.Millisecond)
	}
}

// WithinDay waits while a day of UTC is about to end, or has just begun. A test calls it first whose
// right values are those of one day, though processes with a clock of their own answer it.
func WithinDay(t testing.TB) {
	t.Helper()
	const before, after = 4 * time.Minute, 2 * time.Minute
	midnight := time.Now().Add(before).UTC().Truncate(24 * time.Hour)
	if wait := time.Until(midnight.Add(after)); wait > 0 {
		t.Logf("waits %v until the day %s has begun", wait, midnight.Format(time.DateOnly))
		time.Sleep(wait)
	}
}

// Await receives from a channel. A sender that takes longer than [Patience] fails the
// test, which names the event.
func Await[T any](t testing.TB, event string, from <-chan T) (v T) {
	t.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case v = <-from:
	case <-timer.C:
		t.Fatalf("%v, and not yet: %s", Patience, event)
	}
	return v
}

// CPU is the processor time that this process has used so far. Unlike the time of day
// it does not depend on the other processes of the machine.
func CPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it cannot fail for the process itself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// LeastCPU measures two pieces of work three times, and then again until the least times are fine,
// twenty times at most. Page faults and collections of garbage make one run take several times as
// long as another, and no run less than its work.
func LeastCPU(small, large func(), fine func(short, long time.Duration) bool) (short, long time.Duration) {
	short, long = math.MaxInt64, math.MaxInt64
	for n := 0; n < 3 || n < 20 && !fine(short, long); n++ {
		begun := CPU()
		small()
		between := CPU()
		large()
		short, long = min(short, between-begun), min(long, CPU()-between)
	}
	return short, long
}

// EndsAtOnce is a variable for the commands of scripts. A process with the race detector sleeps
// a second when it ends, so that other threads can report, and scripts start hundreds. `make
// test` sets the same for the tests.
const EndsAtOnce = "GORACE=atexit_sleep_ms=0"

// Exits is the command "exit CODE COMMAND..." of a test script. It runs a command that
// must exit with the code.
func Exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit CODE COMMAND...")
	}
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}
