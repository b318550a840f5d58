// Package api serves the reading API, version 1: records, counts and lists over HTTP.
//
// Make a handler by [New] and mount it at /api/v1/, behind the doors of package door, which
// has found the token of each request. The handler takes the services of a request from a
// [reading.Store] of that token, and from nowhere else. All routes but login answer to GET only, and
// no answer is kept by caches.
//
//	request -> parameters -> reading.Ask -> reading.Store -> JSON, NDJSON, CSV or events
//
// The parameters have the names and the meaning of the flags of logquery. An answer that lacks
// records says so. A stream of lines without a place to say it breaks off, so that its reader
// fails (see [form.TrailerComplete]). Package form has the answers as values; openapi.yaml
// describes them, and is served as openapi.json.
//
// The package decides nothing about tokens, hosts and limits of clients: the doors log people in.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"blobtail/internal/access"
	"blobtail/internal/budget"
	"blobtail/internal/door"
	"blobtail/internal/spelling"
	"blobtail/reading"
	"blobtail/reading/form"
)

// Prefix is the path of all routes.
const Prefix = "/api/v1/"

// Options configure a handler. Reader must be set.
type Options struct {
	Reader *reading.Reader
	// Guard logs people in; nil: there are no tokens.
	Guard *door.Guard
	// Time is the time of the store; nil: Now.
	Time func(context.Context) (time.Time, error)
	// Now is the time of this host; nil: [time.Now].
	Now func() time.Time
	// Forms are those of questions that name none, as in [reading.Ask.Parse].
	Forms string
	// Version is the version of the server, for whoami.
	Version string
}

// New returns a handler of the routes below [Prefix].
func New(o Options) http.Handler {
	if o.Guard == nil {
		o.Guard = door.New(door.Options{})
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Time == nil {
		o.Time = func(context.Context) (time.Time, error) { return o.Now(), nil }
	}
	a := &api{o}
	mux := http.NewServeMux()
	for _, r := range a.routes() {
		mux.HandleFunc(Prefix+r.path, func(w http.ResponseWriter, req *http.Request) { a.answer(w, req, r) })
	}
	mux.HandleFunc("/", a.unknown)
	return mux
}

type api struct{ o Options }

// A route answers the requests of a path below [Prefix].
type route struct {
	path    string
	params  []string
	methods []string // nil: GET
	handle  func(*call) error
}

func (a *api) routes() []route {
	times := func(more ...string) []string { return append(reading.SpanKeys(), more...) }
	with := func(more ...string) []string { return append(reading.Keys(), more...) }
	return []route{
		{path: "services", params: times("live"), handle: (*call).services},
		{path: "records", params: with("limit", "first", "order", "before", "after", "fields", "form", "partial", "download", "part"), handle: (*call).records},
		{path: "histogram", params: with("by", "buckets", "split", "top"), handle: (*call).histogram},
		{path: "count", params: with(), handle: (*call).count},
		{path: "facets", params: with("fields", "top", "sample"), handle: (*call).facets},
		{path: "patterns", params: with("top", "sample", "from2", "to2", "since2"), handle: (*call).patterns},
		{path: form.Parts, params: with("joint", "part"), handle: (*call).part},
		{path: "parse", params: times("service", "q", "fold", "logql", "typed", "parse"), handle: (*call).parsed},
		{path: "records/{service}/{id}", params: []string{"live"}, handle: (*call).found},
		{path: "context", params: []string{"service", "id", "before", "after", "services", "live"}, handle: (*call).context},
		{path: "tail", params: slices.DeleteFunc(with("n", "after", "once"), func(name string) bool { return name == "to" || name == "day" }), handle: (*call).tail},
		{path: "days", params: times("service", "live"), handle: (*call).days},
		{path: "blobs", params: times("service", "live"), handle: (*call).blobs},
		{path: "blobs/{name...}", params: []string{"stored", "partial"}, methods: []string{http.MethodGet, http.MethodHead}, handle: (*call).blob},
		{path: "ingesters", handle: (*call).ingesters},
		{path: "openapi.json", handle: (*call).openapi},
		{path: "whoami", handle: (*call).whoami},
		{path: "login", methods: []string{http.MethodPost, http.MethodDelete}, handle: (*call).login},
	}
}

// call is one request.
type call struct {
	*api
	w      http.ResponseWriter
	r      *http.Request
	store  *reading.Store
	token  *access.Token
	params reading.Params
	now    time.Time // at the start, in the zone of the request
}

// answer has a route answer a request.
func (a *api) answer(w http.ResponseWriter, r *http.Request, to route) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	c := &call{api: a, w: w, r: r, token: door.Token(r), now: a.o.Now().UTC()}
	c.store = a.o.Reader.For(c.token)
	methods := to.methods
	if methods == nil {
		methods = []string{http.MethodGet}
	}
	if !slices.Contains(methods, r.Method) {
		c.fail(door.RefuseMethod(strings.Join(methods, ", "), "%s is not answered here; send a %s", r.Method, methods[0]))
		return
	}
	err := c.parse(to.params)
	if err == nil {
		err = to.handle(c)
	}
	if ended := budget.Of(c.r.Context()).Err(); ended != nil && err != nil {
		err = ended // which may be why the read was interrupted
	}
	if err != nil {
		c.fail(err)
	}
}

// json answers with one object.
func (c *call) json(answer any) error {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(answer); err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", form.JSON)
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(body.Bytes()) // a client that has gone needs no answer
	return nil
}

// unknown answers the requests of all other paths.
func (a *api) unknown(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	c := &call{api: a, w: w, r: r}
	var names []string
	for _, r := range a.routes() {
		if !strings.Contains(r.path, "/") {
			names = append(names, r.path)
		}
	}
	none := door.Refuse(http.StatusNotFound, "no such route; there are %s%s", Prefix, strings.Join(names, ", "))
	c.fail(&problem{Refusal: none, near: spelling.Near(strings.TrimPrefix(r.URL.Path, Prefix), names)})
}
