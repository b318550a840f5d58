package blobs_test

import (
	"slices"
	"strings"
	"testing"

	"blobtail/blobfmt"
	"blobtail/reading/blobs"
	"blobtail/storage/dir"
	"blobtail/storage/storagetest"
)

// Blobs that commit 8984767 wrote, before there were filters, are read and searched like
// others. They are valid as they are.
func TestBeforeFilters(t *testing.T) {
	store, err := dir.Open("testdata/before-filters", dir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := blobs.New(store, blobs.Options{})
	ask := blobs.Query{Services: []string{"*"}, Range: blobs.Always()}
	all, _ := read(t, r, ask)
	if len(all) != 300 {
		t.Fatalf("%d records, want 300", len(all))
	}
	for _, text := range []string{"needle", "u000", "request_id", `C:\temp`, `"q"`, "é=7", "status=502", "c4ca4238a0b923820dcc509a6f75849b", "nowhere"} {
		ask.Filter = blobs.Filter{Texts: []string{text}}
		got, sum := read(t, r, ask)
		var want []string
		for _, line := range all {
			shown := strings.NewReplacer(`\\`, `\`, `\"`, `"`, `"status":`, `status=`).Replace(line)
			if strings.Contains(shown, text) {
				want = append(want, line)
			}
		}
		if !slices.Equal(got, want) || len(sum.Problems)+len(sum.Warnings) > 0 {
			t.Errorf("%q: %d records, want %d; %v %v", text, len(got), len(want), sum.Problems, sum.Warnings)
		}
		if sum.RuledOutByIDs+sum.RuledOutByWords > 0 {
			t.Errorf("%q: filters ruled out %d blocks", text, sum.RuledOutByIDs+sum.RuledOutByWords)
		}
	}
	for _, b := range storagetest.Objects(t, store, "") {
		body := storagetest.Body(t, store, b.Key)
		m, err := blobfmt.ParseMeta(b.Metadata)
		if err != nil {
			t.Fatalf("%s: %v", b.Key, err)
		}
		if found := blobfmt.Verify(b.Key, body, m); found != nil {
			t.Error(found)
		}
	}
}
