package sim_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/storage/fsys/simdisk"
)

// The store refuses one service for hours and accepts others. This does not keep the
// log from shrinking: the service's batches are copied forward, again and again. When
// the store accepts them at last, each is there once.
func TestParking(t *testing.T) {
	for seed := range uint64(testkit.Share(4, 1)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(seed)
				w.p = profile{
					Ingesters: 1, Services: 3, Periods: 1, Segment: 4096, Soft: 32 << 10, Size: 1500,
					Age: 5 * time.Second, Gap: 5000, NoOrigin: 50, Stuck: true, Hangs: seed%2 == 1, Rare: 60,
				}
				w.disks, w.stream = []*simdisk.Disk{simdisk.New(seed)}, newStream(w, 0)
				w.refuse(2*time.Hour, 3, 15<<10)
				w.quiet = true
				w.finish()
				w.verify()
				testkit.Report(t, seed, w)
				t.Logf("%s", &w.totals)
			})
		})
	}
}

// refuse keeps service a from being stored for a while, over some lives. It makes sure
// that the log stays near its soft limit though it holds that many bytes of the
// service.
func (w *world) refuse(d time.Duration, lives, held int) {
	w.stuckFor = d
	for n := range lives {
		rng := w.fate("life", n)
		dead := make(chan struct{})
		p, err := w.open(0, dead, rng)
		if err != nil {
			w.trouble("open: %v", err)
			return
		}
		var wg sync.WaitGroup
		r := rand.New(rand.NewPCG(rng.Uint64(), 1))
		wg.Go(func() { w.client(p, r) })
		for end := time.Now().Add(d / time.Duration(lives)); time.Now().Before(end); time.Sleep(time.Second) {
			if size := p.log.Size(); size > w.p.Soft+int64(held)+4*w.p.Segment {
				w.violation("the log has %d bytes and does not shrink, though only one service is refused", size)
				break
			}
		}
		close(dead)
		wg.Wait()
		w.totals.parked += p.parked()
		w.disks[0].SetFault(func(simdisk.Op) error { return simdisk.ErrKilled })
		p.kill()
		w.disks[0] = w.disks[0].PowerCut()
		w.totals.lives++
		w.totals.powerCuts++
	}
}
