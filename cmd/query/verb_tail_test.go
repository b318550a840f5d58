package main

import (
	"bufio"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/dev/testkit"
	"blobtail/storage/dir"
)

// follow runs a follow into a pipe. It calls stop after the first line.
func follow(t *testing.T, path string, stop func(cancel context.CancelFunc, reader *os.File), args ...string) (code int, first, stderr string) {
	t.Helper()
	store, err := dir.Open(path, dir.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := addBlob(store, []byte(`{"ts":1795183200,"service":"web","level":"error","msg":"x"}`), 1); err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	var errs strings.Builder
	done := make(chan int)
	go func() {
		done <- run(ctx, environment{
			args: append([]string{"--store", "dir:" + path, "tail", "-f", "web"}, args...), stdout: writer, stderr: &errs,
			isFile: func(string) bool { return false }, getenv: func(string) string { return "" }, now: time.Now(), local: time.UTC,
		})
	}()
	first, err = bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	stop(cancel, reader)
	return <-done, first, errs.String()
}

// If the reader of a follow goes away, the follow ends silently.
func TestFollowReaderGone(t *testing.T) {
	code, first, errs := follow(t, t.TempDir()+"/data", func(_ context.CancelFunc, reader *os.File) { reader.Close() }, "-q")
	if code != cli.OK || !strings.Contains(first, `"msg":"x"`) || errs != "" {
		t.Errorf("exit %d, printed %q, stderr %s", code, first, errs)
	}
}

// An interrupted follow prints the command to go on, with all its flags.
func TestFollowInterrupted(t *testing.T) {
	path := t.TempDir() + "/data"
	code, first, errs := follow(t, path, func(cancel context.CancelFunc, _ *os.File) { cancel() },
		"--level", "warn+", "-F", "x", "-g", "^x|a b$", "-i", "-o", "raw", "--live", "off")
	if code != cli.Interrupted || first != "x\n" {
		t.Errorf("exit %d, printed %q", code, first)
	}
	_, hint, _ := strings.Cut(errs, "to go on from here: ")
	if !strings.HasPrefix(hint, "logquery tail web -l warn+ -F x -g '^x|a b$' -i -o raw --live off --store dir:"+path+" -f --after A") {
		t.Errorf("stderr %s", errs)
	}
}
