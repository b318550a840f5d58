package storagetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"blobtail/storage"
)

// createBatch creates an object as the pipeline does: each has a batch id of its
// own. It returns what Stat says of it.
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

// What took a name after the object that was listed stays, alone and in company.
func testDeleteVersion(t *testing.T, s storage.BlobStore) {
	for round := range 5 {
		old := createBatch(t, s, "web/a/1", fmt.Sprint("old", round))
		for range 2 { // that it is absent already is fine
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
		// A version is that of List as well as that of Stat; without one whatever
		// is there goes.
		last := collect(t, s.List(t.Context(), "", ""))
		if round%2 == 0 {
			last = storage.Keys("web/a/1")
		}
		if err := s.Delete(t.Context(), last...); err != nil {
			t.Errorf("Delete: %v", err)
		}
		if got := collect(t, s.List(t.Context(), "", "")); len(got) > 0 {
			t.Fatalf("%+v are left", got)
		}
	}
}

// More than fits into one request of any service, as listed; some have been
// replaced since, and some are gone.
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
		if err := s.Delete(t.Context(), storage.Keys(key)...); err != nil {
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

// Several delete what each has listed while another writes under the same name:
// each object is deleted only by who has seen it.
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
