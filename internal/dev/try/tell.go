package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"blobtail/internal/dev/shop"
)

// look are the commands for a look round, a line each.
func look(bin, url, token string) string {
	if token != "" {
		token = "BLOBTAIL_TOKEN=" + token + " "
	}
	var b strings.Builder
	for _, args := range []string{
		"hist '*' --since 1h --level error",
		"new payments --since 1h --against 1h",
		"tail -f '*' --level error -n 5",
	} {
		fmt.Fprintf(&b, "  %s%s --server %s %s\n", token, filepath.Join(bin, "logquery"), url, args)
	}
	return b.String()
}

// facts are what the line of JSON has.
type facts struct {
	Page     string              `json:"page"`
	Serve    string              `json:"serve"`  // URL
	Ingest   string              `json:"ingest"` // URL for senders
	Admin    string              `json:"admin"`  // URL for operators
	Control  string              `json:"control,omitempty"`
	Dir      string              `json:"dir"`
	Store    string              `json:"store"`
	Pids     map[string]int      `json:"pids"` // 0: it does not run
	Argv     map[string][]string `json:"argv"`
	Tokens   map[string]string   `json:"tokens,omitempty"` // id.secret by id: all, one
	Services []string            `json:"services"`
	History  history             `json:"history"`
	Live     live                `json:"live"`
	Incident shop.Incident       `json:"incident"`
	Wild     []shop.Wild         `json:"wild"`
	Look     []string            `json:"look"` // the commands for a look round
	TookMS   int64               `json:"took_ms"`
}

// facts are the present ones.
func (w *world) facts() facts {
	past, now, incident := w.sender.facts()
	f := facts{
		Page: w.url + "/", Serve: w.url, Ingest: w.sender.ingest, Admin: w.sender.admin, Control: w.controlURL, Dir: w.dir, Store: w.store(),
		Pids: map[string]int{"try": os.Getpid(), "ingest": w.ingest.pid(), "serve": w.serve.pid()},
		Argv: map[string][]string{"ingest": w.ingest.argv, "serve": w.serve.argv}, Tokens: w.tokens,
		Services: shop.Services(), History: past, Live: now, Incident: incident, Wild: shop.Wilds(), TookMS: time.Since(w.begun).Milliseconds(),
	}
	for line := range strings.Lines(look(w.o.bin, w.url, w.tokens["all"])) {
		f.Look = append(f.Look, strings.TrimSpace(line))
	}
	return f
}

// tell says that all is ready.
func (w *world) tell() error {
	if w.o.control {
		if err := w.listen(); err != nil {
			return err
		}
	}
	f := w.facts()
	if w.o.json {
		return json.NewEncoder(w.stdout).Encode(f)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nblobtail runs, with %d records of a shop in the last %g hours and %g a second from now on.\n", f.History.Records, math.Round(w.o.span.Hours()*10)/10, math.Round(f.Live.Rate*10)/10)
	fmt.Fprintf(&b, "\n  %s\n", f.Page)
	fmt.Fprintf(&b, "\n%.0f minutes ago an error rate went up. Which message is new, in which service, and which\nrecord came just before it in the same request? In another terminal, in this folder:\n\n%s",
		time.Since(f.Incident.Deploy).Minutes(), look(w.o.bin, w.url, f.Tokens["all"]))
	for id, secret := range f.Tokens {
		fmt.Fprintf(&b, "\nThe token %s is %s\n", id, secret)
	}
	if f.Control != "" {
		fmt.Fprintf(&b, "\nPOST %s/kill/serve, /start/serve, /kill/ingest, /start/ingest, /live?rate=N, /flush\n", f.Control)
	}
	end := "deletes " + w.dir
	if !w.temporary {
		end = "keeps " + w.dir
	}
	fmt.Fprintf(&b, "\nCtrl-C ends it and %s.\n", end)
	_, err := fmt.Fprint(w.stdout, b.String())
	return err
}
