package storagetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"blobtail/storage"
)

// neighbours are keys that sort differently in a directory than by their bytes.
func neighbours() []string {
	return []string{
		"Z", "_horizon/web/20261120", "a-b.c/x", "a-b/y", "a-b0/x", "a-c", "a.b/x", "a/-/x", "a/b", "a/b-", "a/b.log", "a/c/d/e/f",
		"a/c0", "a/~", "a0", "a0b/x", "ab", "b/1", "b/10", "b/2", "é/x",
	}
}

func testListOrder(t *testing.T, s storage.BlobStore) {
	all := neighbours()
	shuffled := slices.Clone(all)
	rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for _, key := range shuffled {
		create(t, s, key, []byte(key))
	}
	if !slices.IsSorted(all) {
		t.Fatal("the test is wrong")
	}
	prefixes := []string{"", "a", "a-", "a-b", "a-b/", "a/", "a/c", "a/c/", "a/c/d/e/f", "a0", "b/1", "b/", "c", "é"}
	after := append([]string{"", "a", "a-", "a-b/", "a-c", "a/", "a/b.", "a/c/d", "a/c/d/", "a/c/d/e/f", "a/c/d/e/g", "a0", "zz", "\xff"}, all...)
	for _, prefix := range prefixes {
		for _, start := range after {
			want := slices.DeleteFunc(slices.Clone(all), func(key string) bool {
				return !strings.HasPrefix(key, prefix) || key <= start
			})
			if got := keys(collect(t, s.List(t.Context(), prefix, start))); !slices.Equal(got, want) {
				t.Errorf("List(%q, %q) = %q, want %q", prefix, start, got, want)
			}
		}
	}
}

func testListPages(t *testing.T, s storage.BlobStore) {
	const n = 120
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf("web/2026/11/%02d/1500/%06d.log", i/40+1, i+1))
		create(t, s, want[i], nil)
	}
	if got := keys(collect(t, s.List(t.Context(), "web/", ""))); !slices.Equal(got, want) {
		t.Errorf("List gives %d keys, want %d in order", len(got), n)
	}
	if got := keys(collect(t, s.List(t.Context(), "web/2026/11/0", want[59]))); !slices.Equal(got, want[60:]) {
		t.Errorf("List from the middle gives %d keys, want %d in order", len(got), n-60)
	}
}

// A consumer may stop at any element.
func testListStops(t *testing.T, s storage.BlobStore) {
	for _, key := range []string{"a/1", "a/2", "b/1", "c"} {
		create(t, s, key, nil)
	}
	for stop := 1; stop <= 4; stop++ {
		n := 0
		for _, err := range s.List(t.Context(), "", "") {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == stop {
				break
			}
		}
		if n != stop {
			t.Errorf("stopped after %d of %d", n, stop)
		}
	}
	for range s.Dirs(t.Context(), "") {
		break
	}
}

func testDirs(t *testing.T, s storage.BlobStore) {
	for _, key := range neighbours() {
		create(t, s, key, nil)
	}
	for prefix, want := range map[string][]string{
		"":          {"_horizon", "a", "a-b", "a-b.c", "a-b0", "a.b", "a0b", "b", "é"},
		"a/":        {"-", "c"},
		"a/c/":      {"d"},
		"b/":        nil,
		"nothing/":  nil,
		"a/b/":      nil,
		"_horizon/": {"web"},
	} {
		got := collect(t, s.Dirs(t.Context(), prefix))
		if !slices.Equal(got, want) {
			t.Errorf("Dirs(%q) = %q, want %q", prefix, got, want)
		}
	}
	// A level with nothing left below it does not exist.
	if err := s.Delete(t.Context(), Keys("a-b.c/x", "a/c/d/e/f")...); err != nil {
		t.Fatal(err)
	}
	if got := collect(t, s.Dirs(t.Context(), "a/")); !slices.Equal(got, []string{"-"}) {
		t.Errorf("Dirs(a/) after a Delete = %q", got)
	}
}
