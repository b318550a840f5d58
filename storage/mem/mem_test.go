package mem_test

import (
	"testing"
	"time"

	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) (storage.BlobStore, storage.TableStore) {
		s := mem.New(mem.Options{})
		return s, s
	})
}

func TestClock(t *testing.T) {
	want := time.Date(2026, 11, 20, 15, 4, 5, 0, time.UTC)
	var c storage.Clock = mem.New(mem.Options{Now: func() time.Time { return want }})
	if got, err := c.Now(t.Context()); err != nil || !got.Equal(want) {
		t.Errorf("Now = %v, %v", got, err)
	}
}
