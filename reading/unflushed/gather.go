package unflushed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"blobtail/internal/budget"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed/live"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/fanout"
	"blobtail/tailindex"
)

// Gathered is a query completed by unflushed records.
type Gathered struct {
	Query  blobs.Query
	Report Report
	// Live says that all ingesters that may hold records of the range have answered.
	Live bool

	r        *Reader
	mode     Mode
	hidden   hidden // set once it is known
	known    *survey
	heard    heard
	rows     []tailindex.Row // added to the query
	tableErr error           // of rows that could not be read
}

// Close releases the gathered records.
func (g *Gathered) Close() {
	if g.r != nil {
		g.r.gathered.Add(-1)
		g.r = nil
	}
	for _, u := range g.Query.Unflushed {
		u.Close()
	}
	if g.Query.Scout != nil {
		g.Query.Scout.Close()
	}
}

const (
	// gatheredMemory is how many bytes of unflushed records all reads together hold in memory.
	gatheredMemory = 96 << 20
	// One read holds so many at most, and at least so many, however many reads there are.
	mostGathered, leastGathered = 48 << 20, 4 << 20
)

// unflushed returns an empty Unflushed with its part of the memory.
func (r *Reader) unflushed(name string) *blobs.Unflushed {
	u := blobs.NewUnflushed(name)
	u.Within(min(mostGathered, max(leastGathered, gatheredMemory/max(1, r.gathered.Load()))))
	return u
}

// Gather finds the unflushed records of a query and adds them to the query. Call it
// before blobs are listed. It reports records that it cannot get. It returns an error
// only if no result is possible, as when ctx ends.
func (r *Reader) Gather(ctx context.Context, q blobs.Query, mode Mode) (*Gathered, error) {
	switch {
	case mode == Elsewhere:
		return &Gathered{Query: q, mode: mode}, nil
	case mode == Off || mode == Auto && r.o.Off:
		g := &Gathered{Query: q}
		if !r.o.Unasked {
			g.Report.warn(BlobsAlone)
		}
		return g, nil
	case r.o.Off:
		g := &Gathered{Query: q}
		g.Report.problem(errors.New("--live only reads what ingesters hold, and live: off asks none of them; leave one out"))
		return g, nil
	}
	return r.gather(ctx, q, mode, (*Gathered).addWritten)
}

// gather adds rows if live records alone are not complete.
func (r *Reader) gather(ctx context.Context, q blobs.Query, mode Mode, rows func(*Gathered, context.Context) error) (*Gathered, error) {
	r.gathered.Add(1)
	g := &Gathered{Query: q, r: r, mode: mode, known: r.survey(ctx, q.Services)}
	// An answer may say where to begin, unless the range does.
	if mode == Auto && (!r.asks() || q.Ahead && q.Limit == 0) {
		g.Query.Scout = r.o.Blobs.Scout(ctx, q, g.known.checked)
	}
	ask := question(&q)
	ask.Stored = mode != Only
	err := g.ask(ctx, ask)
	if err == nil && !g.Live && mode != Only {
		err = rows(g, ctx)
	}
	if err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// ask adds the records of ingesters to the query, and reports those that a read lacks.
func (g *Gathered) ask(ctx context.Context, question live.Query) error {
	err := g.askLive(ctx, question)
	kerr := g.know()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if kerr != nil || g.r.o.Unasked {
		return kerr
	}
	k := g.known.wait()
	if k.copied != nil {
		err = nil // of an ingester that the user named: it writes to another store
	}
	g.heard.err = err
	switch {
	case g.r.o.Off:
		g.Report.warnOfTables()
		return nil
	case g.mode == Only && g.r.o.Live == nil && k.asleep():
		g.Report.note("%v, so there are no live records", ErrNobody)
	}
	if err != nil && g.r.o.Live != nil && !k.settles(&g.Query) {
		// The user named this ingester, so its failure is a problem.
		g.Report.problem(fmt.Errorf("%w%s", err, k.whole(k.needed(k.lacking(&heard{}), &g.Query))))
		g.heard.err = nil
	}
	whole := g.r.verify(ctx, &g.Query, k, &g.heard, &g.Report)
	g.Live = whole && (g.Live || !g.heard.any || k.copied != nil)
	return ctx.Err()
}

// askLive asks the ingesters and adds their records to the query. An incomplete answer is
// a problem, and its records are added as far as they came. An error means that there is
// no answer.
func (g *Gathered) askLive(ctx context.Context, question live.Query) error {
	if g.heard = (heard{}); g.r.o.Unasked || g.r.o.Off {
		return nil
	}
	answers, h, err := g.r.answers(ctx, question, g.known)
	if err != nil {
		return err
	}
	defer func() {
		for _, answer := range answers {
			answer.Close()
		}
	}()
	if err := g.know(); err != nil {
		return err
	}
	matcher, err := g.Query.Filter.Matcher(budget.Of(ctx))
	if err != nil {
		return err
	}
	if g.heard, g.Live = h, true; len(answers) == 0 {
		return nil // nobody had to be asked, or could be: the rows tell
	}
	return g.keep(ctx, newTogether(answers), &question, matcher)
}

// keep adds the records of answers to the query. The ingesters have answered once the last record
// of their answers is kept. If of the newest records too few match, it asks for all.
func (g *Gathered) keep(ctx context.Context, from *together, question *live.Query, matcher *blobs.Matcher) error {
	records := g.r.unflushed("live records")
	asked, chosen := newSift(g.Query.Services), chooser(g.Query.Choose)
	expired, end, err := g.hidden.collect(from.Next, func(line []byte) bool {
		if !asked.has(line) || !chosen(line) {
			return false
		}
		if question.Newest > 0 && matcher.Line(line) && g.Query.Edges.Inside(line) {
			from.now.wanted++
		}
		return true
	}, records.Add)
	if err == nil && end != io.EOF {
		err = end
	}
	few := func(one *teller) bool { return one.sent >= question.Newest && one.wanted < g.Query.Limit }
	if err == nil && question.Newest > 0 && (expired || slices.ContainsFunc(from.all, few)) {
		// Others took the places of records that were not sent.
		records.Close()
		question.Newest = 0
		return g.askLive(ctx, *question)
	}
	if ctx.Err() != nil {
		records.Close()
		return ctx.Err()
	}
	g.Live = err == nil
	for _, one := range from.all {
		for _, s := range one.answer.Stored() {
			g.Query.Stored = append(g.Query.Stored, blobs.Stored(s))
		}
		end := g.known.wait().end(one.answer, one.end, &g.Query)
		g.heard.add(hear(one.answer, end))
		if err == nil && end != io.EOF {
			g.Live = false
			g.Report.problem(end)
		}
	}
	if err != nil {
		records.Close()
		g.Report.problem(fmt.Errorf("what ingesters answered is not in this read, so records that are in no blob are missing: %w", err))
		return nil
	}
	g.Query.Unflushed = append(g.Query.Unflushed, records)
	return nil
}

// collect adds the records of an answer that match and have not expired, by its next one. It
// returns how the answer ended; err is that of add.
func (x *hidden) collect(next func() (record.Entry, error), match func(line []byte) bool, add func(*record.Entry) error) (expired bool, end, err error) {
	var e record.Entry // one for all: add gets a pointer to it
	for {
		if e, end = next(); end != nil {
			return expired, end, nil
		}
		switch {
		case !match(e.Line):
		case x.entry(&e):
			expired = true
		default:
			if err := add(&e); err != nil {
				return expired, nil, err
			}
		}
	}
}

// addWritten adds the rows of the tail since the oldest record that may be unflushed.
func (g *Gathered) addWritten(ctx context.Context) error {
	k := g.known.wait()
	if k.dark {
		return nil // a problem says it
	}
	if err := k.unlisted(); err != nil {
		g.Report.note("the table of ingesters cannot be read, so records that are in no blob yet "+mayBeMissing+": %v", err)
		return nil
	}
	since, to := k.writtenSince(&g.Query), g.Query.Range.To
	if since.IsZero() || to != blobs.Newest && to <= k.unflushed().Add(-tailindex.Late).UnixNano() {
		return nil
	}
	if err := g.addSince(ctx, since, 0); err != nil {
		return err
	}
	if g.tableErr != nil {
		g.Report.note("the tables of the newest records cannot be read, so records since %s "+mayBeMissing+": %v", utc(since), g.tableErr)
	}
	if !g.heard.any { // otherwise it would report gaps that live records fill
		for _, row := range g.rows {
			g.Report.gap(row, &g.Query)
		}
	}
	return nil
}

// addSince adds the rows since a time that are not added yet. The tables may take as long as
// patience, as of rows.
func (g *Gathered) addSince(ctx context.Context, since time.Time, patience time.Duration) error {
	q := &g.Query
	rows, err := g.r.rows(ctx, q.Services, patience, func(ctx context.Context, service string) ([]tailindex.Row, error) {
		return g.r.o.Tail.Written(ctx, service, errorsOnly(q), since)
	})
	known := map[string]bool{}
	for _, row := range g.rows {
		known[row.Service+" "+row.Key] = true
	}
	rows = slices.DeleteFunc(rows, func(row tailindex.Row) bool { return known[row.Service+" "+row.Key] })
	_, err = g.addRows(ctx, rows, err)
	return err
}

// addRows adds rows to the query, without their expired records. It reports whether there
// were any. failed is the error of reading the rows.
func (g *Gathered) addRows(ctx context.Context, rows []tailindex.Row, failed error) (expired bool, err error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	expired = g.hidden.rows(rows)
	g.rows, g.tableErr = append(g.rows, rows...), failed
	if len(rows) == 0 {
		return expired, nil
	}
	var entries []*record.Entry
	for i := range rows {
		for j := range rows[i].Entries {
			entries = append(entries, &rows[i].Entries[j])
		}
	}
	slices.SortFunc(entries, (*record.Entry).Compare)
	records := g.r.unflushed("the tail")
	for _, e := range entries {
		if err := records.Add(e); err != nil {
			g.Report.problem(fmt.Errorf("rows of the tail are not in this read, so records that are in no blob may be missing: %w", err))
			return expired, nil
		}
	}
	g.Query.Unflushed = append(g.Query.Unflushed, records)
	return expired, nil
}

// chooser reports whether the service of a line is chosen. Neighbours are mostly of one service.
func chooser(choose func(service string) bool) func(line []byte) bool {
	if choose == nil {
		return func([]byte) bool { return true }
	}
	var last string
	var wanted bool
	return func(line []byte) bool {
		service, ok := record.LineService(line)
		if ok && string(service) != last {
			last = string(service)
			wanted = choose(last)
		}
		return wanted || !ok // a line that is no record is an error for its receiver
	}
}

// servicePatience is how much longer the tables of the tail may take for each service: they are
// asked for one after another.
const servicePatience = 2 * time.Millisecond

// rows asks the tables of the tail for rows of several services. It returns the rows that it got
// with the first error. The tables may take as long as patience, and servicePatience for each
// service; 0: any time.
func (r *Reader) rows(ctx context.Context, names []string, patience time.Duration, ask func(context.Context, string) ([]tailindex.Row, error)) ([]tailindex.Row, error) {
	if r.o.Tail == nil {
		return nil, nil
	}
	services, err := r.services(ctx, names)
	if err != nil {
		return nil, err
	}
	if patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience+time.Duration(len(services))*servicePatience)
		defer cancel()
	}
	rows := make([][]tailindex.Row, len(services))
	err = each(services, func(i int, service string) (err error) {
		if rows[i], err = ask(ctx, service); absent(err) {
			return nil
		}
		return err
	})
	return slices.Concat(rows...), err
}

// readers is how many services are asked for concurrently.
const readers = 8

// each asks for several services concurrently, for all of them, and returns the first error.
func each(services []string, ask func(i int, service string) error) error {
	return cmp.Or(fanout.All(len(services), readers, func(i int) error { return ask(i, services[i]) })...)
}

// services resolves names and globs. If the store does not exist yet, globs match
// nothing, and only the plain names stay.
func (r *Reader) services(ctx context.Context, names []string) ([]string, error) {
	services, err := r.o.Blobs.Services(ctx, names)
	if absent(err) {
		services, err = r.o.Blobs.Services(ctx, slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return strings.ContainsAny(name, `*?[\`)
		}))
	}
	return services, err
}

// gap reports the records that a row omits, if any may be in the range.
func (r *Report) gap(row tailindex.Row, q *blobs.Query) {
	g, ok := gapOf(row, q)
	if !ok || g.To < q.Range.From || q.Range.To != blobs.Newest && g.From >= q.Range.To {
		return
	}
	g.AtMost = g.AtMost || g.From < q.Range.From || q.Range.To != blobs.Newest && g.To >= q.Range.To
	r.Gaps = append(r.Gaps, g)
}

// absent reports whether a table is missing. That is no failure: it was never written.
func absent(err error) bool { return errors.Is(err, storage.ErrNotExist) }

func utc(t time.Time) string { return string(record.AppendTime(nil, t.UnixNano())) }
