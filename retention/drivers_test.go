package retention_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/horizon"
	"blobtail/internal/dev/testenv"
	"blobtail/internal/dev/testenv/stores"
	"blobtail/retention"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

var env testenv.Env

func TestMain(m *testing.M) { os.Exit(env.Run(m)) }

// putMany stores blobs under keys, several at a time.
func putMany(t *testing.T, s storage.BlobStore, keys []string) {
	t.Helper()
	var work sync.WaitGroup
	errs := make([]error, len(keys))
	slots := make(chan struct{}, 16)
	for i, key := range keys {
		slots <- struct{}{}
		work.Go(func() {
			errs[i] = s.Create(context.Background(), key, []byte("body"), storage.Attrs{Metadata: metadata(i+1, time.Unix(0, 0), 3)})
			<-slots
		})
	}
	work.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Every kind of store behaves alike. A day with more blobs than two requests can
// delete is hidden and deleted, its tables are dropped, and the rest stays.
func TestDrivers(t *testing.T) {
	stores.Each(t, &env, func(t *testing.T, open stores.Open) {
		t.Parallel()
		blobs, tabs := open()
		at := time.Now().UTC().Add(-days(40)).Truncate(day)
		var gone, stay []string
		for i := range 520 {
			gone = append(gone, blobfmt.Name{Service: "app", Period: at.Add(time.Duration(i%24) * time.Hour), Number: i + 1}.String())
		}
		for _, service := range []string{"app2", "app-2", "ap"} {
			stay = append(stay, blobfmt.Name{Service: service, Period: at, Number: 1}.String())
		}
		stay = append(stay, blobfmt.Name{Service: "app", Period: at.Add(days(20)), Number: 1}.String())
		putMany(t, blobs, slices.Concat(gone, stay))
		foreign := strings.TrimSuffix(gone[0], ".log") + ".txt"
		storagetest.Put(t, blobs, foreign, nil)
		// All tests share the tables of an account, and prefixes are letters.
		prefix := strings.Map(func(r rune) rune { return 'a' + r%26 }, testenv.Name("tail"))
		old, young := prefix+at.Format("20060102"), prefix+time.Now().UTC().Format("20060102")
		for _, table := range []string{old, young, prefix + "x" + at.Format("20060102")} {
			if err := tabs.Upsert(t.Context(), table, "p", nil); err != nil {
				t.Fatal(err)
			}
		}

		policy := retention.Policy{Default: retention.Keep, Rules: []retention.Rule{{Service: "app", Age: days(30)}}, Tail: days(3)}
		job := retention.New(blobs, tabs, retention.Options{Policy: policy, Prefix: prefix})
		if r, err := confirmedRun(job); err != nil || len(r.Problems) != 0 || r.Total().Blobs != 0 || !slices.Equal(r.Tables, []string{old}) {
			t.Fatalf("first run: %+v, %v", r, err)
		}
		r, err := confirmedRun(job)
		if err != nil || len(r.Problems) != 0 || r.Total().Blobs != len(gone) || r.Total().Records != int64(3*len(gone)) || r.Plan.Foreign.Count != 1 {
			t.Fatalf("second run: %+v, %v", r, err)
		}
		left := storagetest.KeysOf(t, blobs, "a")
		want := append(stay, foreign)
		slices.Sort(want)
		if !slices.Equal(left, want) {
			t.Errorf("left %v, want %v", left, want)
		}

		req := retention.DropRequest{Service: "app", Day: horizon.DayOf(at.Add(days(20)))}
		r, _ = job.Drop(t.Context(), req)
		req.Confirm = r.Plan.Hash
		if r, err = job.Drop(t.Context(), req); err != nil || r.Total().Blobs != 1 || len(r.Problems) != 0 {
			t.Errorf("drop: %+v, %v", r, err)
		}
	})
}
