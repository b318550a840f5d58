package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Lines come in their order, however slowly they are taken, and their source does not wait.
func TestAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got, want strings.Builder
		h := newAhead(1<<20, func(lines []byte) error { time.Sleep(time.Minute); got.Write(lines); return nil })
		begun, buf := time.Now(), []byte(nil)
		for i := range 100 {
			buf = fmt.Appendf(buf[:0], "line %d\n", i)
			want.Write(buf)
			if err := h.add(buf); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("adding took %v", took)
		}
		if err := h.finish(); err != nil || got.String() != want.String() {
			t.Errorf("%v\n%s", err, got.String())
		}
	})
}

// The reader leaves: the source of the lines hears of it, also while there is no room for more.
func TestAheadLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := errors.New("left")
		h := newAhead(1000, func([]byte) error { time.Sleep(time.Minute); return left })
		var err error
		big := make([]byte, 600)
		for err == nil {
			err = h.add(big)
		}
		if err != left || h.finish() != left {
			t.Error(err)
		}
	})
}
