package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"blobtail/buffer"
	"blobtail/internal/access"
	"blobtail/internal/config"
	"blobtail/record"
	"blobtail/storage"
)

const (
	// listEvery is how often the store is asked for its services, at most: one listing has all.
	listEvery = 10 * time.Second
	listWait  = 15 * time.Second
	// listPatience is how long a record waits for a listing, and anew while that finds services. If it
	// finds none for so long, no other record waits.
	listPatience = time.Second
)

// newcomers limits the new services of all doors together: each costs a blob at least. A service is
// not new if it was accepted within a day, also before a start, or if the log or the store has records
// of it. These two are asked only when a service would be refused.
type newcomers struct {
	limit *access.Everybody
	// doubtful limits the services that are accepted because the store does not answer.
	doubtful *access.Everybody
	most     int
	store    storage.BlobStore
	buf      *buffer.Buffer
	log      zerolog.Logger

	mu    sync.Mutex
	held  map[string]bool // services in the log of the start, and in the store
	told  bool            // held has those of the log
	asked time.Time       // end of the last listing
	err   error           // of it
	under chan struct{}   // closed when the listing under way ends; nil: there is none
	late  bool            // it has found nothing for listPatience
}

func newNewcomers(c config.Config, store storage.BlobStore, log zerolog.Logger) *newcomers {
	most := c.Limits.NewServices
	return &newcomers{
		limit: access.NewEverybody(most, filepath.Join(c.WALDir(), "new-services"), log), doubtful: access.NewEverybody(most, "", log),
		most: most, store: store, log: log, held: map[string]bool{},
	}
}

// allow returns the check of services for all doors; nil if there is no limit.
func (n *newcomers) allow() func(service string) (reason string) {
	if n.most == 0 {
		return nil
	}
	return func(service string) string {
		if n.limit.Take(service, n.holds) == nil {
			return ""
		}
		return fmt.Sprintf("%s is a new service, and there have been %d within an hour (limits.new-services)", service, n.most)
	}
}

// holds reports whether the log or the store has records of a service. If the store does not answer,
// it decides for the sender, up to the limit once more: records of a known service in _rejected are
// not found for as long as an outage lasts, and the limit is there for the number of blobs.
func (n *newcomers) holds(service string) bool {
	held, sure := n.lookUp(service)
	return held || !sure && n.doubtful.Take(service, nil) == nil
}

// lookUp is holds by what is known. sure says that the last listing is whole.
func (n *newcomers) lookUp(service string) (held, sure bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held[service] {
		return true, true
	}
	if n.under == nil && time.Since(n.asked) >= listEvery {
		n.under, n.late = make(chan struct{}), false
		go n.list(n.under)
	}
	for under := n.under; under != nil && n.under == under && !n.late && !n.held[service]; {
		found := len(n.held)
		n.mu.Unlock()
		select {
		case <-under:
		case <-time.After(listPatience):
		}
		n.mu.Lock()
		n.late = n.under == under && len(n.held) == found
	}
	return n.held[service], n.under == nil && n.err == nil
}

// list asks the store for its services, and at first the log.
func (n *newcomers) list(under chan struct{}) {
	defer close(under)
	ctx, cancel := context.WithTimeout(context.Background(), listWait)
	defer cancel()
	found := func(service string) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.held[service] = true
	}
	n.mu.Lock()
	told := n.told
	n.mu.Unlock()
	var err error
	if !told {
		err = n.listLog(ctx, found)
		told = err == nil
	}
	if err == nil {
		for name, e := range n.store.Dirs(ctx, "") {
			if err = e; err == nil && record.ValidService(name) {
				found(name)
			}
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		n.log.Warn().Err(err).Msg("the store does not say which services it has; up to limits.new-services of them are not taken for new ones")
	}
	n.told, n.err, n.asked, n.under = told, err, time.Now(), nil
}

// listLog finds the services with unflushed records. Those of later ones are known to the limit.
func (n *newcomers) listLog(ctx context.Context, found func(service string)) error {
	snapshot, err := n.buf.Live(ctx, buffer.LiveQuery{From: math.MinInt64, To: math.MaxInt64, Match: func(service string) bool {
		found(service)
		return false
	}})
	if err != nil {
		return fmt.Errorf("list the services in the log: %w", err)
	}
	snapshot.Close()
	return nil
}
