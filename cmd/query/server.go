package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"blobtail/blobfmt"
	"blobtail/internal/cli"
	"blobtail/internal/heartbeat"
	"blobtail/internal/units"
	"blobtail/newest"
	"blobtail/query"
	"blobtail/readapi/client"
	"blobtail/readapi/form"
	"blobtail/record"
	"blobtail/record/times"
)

// serverPlace is a server that reads a store for others.
type serverPlace struct {
	a      *app
	client *client.Client
}

// openServer returns the place of --server. It sends nothing yet.
func (a *app) openServer() (place, error) {
	token, err := a.token()
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	c, err := client.New(a.flags.Server, client.Options{Token: token, PlainHTTP: a.flags.PlainHTTP})
	if plain, ok := errors.AsType[*client.PlainError](err); ok {
		return nil, cli.Usagef("%w, or --plain-http if nobody can listen on the way", plain)
	}
	if err != nil {
		return nil, cli.Usagef("--server: %w", err)
	}
	a.place = &serverPlace{a, c}
	return a.place, nil
}

func (p *serverPlace) name() string { return p.client.String() }

func (p *serverPlace) look(_ context.Context, q query.Query, mode newest.Mode) (view, error) {
	if _, err := q.Filter.Matcher(nil); err != nil {
		return nil, err
	}
	v := &serverView{place: p, of: q, mode: mode, noted: map[string]bool{}}
	if mode == newest.Off {
		v.warn(newest.BlobsAlone)
	}
	return v, nil
}

func (p *serverPlace) tail(ctx context.Context, q query.Query, print func(lines []byte) error) (query.Summary, *newest.Report, error) {
	v, err := p.look(ctx, q, newest.Auto)
	if err != nil {
		return query.Summary{}, nil, err
	}
	sum, err := v.lines(ctx, q, nil, print)
	return sum, v.report(), err
}

func (p *serverPlace) holds(context.Context, string) bool { return false } // the server has looked itself

func (p *serverPlace) held(context.Context) []string { return nil } // services names them

func (p *serverPlace) services(ctx context.Context) (names []string, err error) {
	found, err := p.client.Services(ctx, client.Query{})
	if err != nil {
		return nil, p.failure(nil, err)
	}
	for i := range found.Services {
		names = append(names, found.Services[i].Name)
	}
	return names, nil
}

// damage is the error of a damaged blob. It is nil for damage that everybody sees who reads
// the body.
func damage(key string, body []byte, detail string) error {
	for _, err := range blobfmt.NewDecoder(1).Walk(key, body) {
		if err != nil && err.Error() == detail {
			return nil
		}
	}
	return &query.Problem{Blob: key, Err: errors.New(strings.TrimPrefix(detail, key+": "))}
}

// failure is an error of the client as the verbs know it. asked are the services of the
// request.
func (p *serverPlace) failure(asked []string, err error) error {
	refused, ok := errors.AsType[*client.Error](err)
	if !ok {
		return err
	}
	switch name := refused.Service; {
	case refused.Status != 404 || refused.Title != "No such service":
		return err
	case name == "" && len(asked) == 1:
		return &query.NoServiceError{Name: asked[0], Near: refused.Near}
	case name != "":
		return &query.NoServiceError{Name: name, Near: refused.Near}
	}
	return err
}

// serverView reads over the server. Each of its methods is one request, and the server looks
// at the store anew.
type serverView struct {
	place *serverPlace
	of    query.Query
	mode  newest.Mode
	told  newest.Report
	noted map[string]bool
}

func (v *serverView) query() query.Query     { return v.of }
func (v *serverView) report() *newest.Report { return &v.told }
func (v *serverView) close()                 {}

// asking is a query in the words of the server.
func (v *serverView) asking(q query.Query) client.Query {
	out := client.Query{
		Services: q.Services, Texts: q.Filter.Texts, Words: q.Filter.Words, Exprs: q.Filter.Exprs, Invert: q.Filter.Invert, Fold: q.Filter.Fold,
		Live:  map[newest.Mode]string{newest.Auto: "auto", newest.Off: "off", newest.Only: "only"}[v.mode],
		Limit: q.Limit, First: q.First, Reverse: q.Reverse,
	}
	if q.Range.From != query.Oldest {
		out.From = time.Unix(0, q.Range.From)
	}
	if q.Range.To != query.Newest {
		out.To = time.Unix(0, q.Range.To)
	}
	if q.Filter.Where != nil {
		out.Where = q.Filter.Where.String()
	}
	var levels []string
	for l := range record.Level(record.NumLevels) {
		if q.Filter.Levels.Has(l) {
			levels = append(levels, l.String())
		}
	}
	out.Levels = strings.Join(levels, ",")
	return out
}

func (v *serverView) lines(ctx context.Context, q query.Query, only []string, emit func(lines []byte) error) (query.Summary, error) {
	asking := v.asking(q)
	asking.Fields = only
	finish := func() error { return nil }
	if v.place.a.pages() {
		pager := newAhead(mostAhead, emit)
		emit, finish = pager.add, pager.finish
	}
	var sum query.Summary
	end, err := v.place.client.Records(ctx, asking, func(lines []byte) error {
		sum.Records++
		return emit(lines)
	})
	if ferr := finish(); ferr != nil {
		return sum, ferr
	}
	if broken, ok := errors.AsType[*client.BrokenError](err); ok {
		sum.Lack(broken)
		return sum, nil
	}
	if err != nil {
		return sum, v.place.failure(q.Services, err)
	}
	sum = v.summary(&end.Outcome)
	sum.Records, sum.Bytes, sum.More, sum.Unflushed, sum.Examined, sum.Higher = end.Records, end.Bytes, end.More, end.Unflushed, end.Examined, end.Higher
	return sum, nil
}

// warn adds a warning to the report, once.
func (v *serverView) warn(text string) {
	if !v.noted[text] {
		v.noted[text] = true
		v.told.Warnings = append(v.told.Warnings, errors.New(text))
	}
}

// summary is the outcome of a request. Notes and gaps go to the report, once.
func (v *serverView) summary(o *form.Outcome) query.Summary {
	for _, note := range o.Notes {
		if !v.noted[note] {
			v.noted[note] = true
			if strings.HasPrefix(note, "where: ") {
				note = "--" + note // the flag
			}
			v.told.Notes = append(v.told.Notes, note)
		}
	}
	for _, g := range o.Gaps {
		if gap := gapOf(g); !slices.Contains(v.told.Gaps, gap) {
			v.told.Gaps = append(v.told.Gaps, gap)
		}
	}
	sum := query.Summary{
		Requests: o.Cost.Requests, Fetched: o.Cost.Bytes, BlobsListed: o.Cost.BlobsListed, BlobsOpened: o.Cost.BlobsOpened,
		BlocksRead: o.Cost.BlocksRead, BlocksSkipped: o.Cost.BlocksSkipped, RuledOutByIDs: o.Cost.SkippedByIDs, RuledOutByWords: o.Cost.SkippedByWords,
		Copies: o.Cost.Copies,
	}
	for _, text := range o.Problems {
		sum.Lack(errors.New(text))
	}
	if !o.Complete && sum.Complete() {
		sum.Lack(fmt.Errorf("the server %s says that its answer is incomplete", v.place.name()))
	}
	absent := map[string]bool{}
	for _, name := range o.Absent {
		none := &query.NoServiceError{Name: name}
		sum.Absent = append(sum.Absent, none)
		absent[none.Error()] = true
	}
	for _, text := range o.Warnings {
		switch {
		case strings.HasPrefix(text, newest.LiveOff):
			v.warn(text)
		case !absent[text]:
			sum.Warnings = append(sum.Warnings, errors.New(text))
		}
	}
	return sum
}

func gapOf(g form.Gap) newest.Gap {
	return newest.Gap{Service: g.Service, Records: g.Records, AtMost: g.AtMost, From: nanos(g.From), To: nanos(g.To)}
}

// nanos reads a time of the server, 0 if there is none.
func nanos(text string) int64 {
	ns, _ := times.Parse([]byte(text))
	return ns
}

func (v *serverView) count(ctx context.Context, q query.Query) (int64, query.Summary, error) {
	c, err := v.place.client.Count(ctx, v.asking(q))
	if err != nil {
		return 0, query.Summary{}, v.place.failure(q.Services, err)
	}
	// As the command counts without a server, too.
	n := c.Records
	if limit := int64(max(q.Limit, q.First)); limit > 0 {
		n = min(n, limit)
	}
	sum := v.summary(&c.Outcome)
	sum.Records, sum.Unflushed, sum.Examined, sum.Higher, sum.More = n, c.Unflushed, c.Examined, c.Higher, n < c.Records
	return n, sum, nil
}

func (v *serverView) histogram(ctx context.Context, q query.Query, by time.Duration, cut cutter) ([]query.Bucket, query.Summary, error) {
	o := client.HistogramOptions{Timezone: zoneOf(v.place.a.now.Location())}
	if by > 0 {
		o.By = units.Duration(by).String()
	}
	h, err := v.place.client.Histogram(ctx, v.asking(q), o)
	if err != nil {
		return nil, query.Summary{}, v.place.failure(q.Services, err)
	}
	chosen, err := cut(nanos(h.First), nanos(h.Last), h.First != "")
	if err != nil {
		return nil, query.Summary{}, err
	}
	// The server chooses the same length, unless it does not know what --since was of.
	sum := v.summary(&h.Outcome)
	if o.By = units.Duration(chosen.Length).String(); o.By != h.By && len(h.Buckets) > 0 {
		if h, err = v.place.client.Histogram(ctx, v.asking(q), o); err != nil {
			return nil, query.Summary{}, v.place.failure(q.Services, err)
		}
		again := v.summary(&h.Outcome)
		sum.Join(&again)
	}
	buckets := make([]query.Bucket, len(h.Buckets))
	sum.Examined, sum.Higher = h.Examined, h.Higher
	for i := range h.Buckets {
		buckets[i].Start = nanos(h.Buckets[i].Time)
		for level, n := range h.Buckets[i].Counts {
			buckets[i].Levels[record.ParseLevel([]byte(level))] += n
		}
		sum.Records += total(&buckets[i])
	}
	return buckets, sum, nil
}

// zoneOf is the name of a zone that the server knows. That of this host has none in Go.
func zoneOf(zone *time.Location) string {
	if name := zone.String(); name != "Local" {
		return name
	}
	if path, err := os.Readlink("/etc/localtime"); err == nil {
		if _, name, ok := strings.Cut(path, "/zoneinfo/"); ok {
			return name
		}
	}
	return time.Now().In(zone).Format("-07:00")
}

func (v *serverView) list(ctx context.Context, q query.Query, day time.Time) ([]query.Total, query.Summary, error) {
	asking, c := v.asking(q), v.place.client
	var out []query.Total
	switch {
	case len(q.Services) == 0:
		found, err := c.Services(ctx, asking)
		if err != nil {
			return nil, query.Summary{}, err
		}
		for _, s := range found.Services {
			out = append(out, query.Total{
				Name: s.Name, Blobs: s.Blobs, Records: s.Records, Raw: s.Bytes, Stored: s.Stored, Unflushed: s.Unflushed, First: nanos(s.First), Last: nanos(s.Last),
			})
		}
		slices.SortStableFunc(out, func(x, y query.Total) int { // those of the system last
			xs, ys := strings.HasPrefix(x.Name, "_"), strings.HasPrefix(y.Name, "_")
			switch {
			case xs == ys:
				return 0
			case xs:
				return 1
			}
			return -1
		})
		return out, v.summary(&found.Outcome), nil
	case day.IsZero():
		found, err := c.Days(ctx, asking)
		if err != nil {
			return nil, query.Summary{}, v.place.failure(q.Services, err)
		}
		for _, d := range found.Days {
			out = append(out, query.Total{
				Name: d.Day, Blobs: d.Blobs, Records: d.Records, Raw: d.Bytes, Stored: d.Stored, Unflushed: d.Unflushed, First: nanos(d.First), Last: nanos(d.Last),
			})
		}
		return out, v.summary(&found.Outcome), nil
	}
	asking.From, asking.To = day, day.AddDate(0, 0, 1)
	found, err := c.Blobs(ctx, asking)
	if err != nil {
		return nil, query.Summary{}, v.place.failure(q.Services, err)
	}
	for _, b := range found.Blobs {
		out = append(out, query.Total{Name: b.Name, Blobs: 1, Records: b.Records, Raw: b.Bytes, Stored: b.Stored, First: nanos(b.First), Last: nanos(b.Last)})
	}
	if found.Unflushed > 0 {
		out = append(out, query.Total{Unflushed: found.Unflushed})
	}
	return out, v.summary(&found.Outcome), nil
}

func (v *serverView) explain(context.Context, query.Query) (query.Explanation, query.Summary, error) {
	return query.Explanation{}, query.Summary{}, cli.Usagef("--explain looks at the blobs of a store; over a server --stats tells what a read took")
}

func (p *serverPlace) follow(ctx context.Context, o newest.FollowOptions) (newest.Cursor, error) {
	v := &serverView{place: p}
	follow := client.FollowOptions{Newest: o.Query.Limit, Once: o.Once, Emit: o.Emit}
	if o.After != nil {
		follow.After = o.After.String()
	}
	follow.Tell = func(ev form.Event) {
		report := &newest.Report{}
		switch {
		case ev.Warning != "":
			report.Warnings = []error{errors.New(ev.Warning)}
		case ev.Absent != "":
			report.Absent = []*query.NoServiceError{{Name: ev.Absent}}
		case ev.Note != "":
			report.Notes = []string{ev.Note}
		case ev.Gap != nil:
			report.Gaps = []newest.Gap{gapOf(*ev.Gap)}
		case ev.Problem != "":
			report = &newest.Report{Problems: []error{errors.New(ev.Problem)}}
		}
		o.Report(report)
	}
	text, err := p.client.Follow(ctx, v.asking(o.Query), follow)
	cursor, cerr := newest.ParseCursor(text)
	if text != "" && cerr != nil {
		err = cmp.Or(err, fmt.Errorf("the cursor of the server %s cannot be read: %w", p.client, cerr))
	}
	return cursor, p.failure(o.Query.Services, err)
}

func (p *serverPlace) ingesters(ctx context.Context) (rows []heartbeat.Ingester, now time.Time, unread, err error) {
	found, err := p.client.Ingesters(ctx)
	if err != nil {
		return nil, time.Time{}, nil, err
	}
	at := func(text string) time.Time {
		if text == "" {
			return time.Time{}
		}
		return time.Unix(0, nanos(text)).UTC()
	}
	for _, i := range found.Ingesters {
		rows = append(rows, heartbeat.Ingester{
			ID: i.ID, State: heartbeat.State(i.Holds), Lane: i.Lane, Host: i.Host, Address: i.Address, Version: i.Version, StoreID: i.StoreID,
			Started: at(i.Started), At: at(i.At), Oldest: at(i.Oldest), Floor: at(i.Floor), Lost: heartbeat.Loss{Since: at(i.LostSince), Until: at(i.LostUntil)},
		})
	}
	if !found.Complete {
		unread = errors.New(strings.Join(found.Problems, "; "))
	}
	return rows, at(found.Time), unread, nil
}

func (p *serverPlace) body(ctx context.Context, key string) (body []byte, warning, err error) {
	body, text, err := p.client.Blob(ctx, key)
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusNotFound {
		err = &query.NoBlobError{Key: key, Expired: strings.Contains(refused.Detail, "has expired")}
	}
	if damaged, ok := errors.AsType[*client.DamagedError](err); ok {
		err = damage(key, body, damaged.Detail)
	}
	if text != "" {
		warning = errors.New(text)
	}
	return body, warning, err
}
