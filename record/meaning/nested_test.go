package meaning

import (
	"strings"
	"testing"

	"blobtail/record/names"
)

// Each member of the table is found in an object that has it.
func TestNested(t *testing.T) {
	var all names.Set
	for i := range all {
		all[i] = ^uint64(0)
	}
	rows := 0
	for part := range names.NumParts {
		for n := range all.Nested(part) {
			rows++
			p, src := NewReader(), `"x"`
			for path := strings.Split(n.Path, "."); len(path) > 0; path = path[:len(path)-1] {
				src = `{"` + path[len(path)-1] + `":` + src + `}`
			}
			if _, err := p.Scan([]byte(src)); err != nil || !hasParent(p) || string(p.path(n.Parent, n.Path)) != `"x"` {
				t.Errorf("%s is not found in %s", n.Path, src)
			}
		}
	}
	if rows < 25 {
		t.Errorf("%d rows", rows)
	}
}
