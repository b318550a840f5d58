package copying_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/retention/copying"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

// killed lets a run make a number of requests to both stores, and ends it.
func killed(from, to storage.BlobStore, o copying.Options, at int, after bool) bool {
	ctx, die := context.WithCancel(context.Background())
	defer die()
	var mu sync.Mutex
	n := 0
	script := func(storagetest.Op, string) storagetest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if n++; n < at {
			return storagetest.Fault{}
		}
		die()
		if n == at && after {
			return storagetest.Fault{After: storagetest.ErrFault}
		}
		return storagetest.Fault{Before: storagetest.ErrFault}
	}
	_, _ = copying.Run(ctx, storagetest.Faulty(from, script), storagetest.Faulty(to, script), o)
	return n >= at
}

// A run that is killed at any request leaves a copy that the next run completes. Until then its
// parts name no blob that is not there, and its roots no part.
func TestKilledAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := settled(t)
		defer h.Stop()
		day := time.Now().UTC().Add(-50 * time.Hour).Truncate(24 * time.Hour)
		for i := range 2 {
			send(t, h, day.Add(time.Duration(i)*time.Minute), "web")
			h.Flush()
		}
		send(t, h, day, "app")
		send(t, h, h.Now(), "app")
		h.Flush()
		upkeep(t, h.Store, h.Now())
		old := mem.New(mem.Options{})
		copied(t, h.Store, old, options(h))
		upkeep(t, h.Store, h.Now().Add(time.Second))
		erased := map[string]bool{}
		for _, at := range []time.Time{day, h.Now()} { // of a closed day and of an open one
			text := fmt.Sprintf("line of app at %s", at)
			erased[text] = true
			erases(t, h, text, -1)
		}
		if err := horizon.Publish(t.Context(), h.Store, "web", horizon.DayOf(day)-1); err != nil {
			t.Fatal(err)
		}
		for _, base := range []*mem.Store{mem.New(mem.Options{}), old} {
			kills := 0
			for _, after := range []bool{false, true} {
				for at := 1; ; at++ {
					to := mem.New(mem.Options{})
					storagetest.Copy(t, base, to)
					if !killed(h.Store, to, options(h), at, after) {
						break
					}
					kills++
					sound(t, to)
					copied(t, h.Store, to, options(h))
					equal(t, h.Store, to)
					without(t, to, erased)
				}
			}
			if kills < 60 {
				t.Errorf("%d kills", kills)
			}
		}
	})
}

// sound checks that all that parts and roots of a copy name is there.
func sound(t *testing.T, s storage.BlobStore) {
	t.Helper()
	hidden, err := horizon.Read(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var parts [][]byte
	for _, key := range storagetest.KeysOf(t, s, "") {
		if _, ok := closed.ParseName(key); !ok {
			continue
		}
		body := storagetest.Body(t, s, key)
		parts = append(parts, body)
		part, err := closed.Parse(key, body)
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := closed.ParseName(key); n.Number != newest(t, s, key) || hidden.Hides(n.Service, n.Day) {
			continue
		}
		for _, b := range part.Blobs {
			if _, err := s.Stat(t.Context(), b.Key); err != nil {
				t.Errorf("%s names %s: %v", key, b.Key, err)
			}
		}
	}
	for _, key := range storagetest.KeysOf(t, s, closed.RootPrefix) {
		root := storagetest.Body(t, s, key)
		found := !bytes.Contains(root, []byte(`"days":{"2`))
		for _, part := range parts {
			sum, _ := closed.HashOf(part).MarshalText()
			found = found || bytes.Contains(root, sum)
		}
		if !found {
			t.Errorf("%s names a part that is not there", key)
		}
	}
}

func newest(t *testing.T, s storage.BlobStore, key string) int {
	n, _ := closed.ParseName(key)
	keys := storagetest.KeysOf(t, s, closed.PartPrefix(n.Service, n.Day))
	last, _ := closed.ParseName(keys[len(keys)-1])
	return last.Number
}
