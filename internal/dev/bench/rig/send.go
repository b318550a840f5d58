package rig

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// Send posts bodies over so many connections, and ensures that each is accepted. Bodies are taken
// in their order. The first refused one ends it.
func Send(ctx context.Context, url string, header http.Header, connections int, bodies [][]byte) error {
	transport := &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections, DisableCompression: true, WriteBufferSize: 64 << 10}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(bodies) {
					return
				}
				if err := post(ctx, client, url, header, bodies[i]); err != nil {
					cancel(fmt.Errorf("body %d of %d: %w", i+1, len(bodies), err))
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func post(ctx context.Context, client *http.Client, url string, header http.Header, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = header.Clone()
	res, err := client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %.300s", res.Status, answer)
	}
	return err
}
