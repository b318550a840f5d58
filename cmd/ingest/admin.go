package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	_ "net/http/pprof"
	"net/url"
	"strings"
	"time"

	"blobtail/buffer"
	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/count"
	"blobtail/internal/door"
	"blobtail/internal/signpost"
	"blobtail/internal/trust"
)

// newAdmin returns the operators' server. It answers changes and dumps of memory on
// this host only. records is the URL of the listener for records.
func newAdmin(buf *buffer.Buffer, in *intake, ready func() error, guard *door.Guard, records url.URL, reg *count.Registry) *http.Server {
	const get = "GET, HEAD"
	post := signpost.Post{At: signpost.Admin, Own: make(map[string]string)}
	mux := http.NewServeMux()
	handle := func(path, methods string, h http.Handler) {
		post.Own[path] = methods
		method, _, _ := strings.Cut(methods, ",")
		mux.Handle(method+" "+path, h)
	}
	handle("/metrics", get, door.Gzip(reg))
	handle("/healthz", get, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "alive") }))
	handle("/readyz", get, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	}))
	handle("/flush", http.MethodPost, guard.Here(patient(flush(buf))))
	handle("/drain", http.MethodPost, guard.Here(patient(drain(buf, in))))
	mux.Handle("POST /adopt/{id}", guard.Here(patient(adopt(in))))
	handle("/debug/pprof/", get, guard.Here(http.DefaultServeMux)) // which net/http/pprof sets up
	mux.Handle("POST /debug/pprof/symbol", guard.Here(http.DefaultServeMux))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { showSign(w, r, post, records) })

	all := http.NewCrossOriginProtection().Handler(guard.Wrap(adminKindOf, mux)) // a browser on this host is no operator
	return &http.Server{Handler: all, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
}

// showSign answers a request that belongs to no path of the operators. It names the listener for
// records with the host that the client knows, if that listens on all addresses.
func showSign(w http.ResponseWriter, r *http.Request, post signpost.Post, records url.URL) {
	records.Host = signpost.HostPort(records.Host, r.Host)
	post.Ingester = records.String()
	if r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		door.Say(w, http.StatusOK, strings.TrimSuffix(post.Index(), "\n"))
		return
	}
	sign := post.Find(r)
	(&door.Refusal{Status: sign.Status, Allow: sign.Allow, Reason: sign.Text}).Plain(w)
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

// drain ends the acceptance of records for good. It answers as flush does, when all
// records are in blobs. It is for a host, or a pod with its volume, that is removed.
func drain(buf *buffer.Buffer, in *intake) http.Handler {
	flush := flush(buf)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in.log.Info().Msg("drained: nothing more is taken")
		in.drain(r.Context())
		flush.ServeHTTP(w, r)
	})
}

// askDrain drains a running ingester, and returns when its log is empty.
func askDrain(c config.Config, timeout config.Duration, stdout io.Writer) error {
	host, took, err := askAdmin(c, "drain", "not drained", timeout)
	if err == nil {
		fmt.Fprintf(stdout, "the log is empty: all is in blobs after %s; the ingester at %s takes no more and can be stopped\n",
			took.Round(time.Millisecond), host)
	}
	return err
}

// askAdmin has the running ingester at --admin do something. failed begins an error.
func askAdmin(c config.Config, what, failed string, timeout config.Duration) (where string, took time.Duration, err error) {
	host, port, err := net.SplitHostPort(c.Ingest.Admin)
	if err != nil {
		return "", 0, &cli.UsageError{Err: err}
	}
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1" // the server listens everywhere, and answers this only here
	}
	to := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: "/" + what}
	if timeout > 0 {
		to.RawQuery = "timeout=" + timeout.String()
	}
	begun := time.Now()
	resp, err := http.Post(to.String(), "", nil)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // the rest is our own request
		}
		return "", 0, fmt.Errorf("no ingester answers at %s: %w; give the --admin that it was started with", to.Host, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	switch {
	case err != nil:
		err = fmt.Errorf("%s: read the answer of %s: %w", failed, to.Host, err)
	case trust.WantsTLS(resp, answer, &to) != "":
		err = fmt.Errorf("%s: %s speaks TLS, so it is the listener for records; give the --admin that the ingester was started with, "+
			"which speaks none", failed, to.Host)
	case resp.StatusCode == http.StatusNotFound:
		err = fmt.Errorf("%s: %s does not know /%s; --admin is the admin listener, not the one for records", failed, to.Host, what)
	case resp.StatusCode != http.StatusOK:
		err = fmt.Errorf("%s (%s): %s", failed, resp.Status, bytes.TrimSpace(answer))
	}
	return to.Host, time.Since(begun), err
}
