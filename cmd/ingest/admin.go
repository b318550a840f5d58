package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"blobtail/buffer"
	"blobtail/internal/config"
)

// newAdmin returns the operators' server. It answers changes and dumps of memory on
// this host only.
func newAdmin(buf *buffer.Buffer, in *intake, ready func() error, reg *prometheus.Registry) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{Registry: reg}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "alive") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.Handle("POST /flush", loopback(patient(flush(buf))))
	mux.Handle("POST /drain", loopback(patient(drain(buf, in))))
	mux.Handle("/debug/pprof/", loopback(http.DefaultServeMux)) // which net/http/pprof sets up
	return &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
}

// flush answers when every record acknowledged before is in a blob. If its time is over
// first, it answers 504 with the number of unflushed records.
func flush(buf *buffer.Buffer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		start := time.Now()
		left, err := buf.Flush(ctx)
		answer := struct {
			Flushed bool    `json:"flushed"`
			Seconds float64 `json:"seconds"`
			Batches int     `json:"batches_left,omitempty"`
			Records int     `json:"records_left,omitempty"`
			Bytes   int64   `json:"bytes_left,omitempty"`
			Error   string  `json:"error,omitempty"`
		}{err == nil, time.Since(start).Seconds(), left.Batches, left.Records, left.Bytes, ""}
		status := http.StatusOK
		if err != nil {
			answer.Error = err.Error()
			status = http.StatusInternalServerError
			if ctx.Err() != nil {
				status = http.StatusGatewayTimeout
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(answer)
	})
}

// patient lets a request last as long as its ?timeout= says, or for ever.
func patient(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s := r.FormValue("timeout"); s != "" {
			d, err := config.ParseDuration(s)
			if err != nil {
				http.Error(w, "timeout: "+err.Error(), http.StatusBadRequest)
				return
			}
			ctx, cancel := context.WithTimeout(r.Context(), d)
			defer cancel()
			r = r.WithContext(ctx)
		}
		h.ServeHTTP(w, r)
	})
}

// loopback accepts only requests from this host.
func loopback(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			http.Error(w, r.URL.Path+" is answered on the host itself only", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
