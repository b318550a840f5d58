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
	"blobtail/internal/cli"
	"blobtail/internal/config"
)

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
	host, port, err := net.SplitHostPort(c.Ingest.Admin)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1" // the server listens everywhere, and answers this only here
	}
	where := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: "/drain"}
	if timeout > 0 {
		where.RawQuery = "timeout=" + timeout.String()
	}
	begun := time.Now()
	resp, err := http.Post(where.String(), "", nil)
	if err != nil {
		return fmt.Errorf("no ingester answers at %s: %w; --admin says where it listens", where.Host, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	switch {
	case err != nil:
		return fmt.Errorf("not drained: read the answer of %s: %w", where.Host, err)
	case resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("not drained: %s does not know /drain; --admin is the admin listener, not the one for records", where.Host)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("not drained (%s): %s", resp.Status, bytes.TrimSpace(answer))
	}
	fmt.Fprintf(stdout, "the log is empty: all is in blobs after %s; the ingester at %s takes no more and can be stopped\n",
		time.Since(begun).Round(time.Millisecond), where.Host)
	return nil
}
