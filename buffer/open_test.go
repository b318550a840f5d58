package buffer_test

import (
	"context"
	"encoding/binary"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
	"blobtail/internal/count"
	"blobtail/internal/dev/testkit"
)

// Each rule that cuts a batch counts under its own reason, and no other batch is cut.
func TestReasons(t *testing.T) {
	var full atomic.Bool
	sleep := func(d time.Duration) func(*process) { return func(*process) { time.Sleep(d) } }
	for reason, row := range map[string]struct {
		o    buffer.Options
		then func(p *process) // after one record of 50 bytes or more
	}{
		"size":    {buffer.Options{Size: 50}, sleep(0)},
		"age":     {buffer.Options{Min: 50}, sleep(61 * time.Second)},
		"max_age": {buffer.Options{}, sleep(5*time.Minute + time.Second)},
		"log":     {buffer.Options{Soft: 1}, sleep(time.Second)},
		"flush":   {buffer.Options{}, (*process).flush},
		"disk": {buffer.Options{Full: full.Load}, func(*process) {
			full.Store(true)
			time.Sleep(3 * time.Second)
		}},
		"request": {buffer.Options{}, func(p *process) {
			if err := p.accept(request(0, line{"web", at(2), "y"})).Wait(context.Background(), true); err != nil {
				p.t.Error(err)
			}
		}},
		"messages": {buffer.Options{}, func(p *process) {
			for i := range 100_000 {
				r := message(1, strconv.Itoa(i), line{"web", at(1), "x"})
				binary.BigEndian.PutUint32(r.Origin[8:], uint32(i))
				if _, err := p.buf.Accept(context.Background(), r); err != nil {
					p.t.Fatal(err)
				}
			}
		}},
	} {
		t.Run(reason, func(t *testing.T) {
			if reason == "messages" {
				testkit.FullOnly(t, "100,000 messages")
			}
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				reg := new(count.Registry)
				row.o.Metrics = reg
				p := start(t, dir, &memSink{}, row.o, true)
				defer p.stop()
				p.accept(request(0, line{"web", at(1), "x"}))
				row.then(p)
				synctest.Wait()
				if got := cuts(t, reg); !maps.Equal(got, map[string]float64{reason: 1}) {
					t.Errorf("batches were cut for %v", got)
				}
			})
		})
	}
}

// cuts returns the numbers of batches cut, by reason.
func cuts(t *testing.T, reg *count.Registry) map[string]float64 {
	t.Helper()
	got := map[string]float64{}
	for series, n := range count.Read(reg.Page()) {
		if reason, ok := strings.CutPrefix(series, `blobtail_buffer_batches_cut_total{reason="`); ok && n > 0 {
			got[strings.TrimSuffix(reason, `"}`)] = n
		}
	}
	return got
}
