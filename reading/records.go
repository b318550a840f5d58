package reading

import (
	"context"
	"time"

	"blobtail/internal/budget"
	"blobtail/reading/blobs"
	"blobtail/record"
)

// day is the longest range that [Here.Whole] lists for its newest records.
const day = int64(24 * time.Hour)

// listsWhole reports whether a read lists all of its range first. Else it looks for the newest
// records from the end of the range back.
func (a *Ask) listsWhole() bool {
	return a.Limit == 0 || a.Here.Part != nil ||
		a.Here.Whole && a.Range.From != Oldest && a.Range.To != Newest && a.Range.To-a.Range.From <= day
}

// nearEdge reports whether the records of a read are probably near the begin of its range.
func (a *Ask) nearEdge() bool { return a.Edges.After != nil && a.First > 0 && !a.Reverse }

// Records implements [Source].
func (s *Store) Records(ctx context.Context, a Ask, emit func(lines []byte) error) (*Outcome, error) {
	if err := a.compile(budget.Of(ctx)); err != nil {
		return &Outcome{}, err
	}
	if a.Here.Part == nil {
		emit = a.Parsed(emit)
	}
	return s.run(ctx, a, func(ctx context.Context, reader *blobs.Reader, q blobs.Query) (blobs.Summary, error) {
		reader = s.lines(&a, reader)
		switch {
		case a.nearEdge():
			return reader.Oldest(ctx, q, emit)
		case !a.listsWhole():
			return reader.Newest(ctx, q, emit)
		}
		plan, err := a.plan(ctx, reader, q)
		if err != nil {
			return blobs.Summary{}, err
		}
		if part := a.Here.Part; part != nil && part.marked {
			return plan.Marked(ctx, emit)
		}
		return plan.Read(ctx, emit)
	})
}

// plan plans a read that takes no more than it may.
func (a *Ask) plan(ctx context.Context, blobs *blobs.Reader, q blobs.Query) (*blobs.Plan, error) {
	plan, err := blobs.Plan(ctx, q)
	if err == nil && a.Here.MaxStored > 0 && plan.Bytes() > a.Here.MaxStored {
		err = &MuchError{plan.Bytes(), a.Here.MaxStored}
	}
	return plan, err
}

// Entries is [Store.Records] with the identity of each record. The entry is valid during the call.
func (s *Store) Entries(ctx context.Context, a Ask, visit func(*record.Entry) error) (*Outcome, error) {
	if err := a.compile(budget.Of(ctx)); err != nil {
		return &Outcome{}, err
	}
	visit = a.parsedEntry(visit)
	return s.run(ctx, a, func(ctx context.Context, reader *blobs.Reader, q blobs.Query) (blobs.Summary, error) {
		reader = s.lines(&a, reader)
		switch {
		case a.nearEdge():
			return reader.OldestEntries(ctx, q, visit)
		case !a.listsWhole():
			return reader.NewestEntries(ctx, q, visit)
		}
		plan, err := a.plan(ctx, reader, q)
		if err != nil {
			return blobs.Summary{}, err
		}
		return plan.Entries(ctx, visit)
	})
}

// Each passes the newest [Ask.Limit] lines of each service of a question to emit, for at most so many
// services. It reports whether there were more of these.
func (s *Store) Each(ctx context.Context, a Ask, most int, emit func(lines []byte) error) (more bool, out *Outcome, err error) {
	whole, limit := a.listsWhole(), a.Limit
	a.byName, a.Limit = true, 0 // ingesters are asked for the newest of all services at once
	out, err = s.run(ctx, a, func(ctx context.Context, reader *blobs.Reader, q blobs.Query) (all blobs.Summary, err error) {
		q.Limit = limit
		services := named(&q)
		if len(services) == 0 {
			_, err := reader.Plan(ctx, q) // says that there are none
			return all, err
		}
		for i, service := range services {
			if more = i == most; more {
				break
			}
			q.Services = []string{service}
			read := reader.Newest
			if whole {
				read = func(ctx context.Context, q blobs.Query, emit func(lines []byte) error) (blobs.Summary, error) {
					plan, err := reader.Plan(ctx, q)
					if err != nil {
						return blobs.Summary{}, err
					}
					return plan.Read(ctx, emit)
				}
			}
			sum, err := read(ctx, q, emit)
			all.Join(&sum)
			if err != nil {
				return all, err
			}
		}
		return all, nil
	})
	return more, out, err
}

// Tail implements [Source].
func (s *Store) Tail(ctx context.Context, a Ask, emit func(lines []byte) error) (*Outcome, error) {
	if s.token != nil || a.Live != Auto {
		return s.Records(ctx, a, emit) // the tables of the tail are not narrowed
	}
	q, err := a.query(budget.Of(ctx))
	if err != nil {
		return &Outcome{}, err
	}
	emit = a.Parsed(emit)
	sum, report, err := s.r.o.Logs.Tail(ctx, q, func(e *record.Entry) error { return emit(e.Line) })
	out := report.Outcome(&sum)
	out.Notes = append(out.Notes, a.notes(out.Records)...)
	return out, err
}

// Count implements [Source].
func (s *Store) Count(ctx context.Context, a Ask) (*Outcome, error) {
	if err := a.compile(budget.Of(ctx)); err != nil {
		return &Outcome{}, err
	}
	return s.run(ctx, a, func(ctx context.Context, reader *blobs.Reader, q blobs.Query) (blobs.Summary, error) {
		plan, err := reader.Plan(ctx, q)
		if err != nil {
			return blobs.Summary{}, err
		}
		if a.ReadsLines() && a.Limit+a.First == 0 {
			return s.joined(ctx, &a, plan, Joint{Count: true}, &Part{})
		}
		_, sum, err := plan.Count(ctx)
		return sum, err
	})
}

// Exist returns the error for the names and globs of a question if they surely mean no service. It
// reads nothing but lists.
func (s *Store) Exist(ctx context.Context, a Ask) error {
	a.Range, a.Limit, a.First = Always(), 0, 0
	_, err := s.run(ctx, a, func(ctx context.Context, reader *blobs.Reader, q blobs.Query) (blobs.Summary, error) {
		_, err := reader.Plan(ctx, q)
		return blobs.Summary{}, err
	})
	return err
}

// Explain tells how much [Store.Records] would fetch.
func (s *Store) Explain(ctx context.Context, a Ask) (x Explanation, out *Outcome, err error) {
	out, err = s.run(ctx, a, func(ctx context.Context, blobs *blobs.Reader, q blobs.Query) (sum blobs.Summary, err error) {
		plan, err := blobs.Plan(ctx, q)
		if err == nil {
			x, sum, err = plan.Explain(ctx)
			var d *Division
			if d, x.Alone = s.divide(&a, plan, nil); d != nil {
				x.Parts, x.Workers = len(d.Parts), s.r.o.Sharing.Workers(ctx)
			}
		}
		return sum, err
	})
	return x, out, err
}

// Keys returns the keys of the blobs that a read would take, in byte order.
func (s *Store) Keys(ctx context.Context, a Ask) (keys []string, out *Outcome, err error) {
	out, err = s.run(ctx, a, func(ctx context.Context, blobs *blobs.Reader, q blobs.Query) (sum blobs.Summary, err error) {
		plan, err := blobs.Plan(ctx, q)
		if err == nil {
			keys, sum = plan.Keys()
		}
		return sum, err
	})
	return keys, out, err
}

// Stored resolves names and globs to services of blobs. A name stands for itself, whether or not
// anything is stored under it. It is for the operator, and no token narrows it.
func (s *Store) Stored(ctx context.Context, names []string) ([]string, error) {
	return s.r.o.Blobs.Services(ctx, names)
}

// Verify checks every blob of the services and the range of a question, as [blobs.Reader.Verify]
// does. It asks no ingester. It is for the operator, and no token narrows it.
func (s *Store) Verify(ctx context.Context, a Ask, o blobs.VerifyOptions, found func(Finding)) (Verified, error) {
	return s.r.o.Blobs.Verify(ctx, blobs.Query{Services: a.Services, Range: a.Range}, o, found)
}

// Around implements [Source].
func (s *Store) Around(ctx context.Context, a Ask, p Place) (n *Neighbours, out *Outcome, err error) {
	a = Ask{Services: []string{p.Service}, Range: Always(), Live: a.Live}
	if p.Others {
		a.Services = append(a.Services, "*")
	}
	out, err = s.run(ctx, a, func(ctx context.Context, blobs *blobs.Reader, q blobs.Query) (sum blobs.Summary, err error) {
		q.MaxRaw = mostAroundRaw
		n, sum, err = blobs.Around(ctx, q, p.Time, p.ID, p.Before, p.After)
		return sum, err
	})
	if n != nil && n.Record != nil {
		if name, ok := record.LineService(n.Record.Line); !ok || string(name) != p.Service {
			n.Record = nil // of another service
		}
	}
	if n != nil && n.Record == nil { // there is nothing that they are next to
		*n = Neighbours{}
	}
	return n, out, err
}

// mostAroundRaw bounds the bytes that a search for neighbours decodes.
const mostAroundRaw = 256 << 20
