// Package imports brings Azure's own logs into a store of blobtail, through the buffer of an
// ingester.
//
// An [Importer] goes through the hours of a service, oldest first, and hands over the chunks
// of their blobs as requests. Chunks have fixed bounds and origins. So an import that is
// repeated or was killed, also of logs that have grown since, hands over the same records,
// and readers show each once.
//
// An hour gets a mark in the store when all its records are in blobs: an empty object with a
// digest of the hour's blobs in its name. A later import skips the hour as long as its blobs have
// that digest. Marks save work, and nothing else depends on them.
//
// Classic logs may have a request twice in an hour. So that each import leaves out the same one
// of the two, it keeps a view of the hour in the store: the blobs that it sees, with their
// sizes. Later imports go by it.
//
// A view is needed because an import may see the second copy of a request before the first, if
// blobs come in another order or grow. It is kept before a record of the hour is stored. A later
// import first goes through the blobs as the earlier views saw them, and so finds each request
// at the place at which it was stored. If a blob cannot be read, the rest of the hour waits.
//
// An import announces no ingester. It promises nothing to a sender: the source keeps the records
// until they are in blobs. It leaves one row that says so.
package imports

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/azurelogs"
	"blobtail/internal/azurelogs/formats"
	"blobtail/record"
	"blobtail/storage"
)

// Marks is the part of a store that keeps the marks and views of hours.
type Marks interface {
	Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error)
	Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error
	List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error]
}

// Options are the parts of an [Importer]. All must be set.
type Options struct {
	Source *azurelogs.Source
	// Accept hands a request over to the buffer. [record.ErrFull] is tried again.
	Accept func(ctx context.Context, r *record.Request) (record.Receipt, error)
	// Flush returns when all accepted records are in blobs.
	Flush func(ctx context.Context) error
	Marks Marks
	Log   zerolog.Logger
}

// Result counts the work of an import.
type Result struct {
	Hours, Skipped int   // those read, and those that were imported whole before
	Records        int64 // that were handed over
	Copies         int64 // entries that repeat others
	Expired        int64 // records of dropped days
	// Unfinished names the blobs of classic logs that end within a line.
	Unfinished []string
	// Problems are the malformed lines, and the blobs that could not be read. The others are
	// imported.
	Problems azurelogs.Problems
}

// Importer brings logs into a store. Only one goroutine may use it.
type Importer struct {
	o      Options
	result Result
	ready  []string // marks of hours with accepted records that are not all in blobs
	bytes  int64    // accepted since the last flush
}

// New returns an Importer. It does nothing yet.
func New(o Options) *Importer { return &Importer{o: o} }

const (
	// marksPrefix begins the names of marks. It is no service.
	marksPrefix = "_imported/"
	hourLayout  = "2006010215"
	// flushBytes is how many bytes of lines are accepted before hours are marked.
	flushBytes = 256 << 20
)

// Service imports the logs of a service for the hours that begin at or after since, which is
// rounded down to an hour. With again it imports marked hours too. Call [Importer.End] after the
// last service. A [*SourceError] is a failure of the source, any other error one of the store or
// the buffer.
func (im *Importer) Service(ctx context.Context, service string, since time.Time, again bool) error {
	var span azurelogs.Span
	if !since.IsZero() {
		span.From = since.UTC().Truncate(time.Hour)
	}
	blobs, err := im.o.Source.Blobs(ctx, service, span)
	if err != nil {
		return &SourceError{err}
	}
	if len(blobs) == 0 {
		return nil
	}
	kept, err := im.kept(ctx, service, blobs[0].Hour)
	if err != nil {
		return err
	}
	for len(blobs) > 0 {
		n := 1
		for n < len(blobs) && blobs[n].Hour.Equal(blobs[0].Hour) {
			n++
		}
		mark := markOf(service, blobs[:n])
		if kept[mark] && !again {
			im.result.Skipped++
		} else if err := im.hour(ctx, blobs[:n], mark, kept); err != nil {
			return err
		}
		blobs = blobs[n:]
	}
	return nil
}

// End waits until all records are in blobs, and returns the counts.
func (im *Importer) End(ctx context.Context) (Result, error) { return im.result, im.flush(ctx) }

// Result returns the counts so far.
func (im *Importer) Result() Result { return im.result }

// kept lists the marks and views of a service from an hour on.
func (im *Importer) kept(ctx context.Context, service string, from time.Time) (map[string]bool, error) {
	kept := make(map[string]bool)
	prefix := marksPrefix + service + "/"
	for o, err := range im.o.Marks.List(ctx, prefix, prefix+from.Format(hourLayout)) {
		if err != nil {
			return nil, fmt.Errorf("list the hours that were imported before: %w", err)
		}
		kept[o.Key] = true
	}
	return kept, nil
}

// markOf is the name of the mark of the blobs of an hour, as they are now.
func markOf(service string, blobs []azurelogs.Blob) string {
	h := sha256.New()
	for i := range blobs {
		fmt.Fprintf(h, "%q %d %q\n", blobs[i].Key, blobs[i].Size, blobs[i].Version)
	}
	return marksPrefix + service + "/" + blobs[0].Hour.Format(hourLayout) + "-" + hex.EncodeToString(h.Sum(nil)[:8])
}

// hour imports the blobs of an hour. kept has the names of marks and views.
func (im *Importer) hour(ctx context.Context, blobs []azurelogs.Blob, mark string, kept map[string]bool) error {
	problems := im.result.Problems.Len()
	seen := make(azurelogs.Seen)
	classic := blobs[0].Kind == formats.Classic
	if classic {
		views, err := im.views(ctx, blobs, kept)
		if err != nil {
			return err
		}
		if err := before(ctx, blobs, views[:len(views)-1], seen); err != nil {
			return im.unread(ctx, err)
		}
	}
	for i := range blobs {
		err := im.blob(ctx, &blobs[i], seen)
		switch {
		case err == nil:
		case im.unread(ctx, err) != nil:
			return err
		case classic:
			// Copies of its records in the blobs behind it would pass for the first ones.
			return nil
		}
		if !classic {
			clear(seen)
		}
	}
	if !blobs[0].Odd() {
		im.result.Hours++
	}
	if im.result.Problems.Len() == problems {
		im.ready = append(im.ready, mark)
	}
	if im.bytes < flushBytes {
		return nil
	}
	return im.flush(ctx)
}

// SourceError is a failure to list or read the source.
type SourceError struct{ err error }

func (e *SourceError) Error() string { return e.err.Error() }
func (e *SourceError) Unwrap() error { return e.err }

// unread notes the failure to read a blob, and returns any other error.
func (im *Importer) unread(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*SourceError](err); !ok || ctx.Err() != nil || errors.Is(err, storage.ErrUnauthorized) {
		return err
	}
	im.result.Problems.Fail(err)
	return nil
}

// blob hands over the chunks of a blob.
func (im *Importer) blob(ctx context.Context, b *azurelogs.Blob, seen azurelogs.Seen) error {
	for chunk, err := range azurelogs.Read(ctx, b, seen) {
		if err != nil {
			return &SourceError{err}
		}
		im.result.Problems.Add(chunk.Malformed)
		im.result.Copies += int64(chunk.Copies)
		if n := chunk.Unfinished; n > 0 {
			im.result.Unfinished = append(im.result.Unfinished, fmt.Sprintf("%s ends within line %d, which was left out", b.Path(), n))
		}
		if len(chunk.Lines) == 0 {
			continue
		}
		if err := im.accept(ctx, &chunk.Request); err != nil {
			return err
		}
	}
	return nil
}

// accept hands over a request, and waits while the log is full. Then it waits until the log
// has the request on its disk, so that it never holds much that is not.
func (im *Importer) accept(ctx context.Context, r *record.Request) error {
	const first, longest = 20 * time.Millisecond, time.Second
	for wait := first; ; wait = min(2*wait, longest) {
		receipt, err := im.o.Accept(ctx, r)
		if errors.Is(err, record.ErrFull) {
			select {
			case <-time.After(wait):
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err == nil {
			err = receipt.Wait(ctx, false)
		}
		if err != nil {
			return fmt.Errorf("hand %d records over: %w", len(r.Lines), err)
		}
		im.result.Records += int64(len(r.Lines) - receipt.Expired)
		im.result.Expired += int64(receipt.Expired)
		im.bytes += int64(len(r.Data))
		return nil
	}
}

// flush waits until all accepted records are in blobs, and marks their hours.
func (im *Importer) flush(ctx context.Context) error {
	if im.bytes > 0 {
		if err := im.o.Flush(ctx); err != nil {
			return err
		}
	}
	im.bytes = 0
	for _, mark := range im.ready {
		err := im.o.Marks.Create(ctx, mark, nil, storage.Attrs{ContentType: "text/plain"})
		if err != nil && !errors.Is(err, storage.ErrExist) {
			return fmt.Errorf("mark an imported hour: %w", err)
		}
	}
	if n := len(im.ready); n > 0 {
		im.o.Log.Info().Int("hours", im.result.Hours).Int64("records", im.result.Records).Msg("imported so far")
	}
	im.ready = im.ready[:0]
	return nil
}
