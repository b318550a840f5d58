package buffer_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
)

// Thousands of batches that are due at once are cut once each, while requests open and grow
// others: a tick lets these in between.
func TestManyBatches(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{}
		p := start(t, dir, sink, buffer.Options{Size: 1 << 20, Min: 1 << 20, Age: time.Second, MaxAge: time.Second}, true)
		defer p.stop()
		const services, rounds = 3500, 4
		for round := range rounds {
			var lines []line
			for s := range services {
				lines = append(lines, line{fmt.Sprintf("s%d", s), at(1), fmt.Sprint(round)})
			}
			p.accept(request(byte(round+1), lines...))
			time.Sleep(700 * time.Millisecond) // each batch has two rounds
		}
		p.flush()
		if err := p.buf.Audit(); err != nil {
			t.Error(err)
		}
		got, batches := map[string]int{}, sink.all()
		for _, b := range batches {
			for _, l := range b.lines {
				got[l.text]++
			}
		}
		if len(got) != services*rounds || len(batches) != services*rounds/2 {
			t.Errorf("%d records in %d batches", len(got), len(batches))
		}
		for text, n := range got {
			if n != 1 {
				t.Errorf("%d times: %s", n, text)
			}
		}
	})
}
