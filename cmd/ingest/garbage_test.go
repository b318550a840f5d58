package main

import "testing"

func TestGarbagePercent(t *testing.T) {
	for _, c := range []struct {
		inUse uint64
		want  int
	}{
		{0, 100}, {5 << 20, 100}, {24 << 20, 100}, {48 << 20, 50}, {96 << 20, 25}, {1 << 30, 15},
	} {
		if got := garbagePercent(c.inUse); got != c.want {
			t.Errorf("%d bytes in use: %d %%, want %d", c.inUse, got, c.want)
		}
	}
}
