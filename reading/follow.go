package reading

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"blobtail/internal/budget"
	"blobtail/internal/door"
	"blobtail/internal/globset"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/record"
)

// Follow implements [Source]. Services that appear later are among those that it follows if a glob
// or a selector of the question matches them.
func (s *Store) Follow(ctx context.Context, a Ask, o FollowOptions) (Cursor, error) {
	q, err := a.query(budget.Of(ctx))
	if err != nil {
		return Cursor{}, err
	}
	if a.choose != nil {
		q.Services = s.readable(q.Services)
	}
	if o.Emit != nil {
		o.Emit = a.Parsed(o.Emit)
	}
	if o.Visit != nil {
		o.Visit = a.parsedEntry(o.Visit)
	}
	if report := o.Report; a.choose != nil && report != nil { // a selector asks for no name
		o.Report = func(r *Report) {
			kept := *r
			kept.Absent = nil
			kept.Notes = slices.DeleteFunc(slices.Clone(r.Notes), func(text string) bool { return strings.HasPrefix(text, noMatch) })
			report(&kept)
		}
	}
	return s.followQuery(ctx, unflushed.FollowOptions{Query: q, After: o.After, Once: o.Once, Emit: o.Emit, Visit: o.Visit, Mark: o.Mark, Report: o.Report})
}

// noMatch begins the notes about globs without a match. A selector has globs that nobody has typed.
const noMatch = "no service matches "

// followQuery is Follow of a compiled question.
func (s *Store) followQuery(ctx context.Context, f unflushed.FollowOptions) (Cursor, error) {
	q, asked := &f.Query, f.Query.Services
	services, exact, hidden, err := s.reach(asked)
	if err != nil {
		return Cursor{}, err
	}
	if len(hidden) > 0 && f.Report != nil {
		f.Report(&unflushed.Report{Absent: hidden})
	}
	if len(services) == 0 { // no service that it may read will ever match
		return Cursor{}, idle(ctx, f)
	}
	if f.Query.Services = services; !exact || q.Choose != nil {
		s.sift(&f, asked)
	}
	if report := f.Report; report != nil {
		f.Report = func(r *unflushed.Report) {
			for _, none := range r.Absent {
				s.scrub(none)
			}
			report(r)
		}
	}
	cursor, err := s.follow(ctx, f)
	if none, ok := errors.AsType[*blobs.NoServiceError](err); ok {
		s.scrub(none)
	}
	return cursor, err
}

// idle is a follower that nothing will come to.
func idle(ctx context.Context, o unflushed.FollowOptions) error {
	if o.Once {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// follow emits records, and tells the guard of the request how many.
func (s *Store) follow(ctx context.Context, o unflushed.FollowOptions) (unflushed.Cursor, error) {
	read := door.Read{Services: o.Query.Services, From: o.Query.Range.From, To: o.Query.Range.To}
	defer func() { door.NoteOf(ctx).Add(read) }()
	if emit := o.Emit; emit != nil {
		o.Emit = func(lines []byte) error {
			read.Records += int64(bytes.Count(lines, []byte("\n")))
			return emit(lines)
		}
	}
	if visit := o.Visit; visit != nil {
		o.Visit = func(e *record.Entry) error {
			read.Records++
			return visit(e)
		}
	}
	return s.r.o.Logs.Follow(ctx, o)
}

// sift drops a follower's records and gaps of services that the query does not ask for.
func (s *Store) sift(o *unflushed.FollowOptions, asked []string) {
	wanted, choose := globset.New(asked), o.Query.Choose
	of := func(service string) bool {
		return len(wanted.Match(service)) > 0 && s.May(service) && (choose == nil || choose(service))
	}
	accept, report := o.Query.Filter.Accept, o.Report
	o.Query.Filter.Accept = func(line []byte) bool {
		service, ok := record.LineService(line)
		return ok && of(string(service)) && (accept == nil || accept(line))
	}
	if report == nil {
		return
	}
	o.Report = func(r *unflushed.Report) {
		kept := *r
		kept.Gaps = slices.DeleteFunc(s.gapsOf(asked, r.Gaps), func(g Gap) bool { return !of(g.Service) })
		if len(kept.Gaps) == len(r.Gaps) || !kept.Empty() {
			report(&kept)
		}
	}
}
