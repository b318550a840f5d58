package clockskew_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/clockskew"
	"blobtail/storage/mem"
)

// bench is a store with a clock that can be set. The host's clock is that of the test:
// so the store's is behind when the host's is ahead.
type bench struct {
	mu     sync.Mutex
	host   time.Duration // host's clock less the true time
	store  time.Duration
	there  time.Duration // the time of a question on its way there, and of an answer on its way back
	back   time.Duration
	broken error
	log    bytes.Buffer
}

func (b *bench) set(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

func (b *bench) Now(ctx context.Context) (time.Time, error) {
	b.mu.Lock()
	there, back, broken, ahead := b.there, b.back, b.broken, b.store-b.host
	b.mu.Unlock()
	if broken != nil {
		return time.Time{}, broken
	}
	select {
	case <-time.After(there):
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
	s := mem.New(mem.Options{Now: func() time.Time { return time.Now().Add(ahead) }})
	now, err := s.Now(ctx)
	time.Sleep(back)
	return now, err
}

func (b *bench) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

func (b *bench) told(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.log.String(), text)
}

// A clock that goes wrong is noticed within a minute, and so is its recovery. Either
// clock may be the wrong one. In between nothing is logged twice.
func TestSkew(t *testing.T) {
	for _, c := range []struct {
		name        string
		host, store time.Duration
		bad         bool
		text        string
	}{
		{"an hour behind", -time.Hour, 0, true, "the clock of this host is 1h0m0s behind the store's, and 5m0s is allowed: set it (NTP)"},
		{"a year ahead", 365 * 24 * time.Hour, 0, true, "8760h0m0s ahead of the store's"},
		{"the store's is wrong", 0, time.Hour, true, "behind"},
		{"just too far", 5*time.Minute + time.Second, 0, true, "5m1s ahead of"},
		{"just near enough", -5*time.Minute + time.Second, 0, false, ""},
		{"both the same", time.Hour, time.Hour, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bench{}
				k := clockskew.New(b, zerolog.New(b))
				ctx, end := context.WithCancel(t.Context())
				defer end()
				go k.Run(ctx)
				<-k.First()
				if err := k.Err(); err != nil {
					t.Fatalf("two clocks that agree: %v", err)
				}
				b.set(func() { b.host, b.store = c.host, c.store })
				time.Sleep(61 * time.Second)
				err := k.Err()
				if (err != nil) != c.bad || err != nil && !strings.Contains(err.Error(), c.text) {
					t.Errorf("%v", err)
				}
				if d := time.Until(k.Now()) - (c.store - c.host); d.Abs() > time.Second {
					t.Errorf("the store's time is known %v wrongly", d)
				}
				time.Sleep(10 * time.Minute)
				b.set(func() { b.host, b.store = 0, 0 })
				time.Sleep(61 * time.Second)
				if err := k.Err(); err != nil {
					t.Errorf("mended: %v", err)
				}
				want := 0
				if c.bad {
					want = 1
				}
				if bad, good := b.told("not ready"), b.told("right again"); bad != want || good != want {
					t.Errorf("told %d times of trouble, %d of its end", bad, good)
				}
			})
		})
	}
}

// A host that starts with a wrong clock is not ready from the first answer on.
func TestFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{host: -time.Hour}
		k := clockskew.New(b, zerolog.Nop())
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go k.Run(ctx)
		<-k.First()
		if k.Err() == nil || k.Skew() != -time.Hour {
			t.Errorf("%v, %v", k.Err(), k.Skew())
		}
	})
}

// A store that does not answer changes nothing, before and after it did.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{broken: errors.New("connection refused")}
		k := clockskew.New(b, zerolog.New(b))
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go k.Run(ctx)
		<-k.First()
		time.Sleep(time.Hour)
		if k.Err() != nil || k.Skew() != 0 || b.told("does not tell the time") != 1 {
			t.Errorf("%v, %v, told %d times", k.Err(), k.Skew(), b.told("does not tell the time"))
		}
		b.set(func() { b.broken, b.host = nil, time.Hour })
		time.Sleep(61 * time.Second)
		if k.Err() == nil {
			t.Error("an hour of skew is fine")
		}
		b.set(func() { b.broken = errors.New("connection refused"); b.host = 0 })
		time.Sleep(time.Hour)
		if k.Err() == nil {
			t.Error("ready without knowing")
		}
		b.set(func() { b.broken, b.there = nil, time.Hour }) // hangs
		time.Sleep(time.Hour)
		b.set(func() { b.there = 0 })
		time.Sleep(2 * time.Minute)
		if k.Err() != nil {
			t.Errorf("mended: %v", k.Err())
		}
	})
}

// Slow answers are no skew: only the difference between the two ways counts, by half.
func TestSlowAnswers(t *testing.T) {
	for _, c := range []struct{ there, back, want time.Duration }{
		{2 * time.Second, 2 * time.Second, 0},
		{3 * time.Second, time.Second, -time.Second},
		{0, 4 * time.Second, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &bench{there: c.there, back: c.back}
			k := clockskew.New(b, zerolog.Nop())
			ctx, end := context.WithCancel(t.Context())
			defer end()
			go k.Run(ctx)
			<-k.First()
			if got := k.Skew(); got != c.want {
				t.Errorf("%v there and %v back: %v, want %v", c.there, c.back, got, c.want)
			}
		})
	}
}

// A store on this host has this host's clock.
func TestNoClock(t *testing.T) {
	k := clockskew.New(nil, zerolog.Nop())
	k.Run(t.Context())
	<-k.First()
	if k.Err() != nil || time.Since(k.Now()) > time.Second {
		t.Errorf("%v, %v", k.Err(), k.Now())
	}
}
