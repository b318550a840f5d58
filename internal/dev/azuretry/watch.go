package main

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// watch sends requests, and notes facts on the answers.
type watch struct {
	client *http.Client

	mu       sync.Mutex
	requests int
	seen     map[string]int // x-ms-version of answers, versions of HTTP and TLS
	busy     map[string]int // answers by which the service slows a client down
}

func newWatch() *watch {
	return &watch{client: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}, seen: map[string]int{}, busy: map[string]int{}}
}

// Do implements the transporter of the SDK.
func (w *watch) Do(r *http.Request) (*http.Response, error) {
	answer, err := w.client.Do(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	if err != nil {
		return answer, err
	}
	w.seen[answer.Proto]++
	if version := answer.Header.Get("x-ms-version"); version != "" {
		w.seen["x-ms-version "+version]++
	}
	if answer.TLS != nil {
		w.seen[tls.VersionName(answer.TLS.Version)]++
	}
	if answer.StatusCode == http.StatusServiceUnavailable || answer.StatusCode == http.StatusTooManyRequests {
		w.busy[fmt.Sprintf("%d %s", answer.StatusCode, answer.Header.Get("x-ms-error-code"))]++
	}
	return answer, nil
}

// throttled describes the slowed requests.
func (w *watch) throttled() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.busy) == 0 {
		return "none"
	}
	return counts(w.busy)
}

// versions describes what answered.
func (w *watch) versions() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return counts(w.seen)
}

func counts(m map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", name, m[name]))
	}
	return strings.Join(parts, ", ")
}
