package where

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"blobtail/internal/budget"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
)

// unbounded is an expression as the language runs it, without our functions.
type unbounded struct {
	program *vm.Program
	joined  []*unbounded
	or      bool
	names   []string
}

// errOrdered says that the language has another order of levels.
var errOrdered = errors.New("it compares levels by their order")

func parseUnbounded(text string) (*unbounded, error) {
	tree, err := parser.Parse(text)
	if err != nil {
		return nil, err
	}
	n := &names{used: map[string]int{}, own: map[string]bool{}}
	ast.Walk(&tree.Node, (*variables)(n))
	ast.Walk(&tree.Node, n)
	if k := rank(&tree.Node, n); k.err != nil || len(k.ordered) > 0 {
		return nil, errOrdered
	}
	var all []string
	for name := range n.used {
		all = append(all, name)
	}
	var compile func(node ast.Node) (*unbounded, error)
	compile = func(node ast.Node) (*unbounded, error) {
		u := &unbounded{names: all}
		var parts []ast.Node
		switch at := node.(type) {
		case *ast.BinaryNode:
			if u.or = at.Operator == "||" || at.Operator == "or"; u.or || at.Operator == "&&" || at.Operator == "and" {
				parts = []ast.Node{at.Left, at.Right}
			}
		case *ast.UnaryNode:
			if at.Operator == "!" || at.Operator == "not" {
				parts = []ast.Node{at.Node}
			}
		}
		for _, part := range parts {
			one, err := compile(part)
			if err != nil {
				return nil, err
			}
			u.joined = append(u.joined, one)
		}
		if parts != nil {
			return u, nil
		}
		config := conf.CreateNew()
		config.Strict = false
		config.Expect, config.ExpectAny = reflect.Bool, true
		tree := &parser.Tree{Node: node, Source: tree.Source}
		if _, err := checker.Check(tree, config); err != nil {
			return nil, err
		}
		var err error
		u.program, err = compiler.Compile(tree, config)
		return u, err
	}
	return compile(tree.Node)
}

func (u *unbounded) match(line []byte) truth {
	if u.program != nil {
		env, r := map[string]any{}, &run{}
		for key, value := range record.Fields(line) {
			env[string(record.AppendUnescaped(nil, key))] = r.decode(value)
		}
		for _, name := range u.names {
			if value, ok := record.Lookup(line, name); ok {
				env[inside(name)] = r.decode(value)
			}
		}
		got, err := vm.Run(u.program, env)
		switch {
		case err != nil:
			return unknown
		case got == true:
			return yes
		}
		return no
	}
	first := u.joined[0].match(line)
	if len(u.joined) == 1 {
		return yes - first
	}
	if u.or {
		return max(first, u.joined[1].match(line))
	}
	return min(first, u.joined[1].match(line))
}

const boundsLine = `{"ts":"2026-11-20T15:04:05.000000000Z","level":"error","service":"web","msg":"say \"hi\" ab","status":502,"path":"/api/x","ok":false,"none":null,"http":{"status":404,"a":{"b":1}},"tags":["a","b","a"],"nums":[3,1,2,2],"deep":[[1,[2]],[3]],"took":1.5e3,"duration":{"len":3},"json":"{\"x\":[1,2]}"}` + "\n"

// boundsTexts use each part of the language that our functions stand for.
var boundsTexts = []string{
	`status + 1 == 503`, `msg + path == "say \"hi\" ab/api/x"`, `path + "x" startsWith "/api"`, `status + took > 2000`, `status + path == 1`, `tags + 1 == 1`,
	`status == took`, `tags == ["a", "b", "a"]`, `http == {"status": 404.0, "a": {"b": 1.0}}`, `tags != nums`, `none == missing`, `status != took`, `not (status != status)`,
	`"a" in tags`, `"x" not in tags`, `status in [501, status]`, `"status" in http`, `2 in 1..3`, `status in tags`, `path in msg`,
	`msg contains "hi"`, `missing contains "x"`, `status contains "5"`, `path not contains "zz"`,
	`msg matches "^say"`, `msg matches path`, `path matches "(/a|x)" + "pi"`, `missing matches "x"`, `status matches "5"`, `path matches "[" + "a"`,
	`all(nums, # > 0)`, `any(tags, # == "b")`, `one(tags, # == "b")`, `none(nums, # > 5)`, `count(nums, # == 2) == 2`, `sum(nums) == 8`, `sum(nums, # * 2) == 16`,
	`filter(nums, # > 1) == [3.0, 2.0, 2.0]`, `map(nums, # + 1)[0] == 4`, `len(map(tags, [#, #])) == 3`, `find(nums, # < 3) == 1`, `findIndex(nums, # == 2) == 2`,
	`findLast(nums, # < 3) == 2`, `findLastIndex(nums, # == 2) == 3`, `len(groupBy(tags, #)) == 2`, `groupBy(tags, #)["a"] == ["a", "a"]`, `sortBy(nums, #)[0] == 1`,
	`sortBy(nums, #, "desc")[0] == 3`, `reduce(nums, #acc + #) == 8`, `reduce(tags, #acc + #, "") == "aba"`, `reduce([], #acc + #) == 1`,
	`len(msg) == 11`, `upper(path) == "/API/X"`, `lower(level) == "error"`, `trim(" x ") == "x" and ok == false`, `trim(path, "/x") == "api"`, `trimPrefix(path, "/api") == "/x"`,
	`trimSuffix(path, "x") == "/api/"`, `split(path, "/") == ["", "api", "x"]`, `split(path, "/")[1] == "api"`, `splitAfter(path, "/", 2)[0] == "/"`,
	`replace(path, "a", "b") == "/bpi/x"`, `replace(path, "/", "_", 1) == "_api/x"`, `repeat(level, 2) == "errorerror"`, `repeat(level, -1) == ""`, `join(tags, "-") == "a-b-a"`, `join(tags) == "aba"`,
	`join(nums) == ""`, `string(nums) == "[3 1 2 2]"`, `string(none) == "<nil>"`, `int("5") + status == 507`, `int(path) == 1`, `float("1.5") * took > 2000`, `indexOf(path, "x") == 5`,
	`lastIndexOf(path, "/") == 4`, `hasPrefix(path, "/a")`, `hasSuffix(path, "x")`, `max(nums) == 3`, `min(nums, 0) == 0`, `mean(nums) == 2`, `median(nums) == 2`,
	`toJSON(http.a) == "{\n  \"b\": 1\n}"`, `fromJSON(json).x[1] == 2`, `fromJSON(path) == 1`, `toBase64(level) == "ZXJyb3I="`, `fromBase64("ZXJyb3I=") == level`,
	`len(keys(http)) == 2`, `len(values(http)) == 2`, `len(toPairs(http)) == 2`, `fromPairs([["x", status]])["x"] == 502`, `reverse(nums)[0] == 2`, `uniq(tags) == ["a", "b"]`, `len(uniq(nums)) == 3`,
	`uniq(path) == 1`, `concat(tags, nums)[3] == 3`, `flatten(deep) == [1.0, 2.0, 3.0]`, `sort(nums)[0] == 1`, `sort(tags, "desc")[0] == "b"`, `first(nums) == 3`, `last(tags) == "a"`,
	`get(http, "status") == 404`, `take(nums, 2) == [3.0, 1.0]`, `nums[1:3] == [1.0, 2.0]`, `path[0:4] == "/api"`, `{"a": status}.a == 502`, `[status, took][1] == 1500`,
	`$env["status"] == 502`, `$env.status == 502`, `"status" in $env`, `let n = status; n + 1 > 500`, `let all = tags; "b" in all`, `ok ? path == "x" : path + "y" == "/api/xy"`, `missing?.x ?? "z" == "z"`,
	`date("2026-01-02").Year() == 2026`, `type(tags) == "array"`, `abs(-status) == 502`, `ceil(took / 7) > 1`, `duration("1h").Hours() + status == 503`, `bitand(1, 3) == status`,
	`all(nums, let x = #; any(tags, # + "" != "z" and x > 0))`, `map(nums, {"v": #})[0].v == 3`, `count(tags) == 0`, `not (nums == tags) && status == 502 || path + path == ""`,
}

// With our functions each expression has the result that the language gives it.
func TestSameResults(t *testing.T) {
	for _, text := range boundsTexts {
		sameResult(t, text)
	}
}

func sameResult(t *testing.T, text string) {
	want, wrong := parseUnbounded(text)
	if wrong == errOrdered {
		return
	}
	for _, bounded := range []bool{false, true} {
		var b *budget.Budget
		if bounded {
			_, b = budget.NewPool(budget.Limits{}).Begin(t.Context())
			defer b.End()
		}
		e, err := Parse(b, text, false)
		if wrong != nil {
			if err == nil {
				t.Errorf("%s: it is taken; %v", text, wrong)
			}
			continue
		}
		if err != nil {
			if !strings.Contains(err.Error(), "names no field") && !strings.Contains(err.Error(), "no function") {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		for range 2 {
			if got, want := e.Match([]byte(boundsLine)), want.match([]byte(boundsLine)) == yes; got != want || b.Err() != nil {
				t.Errorf("%s: %v, want %v; %v, %q", text, got, want, b.Err(), e.Notes(nil))
			}
		}
	}
}

// allocated is how many bytes the process has allocated.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// grown is a line with long texts and lists.
func grown(n int) []byte {
	list := strings.Repeat(`"ab",`, n/5)
	return fmt.Appendf(nil, `{"ts":"2026-11-20T15:04:05.000000000Z","level":"info","service":"web","msg":"%s","n":1,"list":[%s"z"]}`+"\n", strings.Repeat("a", n), list)
}

// The values that an expression makes are bounded, for any expression: the budget ends, and little
// more memory is used than it has.
func TestMade(t *testing.T) {
	testkit.FullOnly(t, "it makes many bytes, and counts them")
	line := grown(100_000)
	for _, text := range []string{
		`reduce(1..40, #acc + #acc, msg) == "x"`, `let a = msg + msg; let b = a + a; let c = b + b; let d = c + c; let e = d + d; let f = e + e; f + f == "x"`,
		`replace(msg, "", msg) == "x"`, `join(list, msg) == "x"`, `repeat(msg, 100000) == "x"`, `len(map(1..1000, msg + "x")) == 1`,
		`let a = [msg, msg]; let b = [a, a]; let c = [b, b]; let d = [c, c]; let e = [d, d]; let f = [e, e]; let g = [f, f]; string(g) == "x" or msg == ""`,
		`toJSON(map(1..1000, list)) == "x"`, `len(split(replace(msg, "a", list[0] + msg[0:50]), "")) == 1`,
		`len([` + strings.TrimSuffix(strings.Repeat(`upper(msg),`, 2000), ",") + `]) == 1`,
		`fromJSON("[" + repeat(msg[0:0] + "[],", 900000) + "1]") == 1`,
		`len(concat(` + strings.TrimSuffix(strings.Repeat(`list,`, 45), ",") + `)) == 1 or len(flatten(map(1..500, list))) == 1`,
		`msg matches "^` + strings.Repeat("(", 400) + `[\\pL\\pN]` + strings.Repeat(")", 400) + `$" or ` + strings.Repeat(`n == 5 or msg matches "^`+strings.Repeat("(", 400)+`[\\pL\\pN]`+strings.Repeat(")", 400)+`$" or `, 5) + `n == 6`,
	} {
		const most = 8 << 20
		_, b := budget.NewPool(budget.Limits{Query: most}).Begin(t.Context())
		before := allocated()
		e, err := Parse(b, text, false)
		if err == nil && e.Match(line) {
			t.Errorf("%.80s matches", text)
		}
		var over *budget.Error
		if !errors.As(b.Err(), &over) || err != nil && err != b.Err() {
			t.Errorf("%.80s: it ends with %v, %v", text, b.Err(), err)
		}
		if made := allocated() - before; made > 12*most {
			t.Errorf("%.80s: %d bytes were made", text, made)
		}
		b.End()
	}
	// Without a budget the record is unknown.
	e, err := Parse(nil, `reduce(1..40, #acc + #acc, msg) == "x" or n == 1`, false)
	if err != nil || !e.Match(line) || !e.Select(line) {
		t.Errorf("without a budget: %v", err)
	}
}

// An expression ends soon after its query.
func TestEnds(t *testing.T) {
	testkit.FullOnly(t, "it makes many bytes, and counts them")
	line := grown(300_000)
	for _, text := range []string{
		`let r = 1..1000; all(r, all(r, all(r, all(r, # > 0 and n > 0))))`, `all(list, all(list, all(list, # != msg)))`,
		`len(uniq(map(list, # + string(#index)))) == 1`, `msg matches "` + strings.Repeat("a*", 5000) + `b$"`, `msg matches ("` + strings.Repeat("a*", 5000) + `" + "b$")`,
		`len([` + strings.TrimSuffix(strings.Repeat(`indexOf(msg, "`+strings.Repeat("a", 40)+`b"),`, 800), ",") + `]) == 1`,
		strings.Repeat(`msg contains "`+strings.Repeat("a", 40)+`b" or `, 800) + `n == 2`,
		`count(list, any(list, # == msg)) == 1`, `len(filter(list, msg in list)) == 1`,
	} {
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, b := budget.NewPool(budget.Limits{}).Begin(ctx)
		begun := time.Now()
		e, err := Parse(b, text, false)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%.80s: %v", text, err)
		}
		for n := 0; err == nil && n < 10; n++ {
			e.Match(line)
		}
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("%.80s: it takes %v", text, took)
		}
		b.End()
		stop()
	}
}

// FuzzWhere finds expressions that have another result than the language gives them, or that make
// more than they may, or work for long.
func FuzzWhere(f *testing.F) {
	for _, text := range boundsTexts {
		f.Add(text)
	}
	line := grown(20_000)
	f.Fuzz(func(t *testing.T, text string) {
		slow := time.AfterFunc(20*time.Second, func() { panic(fmt.Sprintf("%q takes too long", text)) })
		defer slow.Stop()
		const most = 4 << 20
		ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer stop()
		_, b := budget.NewPool(budget.Limits{Query: most}).Begin(ctx)
		defer b.End()
		before, begun := allocated(), time.Now()
		e, err := Parse(b, text, false)
		if err != nil {
			return
		}
		e.Match(line)
		e.Match([]byte(boundsLine))
		if made, took := allocated()-before, time.Since(begun); made > 256<<20 || took > 20*time.Second {
			t.Errorf("%q makes %d bytes in %v", text, made, took)
		}
		if b.Err() == nil && !strings.Contains(text, "now") { // short enough for the language alone
			sameResult(t, text)
		}
	})
}
