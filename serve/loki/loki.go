// Package loki answers the read API of Loki, for Grafana, its app Logs Drilldown, and logcli.
//
// Make a handler with [New]. It serves each route below two prefixes. Below /loki/api/v1 the line
// of a record is its message, and its fields are structured metadata (the message view). Below
// /json/loki/api/v1 the line is the stored line (the line view). All names, shapes, key orders and
// texts of errors are those that these clients look for.
//
//	request -> parameters -> LogQL -> pipeline, question -> package reading -> JSON
//
// The indexes of blobs answer a query if they have its numbers; any other query reads records. Both
// count the same: the window of a point is [t - range, t), and points are multiples of the step. An
// answer that lacks records says so: in its warnings, if the client is known to show them, else it
// is an error.
//
// The package checks no tokens and bounds no numbers of queries: [door.Reads] do, and give
// each request its token. It takes no records either.
package loki

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/door"
	"blobtail/logql/stage"
	"blobtail/reading"
)

// Limits of queries, as Loki has them by default.
const (
	maxEntries = 5000    // lines of an answer
	maxPoints  = 11_000  // points of a series
	maxSeries  = 500     // series of an answer
	maxText    = 131_072 // bytes of the text of a query
	maxForm    = 1 << 20 // bytes of the body of a request
)

// Options configure a handler. Reader must be set.
type Options struct {
	Reader *reading.Reader
	// Labels are the names of fields that are labels of streams, next to service_name.
	Labels []string
	// Now is the clock that "now" in requests means; nil: [time.Now].
	Now func() time.Time
	// Version and Revision are of the program, for clients that ask.
	Version, Revision string
	// Timeout is how long a query may take, for clients that ask; 0: it is not known.
	Timeout time.Duration
	// Scan reads records even if the indexes of blobs could answer. Tests compare both.
	Scan bool
}

// A route answers a call, or returns why it cannot.
type route func(c *call) error

// API answers requests. It may be used by several goroutines at once.
type API struct {
	o      Options
	routes map[string]route // by their paths below /loki/api/v1/
	memory sync.Pool        // of *[]byte, for answers
}

// mostKept is the largest memory of an answer that is kept for the next one.
const mostKept = 8 << 20

// buffer returns memory for an answer.
func (a *API) buffer() []byte {
	if b, ok := a.memory.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return nil
}

// giveBack takes memory back.
func (a *API) giveBack(b []byte) {
	if cap(b) > 0 && cap(b) <= mostKept {
		a.memory.Put(&b)
	}
}

// New returns a handler for the paths below /loki/, /json/ and /prometheus/.
func New(o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &API{o: o, routes: map[string]route{
		"query_range":        (*call).queryRange,
		"query":              (*call).instantQuery,
		"tail":               (*call).tail,
		"labels":             (*call).labels,
		"label":              (*call).labels,
		"series":             (*call).series,
		"index/stats":        (*call).indexStats,
		"index/volume":       (*call).indexVolume,
		"index/volume_range": (*call).indexVolumeRange,
		"detected_labels":    (*call).detectedLabels,
		"detected_fields":    (*call).detectedFields,
		"patterns":           (*call).patterns,
		"drilldown-limits":   (*call).drilldownLimits,
		"format_query":       (*call).formatQuery,
		"status/buildinfo":   (*call).buildInfo,
	}}
}

const (
	prefix = "/loki/api/v1/"
	rules  = "/prometheus/api/v1/rules"
)

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, lines := strings.CutPrefix(r.URL.Path, "/json/")
	if lines {
		path = "/" + path
	}
	c := &call{api: a, w: w, r: r, now: a.o.Now(), lines: lines}
	if path == rules {
		c.serve((*call).rules)
		return
	}
	name, ok := strings.CutPrefix(path, prefix)
	name, _ = strings.CutPrefix(name, prefix[1:]) // Grafana 12.3 writes it twice for its apps
	if !ok {
		a.notFound(w)
		return
	}
	if name == "push" {
		c.refusePush()
		return
	}
	if serve := a.routeOf(name, c); serve != nil {
		c.serve(serve)
		return
	}
	a.notFound(w)
}

// routeOf returns the route of a path. The name of a label in it becomes that of the call.
func (a *API) routeOf(path string, c *call) route {
	if serve, ok := a.routes[path]; ok {
		return serve
	}
	kind, rest, _ := strings.Cut(path, "/")
	name, values := strings.CutSuffix(rest, "/values")
	if !values || name == "" {
		return nil
	}
	c.name = name
	switch kind {
	case "label":
		return (*call).labelValues
	case "detected_field":
		return (*call).detectedValues
	}
	return nil
}

// A call is one request while it is answered.
type call struct {
	api   *API
	w     http.ResponseWriter
	r     *http.Request
	form  url.Values
	store *reading.Store
	now   time.Time
	name  string // of a label, in the path
	lines bool   // the line view
	shows bool   // the client shows warnings
	sorts bool   // the client wants labels apart by their category

	out   []byte          // the unsent part of an object without its last brace
	sent  bool            // the header has been sent
	told  reading.Outcome // of all reads of the answer
	hints []string
	short bool // the answer has less than was asked for, which a hint says
}

func (c *call) ctx() context.Context { return c.r.Context() }

// budget is that of the query.
func (c *call) budget() *budget.Budget { return budget.Of(c.ctx()) }

// view is how pipelines see records.
func (c *call) view() stage.View {
	return stage.View{Lines: c.lines, Labels: c.api.o.Labels, Budget: c.budget()}
}

// serve answers by a route.
func (c *call) serve(answer route) {
	err := c.begin()
	if err == nil {
		if c.store.BlobsAlone() {
			c.hint(reading.BlobsAlone)
		}
		err = answer(c)
	}
	if ended := c.budget().Err(); ended != nil && (err != nil || c.out != nil) {
		err = ended // an answer made since then is not whole
	}
	if err == nil && c.out != nil { // otherwise it has been answered
		err = c.finish()
	}
	switch {
	case err == nil, errors.Is(err, errGone):
	case c.sent:
		panic(http.ErrAbortHandler) // so that a part does not look like the whole
	default:
		c.fail(err)
	}
}

// begin reads the parameters that all routes have.
func (c *call) begin() error {
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodPost && c.r.Method != http.MethodHead {
		return door.RefuseMethod("GET, HEAD, POST", "this route takes GET and POST")
	}
	c.r.Body = http.MaxBytesReader(c.w, c.r.Body, maxForm)
	if err := c.r.ParseForm(); err != nil {
		return refused("the parameters cannot be read: %v", err)
	}
	c.form = c.r.Form
	flags := c.r.Header.Values("X-Loki-Response-Encoding-Flags")
	c.shows = len(flags) > 0
	c.sorts = strings.Contains(strings.Join(flags, ","), "categorize-labels")
	c.store = c.api.o.Reader.For(door.Token(c.r))
	return nil
}
