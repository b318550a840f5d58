package where

import (
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"blobtail/internal/budget"
	"blobtail/internal/grep"
	"blobtail/internal/regex"
)

// Parse compiles an expression for a query with a budget; nil: it makes at most 64 MiB of a record.
// fold says that upper and lower case of ASCII letters are equal for has. An error is a [*Mistake],
// or that of the budget.
func Parse(b *budget.Budget, text string, fold bool) (*Expr, error) {
	e, err := parse(b, text, fold)
	switch {
	case b.Err() != nil:
		return nil, b.Err()
	case err != nil:
		return nil, explained(text, err)
	}
	return e, nil
}

// parse is Parse with errors of the language.
func parse(b *budget.Budget, text string, fold bool) (*Expr, error) {
	tree, err := parser.Parse(expressions(text))
	if err != nil {
		return nil, err
	}
	names := &names{used: map[string]int{}, own: map[string]bool{}}
	ast.Walk(&tree.Node, (*variables)(names))
	uses := usesOf(tree.Node, names.own)
	if err := misused(tree.Node, names.own); err != nil {
		return nil, err
	}
	ast.Walk(&tree.Node, names)
	ranks := rank(&tree.Node, names)
	if ranks.err != nil {
		return nil, &mistake{at: ranks.err.From, what: ranks.err.Message}
	}
	e := &Expr{text: text, budget: b, whole: names.used["$env"] > 0, uses: uses}
	e.reasons.seed, e.seen, e.others = maphash.MakeSeed(), map[string]bool{}, map[string]bool{}
	e.needs = needsOf(tree.Node, names)
	x := &exprs{budget: b, source: tree.Source, of: map[*ast.BinaryNode]*regex.Regex{}}
	if ast.Walk(&tree.Node, x); x.err == nil {
		c := compiling{budget: b, fold: fold, names: names, source: tree.Source}
		c.bounds = bounds{exprs: x, ordered: ranks.ordered, costs: costs(), used: x.rests}
		c.functions = c.bounds.functions()
		e.root, err = c.compile(tree.Node)
		e.calls, e.folds = c.bounds.used, c.folds
		if err == nil && c.has != names.has {
			err = &mistake{what: "has(...) stands alone, or beside and, or, not"}
		}
	}
	switch {
	case x.err != nil:
		return nil, x.err
	case err != nil:
		return nil, err
	case names.function != "":
		return nil, fmt.Errorf("there is no function %s", names.function)
	}
	delete(names.used, "$env")
	maps.DeleteFunc(names.used, func(_ string, n int) bool { return n == 0 })
	e.names = slices.Sorted(maps.Keys(names.used))
	if len(e.names) == 0 && !e.whole && names.has == 0 {
		return nil, &mistake{what: noField, hint: example}
	}
	e.noted = e.names
	for _, u := range uses {
		for _, o := range []operand{u.left, u.right} {
			if o.field != "" && !slices.Contains(e.noted, o.field) {
				e.noted = append(slices.Clip(e.noted), o.field)
			}
		}
	}
	e.runs.New = func() any {
		return &run{budget: b, share: b.Share(), of: e, env: make(map[string]any, len(e.names)+1)}
	}
	return e, nil
}

// explain returns an error of an evaluation in one line and in plain words.
func explain(err error) error {
	if at, ok := errors.AsType[*file.Error](err); ok {
		what, hint := plain(at.Message)
		return &Mistake{Place: fmt.Sprintf("column %d", at.Column+1), What: what, Hint: hint}
	}
	return err
}

// limited reports whether an evaluation failed because it would have made too much, and not because
// of the record: the memory or the depth that the language allows was not enough.
func limited(err error) bool {
	if errors.Is(err, errMade) {
		return true
	}
	at, ok := errors.AsType[*file.Error](err)
	return ok && (strings.Contains(at.Message, "memory budget exceeded") || strings.Contains(at.Message, builtin.ErrorMaxDepth.Error()))
}

// truth is the result of a condition.
type truth int

const (
	no truth = iota
	unknown
	yes
)

// A condition is a program, or conditions that are joined: by && or || if there are two,
// and by a negation if there is one.
type condition struct {
	program *vm.Program
	has     *grep.Pattern // in place of a program
	equals  []comparison  // of fields with texts
	joined  []*condition
	or      bool
}

// compiling makes conditions of a tree.
type compiling struct {
	budget    *budget.Budget
	fold      bool
	names     *names
	has       int  // calls of has
	folds     bool // one of these needs lines in lower case
	source    file.Source
	bounds    bounds
	functions conf.FunctionsTable
}

// compile makes the conditions of a tree with names of the environment.
func (of *compiling) compile(node ast.Node) (*condition, error) {
	var joined []ast.Node
	c := &condition{}
	switch at := node.(type) {
	case *ast.BinaryNode:
		c.or = at.Operator == "||" || at.Operator == "or"
		if c.or || at.Operator == "&&" || at.Operator == "and" {
			joined = []ast.Node{at.Left, at.Right}
		}
	case *ast.UnaryNode:
		if at.Operator == "!" || at.Operator == "not" {
			joined = []ast.Node{at.Node}
		}
	}
	for _, node := range joined {
		sub, err := of.compile(node)
		if err != nil {
			return nil, err
		}
		c.joined = append(c.joined, sub)
	}
	if len(joined) == 2 && c.joined[1].has != nil {
		slices.Reverse(c.joined) // a text needs no fields
	}
	if joined != nil {
		return c, nil
	}
	if isHas(node) {
		var err error
		c.has, err = of.pattern(node.(*ast.CallNode))
		return c, err
	}
	c.equals = equals(node, of.names, nil)
	config := conf.CreateNew()
	config.Strict = false // names are not known
	config.Expect, config.ExpectAny = reflect.Bool, true
	config.Functions = of.functions
	tree := &parser.Tree{Node: node, Source: of.source}
	if _, err := checker.Check(tree, config); err != nil {
		return nil, err
	}
	ast.Walk(&tree.Node, &of.bounds)
	// The tree is not optimized: status in ["a"] would fail where status is a number.
	var err error
	c.program, err = compiler.Compile(tree, config)
	return c, err
}

// of evaluates the condition. err is the first failure of a part of it, or one of a limit.
func (c *condition) of(r *run) (result truth, err error) {
	if err := r.budget.Err(); err != nil {
		return unknown, err
	}
	if c.has != nil {
		if r.has(c.has) {
			return yes, nil
		}
		return no, nil
	}
	if c.program != nil {
		r.load()
		used := r.share.Used()
		got, err := r.vm.Run(c.program, r.env)
		r.share.Back(used)
		switch {
		case err != nil:
			return unknown, err
		case got == true:
			return yes, nil
		}
		return no, nil
	}
	result, err = c.joined[0].of(r)
	if len(c.joined) == 1 {
		return yes - result, err
	}
	if c.or && result == yes || !c.or && result == no {
		return result, err
	}
	second, failed := c.joined[1].of(r)
	if err == nil || limited(failed) {
		err = failed
	}
	if c.or {
		return max(result, second), err
	}
	return min(result, second), err
}

// names finds the fields that an expression uses. It makes one name of a.b.c.
type names struct {
	used     map[string]int  // how often
	own      map[string]bool // variables of the expression
	function string          // an unknown one
	asksTime bool            // it calls now()
	has      int             // calls of has
	compared []comparison    // see compare
}

// comparison is of a field with a constant, by ==.
type comparison struct {
	name  string
	value any // a string, or a number
}

// variables finds the variables that an expression declares, for names.
type variables names

// Visit implements [ast.Visitor].
func (v *variables) Visit(node *ast.Node) {
	if of, ok := (*node).(*ast.VariableDeclaratorNode); ok {
		v.own[of.Name] = true
	}
}

// Visit implements [ast.Visitor]. It sees the parts of a node before the node.
func (n *names) Visit(node *ast.Node) {
	switch at := (*node).(type) {
	case *ast.IdentifierNode:
		if !n.own[at.Value] {
			n.used[at.Value]++
			at.Value = inside(at.Value)
		}
	case *ast.CallNode:
		if of, ok := at.Callee.(*ast.IdentifierNode); isHas(at) {
			n.has++
			n.used[nameHas]--
		} else if ok {
			n.function = of.Value
		}
	case *ast.BuiltinNode:
		n.asksTime = n.asksTime || at.Name == "now"
	case *ast.MemberNode:
		of, named := at.Node.(*ast.IdentifierNode)
		field, fixed := at.Property.(*ast.StringNode)
		if named && fixed && !at.Method && !n.own[of.Value] && of.Value != "$env" {
			outer := outside(of.Value)
			n.used[outer]--
			name := outer + "." + field.Value
			n.used[name]++
			ast.Patch(node, &ast.IdentifierNode{Value: name})
		} else if named && fixed && isAll(of) && field.Value != of.Value && !n.own[field.Value] &&
			!strings.ContainsAny(field.Value, ".\x00") {
			n.used[of.Value]-- // one field is not the whole record
			n.used[field.Value]++
			ast.Patch(node, &ast.IdentifierNode{Value: inside(field.Value)})
		}
	}
}

// inside is the name of a field in an environment. A name that the language has for a
// function, such as count, would be that function there.
func inside(name string) string {
	if _, ok := builtin.Index[name]; ok {
		return "." + name
	}
	return name
}

// outside is the name of the field that has a name in an environment.
func outside(name string) string {
	if name != "" && name[0] == '.' {
		return name[1:]
	}
	return name
}

// equals appends the comparisons of fields with texts that must be equal for a condition to be true.
func equals(node ast.Node, n *names, dst []comparison) []comparison {
	at, ok := node.(*ast.BinaryNode)
	if !ok {
		return dst
	}
	if at.Operator == "&&" || at.Operator == "and" {
		return equals(at.Right, n, equals(at.Left, n, dst))
	}
	one := names{own: n.own}
	one.compare(at)
	for _, c := range one.compared {
		_, isText := c.value.(string)
		if isText && c.name != "ts" && c.name != "level" && c.name != "service" {
			dst = append(dst, c)
		}
	}
	return dst
}

// compare keeps a comparison of a field with a constant.
func (n *names) compare(at *ast.BinaryNode) {
	left, right := at.Left, at.Right
	if _, turned := right.(*ast.IdentifierNode); turned {
		left, right = right, left
	}
	field, ok := left.(*ast.IdentifierNode)
	if !ok || at.Operator != "==" || n.own[field.Value] {
		return
	}
	switch of := right.(type) {
	case *ast.StringNode:
		n.compared = append(n.compared, comparison{outside(field.Value), of.Value})
	case *ast.IntegerNode:
		n.compared = append(n.compared, comparison{outside(field.Value), of.Value})
	case *ast.FloatNode:
		n.compared = append(n.compared, comparison{outside(field.Value), of.Value})
	}
}
