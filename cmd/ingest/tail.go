package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"blobtail/buffer"
	"blobtail/internal/cli"
	"blobtail/internal/config"
	"blobtail/internal/count"
	"blobtail/internal/migrations"
	"blobtail/record"
	"blobtail/tailindex"
)

// tail writes the newest records to tables, where readers find them at once. The buffer
// knows it from the start, but reports nothing before run has begun. join gives it the
// other parts in between.
type tail struct {
	writer  *tailindex.Writer // nil: no newest records are written
	migrate func(context.Context)
	ending  context.Context
	end     context.CancelFunc // ends ending
}

func newTail() *tail {
	t := &tail{}
	t.ending, t.end = context.WithCancel(context.Background())
	return t
}

// of returns the tail for the buffer; nil if the configuration has none.
func (t *tail) of(c config.Config) buffer.Tail {
	if !c.Tail.Enabled {
		return nil
	}
	return t
}

// Accepted implements [buffer.Tail].
func (t *tail) Accepted(mark uint64, run *record.Run) { t.writer.Accepted(mark, run) }

// join makes the writer, next to this ingester's announcements.
func (t *tail) join(c config.Config, p *company, buf *buffer.Buffer, log zerolog.Logger, reg *count.Registry) {
	if !c.Tail.Enabled {
		return
	}
	log = part(log, "tail")
	store := c.Store.Name()
	every, _ := c.TailEvery()
	t.writer = tailindex.NewWriter(p.tables, tailindex.Options{
		Prefix: c.Tail.Prefix, Shards: c.Tail.Shards, Store: store,
		Process: p.announcer.Process(), Lane: p.announcer.Lane,
		Durable: buf.Durable, Now: p.clock.Now, Every: every, Log: log,
	})
	showTail(t.writer, reg)
	host, _ := os.Hostname()
	t.migrate = func(ctx context.Context) {
		applied, err := migrations.Apply(ctx, p.tables, migrations.Steps(c.Tail.Prefix, p.clock.Now),
			migrations.Options{Store: store, By: host + " " + cli.Version(), Now: p.clock.Now})
		for _, s := range applied {
			log.Info().Int("version", s.Version).Str("id", s.ID).Str("description", s.Description).Msg("tables migrated")
		}
		switch {
		case errors.Is(err, migrations.ErrNewer):
			log.Warn().Err(err).Msg("the tables are newer than this program")
		case err != nil && ctx.Err() == nil:
			log.Warn().Err(err).Msg("the tables are not migrated; the next start tries again")
		}
	}
}

// migrateTime bounds the migration of the tables at a start.
const migrateTime = time.Minute

// run writes until ctx or end ends it, and once more.
func (t *tail) run(ctx context.Context) error {
	if t.writer == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var migrating sync.WaitGroup
	defer migrating.Wait()
	defer cancel()
	defer context.AfterFunc(t.ending, cancel)()
	migrating.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, migrateTime)
		defer cancel()
		t.migrate(ctx)
	})
	return t.writer.Run(ctx)
}
