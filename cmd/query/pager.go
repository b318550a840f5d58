package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// pages reports whether output for a terminal goes through a pager. A follower's does not.
func (a *app) pages() bool {
	if !a.env.outTTY || a.flags.NoPager {
		return false
	}
	follow := slices.ContainsFunc(a.verb.Flags, func(f *kong.Flag) bool { return f.Name == "follow" && f.Target.Bool() })
	return !follow && !slices.Contains([]string{"completion", "complete", "version", "context"}, a.verb.Name)
}

// page sends the output to a pager, if there is one. It keeps messages back until left is
// called, which waits until the user leaves the pager. It is called before the first write.
func (a *app) page() (left func()) {
	in, wait := a.startPager()
	if in == nil {
		return func() {}
	}
	a.out.w.Reset(in)
	var kept bytes.Buffer
	stderr := a.env.stderr
	a.env.stderr, a.Stderr = &kept, &kept
	return func() {
		wait()
		_, _ = stderr.Write(kept.Bytes())
	}
}

// pagerWords is the command line of the pager, or nothing for none: PAGER is empty or cat, or
// it is not set and the terminal is a dumb one, where less waits for a key.
func (a *app) pagerWords() []string {
	pager := a.env.getenv("PAGER")
	words := strings.Fields(pager)
	switch {
	case pager == "" && (a.env.emptyPager || a.env.getenv("TERM") == "dumb"):
		return nil
	case pager == "":
		return []string{"less"}
	case len(words) > 0 && words[0] == "cat":
		return nil
	}
	return words
}

// startPager starts PAGER, or less, and returns its input, and a function that waits until
// the user leaves it. It returns nil if there is none. As git does, it tells less to end at
// once if the output fits the screen, and to show colours.
func (a *app) startPager() (in io.WriteCloser, wait func()) {
	screen, ok := a.env.stdout.(*os.File)
	if !ok {
		return nil, nil
	}
	words := a.pagerWords()
	if len(words) == 0 {
		return nil, nil
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = screen, os.Stderr
	cmd.Env = os.Environ()
	if a.env.getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX")
	}
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return nil, nil
	}
	return in, func() {
		in.Close()
		_ = cmd.Wait() // its exit code is the user's affair
	}
}
