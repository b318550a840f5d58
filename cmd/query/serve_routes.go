package main

import (
	"context"
	"net/http"
	"strings"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/httpguard"
	"blobtail/lokiapi"
	"blobtail/readapi"
	"blobtail/storage"
)

// handlers are all paths of serve.
func (s *server) handlers() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /ready", s.ready.answer)
	mux.HandleFunc("GET /readyz", s.ready.answer)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.Handle(readapi.Prefix, readapi.New(readapi.Options{
		Reader: s.reader, Ingesters: s.reader.For(nil).Ingesters, Version: cli.Version(), MaxBytes: int64(s.c.MaxBytes),
		Time: func(ctx context.Context) (time.Time, error) { return storage.Now(ctx, s.a.store.Blobs, s.a.clock()) },
	}))
	loki := lokiapi.New(lokiapi.Options{
		Reader: s.reader, Labels: s.c.Label, Version: cli.Version(), Timeout: s.guard.Deadline(), MaxBytes: int64(s.c.MaxBytes),
	})
	for _, path := range []string{"/loki/", "/json/", "/prometheus/"} {
		mux.Handle(path, loki)
	}
	for _, path := range []string{"/otlp/v1/logs", "/ingest/"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", "GET")
			say(w, http.StatusMethodNotAllowed, "this server only reads; records are sent to an ingester, at its --listen (127.0.0.1:8514 unless told otherwise)")
		})
	}
	return mux
}

// say writes a line of text.
func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

// routeOf is the route of a path, for the doors and for metrics. A path that is not known
// passes all doors.
func routeOf(path string) httpguard.Route {
	switch path {
	case "/livez", "/ready", "/readyz":
		return httpguard.Route{Name: path, Kind: httpguard.Probe}
	case "/metrics":
		return httpguard.Route{Name: path, Kind: httpguard.Operator}
	case "/prometheus/api/v1/rules":
		return httpguard.Route{Name: path, Kind: httpguard.Light}
	}
	view := ""
	if rest, ok := strings.CutPrefix(path, "/json/"); ok {
		view, path = "/json", "/"+rest
	}
	const loki, own = "/loki/api/v1/", "/api/v1/"
	if rest, ok := strings.CutPrefix(path, loki); ok {
		rest = strings.TrimPrefix(rest, loki[1:]) // Grafana 12.3.1 doubles it
		if name, kind := lokiRoute(rest); name != "" {
			return httpguard.Route{Name: view + loki + name, Kind: kind}
		}
	} else if rest, ok := strings.CutPrefix(path, own); ok && view == "" {
		if name, kind := ownRoute(rest); name != "" {
			return httpguard.Route{Name: own + name, Kind: kind}
		}
	}
	return httpguard.Route{Name: "other", Kind: httpguard.Query}
}

// lokiRoute is the route of a path of Loki's API, "" for none.
func lokiRoute(path string) (string, httpguard.Kind) {
	switch path {
	case "tail":
		return path, httpguard.Tail
	case "labels", "patterns", "drilldown-limits", "format_query", "status/buildinfo", "push":
		return path, httpguard.Light
	case "query", "query_range", "series", "index/stats", "index/volume", "index/volume_range", "detected_labels", "detected_fields":
		return path, httpguard.Query
	}
	for _, name := range []string{"label", "detected_field"} {
		if strings.HasPrefix(path, name+"/") && strings.HasSuffix(path, "/values") {
			return name + "/{name}/values", httpguard.Query
		}
	}
	return "", 0
}

// ownRoute is the route of a path of our own API, "" for none.
func ownRoute(path string) (string, httpguard.Kind) {
	switch path {
	case "tail":
		return path, httpguard.Tail
	case "whoami", "openapi.json":
		return path, httpguard.Light
	case "services", "records", "context", "histogram", "count", "facets", "days", "blobs", "ingesters":
		return path, httpguard.Query
	}
	if strings.HasPrefix(path, "records/") {
		return "records/{service}/{id}", httpguard.Query
	}
	if strings.HasPrefix(path, "blobs/") {
		return "blobs/{name...}", httpguard.Query
	}
	return "", 0
}
