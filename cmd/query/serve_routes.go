package main

import (
	"context"
	"net/http"
	"strings"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/door"
	"blobtail/internal/signpost"
	"blobtail/reading/form"
	"blobtail/record/forms"
	"blobtail/serve/api"
	"blobtail/serve/loki"
	"blobtail/serve/page"
	"blobtail/storage"
)

// handlers are all paths of serve.
func (s *server) handlers() http.Handler {
	const get = "GET, HEAD"
	post := signpost.Post{
		At:   signpost.Reads,
		Own:  map[string]string{"/livez": get, "/ready": get, "/readyz": get, "/metrics": get, "/": get, page.Prefix: get},
		More: map[string]string{api.Prefix: "GET", "/loki/api/v1/": "GET, POST", "/json/loki/api/v1/": "GET, POST"},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { door.Say(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /ready", s.ready.answer)
	mux.HandleFunc("GET /readyz", s.ready.answer)
	mux.Handle("GET /metrics", &s.metrics)
	files := page.New()
	mux.Handle(page.Prefix, files)
	mux.Handle("GET /{$}", s.first(files, strings.TrimSuffix(post.Index(), "\n")))
	own := api.New(api.Options{
		Reader: s.reader, Guard: s.guard, Version: cli.Version(), Forms: forms.Text(s.a.config.Forms),
		Time: func(ctx context.Context) (time.Time, error) { return storage.Now(ctx, s.a.store.Blobs, s.a.clock()) },
	})
	sign := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sign := post.Find(r)
		refuse(w, r, &door.Refusal{Status: sign.Status, Allow: sign.Allow, Reason: sign.Text})
	})
	mux.HandleFunc(api.Prefix, func(w http.ResponseWriter, r *http.Request) {
		if name, _ := ownRoute(strings.TrimPrefix(r.URL.Path, api.Prefix)); name == "" && post.Known(r.URL.Path) {
			sign(w, r) // a route of a program with the same prefix
			return
		}
		own.ServeHTTP(w, r)
	})
	loki := loki.New(loki.Options{
		Reader: s.reader, Labels: s.c.Label, Version: cli.Version(), Timeout: s.reads.Deadline(),
	})
	for _, path := range []string{"/loki/", "/json/", "/prometheus/"} {
		mux.Handle(path, loki)
	}
	mux.Handle("/", sign)
	return mux
}

// first answers at /: browsers get the page, and other programs a list of the paths, for which
// they need a token.
func (s *server) first(files http.Handler, list string) http.Handler {
	listed := s.guard.Wrap(func(string) door.Kind { return door.Light }, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		door.Say(w, http.StatusOK, list)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept")
		if strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/html") {
			files.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		listed.ServeHTTP(w, r)
	})
}

// refuse answers with a refusal in the form of the API that was asked.
func refuse(w http.ResponseWriter, r *http.Request, f *door.Refusal) {
	if strings.HasPrefix(r.URL.Path, "/api/") {
		api.Refuse(w, f)
		return
	}
	loki.Refuse(w, f)
}

// routeOf is the route of a path, for the doors and for metrics. A path that is not known
// passes all doors. A sender needs no token that reads to be told where records go.
func routeOf(path string) door.Route {
	switch path {
	case "/":
		return door.Route{Name: path, Kind: door.Public}
	case "/livez", "/ready", "/readyz":
		return door.Route{Name: path, Kind: door.Probe}
	case "/metrics":
		return door.Route{Name: path, Kind: door.Operator}
	case "/prometheus/api/v1/rules":
		return door.Route{Name: path, Kind: door.Light}
	}
	if strings.HasPrefix(path, page.Prefix) {
		return door.Route{Name: page.Prefix, Kind: door.Public}
	}
	view := ""
	if rest, ok := strings.CutPrefix(path, "/json/"); ok {
		view, path = "/json", "/"+rest
	}
	const loki, own = "/loki/api/v1/", "/api/v1/"
	if rest, ok := strings.CutPrefix(path, loki); ok {
		rest = strings.TrimPrefix(rest, loki[1:]) // Grafana 12.3.1 doubles it
		if name, kind := lokiRoute(rest); name != "" {
			return door.Route{Name: view + loki + name, Kind: kind}
		}
	} else if rest, ok := strings.CutPrefix(path, own); ok && view == "" {
		if name, kind := ownRoute(rest); name != "" {
			return door.Route{Name: own + name, Kind: kind}
		}
	}
	if signpost.Records(path) {
		return door.Route{Name: "other", Kind: door.Asks}
	}
	return door.Route{Name: "other", Kind: door.Query}
}

// lokiRoute is the route of a path of Loki's API, "" for none.
func lokiRoute(path string) (string, door.Kind) {
	switch path {
	case "tail":
		return path, door.Tail
	case "labels", "drilldown-limits", "format_query", "status/buildinfo":
		return path, door.Light
	case "push":
		return path, door.Asks // which it does not: it tells where records go
	case "query", "query_range", "series", "patterns", "index/stats", "index/volume", "index/volume_range", "detected_labels", "detected_fields":
		return path, door.Query
	}
	for _, name := range []string{"label", "detected_field"} {
		if strings.HasPrefix(path, name+"/") && strings.HasSuffix(path, "/values") {
			return name + "/{name}/values", door.Query
		}
	}
	return "", 0
}

// ownRoute is the route of a path of our own API, "" for none.
func ownRoute(path string) (string, door.Kind) {
	switch path {
	case "tail":
		return path, door.Tail
	case "whoami", "openapi.json", "parse":
		return path, door.Light
	case "login":
		return path, door.Asks
	case "services", "records", "context", "histogram", "count", "facets", "patterns", "days", "blobs", "ingesters", form.Parts:
		return path, door.Query
	}
	if strings.HasPrefix(path, "records/") {
		return "records/{service}/{id}", door.Query
	}
	if strings.HasPrefix(path, "blobs/") {
		return "blobs/{name...}", door.Query
	}
	return "", 0
}
