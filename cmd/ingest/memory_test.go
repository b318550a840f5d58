package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestGroupMemory(t *testing.T) {
	root := t.TempDir()
	inner := filepath.Join(root, "pods", "one")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	membership := filepath.Join(root, "cgroup")
	for _, c := range []struct {
		member, outer, inner string
		want                 int64
	}{
		{"0::/pods/one\n", "1000000\n", "2000000\n", 1000000},
		{"0::/pods/one\n", "max\n", "2000000\n", 2000000},
		{"0::/pods/one\n", "max\n", "max\n", math.MaxInt64},
		{"0::/\n", "1000\n", "1\n", math.MaxInt64},
		{"12:memory:/old\n", "1000\n", "1000\n", math.MaxInt64},
	} {
		write(membership, c.member)
		write(filepath.Join(root, "pods", "memory.max"), c.outer)
		write(filepath.Join(inner, "memory.max"), c.inner)
		if got := groupMemory(membership, root); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	if got := groupMemory(filepath.Join(root, "absent"), root); got != math.MaxInt64 {
		t.Errorf("without control groups: %d", got)
	}
}
