package layers

import (
	"go/ast"
	"strconv"
	"strings"
	"testing"
)

// TestDurationsHaveUnits ensures that each duration in a log of ours is a number of seconds, under a
// key that says so. The logger's own methods for durations write milliseconds under any key.
func TestDurationsHaveUnits(t *testing.T) {
	found := 0
	for _, f := range parse(t) {
		if f.isTest() {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			key, isKey := call.Args[0].(*ast.BasicLit)
			if !ok || !isKey {
				return true
			}
			name, err := strconv.Unquote(key.Value)
			if err != nil {
				return true
			}
			switch method.Sel.Name {
			case "Dur", "Durs", "TimeDiff":
				t.Errorf("%s: %s(%q) writes a number without a unit; Float64(%q, d.Seconds())", f.line(n.Pos()), method.Sel.Name, name, name+"_seconds")
			case "Float64", "Int", "Int64":
				unit, ok := call.Args[1].(*ast.CallExpr)
				if !ok {
					return true
				}
				of, ok := unit.Fun.(*ast.SelectorExpr)
				if !ok || !strings.HasSuffix(of.Sel.Name, "seconds") && of.Sel.Name != "Seconds" && of.Sel.Name != "Minutes" && of.Sel.Name != "Hours" {
					return true
				}
				if found++; of.Sel.Name != "Seconds" || name != "seconds" && !strings.HasSuffix(name, "_seconds") {
					t.Errorf("%s: %q: want seconds, and a key that ends with them", f.line(n.Pos()), name)
				}
			}
			return true
		})
	}
	if found < 5 {
		t.Errorf("found %d durations in logs", found)
	}
}
