package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"blobtail/internal/testenv"
)

// send [-X METHOD] [-H HEADER]... [-gzip] [-until] URL [BODY] sends a request and prints the
// status and the answer. With -until it repeats it for 30 s until the status is 200.
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
	until := flags.Bool("until", false, "repeat it until it is answered 200")
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
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		r, err := http.NewRequest(*method, flags.Arg(0), bytes.NewReader(body.Bytes()))
		if err != nil {
			return err
		}
		for _, text := range headers {
			name, value, _ := strings.Cut(text, ": ")
			r.Header.Set(name, value)
		}
		var status int
		var answer []byte
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			status = resp.StatusCode
			answer, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if *until && status != http.StatusOK && time.Since(begun) < 30*time.Second {
			continue
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "%d %s", status, answer)
		return err
	}
}

// tableEnv gives a script two free addresses, LISTEN and ADMIN, and in NATS a server that has
// the stream OTHER, without the subjects of records.
func tableEnv(t *testing.T) func(e *testscript.Env) error {
	server := testenv.StartNATS(t)
	_, js := server.Connect()
	stream := testenv.Stream("OTHER")
	stream.Subjects = []string{"other.>"}
	if _, err := js.CreateStream(context.Background(), stream); err != nil {
		t.Fatal(err)
	}
	return func(e *testscript.Env) error {
		e.Setenv("NATS", server.URL)
		for _, name := range []string{"LISTEN", "ADMIN"} {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			e.Setenv(name, l.Addr().String())
			if err := l.Close(); err != nil {
				return err
			}
		}
		return nil
	}
}
