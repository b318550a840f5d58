package integration_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/storage/storagetest"
)

// A run of the export that is killed at any moment and repeated leaves what one leaves that was not killed:
// of a store in a directory and in Azurite, into another place there. Late records and an erasure are in the
// export with the next run.
func TestExportKilled(t *testing.T) {
	testkit.FullOnly(t, "TestKilledAnywhere of retention/export kills at each request")
	t.Parallel()
	stores(t, func(t *testing.T, at place) {
		e := newEstate(t, at, "default: keep")
		p := start(t, at, t.TempDir(), e.flag)
		fill := func(ago ...int) {
			for _, service := range []string{"web", "app"} {
				e.fill(p, service, 20, ago...)
			}
			e.close()
		}
		fill(2, 3, 4, 5)
		to := func() place {
			if strings.HasPrefix(at.store, "dir:") {
				return place{"dir:" + filepath.Join(t.TempDir(), "lake"), at.env}
			}
			return place{at.store + strconv.Itoa(rand.IntN(1e9)), at.env}
		}
		seed := newSeed(t)
		rnd := rand.New(rand.NewPCG(seed, 7))
		victim, killed := to(), 0
		export := []string{"export", "--parquet", "--to", victim.store}
		took := 200 * time.Millisecond
		for round, change := range []func(){
			func() {},
			func() { fill(2, 4) }, // late records
			func() {
				erase := []string{"erase", "--where", `msg contains "7"`, "--grace", "0s"}
				out, _ := e.must(2, erase...)
				e.must(0, append(erase, "--confirm", planHash(t, out))...)
			},
		} {
			change()
			for range kills(t, 6) / 2 {
				begun := time.Now()
				if killRetention(t, e, time.Duration(rnd.Int64N(int64(took))), export...) {
					killed++
				} else {
					took = max(time.Since(begun)/2, 20*time.Millisecond)
				}
			}
			e.must(0, export...)
			whole := to()
			e.must(0, "export", "--parquet", "--to", whole.store)
			got, want := contents(t, victim), contents(t, whole)
			if !slices.Equal(got, want) || len(want) < 12 {
				t.Fatalf("round %d, seed %d: %q\nwant %q", round, seed, got, want)
			}
		}
		if killed < 3 {
			t.Errorf("killed %d times only", killed)
		}
		t.Logf("seed %d: killed %d times", seed, killed)
	})
}

// contents are the names of all objects of an export with hashes of their bytes. In a directory these are
// plain files.
func contents(t *testing.T, at place) (all []string) {
	t.Helper()
	root, plain := strings.CutPrefix(at.store, "dir:")
	for _, key := range keys(t, at, "") {
		var body []byte
		if plain {
			body, _ = os.ReadFile(filepath.Join(root, filepath.FromSlash(key)))
		} else {
			body = storagetest.Body(t, blobsOfPlace(t, at), key)
		}
		if len(body) == 0 {
			t.Errorf("%s is empty", key)
		}
		all = append(all, fmt.Sprintf("%s %x", key, sha256.Sum256(body)))
	}
	return all
}
