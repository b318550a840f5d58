package blobwriter_test

import (
	"slices"
	"testing"

	"blobtail/storage/mem"
)

// A lane may change at any time. Planned batches keep their numbers, and later ones get
// the new lane. A lane that returns continues its numbers.
func TestSetLane(t *testing.T) {
	s := mem.New(mem.Options{})
	w := newWriter(t, s, 0)
	first := plan(w, 1, "a")
	if err := w.SetLane(5); err != nil {
		t.Fatal(err)
	}
	second := plan(w, 2, "b")
	for _, b := range []*batch{first, second} {
		if err := w.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	third := plan(w, 3, "c")
	if err := w.SetLane(0); err != nil {
		t.Fatal(err)
	}
	fourth := plan(w, 4, "d")
	for _, b := range []*batch{third, fourth} {
		if err := w.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	got := held(t, s)
	for number, id := range map[int]byte{1: 1, 2: 4, 50001: 2, 50002: 3} {
		if got[number] != id {
			t.Errorf("number %d has batch %d, want %d: %v", number, got[number], id, got)
		}
	}
	for _, lane := range []int{-1, 99} {
		if err := w.SetLane(lane); err == nil {
			t.Errorf("lane %d is taken", lane)
		}
	}
	if p := plan(w, 5, "e").pin; slices.Equal(p, third.pin) {
		t.Errorf("pin %x is given twice", p)
	}
}
