package sim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"blobtail/catalog/closed"
	"blobtail/storage"
	"blobtail/storage/mem"
)

var errLost = errors.New("nothing came back")

// simStore is the blob store of a world. It checks every blob at its creation.
type simStore struct {
	*mem.Store
	w    *world
	late sync.WaitGroup // late requests

	mu   sync.Mutex
	look *inspector
}

func newSimStore(w *world) *simStore {
	return &simStore{Store: w.memory(), w: w, look: newInspector(w.taken)}
}

// later calls do after a while, even if its caller has gone by then.
func (s *simStore) later(d time.Duration, do func()) {
	s.late.Go(func() {
		time.Sleep(d)
		do()
	})
}

// create makes a blob and checks it.
func (s *simStore) create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error {
	err := s.Store.Create(ctx, key, body, attrs)
	if err == nil && !account(key) {
		s.inspect(key, body, attrs)
	}
	return err
}

// account reports whether a key is that of an account.
func account(key string) bool {
	_, part := closed.ParseName(key)
	return part || strings.HasPrefix(key, closed.RootPrefix)
}

// inspect compares a new blob with the blobs in the store.
func (s *simStore) inspect(key string, body []byte, attrs storage.Attrs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.totals.blobs++
	look := s.look.blob
	if s.w.compaction != nil {
		look = s.look.compactable
	}
	for _, err := range look(key, body, attrs) {
		s.w.violations = append(s.w.violations, err.Error())
	}
}

// mustHold makes sure that records are stored already.
func (s *simStore) mustHold(what string, ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if !s.look.ids[id] && !s.w.hides(id) {
			s.w.violation("%s, but not there: %s", what, id)
		}
	}
}

// storeOf is the store as one ingester sees it.
type storeOf struct {
	*simStore
	ingester int
}

func (w *world) isQuiet() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.quiet
}

// refused reports whether the store refuses this key for now: one service for the first
// while, or all keys in an outage.
func (s *storeOf) refused(key string) bool {
	since := time.Since(s.w.start)
	return s.w.p.Stuck && key[0] == 'a' && since < s.w.stuckFor ||
		s.w.p.Outages && since%(2*time.Minute) < time.Minute
}

// Create is the one call that everything depends on. It may be lost, or its answer may
// be, or it may arrive after its caller has given up.
func (s *storeOf) Create(ctx context.Context, key string, body []byte, attrs storage.Attrs) error {
	w := s.w
	w.count(&w.totals.puts)
	if w.expiry != nil && !account(key) {
		w.expiry.put(key)
	}
	if w.isQuiet() {
		return s.create(ctx, key, body, attrs)
	}
	rng := w.fate("create", s.ingester, key)
	if s.refused(key) {
		if w.p.Hangs {
			wait(ctx, time.Hour)
		}
		return fmt.Errorf("refused: %w", errLost)
	}
	if rng.IntN(100) >= w.p.Faults {
		return s.create(ctx, key, body, attrs)
	}
	switch rng.IntN(7) {
	case 0: // no answer for long; it may be done in the end
		w.count(&w.totals.latePuts)
		d := time.Duration(rng.IntN(1200)) * time.Second
		if rng.IntN(2) == 0 {
			s.createLater(d, key, body, attrs)
		}
		wait(ctx, d)
		return errLost
	case 1:
		w.count(&w.totals.lostRequests)
		return errLost
	case 2: // 500 as well, but done
		w.count(&w.totals.lostAnswers)
		_ = s.create(ctx, key, body, attrs)
		return errLost
	case 3:
		if !wait(ctx, time.Duration(rng.IntN(90))*time.Second) {
			return ctx.Err()
		}
		return s.create(ctx, key, body, attrs)
	case 4: // the connection breaks, the request continues
		w.count(&w.totals.latePuts)
		s.createLater(time.Duration(rng.IntN(5000))*time.Millisecond, key, body, attrs)
	default:
		w.count(&w.totals.latePuts)
		s.createLater(time.Duration(rng.IntN(900))*time.Second, key, body, attrs)
	}
	wait(ctx, time.Duration(rng.IntN(10))*time.Second)
	return errLost
}

func (s *storeOf) createLater(d time.Duration, key string, body []byte, attrs storage.Attrs) {
	body = bytes.Clone(body)
	s.later(d, func() {
		if s.create(context.Background(), key, body, attrs) == nil {
			s.w.count(&s.w.totals.landed)
		}
	})
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *storeOf) Stat(ctx context.Context, key string) (storage.Blob, error) {
	if !s.w.isQuiet() && s.w.fate("stat", s.ingester, key).IntN(100) < s.w.p.Faults {
		return storage.Blob{}, errLost
	}
	return s.Store.Stat(ctx, key)
}

func (s *storeOf) List(ctx context.Context, prefix, startAfter string) iter.Seq2[storage.Blob, error] {
	if s.w.isQuiet() || s.w.fate("list", s.ingester, prefix).IntN(100) >= s.w.p.Faults {
		return s.slowList(ctx, prefix, s.Store.List(ctx, prefix, startAfter))
	}
	return func(yield func(storage.Blob, error) bool) {
		n := s.w.fate("listed", s.ingester, prefix).IntN(3)
		for b, err := range s.Store.List(ctx, prefix, startAfter) {
			if n--; n < 0 {
				break
			}
			if !yield(b, err) {
				return
			}
		}
		yield(storage.Blob{}, errLost)
	}
}
