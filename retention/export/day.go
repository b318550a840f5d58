package export

import (
	"context"
	"errors"
	"fmt"

	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/internal/spill"
	"blobtail/reading/blobs"
	"blobtail/reading/survey"
)

// mostNames bounds the names of fields that a day is searched for. Others are in its column rest.
const mostNames = 10_000

// errChanged says that the account of a day is another one than before it was read.
var errChanged = errors.New("its account changed while it was read; the next run makes it")

// make writes the files of a day, and returns its mark; nil: problems tell why not. It reads the day
// twice: for the fields that its records have, and for the records.
func (r *run) make(ctx context.Context, l *catalog.Listing, part *closed.Part) (*mark, error) {
	plan, err := r.reader.Plan(ctx, blobs.Query{Services: []string{l.Service}, Sure: true,
		Range: blobs.Range{From: l.Day.Start().UnixNano(), To: (l.Day + 1).Start().UnixNano()}})
	if err != nil {
		return nil, err
	}
	fields := survey.New(survey.Options{Skip: []string{"ts", "level", "service", "msg"}, Fields: mostNames})
	var space spill.Space
	space.Most = 1 // all is in the file
	defer space.Close()
	var w *writer
	for _, pass := range []func(lines []byte) error{fields.Add, func(lines []byte) error { return w.add(lines) }} {
		sum, err := plan.Read(ctx, pass)
		if err != nil || !sum.Complete() {
			for _, p := range sum.Problems {
				r.problem(l.Service, l.Day, p)
			}
			return nil, err
		}
		if w == nil {
			w = newWriter(&space, columnsOf(fields.Fields()))
		}
	}
	if err := w.close(); err != nil {
		return nil, err
	}
	if err := r.unchanged(ctx, l); err != nil {
		return nil, err
	}
	at, _ := closed.ParseName(part.Name)
	m := &mark{Form: form, Store: r.o.Store, Service: l.Service, Date: l.Day.String(), Part: at.Number, Account: part.Sum,
		Records: w.records, Files: []string{}}
	for i, f := range w.files {
		body, err := space.Read(nil, f.at, f.size)
		name := fmt.Sprintf("part-%04d-%x.parquet", i+1, f.sum[:6])
		if err == nil {
			err = r.create(ctx, prefix(m.Service, m.Date)+name, body, "application/vnd.apache.parquet")
		}
		if err != nil {
			return nil, err
		}
		m.Files = append(m.Files, name)
		r.out.Bytes += f.size
	}
	r.out.Made, r.out.Records = r.out.Made+1, r.out.Records+m.Records
	r.o.Log.Info().Str("service", m.Service).Str("day", m.Date).Int("files", len(m.Files)).Int64("records", m.Records).Msg("exported")
	return m, nil
}

// unchanged checks that a day that was read since it was listed has the same account, with the same
// blobs, and is shown.
func (r *run) unchanged(ctx context.Context, l *catalog.Listing) error {
	hidden, err := horizon.Read(ctx, r.from, l.Service)
	if err != nil {
		return err
	}
	again, err := catalog.ListDay(ctx, r.from, l.Service, l.Day)
	if err == nil && (hidden.Hides(l.Service, l.Day) || !again.Accounted() || again.Hash() != l.Hash()) {
		err = errChanged
	}
	return err
}
