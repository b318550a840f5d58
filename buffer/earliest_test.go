package buffer_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
)

// The least time of the unflushed records is known for open, cut and parked batches, and
// after a start. It is not the arrival.
func TestEarliest(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{}
		sink.setRefuse(func(string) error { return errors.New("403") })
		o := buffer.Options{Age: time.Hour, MaxAge: 2 * time.Hour}
		p := start(t, dir, sink, o, true)
		is := func(when string, want int64) {
			t.Helper()
			if got, some := p.buf.Earliest(); !some || got != want {
				t.Errorf("%s: %d %v, want %d", when, got, some, want)
			}
		}
		again := func(o buffer.Options) {
			p.stop()
			p = start(t, dir, sink, o, true)
			synctest.Wait()
			time.Sleep(time.Second)
		}
		if got, some := p.buf.Earliest(); some {
			t.Errorf("nothing was sent, and there is a record of %d", got)
		}
		p.accept(request(1, line{"web", at(5), "a"}, line{"api", at(9), "b"}))
		is("open", at(5))
		p.accept(request(2, line{"web", at(3), "late"}, line{"web", at(700), "c"}))
		is("an older one came", at(3))
		again(o)
		is("after a start", at(3))
		p.flushFor(time.Second)
		is("cut", at(3))
		again(o)
		is("cut, after a start", at(3))
		p.accept(request(3, line{"api", at(-100000), "of yesterday"}))
		is("in another batch", at(-100000))
		sink.setRefuse(nil)
		p.flush()
		if got, some := p.buf.Earliest(); some {
			t.Errorf("all is stored, and there is a record of %d", got)
		}
		p.stop()
	})
}
