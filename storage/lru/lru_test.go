package lru_test

import (
	"testing"

	"blobtail/storage/lru"
)

// A cache has the values that were asked for last, within its bytes. A value that is larger than the
// cache is not kept, nor is an earlier one of its key, and the others stay.
func TestCache(t *testing.T) {
	c := lru.New[string, int](100)
	has := func(keys string) {
		t.Helper()
		for _, key := range []string{"a", "b", "c", "d"} {
			want := false
			for _, k := range keys {
				want = want || string(k) == key
			}
			if _, ok := c.Get(key); ok != want {
				t.Errorf("%s is there: %v, want %v", key, ok, want)
			}
		}
	}
	c.Put("a", 1, 40)
	c.Put("b", 2, 40)
	c.Get("a")
	c.Put("c", 3, 40)
	has("ac")
	c.Put("a", 4, 60)
	has("ac")
	if value, _ := c.Get("a"); value != 4 {
		t.Errorf("the later value is %d", value)
	}
	c.Put("d", 5, 101)
	has("ac")
	c.Put("c", 6, 101)
	has("a")
	if n, bytes := c.Size(); n != 1 || bytes != 60 {
		t.Errorf("%d values of %d bytes", n, bytes)
	}
}
