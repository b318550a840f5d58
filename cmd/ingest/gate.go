package main

import (
	"context"
	"fmt"

	"blobtail/buffer"
	"blobtail/internal/heartbeat"
	"blobtail/internal/storeid/premises"
	"blobtail/record"
)

// gate lets requests into the buffer while the log may belong to the store, and readers
// can know that this ingester holds records.
type gate struct {
	buf       *buffer.Buffer
	announcer *heartbeat.Announcer
	premises  *premises.Premises
}

// Accept implements the Accepter of the sources. It waits while the row of the ingester
// is being written; the error is [record.ErrUnheld] if that fails.
func (g gate) Accept(ctx context.Context, r *record.Request) (record.Receipt, error) {
	if err := g.premises.Ready(); err != nil {
		return record.Receipt{}, fmt.Errorf("%w: %w", record.ErrUnheld, err)
	}
	leave, err := g.announcer.Enter(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return record.Receipt{}, ctx.Err()
		}
		return record.Receipt{}, fmt.Errorf("%w: %w", record.ErrUnheld, err)
	}
	defer leave()
	return g.buf.Accept(ctx, r)
}
