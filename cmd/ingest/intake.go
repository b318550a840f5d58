package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"blobtail/buffer"
	"blobtail/config"
	"blobtail/source/httpsource"
)

// An intake is where records come in. Once closed it stays so.
type intake struct {
	http   *http.Server
	stream *stream
	closed atomic.Bool
	log    zerolog.Logger
}

// newIntake makes the HTTP source beside the stream, with the answers to who reads
// what it took. ready says why nothing can be
// taken.
func newIntake(c config.Config, buf *buffer.Buffer, company *company, stream *stream, log zerolog.Logger, reg prometheus.Registerer) (in *intake, ready func() error) {
	in = &intake{stream: stream, log: part(log, "intake")}
	ready = func() error { return errors.Join(in.err(), company.ready(buf)) }
	source := httpsource.New(httpsource.Options{
		Accept:      buf,
		Ready:       ready,
		Dedupe:      httpsource.Dedupe(c.Ingest.Dedupe),
		MaxInFlight: int64(c.Limits.InFlight),
		Log:         part(log, "http"),
		Metrics:     reg,
	})
	answers := newLive(buf, company, log, reg)
	in.http = httpsource.NewServer(withLive(source, answers), part(log, "http"))
	in.http.RegisterOnShutdown(answers.Stop) // or slow readers would use up the grace
	return in, ready
}

var errDrained = errors.New("this ingester takes no more: it was drained")

// err says that nothing is taken any more, nil while it is.
func (i *intake) err() error {
	if i.closed.Load() {
		return errDrained
	}
	return nil
}

// close takes no more, and returns when what was under way is answered, or ctx
// ends.
func (i *intake) close(ctx context.Context) {
	i.closed.Store(true)
	i.stream.stop(ctx)
	if err := i.http.Shutdown(ctx); err != nil {
		i.log.Warn().Err(err).Msg("requests were cut off; they were not acknowledged")
	}
}

// stop takes no more requests, answers those under way, and flushes. Half of the
// grace is for the requests, so that slow clients do not cost the flush. It tells
// whether all is in blobs.
func stop(log zerolog.Logger, buf *buffer.Buffer, in *intake, grace time.Duration) bool {
	log.Info().Dur("grace", grace).Msg("stopping")
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	answering, done := context.WithTimeout(ctx, grace/2)
	defer done()
	in.close(answering)
	left, err := buf.Flush(ctx)
	if err != nil {
		log.Warn().Err(err).Int("batches", left.Batches).Int("records", left.Records).
			Msg("not all is in blobs; the rest stays in the log for the next start")
		return false
	}
	log.Info().Msg("all is in blobs")
	return true
}
