package blobwriter_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/blobwriter"
	"blobtail/internal/dev/testkit"
	"blobtail/storage"
	"blobtail/storage/mem"
)

// hangingStore answers no Create of services whose names begin with hung, until resume is closed.
type hangingStore struct {
	storage.BlobStore
	resume chan struct{}

	mu    sync.Mutex
	hangs map[string]int
	bytes int
}

func (h *hangingStore) Create(ctx context.Context, key string, body []byte, a storage.Attrs) error {
	if service, _, _ := strings.Cut(key, "/"); strings.HasPrefix(service, "hung") {
		h.mu.Lock()
		h.hangs[service]++
		h.bytes += len(body)
		h.mu.Unlock()
		select {
		case <-h.resume:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return h.BlobStore.Create(ctx, key, body, a)
}

// noise is lines that hardly compress.
func noise(size int) (texts []string) {
	const each = 180 << 10
	raw := make([]byte, each)
	rng := rand.NewChaCha8([32]byte{1})
	for ; size > 0; size -= each {
		rng.Read(raw[:min(size, each)])
		texts = append(texts, base64.StdEncoding.EncodeToString(raw[:min(size, each)]))
	}
	return texts
}

// Uploads of some services hang: those of another go on, of few bytes always, and of many as long as
// few services hang. No encoder is held meanwhile, and memory is bounded. What waited is stored when
// the store answers again.
func TestHungServices(t *testing.T) {
	for _, tc := range []struct{ services, size, other int }{ // two hung uploads of each service
		{1, 24 << 20, 12 << 20}, {3, 9 << 20, 1 << 20}, {20, 2 << 20, 0},
	}[:testkit.Share(3, 1)] {
		t.Run(fmt.Sprint(tc.services), func(t *testing.T) {
			hungTexts, otherTexts := noise(tc.size), noise(tc.other)
			synctest.Test(t, func(t *testing.T) {
				s := &hangingStore{BlobStore: mem.New(mem.Options{}), resume: make(chan struct{}), hangs: map[string]int{}}
				w := blobwriter.New(s, blobwriter.Options{NoFilters: true}, nil)
				var all sync.WaitGroup
				for n := range tc.services {
					service := fmt.Sprint("hung", n)
					for i := range byte(2) {
						b := &batch{id: 10 + i, service: service, texts: hungTexts, pin: w.Plan(service, period)}
						all.Go(func() {
							if err := w.Write(t.Context(), b); err != nil {
								t.Errorf("%s, batch %d: %v", service, i, err)
							}
						})
					}
				}
				synctest.Wait()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				t.Logf("%d bytes of %d services hang", s.bytes, len(s.hangs))
				if s.bytes > 64<<20 || len(s.hangs) == 0 {
					t.Errorf("%d bytes of %d services hang", s.bytes, len(s.hangs))
				}
				begun := time.Now()
				for id, texts := range [][]string{{"few"}, noise(40 << 10), otherTexts} {
					short, stop := context.WithTimeout(t.Context(), time.Minute)
					err := w.Write(short, &batch{id: byte(id + 1), service: "web", texts: append(texts, "x"), pin: w.Plan("web", period)})
					stop()
					if took := time.Since(begun); err != nil || took > 0 {
						t.Errorf("batch %d of another service: %v after %v", id, err, took)
					}
				}
				close(s.resume)
				all.Wait()
			})
		})
	}
}

// A body that needs most of the room is stored though those of others come and go.
func TestLargeBodyGetsItsTurn(t *testing.T) {
	testkit.FullOnly(t, "compresses hundreds of MB")
	some, large := noise(6<<20), noise(24<<20)
	synctest.Test(t, func(t *testing.T) {
		w := blobwriter.New(&slowStore{mem.New(mem.Options{})}, blobwriter.Options{NoFilters: true}, nil)
		ctx, end := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for n := range 5 {
			service := fmt.Sprint("other", n)
			all.Go(func() {
				for id := byte(1); ctx.Err() == nil; id++ {
					if err := w.Write(ctx, &batch{id: id, service: service, texts: some, pin: w.Plan(service, period)}); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				}
			})
			time.Sleep(600 * time.Millisecond)
		}
		begun := time.Now()
		err := w.Write(ctx, &batch{id: 1, service: "web", texts: large, pin: w.Plan("web", period)})
		if took := time.Since(begun); err != nil || took > 12*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		end()
		all.Wait()
	})
}

// slowStore takes three seconds for each object, and keeps no bodies.
type slowStore struct{ storage.BlobStore }

func (s *slowStore) Create(ctx context.Context, key string, _ []byte, a storage.Attrs) error {
	time.Sleep(3 * time.Second)
	return s.BlobStore.Create(ctx, key, nil, a)
}
