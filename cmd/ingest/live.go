package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"blobtail/buffer"
	"blobtail/internal/lease"
	"blobtail/reading/unflushed/live"
	"blobtail/record"
)

// withLive sends paths below /live/ to the answers, and all others to the source. The
// source has a mux of its own, because it checks how paths are written.
func withLive(source http.Handler, answers http.Handler) http.Handler {
	readers := http.NewServeMux()
	readers.Handle(live.Pattern, answers)
	readers.Handle("/live/", source) // which tells that there is no such path
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/live/") {
			readers.ServeHTTP(w, r)
			return
		}
		source.ServeHTTP(w, r)
	})
}

// journal joins the buffer to the handler. They do not know each other.
type journal struct {
	buf       *buffer.Buffer
	announcer *lease.Announcer
}

// Open implements [live.Log].
func (j journal) Open(ctx context.Context, q live.LogQuery) (live.Held, error) {
	snapshot, err := j.buf.Live(ctx, buffer.LiveQuery(q))
	if err != nil {
		return nil, err
	}
	if q.Follow {
		return held{snapshot, nil}, nil
	}
	return held{snapshot, j.announcer.Loss}, nil
}

// held is a snapshot that reports damage as live does, and earlier losses of the log:
// the row may not have them yet.
type held struct {
	*buffer.Live
	lost func() lease.Loss // nil: no report of losses
}

// Each implements [live.Held].
func (h held) Each(ctx context.Context, emit func(*record.Entry) error) error {
	err := h.Live.Each(ctx, emit)
	if _, ok := errors.AsType[*buffer.MissingError](err); ok {
		return &live.DamageError{Err: err}
	}
	if err == nil && h.lost != nil {
		if loss := h.lost(); loss.Any() {
			return &live.DamageError{Err: fmt.Errorf("records were lost that it took before %s", loss.Until.UTC().Format(time.RFC3339))}
		}
	}
	return err
}
