package globset_test

import (
	"fmt"
	"slices"
	"testing"

	"blobtail/internal/globset"
)

func TestMatch(t *testing.T) {
	s := globset.New([]string{"*", "web-*", "_*", "_rejected", "[", "web-1"})
	for range 2 { // the second answer is the remembered one
		for service, want := range map[string][]int{
			"web": {0}, "web-1": {0, 1, 5}, "_rejected": {2, 3}, "_other": {2},
		} {
			if got := s.Match(service); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", service, got, want)
			}
		}
	}
}

// More services than a set remembers change no answer.
func TestMany(t *testing.T) {
	s := globset.New([]string{"*-7"})
	for i := range 10_000 {
		for _, n := range []int{i, 7} {
			if got := len(s.Match(fmt.Sprintf("s-%d", n))) == 1; got != (n == 7) {
				t.Fatalf("s-%d: %v", n, got)
			}
		}
	}
}
