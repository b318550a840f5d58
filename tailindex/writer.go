package tailindex

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"blobtail/record"
	"blobtail/storage"
)

// Options say who writes and where. The zero value works.
type Options struct {
	Prefix  string     // of the tables' names, letters; "": DefaultPrefix
	Shards  int        // partitions of a service, 1 to MaxShards; 0: DefaultShards
	Store   string     // the container, where several share the tables
	Process string     // 8 hex digits, new with each start; "": drawn
	Lane    func() int // of this ingester: it says which shard it writes to; nil: 0
	// Durable returns when what was accepted up to the mark is on disk, so that no
	// row shows what a power cut takes back; nil: it is.
	Durable func(mark uint64) error
	// Now is the store's clock as far as it is known; nil: time.Now.
	Now     func() time.Time
	Memory  int64 // bytes that wait to be written, at most; 0: 64 MiB
	Log     zerolog.Logger
	Metrics prometheus.Registerer // nil: none
}

// Writer writes the newest records of each service into the tables. All its
// methods may be called at once.
type Writer struct {
	o      Options
	tables storage.TableStore
}

// NewWriter returns a writer. It starts nothing and asks the store nothing.
func NewWriter(tables storage.TableStore, o Options) *Writer {
	return &Writer{o: o, tables: tables}
}

// Accepted tells of a run of lines. It copies what it keeps, and waits for
// nothing. mark is what Durable is asked for before a line of it is shown.
func (w *Writer) Accepted(mark uint64, run *record.Run) {}

// Run writes what it is told of until ctx ends, and then once more what waits. It
// is called once.
func (w *Writer) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
