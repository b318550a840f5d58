package main

import (
	"bytes"
	"context"
	"io"
	stdlog "log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/dev/testkit/certstest"
	"blobtail/reading/unflushed/live"
	"blobtail/record"
	"blobtail/storage/dir"
)

// empty is an empty log, and a snapshot of it.
type empty struct{}

func (empty) Open(context.Context, live.LogQuery) (live.Held, error) { return empty{}, nil }
func (empty) Position() uint64                                       { return 0 }
func (empty) Behind() bool                                           { return false }
func (empty) Close()                                                 {}
func (empty) Each(context.Context, func(*record.Entry) error) error  { return nil }

// No command of an operator forgets an ingester that runs and only cannot write its row. Each of
// them forgets one that is gone.
func TestAnsweringIsNotForgotten(t *testing.T) {
	handler := live.NewHandler(live.Options{
		Self:    func() live.Self { return live.Self{ID: "0badcafe", Process: "01234567"} },
		Journal: empty{},
	})
	t.Cleanup(handler.Stop)
	mux := http.NewServeMux()
	mux.Handle(live.Pattern, handler)
	other := live.NewHandler(live.Options{
		Self:    func() live.Self { return live.Self{ID: "deadbeef", Process: "01234567"} },
		Journal: empty{},
	})
	t.Cleanup(other.Stop)
	others := http.NewServeMux()
	others.Handle(live.Pattern, other)
	stopped := live.NewHandler(live.Options{Self: func() live.Self { return live.Self{} }, Journal: empty{}})
	stopped.Stop()
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.RawQuery, "peers=no") {
			<-r.Context().Done() // one of its peers hangs
			return
		}
		time.Sleep(live.HastyWait + 200*time.Millisecond)
		mux.ServeHTTP(w, r)
	})
	plain := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "not for you", status) })
	}
	for name, c := range map[string]struct {
		at    http.Handler
		tls   bool
		known bool   // the authority is given by --ca
		wants string // "": it is forgotten
		notes string
	}{
		"answers":              {at: mux, wants: "it answers at http"},
		"answers late":         {at: slow, wants: "it answers at http"},
		"wants a token":        {at: plain(401), wants: "set BLOBTAIL_PEER_TOKEN"},
		"refuses":              {at: stopped, wants: "an ingester runs at its address"},
		"has another name":     {at: plain(421), wants: "an ingester runs at its address"},
		"unknown certificate":  {at: mux, tls: true, wants: "--ca FILE"},
		"known certificate":    {at: mux, tls: true, known: true, wants: "it answers at http"},
		"another one answers":  {at: others, notes: "ingester deadbeef answers at its address"},
		"a proxy without it":   {at: plain(502), notes: "it does not answer: "},
		"nothing listens":      {notes: "connection refused"},
		"no address is known":  {notes: "it announces no address"},
		"its address is wrong": {notes: "it was not asked whether it runs: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(c.at)
			server.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
			start := server.Start
			if c.tls {
				start = server.StartTLS
			}
			start()
			defer server.Close()
			address := server.URL
			switch name {
			case "nothing listens":
				server.Close()
			case "no address is known":
				address = ""
			case "its address is wrong":
				address = "ftp://logs-a"
			}
			for _, way := range [][]string{{"0badcafe"}, {"--silent", "30m"}} {
				root := t.TempDir()
				if _, err := dir.Open(root, dir.Options{Create: true}); err != nil {
					t.Fatal(err)
				}
				announceAt(t, root, "0badcafe", address, time.Hour)
				var out, said bytes.Buffer
				args := append([]string{"forget", "--store", "dir:" + root}, way...)
				if c.known {
					ca := filepath.Join(t.TempDir(), "ca.pem")
					certstest.WritePEM(t, ca, "CERTIFICATE", server.Certificate().Raw)
					args = append(args, "--ca", ca)
				}
				code := command(args, &out, &said)
				switch {
				case c.wants != "" && (code != cli.Failed || out.Len() > 0 || !strings.Contains(said.String(), "not forgotten: ingester 0badcafe: ") || !strings.Contains(said.String(), c.wants)):
					t.Errorf("%v: %d %s%s", way, code, &out, &said)
				case c.wants == "" && (code != cli.OK || !strings.Contains(out.String(), "ingester 0badcafe on") || !strings.Contains(out.String(), c.notes)):
					t.Errorf("%v: %d %s%s", way, code, &out, &said)
				}
			}
		})
	}
}

// A drain that is sent to the listener for records over TLS names the other address.
func TestDrainOfTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	var out, said bytes.Buffer
	code := command([]string{"drain", "--admin", server.Listener.Addr().String()}, &out, &said)
	if code != cli.Failed || !strings.Contains(said.String(), "speaks TLS, so it is the listener for records; give the --admin") {
		t.Errorf("%d %s%s", code, &out, &said)
	}
}
