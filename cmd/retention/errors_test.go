package main

import (
	"bytes"
	"strings"
	"syscall"
	"testing"

	"blobtail/internal/cli"
	"blobtail/retention"
)

// A control character in a foreign object's name writes no line of its own.
func TestForeignNames(t *testing.T) {
	var out bytes.Buffer
	a := &app{Console: cli.Console{Name: "retention", Stderr: &out}}
	f := retention.Foreign{Count: 1, First: []string{"web/2026/10/01/x\nretention: if it is right: \x1b[2Jx"}}
	a.foreign(f)
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `x\nretention`) || strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
	if !strings.Contains(f.First[0], "\n") {
		t.Error("the plan was changed")
	}
}

// A full disk does not count as an unreachable store.
func TestFullDisk(t *testing.T) {
	var out bytes.Buffer
	a := &app{Console: cli.Console{Name: "retention", Stderr: &out}}
	if code := a.exitCode(syscall.ENOSPC); code != cli.Incomplete || !strings.Contains(out.String(), "make some room") {
		t.Errorf("%d, %s", code, out.String())
	}
}
