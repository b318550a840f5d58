package where

import (
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"

	"blobtail/internal/budget"
	"blobtail/internal/regex"
)

// The language has no bounds of its own: a + a doubles a text, and a loop in a loop has no end.
// So each part of an expression that makes something, or may work for long, becomes a call of a
// function of ours (calls.go), with the run of the record as its first argument. These functions
// take the bytes of their results from the budget of the query, and look at it.

// Names in the environment that no expression can write.
const (
	nameRun = "\x00run" // the run of a record
	nameAll = "\x00all" // all fields, in place of $env, which has the names of ours too
)

// exprs compiles the regular expressions of a tree that are constants, and makes calls of %.
type exprs struct {
	budget *budget.Budget
	source file.Source
	of     map[*ast.BinaryNode]*regex.Regex
	rests  bool // there is a %
	err    error
}

// Visit implements [ast.Visitor]. It hides the expression from the checker, which would compile
// it without a bound, and % because the checker believes its result to be a whole number.
func (x *exprs) Visit(node *ast.Node) {
	if of, ok := (*node).(*ast.BuiltinNode); ok && strings.HasPrefix(of.Name, "bit") {
		for i, arg := range of.Arguments { // those of JSON are no whole numbers to it
			of.Arguments[i] = &ast.BuiltinNode{Name: "int", Arguments: []ast.Node{arg}}
		}
	}
	at, ok := (*node).(*ast.BinaryNode)
	if ok && at.Operator == "%" {
		x.rests = true
		call(node, callRest, at.Left, at.Right)
		return
	}
	if !ok || at.Operator != "matches" || x.err != nil {
		return
	}
	text, ok := at.Right.(*ast.StringNode)
	if !ok {
		return
	}
	re, err := regex.Compile(x.budget, text.Value)
	if err != nil {
		x.err = (&file.Error{Location: at.Location(), Message: err.Error()}).Bind(x.source)
		return
	}
	x.of[at] = re
	ast.Patch(&at.Right, &ast.ConstantNode{Value: text.Value})
}

// bounds replaces the parts of a checked tree that need bounds.
type bounds struct {
	exprs   *exprs
	ordered map[*ast.BinaryNode]bool // comparisons of levels
	costs   map[string]func(args []any) int
	used    bool // there are some
}

// Visit implements [ast.Visitor]. It sees the parts of a node before the node.
func (b *bounds) Visit(node *ast.Node) {
	switch at := (*node).(type) {
	case *ast.PredicateNode:
		b.call(&at.Node, callStep, at.Node)
	case *ast.BinaryNode:
		b.binary(node, at)
	case *ast.BuiltinNode:
		b.builtin(node, at)
	case *ast.ArrayNode:
		if !constants(at.Nodes) {
			b.call(node, callMade, at)
		}
	case *ast.MapNode, *ast.CallNode:
		b.call(node, callMade, at)
	case *ast.IdentifierNode:
		if at.Value == "$env" {
			b.used = true
			at.Value = nameAll
		}
	}
}

// call replaces a node by a call.
func (b *bounds) call(node *ast.Node, name string, args ...ast.Node) {
	b.used = true
	call(node, name, args...)
}

func call(node *ast.Node, name string, args ...ast.Node) {
	nature := *(*node).Nature()
	call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: append([]ast.Node{&ast.IdentifierNode{Value: nameRun}}, args...)}
	ast.Patch(node, call)
	call.SetNature(nature)
}

// binary replaces an operator if its work depends on its operands. Beside a constant it does not.
func (b *bounds) binary(node *ast.Node, at *ast.BinaryNode) {
	simple := constants([]ast.Node{at.Left}) || constants([]ast.Node{at.Right})
	if b.ordered[at] {
		b.call(node, callOrder, &ast.StringNode{Value: at.Operator}, at.Left, at.Right)
		return
	}
	switch at.Operator {
	case "+":
		if _, whole := at.Right.(*ast.IntegerNode); !whole {
			b.call(node, callPlus, at.Left, at.Right)
		}
	case "==":
		if !simple {
			b.call(node, callEqual, at.Left, at.Right)
		}
	case "!=":
		if !simple {
			not := &ast.UnaryNode{Operator: "!", Node: at}
			not.SetNature(*at.Nature())
			b.call(&not.Node, callEqual, at.Left, at.Right)
			ast.Patch(node, not)
		}
	case "in":
		if list, ok := at.Right.(*ast.ArrayNode); !ok || !constants(list.Nodes) {
			b.call(node, callIn, at.Left, at.Right)
		}
	case "contains":
		b.call(node, callContains, at.Left, at.Right)
	case "matches":
		right := at.Right
		if re := b.exprs.of[at]; re != nil {
			right = &ast.ConstantNode{Value: re}
		}
		b.call(node, callMatches, at.Left, right)
	}
}

// constants reports whether nodes are texts, numbers and the like.
func constants(nodes []ast.Node) bool {
	for _, node := range nodes {
		switch node.(type) {
		case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NilNode, *ast.ConstantNode:
		default:
			return false
		}
	}
	return true
}

// builtin replaces a function of the language.
func (b *bounds) builtin(node *ast.Node, at *ast.BuiltinNode) {
	switch at.Name {
	case "map", "filter", "groupBy", "sortBy":
		b.call(node, callMade, at)
	default:
		if _, ours := b.costs[at.Name]; ours {
			b.call(node, callOf+at.Name, at.Arguments...)
		}
	}
}

// functions are those that a tree may call.
func (b *bounds) functions() conf.FunctionsTable {
	all := conf.FunctionsTable{}
	add := func(name string, of func(r *run, args []any) (any, error)) {
		all[name] = &builtin.Function{Name: name, Func: func(args ...any) (any, error) {
			r := args[0].(*run)
			if err := r.budget.Err(); err != nil {
				return nil, err
			}
			return of(r, args[1:])
		}}
	}
	add(callStep, func(_ *run, args []any) (any, error) { return args[0], nil })
	add(callMade, made)
	add(callPlus, plus)
	add(callRest, rest)
	add(callEqual, equal)
	add(callIn, in)
	add(callContains, contains)
	add(callMatches, matches)
	add(callOrder, order)
	for name, cost := range b.costs {
		add(callOf+name, func(r *run, args []any) (any, error) {
			if cost != nil {
				if err := r.take(cost(args)); err != nil {
					return nil, err
				}
			}
			if name == "uniq" {
				return uniq(r, args)
			}
			return builtinOf(name, args)
		})
	}
	return all
}
