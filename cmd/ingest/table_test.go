package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"blobtail/internal/count"
	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/door"
)

// send [-X METHOD] [-H HEADER]... [-gzip] URL [BODY] sends a request and prints the status and
// the answer.
func send() {
	if err := sendRequest(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func sendRequest(args []string, stdout io.Writer) error {
	var headers []string
	flags := flag.NewFlagSet("send", flag.ExitOnError)
	method := flags.String("X", http.MethodPost, "method")
	flags.Func("H", "header", func(text string) error { headers = append(headers, text); return nil })
	packed := flags.Bool("gzip", false, "compress the body")
	if err := flags.Parse(args); err != nil {
		return err
	}
	body := bytes.NewBufferString(flags.Arg(1))
	if *packed {
		body.Reset()
		w := gzip.NewWriter(body)
		if _, err := io.WriteString(w, flags.Arg(1)); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	r, err := http.NewRequest(*method, flags.Arg(0), body)
	if err != nil {
		return err
	}
	for _, text := range headers {
		name, value, _ := strings.Cut(text, ": ")
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%d %s", resp.StatusCode, answer)
	return err
}

// withStream sets NATS to the URL of a server that has the stream OTHER, without the subjects
// of records.
func withStream(t *testing.T) func(e *testscript.Env) error {
	server := testenv.StartNATS(t)
	_, js := server.Connect()
	stream := testenv.Stream("OTHER")
	stream.Subjects = []string{"other.>"}
	if _, err := js.CreateStream(t.Context(), stream); err != nil {
		t.Fatal(err)
	}
	return func(e *testscript.Env) error {
		e.Vars = append(e.Vars, testkit.EndsAtOnce)
		e.Setenv("NATS", server.URL)
		return nil
	}
}

// addresses LOG waits until the log of an ingester says that it is ready, and sets LISTEN and
// ADMIN to its addresses.
func addresses(ts *testscript.TestScript, _ bool, args []string) {
	for begun := time.Now(); time.Since(begun) < testkit.Patience; time.Sleep(20 * time.Millisecond) {
		log, err := os.ReadFile(ts.MkAbs(args[0]))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			ts.Fatalf("%v", err)
		}
		for line := range bytes.Lines(log) {
			var ready struct{ Message, Listen, Admin string }
			if json.Unmarshal(line, &ready) == nil && ready.Message == "ready" {
				ts.Setenv("LISTEN", ready.Listen)
				ts.Setenv("ADMIN", ready.Admin)
				return
			}
		}
	}
	ts.Fatalf("no ingester is ready by %s", args[0])
}

// A client that sends records to the admin listener is told an address that it can reach.
func TestSendToRecords(t *testing.T) {
	for records, want := range map[string]string{
		"127.0.0.1:8514": "http://127.0.0.1:8514/ingest/web",
		"[::]:9000":      "http://logs.example:9000/ingest/web",
		"0.0.0.0:9000":   "http://logs.example:9000/ingest/web",
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "http://logs.example:8515/ingest/web", nil)
		newAdmin(nil, nil, nil, door.New(door.Options{AnyName: true}), url.URL{Scheme: "http", Host: records}, new(count.Registry)).Handler.ServeHTTP(w, r)
		if got := w.Body.String(); w.Code != http.StatusNotFound || !strings.HasSuffix(got, ": "+want+"\n") {
			t.Errorf("%s: %d %s, want %s", records, w.Code, got, want)
		}
	}
}
