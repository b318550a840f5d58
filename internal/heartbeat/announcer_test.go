package heartbeat_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/heartbeat"
	"blobtail/storage/mem"
)

// The first unflushed record is announced at once, not with the next beat. Readers look
// for a killed ingester only if its row says that it had unflushed records.
func TestSoonUnflushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New(mem.Options{})
		var mu sync.Mutex
		var since time.Time
		set := func(at time.Time) {
			mu.Lock()
			defer mu.Unlock()
			since = at
		}
		p := launch(t, s, identity{ID: "0badcafe"}, func(o *heartbeat.Options) {
			o.Oldest = func() (time.Time, bool) {
				mu.Lock()
				defer mu.Unlock()
				return since, !since.IsZero()
			}
		})
		<-p.First()
		time.Sleep(time.Second)
		came := time.Now()
		set(came)
		time.Sleep(time.Second)
		if got := one(t, s, "").Oldest; !got.Equal(came) {
			t.Errorf("a second later the row says %v", got)
		}
		written, _ := p.Beats()
		time.Sleep(5 * time.Second)
		if again, _ := p.Beats(); again != written {
			t.Errorf("%d announcements more of what the row says already", again-written)
		}
	})
}
