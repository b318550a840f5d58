package blobs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blobtail/blobfmt"
	"blobtail/catalog/horizon"
	"blobtail/reading/blobs"
	"blobtail/reading/blobs/indexcache"
	"blobtail/record"
)

// world is a store, with records that reached it in all possible ways, and the
// records that a reader must see.
type world struct {
	b       *builder
	visible []rec
	start   int64
	hours   int64 // the span of the records

	// The records outside of blobs, and the copies of each record anywhere.
	outside   [3][]*record.Entry
	known     map[rec]*copies
	unflushed []*blobs.Unflushed
	expired   horizon.Horizons
}

// copies says where a record has copies.
type copies struct{ blob, outside bool }

// of returns the copies of a record.
func (w *world) of(r rec) *copies {
	if w.known[r] == nil {
		w.known[r] = &copies{}
	}
	return w.known[r]
}

// leave puts some of a request's records outside. They need not be in a blob yet.
func (w *world) leave(t *rapid.T, run []rec) (notYet bool) {
	for _, r := range run {
		where := rapid.IntRange(0, 7).Draw(t, "where")
		for i := range w.outside {
			if where>>i&1 == 0 {
				continue
			}
			w.of(r).outside = true
			w.outside[i] = append(w.outside[i], entry(r))
		}
	}
	return rapid.Bool().Draw(t, "not yet stored")
}

// settle seals the records outside and determines the records that a reader must see.
func (w *world) settle(t *rapid.T) {
	for i := range w.outside {
		w.outside[i] = slices.DeleteFunc(w.outside[i], func(e *record.Entry) bool {
			service, _ := record.LineService(e.Line)
			return w.expired.Hides(string(service), horizon.DayOfNs(e.Time))
		})
		slices.SortStableFunc(w.outside[i], func(a, b *record.Entry) int { return a.Compare(b) })
		w.unflushed = append(w.unflushed, unflushed(t, w.outside[i]...))
	}
	for r, c := range w.known {
		if w.expired.Hides(r.service, horizon.DayOfNs(r.time)) {
			continue
		}
		if !c.blob && !c.outside {
			continue
		}
		r.unflushed = !c.blob
		w.visible = append(w.visible, r)
	}
	slices.SortFunc(w.visible, compareRecs)
}

var services = []string{"api", "web", "web-2", "_rejected"}

// drawWorld stores requests with runs that were cut into batches at random: some
// stored twice, some under another period, some compacted.
func drawWorld(t *rapid.T, tb testing.TB) *world {
	w := &world{b: newBuilder(tb, rapid.SampledFrom([]int{200, 1000, 1 << 20}).Draw(t, "block")), known: map[rec]*copies{}}
	alone := rapid.Bool().Draw(t, "none unflushed")
	w.start = time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC).UnixNano()
	w.hours = rapid.SampledFrom([]int64{2, 2, 2, 10, 1000}).Draw(t, "hours")
	// A coarse clock makes many records of one time.
	tick := rapid.SampledFrom([]int64{1, 1e9, 600e9}).Draw(t, "tick")
	type place struct {
		service string
		period  time.Duration
		start   int64
	}
	batches := map[place][]rec{}
	var order []place
	put := func(period time.Duration, r rec) {
		p := place{r.service, period, time.Unix(0, r.time).Truncate(period).UnixNano()}
		if _, ok := batches[p]; !ok {
			order = append(order, p)
		}
		if !slices.ContainsFunc(batches[p], func(o rec) bool { return o.origin == r.origin && o.index == r.index }) {
			batches[p] = append(batches[p], r)
		}
	}
	flush := func() {
		var ids []blobfmt.BatchID
		for _, p := range order {
			_, id := w.b.add(p.period, batches[p])
			ids = append(ids, id)
		}
		if len(order) > 0 && rapid.IntRange(0, 9).Draw(t, "compact") == 0 {
			w.b.add(order[0].period, batches[order[0]], ids[0])
		}
		clear(batches)
		order = nil
	}
	var sent [][]rec
	for n := range rapid.IntRange(1, 12).Draw(t, "requests") {
		var run []rec
		if len(sent) > 0 && rapid.IntRange(0, 3).Draw(t, "again") == 0 {
			run = rapid.SampledFrom(sent).Draw(t, "copy")
		} else {
			run = w.request(t, tick, origin(uint64(rapid.IntRange(0, 255).Draw(t, "origin"))<<8|uint64(n)))
			sent = append(sent, run)
		}
		if !alone && rapid.Bool().Draw(t, "unflushed") && w.leave(t, run) {
			continue
		}
		period := rapid.SampledFrom([]time.Duration{time.Hour, 15 * time.Minute}).Draw(t, "period")
		for _, r := range run {
			put(period, r)
			w.of(r).blob = true
		}
		if rapid.Bool().Draw(t, "flush") {
			flush()
		}
	}
	flush()
	w.expire(t)
	w.settle(t)
	return w
}

// expire drops days of some services.
func (w *world) expire(t *rapid.T) {
	w.expired = horizon.Horizons{}
	for range rapid.IntRange(0, 3).Draw(t, "expired") {
		name := rapid.SampledFrom(services).Draw(t, "service")
		s := w.expired[name]
		d := horizon.DayOfNs(w.start) + horizon.Day(rapid.Int64Range(0, 1+w.hours/24).Draw(t, "day"))
		if rapid.Bool().Draw(t, "single") {
			s.Dropped = append(s.Dropped, d)
			slices.Sort(s.Dropped)
			s.Dropped = slices.Compact(s.Dropped)
			if err := horizon.Drop(context.Background(), w.b.store, name, d); err != nil {
				t.Fatal(err)
			}
		} else {
			s.First, s.Set = max(s.First, d), true
			if err := horizon.Publish(context.Background(), w.b.store, name, d); err != nil {
				t.Fatal(err)
			}
		}
		w.expired[name] = s
	}
}

// request draws the records of one request, numbered within service and hour.
func (w *world) request(t *rapid.T, tick int64, o record.Origin) []rec {
	var run []rec
	for range rapid.IntRange(1, 20).Draw(t, "lines") {
		r := rec{origin: o,
			service: rapid.SampledFrom(services).Draw(t, "service"),
			time:    w.start + rapid.Int64Range(0, w.hours*3600e9/tick-1).Draw(t, "time")*tick,
			level:   rapid.SampledFrom([]string{"trace", "info", "warn", "error", "critical", "odd", ""}).Draw(t, "level"),
		}
		msg := rapid.SampledFrom([]string{"started", "Timeout of a call", "timeout", `say "hi"`, "a\nb"}).Draw(t, "msg")
		r.line, r.msg = line(r.time, r.level, r.service, msg), msg
		run = append(run, r)
	}
	slices.SortStableFunc(run, func(a, b rec) int { return int(min(1, max(-1, a.time-b.time))) })
	next := map[string]uint32{}
	for i := range run {
		key := fmt.Sprint(run[i].service, run[i].time/3600e9)
		run[i].index = next[key]
		next[key]++
	}
	return run
}

func drawQuery(t *rapid.T, w *world) blobs.Query {
	q := blobs.Query{Range: blobs.Always(), Unflushed: w.unflushed}
	q.Services = rapid.SampledFrom([][]string{{"*"}, {"web"}, {"web*"}, {"_rejected", "api"}, {"api", "web", "web-2", "_rejected"}, {"_*", "w?b"}}).Draw(t, "services")
	edge := rapid.Custom(func(t *rapid.T) int64 {
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return w.start + rapid.Int64Range(-60, 180).Draw(t, "minute")*60e9
		case 1:
			return w.start + rapid.Int64Range(0, w.hours*3600e9).Draw(t, "ns")
		}
		if len(w.visible) == 0 {
			return w.start
		}
		return rapid.SampledFrom(w.visible).Draw(t, "record").time
	})
	if rapid.Bool().Draw(t, "from") {
		q.Range.From = edge.Draw(t, "fromT")
	}
	if rapid.Bool().Draw(t, "to") {
		q.Range.To = edge.Draw(t, "toT")
	}
	if rapid.IntRange(0, 2).Draw(t, "levels") == 0 {
		q.Filter.Levels, _ = blobs.ParseLevels(rapid.SampledFrom([]string{"error", "warn+", "info,critical", "other"}).Draw(t, "level"))
	}
	if rapid.IntRange(0, 2).Draw(t, "texts") == 0 {
		q.Filter.Texts = rapid.SampledFrom([][]string{{"timeout"}, {`"hi"`}, {"out", "call"}, {"a\nb"}, {`","n":1`}, {"n=1"}, {"error"}}).Draw(t, "text")
	}
	if rapid.IntRange(0, 3).Draw(t, "exprs") == 0 {
		q.Filter.Exprs = rapid.SampledFrom([][]string{{"^started"}, {"t.m"}, {"}$"}}).Draw(t, "expr")
	}
	if rapid.IntRange(0, 3).Draw(t, "words") == 0 {
		q.Filter.Words = rapid.SampledFrom([][]string{{"out"}, {"timeout"}, {"call out"}, {"hi"}}).Draw(t, "word")
	}
	if q.Filter.ReadsLines() {
		q.Filter.Invert = rapid.Bool().Draw(t, "invert")
		q.Filter.Fold = rapid.Bool().Draw(t, "fold")
	}
	if rapid.IntRange(0, 3).Draw(t, "accept") == 0 {
		rest := rapid.Uint32Range(0, 2).Draw(t, "rest")
		q.Filter.Accept = func(line []byte) bool { return line[len(line)-1] == '\n' && crc32.ChecksumIEEE(line)%3 != rest }
	}
	switch rapid.IntRange(0, 3).Draw(t, "limit") {
	case 0:
		q.Limit = rapid.IntRange(1, 30).Draw(t, "n")
	case 1:
		q.First = rapid.IntRange(1, 30).Draw(t, "n")
	}
	q.Reverse = rapid.Bool().Draw(t, "reverse")
	return q
}

// expect is a short model of a whole read.
func (w *world) expect(q blobs.Query) []rec {
	var out []rec
	for _, r := range w.visible {
		named := slices.ContainsFunc(q.Services, func(g string) bool {
			ok, _ := path.Match(g, r.service)
			return ok && (r.service[0] != '_' || g[0] == '_')
		})
		in := r.time >= q.Range.From && (r.time < q.Range.To || q.Range.To == blobs.Newest)
		level := q.Filter.Levels == 0 || q.Filter.Levels.Has(record.LevelOf([]byte(r.level)))
		if named && in && level && matches(q.Filter, r.line) {
			out = append(out, r)
		}
	}
	if q.Limit > 0 && len(out) > q.Limit {
		out = out[len(out)-q.Limit:]
	}
	if q.First > 0 && len(out) > q.First {
		out = out[:q.First]
	}
	if q.Reverse {
		slices.Reverse(out)
	}
	return out
}

// complete reports whether a read lacks nothing, and denies no service that exists.
func (w *world) complete(sum blobs.Summary) bool {
	return sum.Complete() && !slices.ContainsFunc(sum.Absent, func(none *blobs.NoServiceError) bool { return w.has(none.Name) })
}

// matches is the definition of a filter of texts.
func matches(f blobs.Filter, line string) bool {
	if f.Accept != nil && !f.Accept([]byte(line)) {
		return false
	}
	if f.Accept = nil; !f.ReadsLines() {
		return true
	}
	low := func(s string) string { return s }
	if f.Fold {
		low = strings.ToLower // the texts here are ASCII
	}
	texts := searched(line)
	any := func(is func(string) bool) bool { return slices.ContainsFunc(texts, is) }
	all := true
	for _, text := range f.Texts {
		all = all && any(func(s string) bool { return strings.Contains(low(s), low(text)) })
	}
	for _, word := range f.Words {
		e := regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(low(word)) + `(\W|$)`)
		all = all && any(func(s string) bool { return e.MatchString(low(s)) })
	}
	for _, expr := range f.Exprs {
		if f.Fold {
			expr = "(?i)" + expr
		}
		all = all && any(regexp.MustCompile(expr).MatchString)
	}
	return all != f.Invert
}

// searched are the texts of a line. The fields of these records need no quotes.
func searched(line string) (texts []string) {
	_, tail, _ := strings.Cut(line, `"msg":"`)
	texts = append(texts, strings.TrimSuffix(tail, "\n"))
	var fields map[string]any
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		panic(err)
	}
	for key, value := range fields {
		if text, ok := value.(string); ok {
			texts = append(texts, text)
		}
		if !slices.Contains([]string{"ts", "level", "service", "msg"}, key) {
			texts = append(texts, fmt.Sprintf("%s=%v", key, value))
		}
	}
	return texts
}

func read(t interface {
	Helper()
	Fatal(...any)
}, r *blobs.Reader, q blobs.Query) ([]string, blobs.Summary) {
	t.Helper()
	plan, err := r.Plan(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	sum, err := plan.Read(context.Background(), func(lines []byte) error {
		out.Write(lines)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(out.String())), sum
}

// However the records reached the store, a read returns the same as a plain search
// through all of them, and Count returns its number.
func TestReadAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt, t)
		now := time.Unix(0, w.start).Add(time.Duration(rapid.IntRange(-60, 60).Draw(rt, "now")) * time.Hour)
		r := blobs.New(w.b.store, blobs.Options{
			Workers: 2, GroupBytes: rapid.SampledFrom([]int64{1, 500, 8 << 20}).Draw(rt, "group"),
			Distant: rapid.Bool().Draw(rt, "distant"), Now: func() time.Time { return now },
			Indexes:  indexcache.New(rapid.SampledFrom([]int64{1, 8000, 1 << 30}).Draw(rt, "indexes")),
			Findings: rapid.SampledFrom([]int64{0, 5000, 1 << 30}).Draw(rt, "findings"),
		})
		var asked []blobs.Filter
		for range 4 {
			q := drawQuery(rt, w)
			if asked = append(asked, q.Filter); rapid.Bool().Draw(rt, "again") { // in another range
				q.Filter = rapid.SampledFrom(asked).Draw(rt, "of")
			}
			if rapid.Bool().Draw(rt, "scouted") {
				q.Ahead = rapid.Bool().Draw(rt, "ahead")
				q.Scout = r.Scout(context.Background(), q, nil)
				defer q.Scout.Close()
			}
			plan, err := r.Plan(context.Background(), q)
			if none, ok := err.(*blobs.NoServiceError); ok {
				if w.has(none.Name) {
					rt.Fatalf("%v, and there is", err)
				}
				continue
			}
			expected := w.expect(q)
			var want []string
			for _, r := range expected {
				want = append(want, r.line)
			}
			got, sum := read(rt, r, q)
			if n := onlyUnflushed(expected); sum.Unflushed != n {
				rt.Fatalf("%+v: %d said to be unflushed, want %d", q, sum.Unflushed, n)
			}
			if !slices.Equal(got, want) {
				rt.Fatalf("%+v\ngot %d\n%swant %d\n%s", q, len(got), strings.Join(got, ""), len(want), strings.Join(want, ""))
			}
			if !w.complete(sum) || sum.Records != int64(len(want)) {
				rt.Fatalf("summary %+v for %d records", sum, len(want))
			}
			w.checkNewest(rt, r, q, want)
			w.checkHistogram(rt, plan, q)
			n, sum, err := plan.Count(context.Background())
			if err != nil || n != int64(len(want)) || !w.complete(sum) || q.Limit+q.First == 0 && sum.Unflushed != onlyUnflushed(expected) {
				rt.Fatalf("%+v: count %d, %v, %v, want %d", q, n, err, sum.Problems, len(want))
			}
		}
	})
}

// has reports whether a name or glob stands for any service.
func (w *world) has(pattern string) bool {
	if s := w.expired[pattern]; !s.Empty() {
		return true
	}
	return slices.ContainsFunc(w.visible, func(r rec) bool {
		ok, _ := path.Match(pattern, r.service)
		return ok && (r.service[0] != '_' || pattern[0] == '_')
	})
}

func onlyUnflushed(recs []rec) (n int64) {
	for _, r := range recs {
		if r.unflushed {
			n++
		}
	}
	return n
}

// checkNewest repeats the read by windows and compares.
func (w *world) checkNewest(t *rapid.T, r *blobs.Reader, q blobs.Query, want []string) {
	if q.Limit == 0 {
		return
	}
	var out strings.Builder
	sum, err := r.Newest(context.Background(), q, func(lines []byte) error { out.Write(lines); return nil })
	if got := slices.Collect(strings.Lines(out.String())); err != nil || !slices.Equal(got, want) {
		t.Fatalf("by windows: %+v\n%v, %d\n%swant %d\n%s", q, err, len(got), out.String(), len(want), strings.Join(want, ""))
	}
	if !w.complete(sum) || sum.Records != int64(len(want)) || sum.Bytes != int64(out.Len()) {
		t.Fatalf("by windows: %+v for %d", sum, len(want))
	}
	all := q
	all.Limit = 0
	if rest := len(w.expect(all)) - len(want); rest > 0 && !sum.More {
		t.Fatalf("by windows: there are %d more", rest)
	}
}

// checkHistogram compares the histogram with the lines of a read.
func (w *world) checkHistogram(t *rapid.T, plan *blobs.Plan, q blobs.Query) {
	by := rapid.SampledFrom([]time.Duration{time.Minute, 5 * time.Minute, time.Hour, 24 * time.Hour, 7 * time.Second, 90 * time.Second, 1}).Draw(t, "by")
	q.Limit, q.First, q.Reverse = 0, 0, false
	var want []blobs.Bucket
	all := w.expect(q)
	for _, r := range all {
		start := time.Unix(0, r.time).UnixNano() / int64(by) * int64(by)
		if len(want) == 0 || want[len(want)-1].Start != start {
			want = append(want, blobs.Bucket{Start: start})
		}
		want[len(want)-1].Levels[record.LevelOf([]byte(r.level))]++
	}
	got, sum, err := plan.Histogram(context.Background(), blobs.Buckets{Length: by})
	if err != nil || !slices.Equal(got, want) || sum.Records != int64(len(all)) || sum.Unflushed != onlyUnflushed(all) || !w.complete(sum) {
		t.Fatalf("%+v by %v: %v\n%+v\ngot  %v\nwant %v", q, by, err, sum, got, want)
	}
}

// The parts of a range have the same total as the whole.
func TestSubRanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt, t)
		r := blobs.New(w.b.store, blobs.Options{})
		all := []string{"api", "web", "web-2", "_rejected"}
		all = slices.DeleteFunc(all, func(s string) bool {
			return !slices.ContainsFunc(w.visible, func(r rec) bool { return r.service == s })
		})
		cuts := rapid.SliceOfN(rapid.Int64Range(w.start-1e9, w.start+7201e9), 1, 5).Draw(rt, "cuts")
		slices.Sort(cuts)
		var parts []string
		from := blobs.Oldest
		for _, to := range append(cuts, blobs.Newest) {
			got, _ := read(rt, r, blobs.Query{Services: all, Range: blobs.Range{From: from, To: to}, Unflushed: w.unflushed})
			parts = append(parts, got...)
			from = to
		}
		whole, _ := read(rt, r, blobs.Query{Services: all, Range: blobs.Always(), Unflushed: w.unflushed})
		if !slices.Equal(parts, whole) || len(whole) != len(w.visible) {
			rt.Fatalf("%d in parts, %d at once, %d stored", len(parts), len(whole), len(w.visible))
		}
	})
}
