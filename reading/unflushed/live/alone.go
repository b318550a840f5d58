package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"blobtail/internal/lease"
	"blobtail/internal/loopback"
)

// AloneOptions say how [AskAlone] asks.
type AloneOptions struct {
	ClientOptions
	// Store is the id of the store that the ingester has to write to.
	Store string

	readable string // as of [Client]
}

// AskAlone asks the ingester of a row at its address, for its own records alone. An answer of
// another ingester, or for another store, is no answer. The answer of another start of the
// ingester is returned with an error: there may be more records. The errors are otherwise those
// of [Client.Ask].
func AskAlone(ctx context.Context, row *lease.Ingester, q Query, o AloneOptions) (*Answer, error) {
	if row.Address == "" {
		return nil, errors.New("it announces no address; set --advertise")
	}
	c, err := NewClient(row.Address, o.ClientOptions)
	if err != nil {
		return nil, fmt.Errorf("its address cannot be used: %w", err)
	}
	c.alone, c.idle, c.readable, c.start = true, idleWait, o.readable, row.ID+"."+row.Process
	a, err := c.Ask(ctx, q)
	if none, ok := errors.AsType[*NoAnswerError](err); ok && none.TLS {
		return nil, err
	}
	if err != nil && loopback.Host(c.base.Hostname()) && ctx.Err() == nil {
		return nil, fmt.Errorf("%w (its address is for readers on %s: elsewhere set --advertise)", err, cmp.Or(row.Host, "its host"))
	}
	if err != nil {
		return nil, err
	}
	want := Self{row.ID, row.Process, o.Store}
	if q.Follow {
		want.Process = "" // positions hold over restarts, and a row shows a restart late
	}
	if err = a.Self.mustBe(want); err == nil {
		return a, nil
	}
	err = fmt.Errorf("at its address %s %w", c.base, err)
	if loopback.Host(c.base.Hostname()) {
		err = fmt.Errorf("%w (that address is for readers on %s: elsewhere set --advertise)", err, cmp.Or(row.Host, "its host"))
	}
	if want.Process = ""; a.Self.mustBe(want) == nil {
		return a, err
	}
	a.Close()
	return nil, err
}
