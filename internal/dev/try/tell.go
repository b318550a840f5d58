package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"blobtail/internal/dev/corpus"
)

// look are the commands for a look round, a line each.
func look(bin, url, token string) string {
	if token != "" {
		token = "BLOBTAIL_TOKEN=" + token + " "
	}
	var b strings.Builder
	for _, args := range []string{"hist '*' --since 1h --level error", "new payments --since 1h --against 1h", "tail -f '*' --level error -n 5"} {
		fmt.Fprintf(&b, "  %s%s --server %s %s\n", token, filepath.Join(bin, "logquery"), url, args)
	}
	return b.String()
}

// facts are what the line of JSON has.
type facts struct {
	Page     string            `json:"page"`
	Serve    string            `json:"serve"`  // URL
	Ingest   string            `json:"ingest"` // URL for senders
	Admin    string            `json:"admin"`  // URL for operators
	Dir      string            `json:"dir"`
	Store    string            `json:"store"`
	Pids     map[string]int    `json:"pids"`
	Tokens   map[string]string `json:"tokens,omitempty"` // id.secret by id: all, one
	History  history           `json:"history"`
	Rate     float64           `json:"rate"` // records a second from now on
	Incident corpus.Incident   `json:"incident"`
	Look     []string          `json:"look"` // the commands for a look round
}

// tell says that all is ready.
func (w *world) tell() error {
	f := facts{
		Page: w.url + "/", Serve: w.url, Ingest: w.sender.ingest, Admin: w.sender.admin, Dir: w.dir, Store: w.store(),
		Pids: map[string]int{"try": os.Getpid()}, Tokens: w.tokens, History: w.sender.past, Rate: w.sender.rate,
		Incident: w.sender.shop.Incident(),
	}
	for _, c := range w.children {
		f.Pids[c.name] = c.cmd.Process.Pid
	}
	commands := look(w.o.bin, w.url, w.tokens["all"])
	if w.o.json {
		for line := range strings.Lines(commands) {
			f.Look = append(f.Look, strings.TrimSpace(line))
		}
		return json.NewEncoder(w.stdout).Encode(f)
	}
	end := "deletes "
	if !w.temporary {
		end = "keeps "
	}
	text := fmt.Sprintf(`
blobtail runs, with %d records of a shop in the last %g hours and %g a second from now on.

  %s

%.0f minutes ago an error rate went up. Which message is new, in which service, and which
record came just before it in the same request? In another terminal, in this folder:

%s`, f.History.Records, math.Round(w.o.span.Hours()*10)/10, math.Round(f.Rate*10)/10, f.Page, time.Since(f.Incident.Deploy).Minutes(), commands)
	for id, secret := range f.Tokens {
		text += fmt.Sprintf("\nThe token %s is %s\n", id, secret)
	}
	_, err := fmt.Fprintf(w.stdout, "%s\nCtrl-C ends it and %s%s.\n", text, end, w.dir)
	return err
}
