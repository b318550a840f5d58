package tailindex

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"blobtail/storage"
)

// Reader reads the rows of writers. All its methods may be called concurrently.
type Reader struct {
	o       Options
	tables  storage.TableStore
	decoder *zstd.Decoder // of rows; may be used concurrently
}

// NewReader returns a reader. It uses the Prefix, the Shards, the Store and Now of the
// options, which must be those of the ingesters. It sends the store no request.
func NewReader(tables storage.TableStore, o Options) *Reader {
	z, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(maxScans), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderDicts(dictionary), zstd.WithDecoderMaxMemory(maxRaw), zstd.WithDecoderMaxWindow(8<<20)) // no error: the options are valid
	return &Reader{o: o.withDefaults(), tables: tables, decoder: z}
}

const day = 24 * time.Hour

// Newest returns rows of the service that contain the newest n of the records that
// arrived in the last 24 hours, or count them as omitted; n is at most [MaxLines]. The
// newest row comes first. With errs it considers only records of level error and
// critical.
//
// Unreadable rows are left out, and the error joins a [*RowError] for each table and
// shard that has some. After any other error nothing is returned. Missing tables are no
// error.
func (r *Reader) Newest(ctx context.Context, service string, errs bool, n int) ([]Row, error) {
	if n < 1 {
		return nil, nil
	}
	tables := r.days(r.o.Now().Add(clocksApart - day))
	_, rows, err := r.read(ctx, service, errs, tables, func(ctx context.Context, s *scan) error { return s.newest(ctx, n) })
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Last, a.Last), strings.Compare(a.Key, b.Key))
	})
	return rows, err
}

// maxDays is the number of tables that a reader searches for rows written since a time.
const maxDays = 4

// clocksApart bounds how far an ingester's clock may be ahead of the reader's.
const clocksApart = time.Minute

// Written returns the rows of the service that were written after since, in order of
// arrival; errors are as with [Reader.Newest]. It does not find a row with a newest
// record older than since by more than [Late]. It returns no rows of times more than
// three days ago.
func (r *Reader) Written(ctx context.Context, service string, errs bool, since time.Time) ([]Row, error) {
	rows, _, err := r.Watch(service, errs, since).Poll(ctx)
	return rows, err
}

// days are the tables of the arrivals from a time to now.
func (r *Reader) days(since time.Time) (tables []string) {
	// The table of tomorrow may have rows of ingesters with fast clocks.
	t := r.o.Now().Add(clocksApart).UTC().Truncate(day)
	for n := 0; n < maxDays && (n == 0 || t.Add(day).After(since)); n++ {
		tables = append(tables, Table(r.o.Prefix, t))
		t = t.Add(-day)
	}
	return tables
}
