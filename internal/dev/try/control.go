package main

import (
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// listen serves the control on a free port of this host.
func (w *world) listen() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(rw http.ResponseWriter, r *http.Request) { w.answer(rw, r, func() error { return nil }) })
	mux.HandleFunc("POST /kill/{name}", func(rw http.ResponseWriter, r *http.Request) {
		by := syscall.SIGKILL
		if r.URL.Query().Get("signal") == "TERM" {
			by = syscall.SIGTERM
		}
		w.child(rw, r, func(c *child) error { c.stop(by); return nil })
	})
	mux.HandleFunc("POST /start/{name}", func(rw http.ResponseWriter, r *http.Request) {
		w.child(rw, r, func(c *child) error {
			if c.running() {
				return nil
			}
			_, err := c.start(r.Context())
			return err
		})
	})
	mux.HandleFunc("POST /live", func(rw http.ResponseWriter, r *http.Request) {
		rate, err := strconv.ParseFloat(r.URL.Query().Get("rate"), 64)
		if err != nil || rate < 0 {
			http.Error(rw, "rate must be a number of records a second", http.StatusBadRequest)
			return
		}
		w.sender.setRate(rate)
		w.answer(rw, r, func() error { return nil })
	})
	mux.HandleFunc("POST /flush", func(rw http.ResponseWriter, r *http.Request) {
		err := w.sender.flush(r.Context())
		w.answer(rw, r, func() error { return err })
	})
	w.control = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	w.controlURL = "http://" + l.Addr().String()
	go func() { _ = w.control.Serve(l) }()
	return nil
}

// child calls a function with the child that a path names.
func (w *world) child(rw http.ResponseWriter, r *http.Request, do func(*child) error) {
	c := map[string]*child{"serve": w.serve, "ingest": w.ingest}[r.PathValue("name")]
	if c == nil {
		http.Error(rw, "serve or ingest", http.StatusNotFound)
		return
	}
	w.answer(rw, r, func() error { return do(c) })
}

// answer has the goroutine of keep call a function, and answers with the facts. The kernel ends
// children with the thread that started them, so no other goroutine may start one.
func (w *world) answer(rw http.ResponseWriter, r *http.Request, do func() error) {
	type result struct {
		facts
		err error
	}
	results := make(chan result, 1)
	call := func() {
		err := do()
		results <- result{w.facts(), err}
	}
	select {
	case w.calls <- call:
	case <-r.Context().Done():
		return
	}
	got := <-results
	if got.err != nil {
		http.Error(rw, got.err.Error(), http.StatusInternalServerError)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(got.facts)
}
