package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"blobtail/buffer"
	"blobtail/config"
)

// drain takes no more, for good, and answers as flush does when all is in blobs:
// for a host, or a pod with its volume, that goes.
func drain(buf *buffer.Buffer, in *intake) http.Handler {
	flush := flush(buf)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in.log.Info().Msg("drained: nothing more is taken")
		in.drain(r.Context())
		flush.ServeHTTP(w, r)
	})
}

// askDrain has a running ingester drained and says when its log is empty.
func askDrain(c config.Config, timeout config.Duration, stdout, stderr io.Writer) int {
	host, port, err := net.SplitHostPort(c.Ingest.Admin)
	if err != nil {
		fmt.Fprintln(stderr, "ingest:", err)
		return exitUsage
	}
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1" // it listens everywhere, and answers this only here
	}
	where := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: "/drain"}
	if timeout > 0 {
		where.RawQuery = "timeout=" + timeout.String()
	}
	begun := time.Now()
	resp, err := http.Post(where.String(), "", nil)
	if err != nil {
		fmt.Fprintf(stderr, "ingest: no ingester answers at %s: %v; --admin says where it listens\n", where.Host, err)
		return exitFailed
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "ingest: not drained: read the answer of %s: %v\n", where.Host, err)
		return exitFailed
	case resp.StatusCode == http.StatusNotFound:
		fmt.Fprintf(stderr, "ingest: not drained: %s does not know /drain; --admin is the admin listener, not the one for records\n", where.Host)
		return exitFailed
	case resp.StatusCode != http.StatusOK:
		fmt.Fprintf(stderr, "ingest: not drained (%s): %s\n", resp.Status, bytes.TrimSpace(answer))
		return exitFailed
	}
	fmt.Fprintf(stdout, "the log is empty: all is in blobs after %s; the ingester at %s takes no more and can be stopped\n",
		time.Since(begun).Round(time.Millisecond), where.Host)
	return exitOK
}
