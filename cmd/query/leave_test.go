package main

import (
	"context"
	"io"
	"testing"
	"time"

	"blobtail/internal/cli"
	"blobtail/storage/dir"
)

// An interrupted run ends even if nobody reads its output.
func TestInterruptedWhileBlocked(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/data"
	store, err := dir.Open(path, dir.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := addBlob(store, []byte(`{"ts":1795183200,"service":"web","msg":"x"}`), 1); err != nil {
		t.Fatal(err)
	}
	nobody, stdout := io.Pipe()
	defer nobody.Close()
	ctx, cancel := context.WithCancel(t.Context())
	exited := make(chan int, 1)
	go run(ctx, environment{
		args: []string{"web", "--store", "dir:" + path}, stdout: stdout, stderr: io.Discard,
		isFile: func(string) bool { return false }, getenv: func(string) string { return "" },
		now: time.Now(), local: time.UTC, exit: func(code int) { exited <- code },
	})
	if _, err := nobody.Read(make([]byte, 1)); err != nil { // the rest stays in the pipe
		t.Fatal(err)
	}
	cancel()
	select {
	case code := <-exited:
		if code != cli.Interrupted {
			t.Errorf("exit %d", code)
		}
	case <-time.After(20 * time.Second):
		t.Error("it goes on")
	}
}
