package complete_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/reading/blobs"
	"blobtail/record"
)

// A wish is a question of the clients of a server: of these records, those in this window.
type wish struct {
	selection
	win  blobs.Range
	most int // records, of an answer with a limit
}

// A selection selects records, by the parameters of the reading API and in LogQL.
type selection struct {
	params url.Values // nil: only LogQL can say it
	logql  string
	wants  func(s *sent) bool
}

// wish draws a wish.
func (w *serverWorld) wish(rng *rand.Rand) *wish {
	return &wish{w.selection(rng), w.window(rng), few(rng)}
}

// near returns a wish much like another one: the same, or with another window, another limit or
// another selection.
func (w *serverWorld) near(rng *rand.Rand, like *wish) *wish {
	one := *like
	switch rng.IntN(8) {
	case 0, 1, 2:
	case 3:
		one.win = w.window(rng)
	case 4, 5: // of the same hour
		one.win = recent(rng)
	case 6:
		one.most = few(rng)
	case 7:
		one.selection = w.selection(rng)
	}
	return &one
}

// recent draws a window with a few of the newest records.
func recent(rng *rand.Rand) blobs.Range {
	from := time.Now().UnixNano() - rng.Int64N(int64(time.Minute))
	return blobs.Range{From: from, To: from + 1 + rng.Int64N(int64(time.Minute))}
}

// name draws the name of a service, which may not exist yet.
func (w *serverWorld) name(rng *rand.Rand) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.service(rng)
}

// selection draws a selection: by the names of services, by a glob or an expression, by names that
// a service must not have, or by a level alone.
func (w *serverWorld) selection(rng *rand.Rand) selection {
	x, y := w.name(rng), w.name(rng)
	sel := selection{params: url.Values{"service": {"*"}}, logql: `service_name=~".+"`}
	is := func(string) bool { return true }
	switch rng.IntN(8) {
	case 0, 1:
		sel.params.Set("service", x)
		sel.logql, is = fmt.Sprintf("service_name=%q", x), func(s string) bool { return s == x }
	case 2:
		sel.params["service"] = []string{x, y}
		sel.logql, is = fmt.Sprintf("service_name=~%q", x+"|"+y), func(s string) bool { return s == x || s == y }
	case 3:
		sel.params.Set("service", "new*")
		sel.logql, is = `service_name=~"new.*"`, func(s string) bool { return strings.HasPrefix(s, "new") }
	case 4:
		sel.params = nil
		sel.logql, is = fmt.Sprintf("service_name!=%q", x), func(s string) bool { return s != x }
	case 5:
		sel.params, sel.logql = nil, ""
	}
	level, text := sel.logql == "" || rng.IntN(5) == 0, ""
	switch {
	case level && sel.logql == "":
		sel.logql = `level="error"`
	case level:
		sel.logql += `, level="error"`
		if sel.params != nil {
			sel.params.Set("level", "error")
		}
	}
	sel.logql = "{" + sel.logql + "}"
	if rng.IntN(8) == 0 {
		text = fmt.Sprint("r", 1+rng.IntN(9))
		sel.logql += fmt.Sprintf(" |= %q", text)
		if sel.params != nil {
			sel.params.Set("text", text)
		}
	}
	sel.wants = func(s *sent) bool {
		return is(s.service) && (!level || s.level == "error") && strings.HasPrefix(s.name, text)
	}
	return sel
}

// window draws a range of times.
func (w *serverWorld) window(rng *rand.Rand) blobs.Range {
	now := time.Now().UnixNano()
	ago := func(d time.Duration) int64 { return now - rng.Int64N(int64(d)) }
	win := blobs.Always()
	if w.p.Closed && rng.IntN(4) > 0 {
		return closedRange(rng)
	}
	switch rng.IntN(9) {
	case 0, 1:
		win.From = ago(3 * time.Hour)
	case 2:
		win.From, win.To = now-int64(10*time.Minute), now+int64(10*time.Minute)
	case 3, 4:
		win = recent(rng)
	case 5:
		win.From, win.To = ago(31*time.Hour), ago(time.Hour)
	case 6: // far below the last hour
		win.From, win.To = now-int64(25*24*time.Hour), ago(3*time.Hour)
	}
	if win.From >= win.To {
		win = blobs.Always()
	}
	return win
}

func (w *wish) has(ns int64) bool {
	return ns >= w.win.From && (w.win.To == blobs.Newest || ns < w.win.To)
}

// An ask is a request to a server, with its answer.
type ask struct {
	*wish
	w          *serverWorld
	s          *server
	name, kind string
	target     string
	header     bool // the client of Loki's API shows warnings
	read       func(a *ask, answer *httptest.ResponseRecorder) error

	newest, oldest int // only so many of the records
	// key is the name under which the answer counts a record, "" for none; nil: it has the records
	// themselves. atLeast says that a record may count twice.
	key     func(s *sent) string
	atLeast bool
	lasts   time.Duration // of an ask that its client ends
	must    bool          // nothing fails any more

	begin, end uint64
	status     int
	broken     bool // off
	complete   bool
	absent     bool // only because no such service exists
	cause      string
	told       []string // problems, by a tail that ends
	got        []string
	counted    map[string]int64
}

// span are the parameters of a window, in a form that both APIs read.
func (w *wish) span(v url.Values, from, to string, open bool) {
	text := func(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }
	if w.win.From != blobs.Oldest {
		v.Set(from, text(w.win.From))
	} else if !open {
		v.Set(from, "1")
	}
	if w.win.To != blobs.Newest {
		v.Set(to, text(w.win.To))
	} else if !open {
		v.Set(to, text(time.Now().Add(time.Hour).UnixNano()))
	}
}

// ask draws a request for a wish.
func (w *serverWorld) ask(rng *rand.Rand, s *server, like *wish) *ask {
	a := &ask{wish: like, w: w, s: s}
	kinds := []func(*ask, *rand.Rand){
		(*ask).ofRecords, (*ask).ofRecords, (*ask).ofRecords, (*ask).ofCount, (*ask).ofHistogram, (*ask).ofHistogram,
		(*ask).ofServices, (*ask).ofDays, (*ask).ofFound, (*ask).ofOnce,
		(*ask).ofLines, (*ask).ofLines, (*ask).ofLines, (*ask).ofInstant, (*ask).ofInstant, (*ask).ofSeries, (*ask).ofLabels,
	}
	k := rng.IntN(len(kinds)*12 + 1)
	if k == len(kinds)*12 {
		a.ofFollow(rng)
	} else {
		kinds[k%len(kinds)](a, rng)
	}
	return a
}

// own are the parameters of the reading API.
func (a *ask) own(rng *rand.Rand) url.Values {
	v := url.Values{}
	if a.params == nil || rng.IntN(4) == 0 {
		v.Set("logql", a.logql)
	} else {
		for name, all := range a.params {
			v[name] = slices.Clone(all)
		}
	}
	a.span(v, "from", "to", true)
	return v
}

func (a *ask) ofRecords(rng *rand.Rand) {
	a.kind, a.read = "records", (*ask).readLines
	v := a.own(rng)
	a.limit(rng, v)
	if rng.IntN(3) == 0 {
		v.Set("order", "desc")
	}
	switch {
	case rng.IntN(2) == 0:
		v.Set("form", "events")
		a.read = (*ask).readEvents
	case len(v["service"]) > 1 || rng.IntN(2) == 0: // else a service of two that does not exist breaks it off
		v.Set("partial", "1")
	}
	a.target = "/api/v1/records?" + v.Encode()
}

// limit draws a limit of the newest or oldest records, or none.
func (a *ask) limit(rng *rand.Rand, v url.Values) {
	switch rng.IntN(4) {
	case 0, 1:
		a.newest = a.most
		v.Set("limit", strconv.Itoa(a.most))
	case 2:
		a.oldest = a.most
		v.Set("first", strconv.Itoa(a.most))
	default:
		v.Set("limit", "0")
	}
}

func (a *ask) ofCount(rng *rand.Rand) {
	a.kind, a.read = "count", (*ask).readCount
	a.key = func(*sent) string { return "all" }
	a.target = "/api/v1/count?" + a.own(rng).Encode()
}

func (a *ask) ofHistogram(rng *rand.Rand) {
	v, n := a.own(rng), rng.IntN(3)
	if a.win.From < time.Now().Add(-48*time.Hour).UnixNano() {
		n = max(n, 1)
	}
	a.numbers(v, n, []string{"level", "service"}[rng.IntN(2)])
}

// numbers asks for a histogram by the minute, the hour or the day.
func (a *ask) numbers(v url.Values, n int, split string) {
	a.kind, a.read = "histogram", (*ask).readHistogram
	by := []time.Duration{time.Minute, time.Hour, 24 * time.Hour}[n]
	v.Set("by", []string{"1m", "1h", "1d"}[n])
	v.Set("split", split)
	a.key = func(s *sent) string {
		part := s.level
		if split == "service" {
			part = s.service
		}
		return string(record.AppendTime(nil, s.time-s.time%int64(by))) + " " + part
	}
	a.target = "/api/v1/histogram?" + v.Encode()
}

// all widens the ask to all records of all services.
func (a *ask) all() {
	one := *a.wish
	one.win, one.wants = blobs.Always(), func(*sent) bool { return true }
	a.wish = &one
}

func (a *ask) ofServices(*rand.Rand) {
	a.all()
	a.kind, a.read, a.atLeast, a.target = "services", (*ask).readServices, true, "/api/v1/services"
	a.key = func(s *sent) string { return s.service }
}

func (a *ask) ofDays(*rand.Rand) {
	a.all()
	a.kind, a.read, a.atLeast, a.target = "days", (*ask).readDays, true, "/api/v1/days?service=*"
	a.key = func(s *sent) string { return s.service + " " + time.Unix(0, s.time).UTC().Format(time.DateOnly) }
}

// ofFound asks for a record by the id that an earlier answer had.
func (a *ask) ofFound(rng *rand.Rand) {
	a.w.mu.Lock()
	names := make([]string, 0, len(a.w.ids))
	for name, s := range a.w.records {
		if a.w.ids[name] != "" && s.stores[a.s.s] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		a.w.mu.Unlock()
		a.ofCount(rng)
		return
	}
	name := names[rng.IntN(len(names))]
	id, service := a.w.ids[name], a.w.records[name].service
	a.w.mu.Unlock()
	a.all()
	a.wants = func(s *sent) bool { return s.name == name }
	a.kind, a.read, a.target = "record", (*ask).readFound, "/api/v1/records/"+service+"/"+id
}

func (a *ask) ofOnce(rng *rand.Rand) {
	a.kind, a.read = "tail once", (*ask).readTail
	v := a.own(rng)
	v.Del("to")
	v.Set("once", "1")
	one := *a.wish
	one.win.To = blobs.Newest
	a.wish = &one
	if a.newest = a.most; a.win.From != blobs.Oldest {
		a.newest = 0
	}
	v.Set("n", strconv.Itoa(a.newest))
	if a.newest == 0 {
		v.Del("n")
	}
	a.target = "/api/v1/tail?" + v.Encode()
}

// ofFollow asks for a tail that goes on. Its client ends it.
func (a *ask) ofFollow(rng *rand.Rand) {
	a.kind, a.read = "follow", (*ask).readTail
	v := a.own(rng)
	for _, name := range []string{"from", "to"} {
		v.Del(name)
	}
	v.Set("n", "0")
	one := *a.wish
	one.win = blobs.Always()
	a.wish = &one
	a.lasts = followBegins + followWait + time.Duration(rng.Int64N(int64(time.Minute)))
	a.target = "/api/v1/tail?" + v.Encode()
}

// lokis begins the parameters of Loki's API. One half of its clients shows warnings.
func (a *ask) lokis(rng *rand.Rand) url.Values {
	a.header = rng.IntN(2) == 0
	return url.Values{}
}

func (a *ask) ofLines(rng *rand.Rand) {
	a.kind, a.read = "loki lines", (*ask).readStreams
	v := a.lokis(rng)
	v.Set("query", a.logql)
	a.span(v, "start", "end", false)
	a.newest = a.most
	if rng.IntN(3) == 0 {
		a.newest = 5000
	}
	v.Set("limit", strconv.Itoa(a.newest))
	if rng.IntN(3) == 0 {
		v.Set("direction", "forward")
		a.oldest, a.newest = a.newest, 0
	}
	a.target = []string{"", "/json"}[rng.IntN(2)] + "/loki/api/v1/query_range?" + v.Encode()
}

// summed draws how a query with numbers divides the records, and the label that tells.
func summed(rng *rand.Rand) (head, label string) {
	if rng.IntN(3) == 0 {
		return "sum", ""
	}
	return "sum by (service_name) ", "service_name"
}

func (a *ask) ofInstant(rng *rand.Rand) {
	a.kind = "loki instant"
	v := a.lokis(rng)
	head, label := summed(rng)
	a.read = func(a *ask, answer *httptest.ResponseRecorder) error { return a.readNumbers(answer, label, false) }
	length := []time.Duration{10 * time.Minute, 3 * time.Hour, 48 * time.Hour}[rng.IntN(3)]
	at := time.Now().Add(10*time.Minute - time.Duration(rng.Int64N(int64(12*time.Minute)))).UnixNano()
	one := *a.wish
	one.win = blobs.Range{From: at - int64(length), To: at}
	a.wish = &one
	a.key = func(s *sent) string { return labelOf(s, label) + "@" }
	v.Set("query", fmt.Sprintf("%s(count_over_time(%s[%ds]))", head, a.logql, length/time.Second))
	v.Set("time", strconv.FormatInt(at, 10))
	a.target = "/loki/api/v1/query?" + v.Encode()
}

func labelOf(s *sent, label string) string {
	if label == "" {
		return ""
	}
	return s.service
}

// ofSeries asks for numbers at each step. Their windows touch.
func (a *ask) ofSeries(rng *rand.Rand) {
	a.kind = "loki series"
	v := a.lokis(rng)
	head, label := summed(rng)
	a.read = func(a *ask, answer *httptest.ResponseRecorder) error { return a.readNumbers(answer, label, true) }
	step := []int64{60, 600, 3600}[rng.IntN(3)]
	end := time.Now().Unix() + step - rng.Int64N(2*step)
	begin := end - step*(1+rng.Int64N(40))
	last, first := end-end%step, begin-begin%step // points
	one := *a.wish
	one.win = blobs.Range{From: (first - step) * int64(time.Second), To: last * int64(time.Second)}
	a.wish = &one
	a.key = func(s *sent) string {
		length := step * int64(time.Second)
		return fmt.Sprint(labelOf(s, label), "@", (s.time-s.time%length)/int64(time.Second)+step)
	}
	v.Set("query", fmt.Sprintf("%s(count_over_time(%s[%ds]))", head, a.logql, step))
	v.Set("start", fmt.Sprint(begin))
	v.Set("end", fmt.Sprint(end))
	v.Set("step", fmt.Sprint(step))
	a.target = "/loki/api/v1/query_range?" + v.Encode()
}

// ofLabels asks for a list of services. It may be some seconds old, so it only must not have
// names of none.
func (a *ask) ofLabels(rng *rand.Rand) {
	a.all()
	a.kind, a.read = "loki list", (*ask).readList
	a.target = "/loki/api/v1/label/service_name/values?" + a.lokis(rng).Encode()
}

// followWait is how long a record may take to come out of a tail that reports nothing: an
// ingester that hangs is given up in less.
const followWait = 90 * time.Second

// followBegins is how long a tail may take to meet the ingesters, if some hang.
const followBegins = 75 * time.Second

// mark notes the moment.
func (a *ask) mark(moment *uint64) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	*moment = a.w.tickLocked()
}

// run asks, and compares the answer with the acknowledged records.
func (a *ask) run() {
	w, patience := a.w, 40*time.Second
	a.begin = w.tick()
	if a.lasts > 0 {
		patience = a.lasts
		// The tail need not show the records of the first and of the last moments.
		time.AfterFunc(followBegins, func() { a.mark(&a.begin) })
		time.AfterFunc(a.lasts-followWait, func() { a.mark(&a.end) })
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w.say("%s begins: %s of %s", a.name, a.target, a.s.name)
	answer := a.request(ctx)
	if a.lasts == 0 {
		a.end = w.tick()
	}
	err := a.understand(answer)
	if err != nil {
		w.trouble("%s: %s: %d: %v: %.200s", a.name, a.target, a.status, err, answer.Body.String())
		return
	}
	a.judge()
}

// request has the server answer, unless it breaks off.
func (a *ask) request(ctx context.Context) (answer *httptest.ResponseRecorder) {
	answer = httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, a.target, http.NoBody)
	if a.header {
		r.Header.Set("X-Loki-Response-Encoding-Flags", "none")
	}
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			a.broken = true
		} else if p != nil {
			panic(p)
		}
	}()
	if strings.HasPrefix(a.target, "/api/") {
		a.s.api.ServeHTTP(answer, r)
	} else {
		a.s.loki.ServeHTTP(answer, r)
	}
	return answer
}
