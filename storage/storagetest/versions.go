package storagetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"blobtail/storage"
)

// createBatch creates an object as the pipeline does: each has its own batch id. It
// returns the object's Stat.
func createBatch(t *testing.T, s storage.BlobStore, key, batch string) storage.Blob {
	t.Helper()
	a := attrs()
	a.Metadata["batch"] = batch
	if err := s.Create(t.Context(), key, []byte(batch), a); err != nil {
		t.Fatal(err)
	}
	b, err := s.Stat(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// An object that took a name after the listed object stays, alone or among other
// deletes.
func testDeleteVersion(t *testing.T, s storage.BlobStore) {
	for round := range 5 {
		old := createBatch(t, s, "web/a/1", fmt.Sprint("old", round))
		for range 2 { // a missing object is fine
			if err := s.Delete(t.Context(), old); err != nil {
				t.Fatal(err)
			}
		}
		now := createBatch(t, s, "web/a/1", fmt.Sprint("new", round))
		if old.Version == "" || now.Version == "" || old.Version == now.Version {
			t.Fatalf("versions %q and %q", old.Version, now.Version)
		}
		other := createBatch(t, s, "web/a/2", "other")
		if err := s.Delete(t.Context(), old); err != nil {
			t.Errorf("Delete of what was replaced: %v", err)
		}
		if err := s.Delete(t.Context(), old, other); err != nil {
			t.Errorf("Delete of what was replaced and another: %v", err)
		}
		if got := collect(t, s.List(t.Context(), "", "")); len(got) != 1 || got[0].Metadata["batch"] != fmt.Sprint("new", round) {
			t.Fatalf("%+v are there", got)
		}
		// List and Stat return the same version. Without a version any object of the
		// name goes.
		last := collect(t, s.List(t.Context(), "", ""))
		if round%2 == 0 {
			last = Keys("web/a/1")
		}
		if err := s.Delete(t.Context(), last...); err != nil {
			t.Errorf("Delete: %v", err)
		}
		if got := collect(t, s.List(t.Context(), "", "")); len(got) > 0 {
			t.Fatalf("%+v are left", got)
		}
	}
}

// More listed objects than fit into one request of any service. Some have been replaced
// since, and some are gone.
func testDeleteVersions(t *testing.T, s storage.BlobStore) {
	const n = 300
	for i := range n {
		create(t, s, fmt.Sprintf("web/%03d", i), nil)
	}
	listed := collect(t, s.List(t.Context(), "web/", ""))
	if len(listed) != n {
		t.Fatalf("%d objects are listed", len(listed))
	}
	var stay []string
	for i := 0; i < n; i += 20 {
		key := fmt.Sprintf("web/%03d", i)
		if err := s.Delete(t.Context(), storage.Blob{Key: key}); err != nil {
			t.Fatal(err)
		}
		if i%40 == 0 {
			createBatch(t, s, key, "new")
			stay = append(stay, key)
		}
	}
	if err := s.Delete(t.Context(), listed...); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if got := keys(collect(t, s.List(t.Context(), "", ""))); !slices.Equal(got, stay) {
		t.Errorf("%q are left, want %q", got, stay)
	}
}

// Several deleters delete the objects they listed while a writer uses the same name.
// Each object is deleted only by a deleter that has listed it.
func testDeleteVersionRace(t *testing.T, s storage.BlobStore) {
	for round := range 20 {
		key := fmt.Sprintf("web/%d", round)
		old := createBatch(t, s, key, "old")
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := s.Delete(t.Context(), old); err != nil {
					t.Errorf("Delete: %v", err)
				}
			})
		}
		wg.Go(func() {
			a := attrs()
			a.Metadata["batch"] = "new"
			for s.Create(t.Context(), key, nil, a) != nil { // until the name is free
				if t.Context().Err() != nil {
					return
				}
			}
		})
		wg.Wait()
		if b, err := s.Stat(t.Context(), key); err != nil || b.Metadata["batch"] != "new" {
			t.Errorf("round %d: Stat = %+v, %v", round, b, err)
		}
	}
}
