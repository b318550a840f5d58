package buffer

import (
	"context"

	"blobtail/buffer/wal"
)

// Unflushed counts the unflushed records of a log that was just opened, except for
// those of messages that come again. It changes nothing: the log can be given to [New]
// afterwards.
func Unflushed(ctx context.Context, log *wal.Log) (records int, err error) {
	p, err := New(log, nil, Options{}).readLog(ctx)
	if err != nil {
		return 0, err
	}
	for _, found := range p.open {
		for _, f := range found {
			if f.m == nil {
				records += int(f.records)
			}
		}
	}
	for _, batch := range p.order {
		if p.batches[batch.named.ID] == batch {
			records += batch.named.Records
		}
	}
	return records, nil
}
