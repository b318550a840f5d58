package reading

import (
	"context"
	"errors"
	"slices"

	"blobtail/internal/budget"
	"blobtail/internal/door"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/record"
)

// A reads reads the records of a completed query, as [blobs.Reader.Plan] and [blobs.Reader.Newest]
// do. An error ends the whole read, and the summary covers the part before it.
type reads func(ctx context.Context, blobs *blobs.Reader, q blobs.Query) (blobs.Summary, error)

// NoneChosenError says that a selector chooses no service.
type NoneChosenError struct{}

// Error implements error.
func (*NoneChosenError) Error() string { return "no service matches the selector" }

// run answers a question: it completes the query with unflushed records, finds the services that
// it means among those that the holder of the token may read, has read run it, and decides which
// names are absent. Questions that come at the same time share requests.
func (s *Store) run(ctx context.Context, a Ask, read reads) (*Outcome, error) {
	q, err := a.query(budget.Of(ctx))
	if err != nil {
		return &Outcome{}, err
	}
	if p := a.Here.Part; p != nil {
		if err := p.begin(ctx, s, &a, &q); err != nil {
			return &Outcome{}, err
		}
	}
	q = s.r.o.Blobs.Together(q)
	q.MaxRaw, q.MaxHeld = s.r.o.MaxRaw, s.r.o.MaxHeld
	if a.choose != nil { // a selector asks for no name
		q.Services = s.readable(q.Services)
	}
	switch {
	case a.Here.Sure && a.Impossible():
		return &Outcome{}, nil
	case len(q.Services) > 0:
	case a.Here.Sure:
		return &Outcome{}, nil
	case a.choose != nil && len(a.choose.names) > 0:
		return &Outcome{}, &NoServiceError{Name: a.choose.names[0]}
	default:
		return &Outcome{}, &NoneChosenError{}
	}
	out, err := s.ask(ctx, q, a.Live, a.byName, read)
	if a.choose == nil {
		out.Notes = append(out.Notes, a.notes(out.Records)...)
		return out, err
	}
	out.Absent = nil
	if _, none := errors.AsType[*NoServiceError](err); none && len(a.choose.names) == 0 {
		err = &NoneChosenError{}
	}
	return out, err
}

// ask is run of a compiled question.
func (s *Store) ask(ctx context.Context, q blobs.Query, mode Mode, byName bool, read reads) (*Outcome, error) {
	out, m := &Outcome{}, &member{asked: q.Services, mode: mode}
	var hidden []*NoServiceError
	var err error
	if q.Services, _, hidden, err = s.reach(q.Services); err != nil {
		return out, err
	}
	if m.choose = q.Choose; m.choose == nil {
		m.choose = func(string) bool { return true }
	}
	m.query = q
	defer s.r.bursts.leave()
	err = s.r.bursts.enter(ctx, m)
	defer m.over()
	if err != nil {
		return out, err
	}
	var told unflushed.Report
	if q, told, err = m.shares.gather(ctx, s.r.o.Logs, m); err != nil {
		return out, err
	}
	out = told.Outcome(nil)
	reader := s.r.o.Blobs
	if m.lists != nil { // its records were gathered: listings from now on have the others
		m.lists.Ready()
		reader = reader.Over(m.lists.Store)
	}
	if mode == unflushed.Only {
		reader = blobs.Without(blobs.Options{})
	}
	if q, err = s.resolve(ctx, reader, m, q, byName); err != nil {
		return out, err
	}
	told.Gaps = slices.DeleteFunc(s.gapsOf(m.asked, told.Gaps), func(g Gap) bool { return !m.choose(g.Service) })
	if accept := q.Filter.Accept; accept != nil && budget.Of(ctx) == nil {
		// A block has thousands of records, and a filter may take a millisecond for each. With a
		// budget a filter looks at that.
		q.Filter.Accept = func(line []byte) bool { return ctx.Err() == nil && accept(line) }
	}
	unread := !out.Complete()
	if absent := q.Absent; absent != nil {
		q.Absent = func(names []*NoServiceError) {
			told := &Outcome{}
			told.Absent = slices.Clone(names)
			_ = s.settle(s.exists(ctx, m, unread, told), told, hidden, nil)
			absent(told.Absent)
		}
	}
	sum, err := read(ctx, reader, q)
	if ended := budget.Of(ctx).Err(); ended != nil {
		err = ended // the reason why the read was interrupted, or why its result is not whole
	}
	out = told.Outcome(&sum)
	note(ctx, q, out)
	return out, s.settle(s.exists(ctx, m, unread, out), out, hidden, err)
}

// resolve gives a query the services that it means and chooses, as far as the holder of the token
// may read them: those of the store, and of unflushed records. The store is asked after those have
// been gathered, so that no service is missing that has moved from a log to a blob. If there are
// none, the query keeps its names and globs, and the read says that they mean none. With a Scout,
// which has looked at the services meanwhile, the read resolves them, unless it needs their names.
func (s *Store) resolve(ctx context.Context, blobs *blobs.Reader, m *member, q blobs.Query, byName bool) (blobs.Query, error) {
	q.Services = s.readable(m.asked)
	chosen := func(service string) bool { return m.choose(service) && s.May(service) }
	if q.Choose != nil || s.token != nil {
		q.Choose = chosen
	}
	if q.Scout != nil && !byName {
		return q, nil
	}
	names, unknown, err := blobs.Resolve(ctx, q)
	switch {
	case err != nil:
		return q, err
	case len(names) == 0 && q.Sure:
		q.Services = nil
		return q, nil
	case len(names) == 0:
		return q, nil
	}
	for _, name := range unknown {
		if record.ValidStored(name) && chosen(name) { // a glob without a match is worth no word beside others
			names = append(names, name)
		}
	}
	slices.Sort(names)
	q.Services, q.Choose = names, nil
	return q, nil
}

// readable returns globs, and those names that the holder of the token may read.
func (s *Store) readable(asked []string) []string {
	return slices.DeleteFunc(slices.Clone(asked), func(name string) bool { return record.ValidStored(name) && !s.May(name) })
}

// named are the services of a query that needs their names, without the globs that match none.
func named(q *blobs.Query) []string {
	return slices.DeleteFunc(slices.Clone(q.Services), func(name string) bool { return !record.ValidStored(name) })
}

// note tells the guard of the request about a read for it.
func note(ctx context.Context, q blobs.Query, out *Outcome) {
	door.NoteOf(ctx).Add(door.Read{
		Services: q.Services, From: q.Range.From, To: q.Range.To, Bytes: out.Fetched, Records: out.Records, Incomplete: !out.Complete(),
	})
}
