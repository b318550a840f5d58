package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"blobtail/internal/dev/testkit"
)

// sentText are lines without a time; no two are equal.
func sentText(from, to int) []byte {
	var b bytes.Buffer
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "line %d of %s\n", i, strings.Repeat("x", i%97))
	}
	return b.Bytes()
}

// sending starts ingest send with the places of a test.
func sending(t testing.TB, places string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(filepath.Join(shared.bin, "ingest"), append([]string{"send", "--places", places}, args...)...)
	var said bytes.Buffer
	cmd.Env, cmd.Stderr, cmd.Stdout = testkit.Environ(), &said, &said
	if err := shared.start(cmd); err != nil {
		t.Fatal(err)
	}
	return cmd, &said
}

// eachOnce fails the test unless the lines 0 to lines-1 are there, each once.
func eachOnce(t testing.TB, at place, service string, lines int) {
	t.Helper()
	seen := make([]int, lines)
	for line := range strings.Lines(string(query(t, at, service, "-o", "raw"))) {
		text, _, _ := strings.Cut(strings.TrimPrefix(line, "line "), " ")
		n, err := strconv.Atoi(text)
		if err != nil || n >= lines || !strings.HasSuffix(line, strings.Repeat("x", n%97)+"\n") {
			t.Fatalf("nobody sent %.200q", line)
		}
		seen[n]++
	}
	for n, times := range seen {
		if times != 1 {
			t.Errorf("line %d is there %d times", n, times)
			return
		}
	}
}

// linesToSend is how many lines the tests of ingest send have; make torture sends a million.
func linesToSend(t testing.TB) int {
	n, err := strconv.Atoi(os.Getenv("BLOBTAIL_SEND_LINES"))
	if err != nil {
		return 60_000
	}
	t.Logf("%d lines", n)
	return n
}

// A sender that is killed again and again goes on: each line is there once.
func TestSendKilled(t *testing.T) {
	t.Parallel()
	lines := linesToSend(t)
	text := sentText(0, lines)
	for name, pack := range map[string]func(io.Writer) io.WriteCloser{
		"plain.log":     nil,
		"packed.1.gz":   func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"small.log.zst": func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, root := dirStore(t)
			p := start(t, at, root+"-wal")
			dir := t.TempDir()
			path, body := filepath.Join(dir, name), text
			if pack != nil {
				var b bytes.Buffer
				w := pack(&b)
				_, _ = w.Write(text)
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				body = b.Bytes()
			}
			if err := os.WriteFile(path, body, 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"--to", p.listen, "--rate", strconv.Itoa(len(text) / 6), path}
			for range 20 {
				cmd, _ := sending(t, filepath.Join(dir, "places"), args...)
				time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond)
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}
			cmd, said := sending(t, filepath.Join(dir, "places"), "--to", p.listen, path)
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			service, _, _ := strings.Cut(name, ".")
			eachOnce(t, at, service, lines)
			cmd, said = sending(t, filepath.Join(dir, "places"), "--to", p.listen, path)
			if cmd.Wait() != nil || !strings.Contains(said.String(), "was sent before; to send it again, remove ") {
				t.Errorf("a file that was sent: %s", said)
			}
		})
	}
}

// A follower that is killed goes on where it was, also with files that lost their name meanwhile, and
// were compressed.
func TestSendFollows(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"renamed", "copied"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			lines := linesToSend(t)
			at, root := dirStore(t)
			p := start(t, at, root+"-wal")
			dir := t.TempDir()
			path := filepath.Join(dir, "app.log")
			ctx, end := context.WithCancel(t.Context())
			written := make(chan error, 1)
			go func() {
				defer end()
				written <- grow(path, way, lines)
			}()
			for killed := 0; killed < 20 || ctx.Err() == nil; killed++ {
				cmd, _ := sending(t, filepath.Join(dir, "places"), "--to", p.listen, "-f", path)
				time.Sleep(time.Duration(100+rand.IntN(900)) * time.Millisecond)
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}
			if err := <-written; err != nil {
				t.Fatal(err)
			}
			cmd, said := sending(t, filepath.Join(dir, "places"), "--to", p.listen, "-f", path)
			testkit.Until(t, "all lines are there", func() bool { return count(t, at, "app") >= lines })
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ends with %v: %s", err, said)
			}
			eachOnce(t, at, "app", lines)
		})
	}
}

// grow writes lines to a file for some seconds. It rotates it by and by: app.log.1 is the one before,
// app.log.2.gz the one before that.
func grow(path, way string, lines int) error {
	var f *os.File
	defer func() { _ = f.Close() }()
	step := lines / 100
	for at := 0; at < lines; at += step {
		if f == nil || at%(20*step) == 0 {
			err := pack(path)
			if err != nil {
				return err
			}
			if f != nil && way == "renamed" {
				_ = f.Close()
				if err := os.Rename(path, path+".1"); err != nil {
					return err
				}
			} else if f != nil {
				text, err := os.ReadFile(path)
				if err == nil {
					err = os.WriteFile(path+".1", text, 0o600)
				}
				if err == nil {
					err = os.Truncate(path, 0)
				}
				if err != nil {
					return err
				}
			}
			if f == nil || way == "renamed" {
				if f, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
					return err
				}
			}
		}
		text := sentText(at, min(at+step, lines))
		half := len(text) / 2 // in the midst of a line
		for _, part := range [][]byte{text[:half], text[half:]} {
			if _, err := f.Write(part); err != nil {
				return err
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

// pack renames and compresses the files that a log had before, as logrotate does.
func pack(path string) error {
	info, err := os.Stat(path + ".1")
	if err != nil {
		return nil // it is the first
	}
	_ = os.Rename(path+".2.gz", fmt.Sprint(path, ".", info.ModTime().UnixMilli(), ".gz")) // none is deleted before it is sent
	if err := os.Rename(path+".1", path+".2"); err != nil {
		return err
	}
	old, err := os.ReadFile(path + ".2")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(old)
	_ = w.Close()
	if err := os.WriteFile(path+".2.gz", b.Bytes(), 0o600); err != nil {
		return err
	}
	return errors.Join(os.Chtimes(path+".2.gz", time.Time{}, info.ModTime()), os.Remove(path+".2"))
}

// Without --to the lines go into the store.
func TestSendToStore(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "shop.log")
	if err := os.WriteFile(path, bytes.TrimSuffix(sentText(0, 5000), []byte("\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, said := sending(t, filepath.Join(dir, "places"), "--store", at.store, path)
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "sent 5,000 records: ") {
		t.Errorf("%v: %s", err, said)
	}
	eachOnce(t, at, "shop", 5000)
	own := filepath.Join(dir, "mixed.log")
	lines := `{"service":"web","msg":"one"}` + "\n" + `{"service":"api","msg":"two"}` + "\n"
	if err := os.WriteFile(own, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, said = sending(t, filepath.Join(dir, "places"), "--store", at.store, own)
	if err := cmd.Wait(); err != nil || count(t, at, "web") != 1 || count(t, at, "api") != 1 {
		t.Errorf("%v: %s", err, said)
	}
	cmd, said = sending(t, filepath.Join(dir, "places"), "--store", at.store, path, filepath.Join(dir, "none.log"), dir)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 ||
		!strings.Contains(said.String(), "none.log: no such file") || !strings.Contains(said.String(), "is a directory") {
		t.Errorf("%v: %s", err, said)
	}
}

// sent sends files, and fails the test unless the command ends in a way and says something.
func sent(t testing.TB, places string, code int, want string, args ...string) {
	t.Helper()
	cmd, said := sending(t, places, args...)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != code || !strings.Contains(said.String(), want) {
		t.Errorf("send %v ends with %v, and without %q: %s", args, err, want, said)
	}
}

// put appends lines to files.
func put(t testing.TB, dir string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString(text)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// has fails the test unless a service has these lines, in any order.
func has(t testing.TB, at place, service string, want ...string) {
	t.Helper()
	got := strings.Fields(string(query(t, at, service, "-o", "raw")))
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s has %q, want %q", service, got, want)
	}
}

// A file that begins like another is that one only if that one is gone.
func TestSendOthers(t *testing.T) {
	t.Parallel()
	at, root := dirStore(t)
	p := start(t, at, root+"-wal")
	dir := t.TempDir()
	places := filepath.Join(dir, "places")
	banner := strings.Repeat("=", 16<<10) + "\n"
	put(t, dir, map[string]string{
		"app.log": "started\n", "app-error.log": "started\ndisk\n", "app.log.7": "started\nseven\n",
		"one.log": banner + "one\n", "two.log": banner + "two\n",
	})
	path := func(name string) string { return filepath.Join(dir, name) }
	send := func(want string, names ...string) {
		t.Helper()
		args := []string{"--to", p.listen}
		for _, name := range names {
			args = append(args, path(name))
		}
		sent(t, places, 0, want, args...)
	}
	send("sent 9 records", "app.log", "app-error.log", "app.log.7", "one.log", "two.log")
	send("sent 0 records", "app.log", "app-error.log", "app.log.7", "one.log", "two.log")
	has(t, at, "app", "started", "started", "seven")
	has(t, at, "app-error", "started", "disk")
	has(t, at, "one", banner[:len(banner)-1], "one")
	has(t, at, "two", banner[:len(banner)-1], "two")

	// A new file with the old beginning, and the old one packed.
	if err := os.Rename(path("one.log"), path("one.log.1")); err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"one.log": banner + "new\n"})
	send("sent 2 records", "one.log")
	if err := pack(path("one.log")); err != nil {
		t.Fatal(err)
	}
	send("sent 0 records", "one.log.2.gz", "one.log")
	has(t, at, "one", banner[:len(banner)-1], "one", banner[:len(banner)-1], "new")
}

// The name of one log may look like that of another after a rotation.
func TestSendNoRotation(t *testing.T) {
	t.Parallel()
	at, root := dirStore(t)
	p := start(t, at, root+"-wal")
	dir := t.TempDir()
	old, other, third := filepath.Join(dir, "worker.log"), filepath.Join(dir, "worker-1.log"), filepath.Join(dir, "worker-2.log")
	put(t, dir, map[string]string{"worker.log": "a\n", "worker-1.log": "b\n", "worker-2.log": "c\n"})
	sent(t, filepath.Join(dir, "places"), 0, "sent 1 record:", "--to", p.listen, third)
	cmd, said := sending(t, filepath.Join(dir, "places"), "--to", p.listen, "-f", old, other)
	testkit.Until(t, "both are sent", func() bool { return count(t, at, "worker*") == 3 })
	if err := os.Rename(old, old+".1"); err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"worker.log": "new\n", "worker-1.log": "b2\n", "worker-2.log": "c2\n"})
	testkit.Until(t, "the new one is sent", func() bool { return count(t, at, "worker*") >= 5 })
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	has(t, at, "worker", "a", "new")
	has(t, at, "worker-1", "b", "b2")
	has(t, at, "worker-2", "c")
}

// A file that is refused does not keep the others from being followed, nor the one that has its name
// after it.
func TestSendRefused(t *testing.T) {
	t.Parallel()
	at, root := dirStore(t)
	p := start(t, at, root+"-wal")
	dir := t.TempDir()
	good, bad, places := filepath.Join(dir, "good.log"), filepath.Join(dir, "bad.log"), filepath.Join(dir, "places")
	put(t, dir, map[string]string{"good.log": "a\n", "bad.log": "x\n"})
	sent(t, places, 0, "sent 2 records", "--to", p.listen, bad, good)
	put(t, dir, map[string]string{"bad.log": strings.Repeat("\x00\x01\n", 100)})
	sent(t, places, 1, "bytes 3 to 302 of its text: the ingester answers 415", "--to", p.listen, bad)
	sent(t, places, 2, "want the URL of an ingester, such as http://", "--to", strings.TrimPrefix(p.listen, "http://"), good)
	cmd, said := sending(t, places, "--to", p.listen, "-f", bad, good)
	put(t, dir, map[string]string{"good.log": "b\n"})
	testkit.Until(t, "the good one is followed", func() bool { return count(t, at, "good") == 2 })
	if err := os.Rename(bad, bad+".1"); err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"bad.log": "y\n", "good.log": "c\n"})
	testkit.Until(t, "those behind it are sent", func() bool { return count(t, at, "good", "bad") == 5 })
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil || strings.Count(said.String(), "tail -c +303 FILE | ingest send --service bad -") != 1 {
		t.Errorf("%v: %s", err, said)
	}
	has(t, at, "bad", "x", "y")
	put(t, dir, map[string]string{"good.log": "d\n"})
	sent(t, places, 1, "the ingester answers 404", "--to", p.listen+"/none", "-f", good)
}
