package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"blobtail/internal/dev/testkit"
)

// port NAME LOG sets a variable to the port of a server, when its log says where it listens.
func port(ts *testscript.TestScript, _ bool, args []string) {
	listening := regexp.MustCompile(`"url":"[^"]*:([0-9]+)".*"message":"listening"`)
	for begun := time.Now(); time.Since(begun) < testkit.Patience; time.Sleep(20 * time.Millisecond) {
		log, err := os.ReadFile(ts.MkAbs(args[1]))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			ts.Check(err)
		}
		if m := listening.FindSubmatch(log); m != nil {
			ts.Setenv(args[0], string(m[1]))
			return
		}
	}
	ts.Fatalf("no server listens by %s", args[1])
}

// signal NAME sends a signal, HUP or TERM, to the one command in the background.
func signals(ts *testscript.TestScript, _ bool, args []string) {
	sig := map[string]syscall.Signal{"HUP": syscall.SIGHUP, "TERM": syscall.SIGTERM}[args[0]]
	all := ts.BackgroundCmds()
	if sig == 0 || len(all) != 1 {
		ts.Fatalf("signal %s to %d commands", args[0], len(all))
	}
	ts.Check(all[0].Process.Signal(sig))
}

// fetch STATUS URL [HEADER: VALUE]... prints the body of an answer of that status. It waits
// until a server listens and answers so.
func fetch() {
	err := func() error {
		var last error
		for begun := time.Now(); time.Since(begun) < testkit.Patience; time.Sleep(20 * time.Millisecond) {
			r, err := http.NewRequest(http.MethodGet, os.Args[2], nil)
			if err != nil {
				return err
			}
			for _, h := range os.Args[3:] {
				name, value, _ := strings.Cut(h, ": ")
				if name == "Host" {
					r.Host = value
				}
				r.Header.Set(name, value)
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				last = err
				continue
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err == nil && fmt.Sprint(resp.StatusCode) == os.Args[1] {
				_, err := os.Stdout.Write(body)
				return err
			}
			last = fmt.Errorf("%s, %v: %s", resp.Status, err, body)
		}
		return last
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
