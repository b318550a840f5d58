package body

import (
	"context"
	"errors"

	"blobtail/record"
)

// An Accepter appends requests to the log. Any number of goroutines may call Accept. It
// copies the parts that it keeps, so the request may be reused after it has returned.
// Sources distinguish [record.ErrFull], [record.ErrUnheld] and [record.ErrKeyReused]. Any
// other error means that the request was not accepted and may be sent again.
type Accepter interface {
	Accept(ctx context.Context, r *record.Request) (record.Receipt, error)
}

// Append passes Req to the accepter. If a request with its key came before, it does so
// again with the times and the origin of then. more is that of AddRejected.
func (g *Gatherer) Append(ctx context.Context, to Accepter, more func() error) (record.Receipt, error) {
	for {
		receipt, err := to.Accept(ctx, &g.Req)
		first, ok := errors.AsType[*record.EarlierError](err)
		if !ok {
			return receipt, err
		}
		g.retime(first.DefaultTime)
		g.Req.Origin, g.Req.DefaultTime, g.Req.Outcome = first.Origin, first.DefaultTime, g.Outcome()
		if err := g.AddRejected(more); err != nil {
			return record.Receipt{}, err
		}
	}
}

// retime gives the lines without a time of their own another one, as if that had been
// the default, and removes the lines of AddRejected.
func (g *Gatherer) retime(t int64) {
	const timeAt = len(`{"ts":"`)
	g.defaults.Time = t
	g.Req.Lines = g.Req.Lines[:g.Accepted]
	end := uint32(0)
	if g.Accepted > 0 {
		last := &g.Req.Lines[g.Accepted-1]
		end = last.Off + last.Len
	}
	g.Req.Data = g.Req.Data[:end]
	for _, i := range g.untimed {
		l := &g.Req.Lines[i]
		l.Time = t
		record.AppendTime(g.Req.Data[:l.Off+uint32(timeAt)], t)
	}
	for i := range g.Req.Lines {
		if n := g.Req.Lines[i].Time; i == 0 || n < g.earliest {
			g.earliest = n
		}
	}
}
