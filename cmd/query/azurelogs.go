package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blobtail/internal/azurelogs"
	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/reading"
	"blobtail/reading/blobs"
	"blobtail/record"
)

// logs is run for Azure's own logs. It goes by the names of their blobs and opens none, so
// nobody counts their records.
func (c *lsCmd) logs(ctx context.Context, a *app, form, what string, day time.Time, order func(x, y reading.Total) int) (int, error) {
	if _, err := a.openStore(ctx, false); err != nil {
		return 0, err
	}
	services := []string{"*"}
	if c.Service != "" {
		services = serviceNames([]string{c.Service})
	}
	services, absent, err := a.logServices(ctx, services)
	if _, none := errors.AsType[*reading.NoServiceError](err); none && c.Service == "" {
		err = nil // there is nothing yet
	}
	if err != nil {
		return 0, err
	}
	var span azurelogs.Span
	if !day.IsZero() {
		span = azurelogs.Span{From: day.UTC(), To: day.UTC().Add(23 * time.Hour)}
	}
	var entries []reading.Total
	at := make(map[string]int)
	for _, service := range services {
		blobs, err := a.store.Logs.Blobs(ctx, service, span)
		if err != nil {
			return 0, err
		}
		for i := range blobs {
			b := &blobs[i]
			if b.Odd() {
				a.Note("%s: %v", b.Path(), azurelogs.ErrOdd)
				continue
			}
			name := service
			switch {
			case !day.IsZero():
				name = b.Path()
			case c.Service != "":
				name = b.Hour.Format(time.DateOnly)
			}
			n, ok := at[name]
			if !ok {
				n = len(entries)
				at[name], entries = n, append(entries, reading.Total{Name: name, First: reading.Newest, Last: reading.Oldest})
			}
			first, last := hoursOf(b)
			e := &entries[n]
			e.First, e.Last = min(e.First, first), max(e.Last, last)
			e.Blobs++
			e.Stored += b.Size
		}
	}
	slices.SortStableFunc(entries, order)
	c.print(a, form, what, entries, true)
	a.absent(ctx, absent)
	c.note(a, entries, &reading.Outcome{})
	if len(entries) == 0 {
		return cli.Nothing, nil
	}
	return cli.OK, nil
}

// hoursOf are the times of the first and the last record of a blob by its metadata, or the
// hour of its name, in which the records came.
func hoursOf(b *azurelogs.Blob) (first, last int64) {
	if !b.First.IsZero() {
		return record.ClampTime(b.First), record.ClampTime(b.Last)
	}
	return record.ClampTime(b.Hour), record.ClampTime(b.Hour.Add(time.Hour - 1))
}

// logServices returns the services of Azure's own logs that names and globs mean, and the names
// without logs beside others. It fails if they mean none.
func (a *app) logServices(ctx context.Context, patterns []string) (services []string, absent []*reading.NoServiceError, err error) {
	services, err = a.store.Logs.Match(ctx, patterns)
	if _, none := errors.AsType[*azurelogs.NoServiceError](err); none { // which of them?
		services, err = nil, nil
		for _, pattern := range patterns {
			names, err := a.store.Logs.Match(ctx, []string{pattern})
			if none, ok := errors.AsType[*azurelogs.NoServiceError](err); ok {
				absent = append(absent, &reading.NoServiceError{Name: none.Service, Stored: none.Stored})
			} else if err != nil {
				return nil, nil, err
			}
			services = append(services, names...)
		}
	}
	switch {
	case err != nil || len(services) > 0 || len(patterns) == 0:
		slices.Sort(services)
		return slices.Compact(services), absent, err
	case len(absent) > 0:
		return nil, nil, absent[0]
	}
	return nil, nil, &reading.NoServiceError{Name: patterns[0]}
}

// boundedLogs refuses an unbounded read of remote logs that takes more bytes than intended.
// Their records are read before the first one is shown, so it asks for the sizes of the
// blobs.
func (a *app) boundedLogs(ctx context.Context, most *config.Size, ask *reading.Ask) error {
	if a.store == nil || a.store.Logs == nil || !a.config.Store.Remote() || most == nil || *most == 0 || ask.Range.Bounded() || ask.Limit > 0 {
		return nil
	}
	services, _, err := a.logServices(ctx, ask.Services)
	if _, none := errors.AsType[*reading.NoServiceError](err); none {
		return nil // the read says so
	}
	if err != nil {
		return err
	}
	size := int64(0)
	for _, service := range services {
		blobs, err := a.store.Logs.Blobs(ctx, service, azurelogs.Span{})
		if err != nil {
			return err
		}
		for i := range blobs {
			size += blobs[i].Size
		}
	}
	if size <= int64(*most) {
		return nil
	}
	return cli.Usagef("this would read %s of logs, more than --max-bytes %s; give --from or --since, -n, or a larger --max-bytes", bytesText(size), *most)
}

// verifyLogs reads Azure's own logs and calls found with each line that is malformed, and
// with notes on records outside the times that the name and the metadata of their blob say.
func (a *app) verifyLogs(ctx context.Context, ask reading.Ask, _ blobs.VerifyOptions,
	found func(reading.Finding)) (v reading.Verified, err error) {
	all := len(ask.Services) == 0
	if all {
		ask.Services = []string{"*"}
	}
	services, absent, err := a.logServices(ctx, ask.Services)
	if _, none := errors.AsType[*reading.NoServiceError](err); none && all {
		err = nil // there is nothing yet
	}
	if err != nil {
		return v, err
	}
	for _, none := range absent {
		v.Notes++
		found(reading.Finding{Err: none, Note: true})
	}
	var span azurelogs.Span
	if ask.Range.From != reading.Oldest {
		span.From = time.Unix(0, ask.Range.From).UTC().Truncate(time.Hour)
	}
	if ask.Range.To != reading.Newest {
		span.To = time.Unix(0, ask.Range.To-1).UTC().Truncate(time.Hour)
	}
	for _, service := range services {
		blobs, err := a.store.Logs.Blobs(ctx, service, span)
		if err != nil {
			return v, err
		}
		for i := range blobs {
			if err := verifyLog(ctx, &blobs[i], time.Duration(a.flags.Late), &v, found); err != nil {
				return v, err
			}
		}
	}
	return v, nil
}

// verifyLog is verifyLogs of one blob.
func verifyLog(ctx context.Context, b *azurelogs.Blob, late time.Duration, v *reading.Verified, found func(reading.Finding)) error {
	v.Blobs++
	tooLate, outside := 0, 0
	for chunk, err := range azurelogs.Read(ctx, b, nil) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			v.Bad++
			found(reading.Finding{Key: b.Path(), Err: errors.Unwrap(err)}) // it names the blob itself
			continue
		}
		for _, bad := range chunk.Malformed {
			v.Bad++
			found(reading.Finding{Key: b.Path(), Err: errors.New(bad.InBlob())})
		}
		if n := chunk.Unfinished; n > 0 {
			v.Notes++
			found(reading.Finding{Key: b.Path(), Note: true, Err: fmt.Errorf("it ends within line %d, which was left out", n)})
		}
		v.Records += int64(len(chunk.Lines))
		v.Bytes += int64(len(chunk.Data))
		for i := range chunk.Lines {
			at := time.Unix(0, chunk.Lines[i].Time)
			if b.Hour.Sub(at) > late {
				tooLate++
			}
			if !b.First.IsZero() && (at.Before(b.First.Truncate(time.Second)) || !at.Before(b.Last.Add(time.Second))) {
				outside++
			}
		}
	}
	for n, text := range map[*int]string{
		&tooLate: fmt.Sprintf("records came more than %s after their time; a read of a range finds them with a longer --late", config.Duration(late)),
		&outside: "records are outside the times of the metadata",
	} {
		if *n > 0 {
			v.Notes++
			found(reading.Finding{Key: b.Path(), Note: true, Err: fmt.Errorf("%d %s", *n, text)})
		}
	}
	return nil
}
