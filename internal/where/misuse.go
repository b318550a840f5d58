package where

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"

	"blobtail/internal/spelling"
	"blobtail/internal/where/mend"
	"blobtail/record"
)

// A misuse looks for parts of a tree that the language takes, and that are true for no record: they
// were meant otherwise. It replaces them by the parts that were meant. It is walked over the tree
// before [names].
type misuse struct {
	own   map[string]bool // variables of the expression
	first *mistake
	fixed bool // each of them has been replaced
}

// misused returns the first misuse in a tree, with the expression that was probably meant; nil: there is none.
func misused(tree *ast.Node, own map[string]bool) error {
	u := &misuse{own: own, fixed: true}
	text, ok := (*tree).(*ast.StringNode)
	switch {
	case constants([]ast.Node{*tree}) && (!ok || !strings.ContainsAny(text.Value, " =<>")):
		return &mistake{what: noField}
	case ok:
		u.say((*tree), "the whole is one text in quotes, which are for parts of it", true)
		u.first.fix = text.Value
	default:
		ast.Walk(tree, u)
		u.condition(tree)
	}
	if u.first == nil {
		return nil
	}
	if u.first.fix == "" && u.fixed {
		u.first.fix = (*tree).String()
	}
	return u.first
}

// say keeps a misuse.
func (u *misuse) say(node ast.Node, what string, fixed bool) {
	if u.first == nil || node.Location().From < u.first.at {
		u.first = &mistake{at: node.Location().From, what: what}
	}
	u.fixed = u.fixed && fixed
}

// Visit implements [ast.Visitor]. It sees the parts of a node before the node.
func (u *misuse) Visit(node *ast.Node) {
	switch at := (*node).(type) {
	case *ast.BinaryNode:
		switch {
		case at.Operator == "and" || at.Operator == "or" || at.Operator == "&&" || at.Operator == "||":
			u.joined(at)
		case compares(at.Operator):
			u.compared(node, at)
		case at.Operator == "in":
			u.notAlone(node, at)
			u.within(at)
		}
	case *ast.SequenceNode:
		u.sequence(node, at)
	case *ast.CallNode:
		u.call(node, at)
	case *ast.IdentifierNode:
		if strings.HasPrefix(at.Value, "$") && len(at.Value) > 1 && at.Value != "$env" {
			u.say(at, "the name of a field has no $ before it", true)
			ast.Patch(node, &ast.IdentifierNode{Value: at.Value[1:]})
		}
	case *ast.MemberNode:
		of, ok := at.Node.(*ast.IdentifierNode)
		property, named := at.Property.(*ast.StringNode)
		if ok && !named && of.Value == "$env" && !u.own[dashed(at.Property)] && dashed(at.Property) != "" {
			u.say(at.Property, "the name in $env[...] needs quotes: if the shell took them away, put the whole in single quotes", true)
			ast.Patch(&at.Property, &ast.StringNode{Value: dashed(at.Property)})
		}
		if ok && named && of.Value == "$" {
			u.say(of, "the name of a field has no $. before it", true)
			ast.Patch(node, &ast.IdentifierNode{Value: property.Value})
		}
	}
}

// compares reports whether an operator compares two values.
func compares(operator string) bool {
	return operator == "==" || operator == "!=" || rising(operator) || ofTexts(operator)
}

// ofTexts reports whether an operator is for texts.
func ofTexts(operator string) bool {
	return operator == "contains" || operator == "startsWith" || operator == "endsWith" || operator == "matches"
}

// compared looks at a comparison.
func (u *misuse) compared(node *ast.Node, at *ast.BinaryNode) {
	if !boolean(at.Right) && constants([]ast.Node{at.Right}) {
		u.notAlone(node, at)
	}
	u.taken(&at.Left, at.Right)
	u.ranged(at)
	for _, side := range []struct {
		one   *ast.Node
		other ast.Node
	}{{&at.Left, at.Right}, {&at.Right, at.Left}} {
		u.date(side.one)
		u.bareWord(side.one, side.other)
	}
	n, whole := at.Right.(*ast.IntegerNode)
	if ofTexts(at.Operator) && whole {
		u.say(n, at.Operator+" is for texts: the number needs quotes", true)
		ast.Patch(&at.Right, &ast.StringNode{Value: strconv.Itoa(n.Value)})
	}
	if text, ok := at.Left.(*ast.StringNode); ok && constants([]ast.Node{at.Right}) && isName(text.Value) {
		u.say(text, "a name in quotes is a text: the name of a field has none", true)
		ast.Patch(&at.Left, &ast.IdentifierNode{Value: text.Value})
	}
}

// notAlone looks for a "not" that is of the first value of a comparison alone.
func (u *misuse) notAlone(node *ast.Node, at *ast.BinaryNode) {
	if of, ok := at.Left.(*ast.UnaryNode); ok && (of.Operator == "not" || of.Operator == "!") {
		at.Left = of.Node
		ast.Patch(node, &ast.UnaryNode{Operator: "not", Node: at})
		u.say(of, of.Operator+" belongs to the value beside it alone: it needs ( ) around the comparison", true)
	}
}

// sequence joins conditions with semicolons between them, of which only the last would count.
func (u *misuse) sequence(node *ast.Node, at *ast.SequenceNode) {
	joined := at.Nodes[0]
	for _, next := range at.Nodes[1:] {
		u.say(next, "; does not join conditions: write and, or or between them", true)
		joined = &ast.BinaryNode{Operator: "and", Left: joined, Right: next}
	}
	ast.Patch(node, joined)
}

// ranged looks at a comparison of equal values with a range, or with several of them.
func (u *misuse) ranged(at *ast.BinaryNode) {
	if at.Operator != "==" && at.Operator != "!=" {
		return
	}
	var list ast.Node
	right, ok := at.Right.(*ast.BinaryNode)
	switch {
	case !ok:
		return
	case right.Operator == "..":
		list = right
	case right.Operator == "or" || right.Operator == "||":
		values := alternatives(right)
		if values == nil {
			return
		}
		list = &ast.ArrayNode{Nodes: values}
	default:
		if list = span(right); list == nil {
			return
		}
	}
	u.say(right, "these are several values: write in", true)
	at.Right = list
	if at.Operator == "!=" {
		at.Operator = "not in"
		return
	}
	at.Operator = "in"
}

// alternatives are constants that are joined by "or"; nil: there are others.
func alternatives(node ast.Node) []ast.Node {
	if at, ok := node.(*ast.BinaryNode); ok && (at.Operator == "or" || at.Operator == "||") {
		left, right := alternatives(at.Left), alternatives(at.Right)
		if left == nil || right == nil {
			return nil
		}
		return append(left, right...)
	}
	if constants([]ast.Node{node}) {
		return []ast.Node{node}
	}
	return nil
}

// span is the range that was written as 400-499; nil: it is none.
func span(node ast.Node) ast.Node {
	at, ok := node.(*ast.BinaryNode)
	if !ok || at.Operator != "-" {
		return nil
	}
	from, whole := at.Left.(*ast.IntegerNode)
	to, too := at.Right.(*ast.IntegerNode)
	if !whole || !too || from.Value >= to.Value {
		return nil
	}
	return &ast.BinaryNode{Operator: "..", Left: from, Right: to}
}

// isName reports whether a text can be the name of a field.
func isName(text string) bool {
	return text != "" && strings.Trim(text, "_.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "" && !strings.ContainsAny(text[:1], ".0123456789") && !strings.HasSuffix(text, ".")
}

func boolean(node ast.Node) bool {
	_, ok := node.(*ast.BoolNode)
	return ok
}

// taken looks for a list in place of a field: the shell took $env away, and perhaps the quotes.
func (u *misuse) taken(node *ast.Node, other ast.Node) {
	list, ok := (*node).(*ast.ArrayNode)
	if !ok || len(list.Nodes) != 1 || !constants([]ast.Node{other}) {
		return
	}
	name := ""
	if text, ok := list.Nodes[0].(*ast.StringNode); ok {
		name = text.Value
	} else if name = dashed(list.Nodes[0]); name == "" {
		return
	}
	u.say(list, "this is a list: if the shell took $env away, put the whole in single quotes", true)
	ast.Patch(node, field(name))
}

// field is the node of a field of any name.
func field(name string) ast.Node {
	if _, function := builtin.Index[name]; isName(name) && !function {
		return &ast.IdentifierNode{Value: name}
	}
	return &ast.MemberNode{Node: &ast.IdentifierNode{Value: "$env"}, Property: &ast.StringNode{Value: name}}
}

// dashed is the name of which a tree has made names with a minus between them; "": it is none.
func dashed(node ast.Node) string {
	switch at := node.(type) {
	case *ast.IdentifierNode:
		return at.Value
	case *ast.IntegerNode:
		return strconv.Itoa(at.Value)
	case *ast.MemberNode:
		if property, ok := at.Property.(*ast.StringNode); ok && !at.Method && isName(property.Value) {
			if of := dashed(at.Node); of != "" && of != "$env" {
				return of + "." + property.Value
			}
		}
	case *ast.BinaryNode:
		if left, right := dashed(at.Left), dashed(at.Right); at.Operator == "-" && left != "" && right != "" {
			return left + "-" + right
		}
	}
	return ""
}

// date puts a date into quotes: 2026-11-25 is a subtraction.
func (u *misuse) date(node *ast.Node) {
	at, ok := (*node).(*ast.BinaryNode)
	if !ok || at.Operator != "-" {
		return
	}
	inner, ok := at.Left.(*ast.BinaryNode)
	if !ok || inner.Operator != "-" {
		return
	}
	year, ok := inner.Left.(*ast.IntegerNode)
	month, also := inner.Right.(*ast.IntegerNode)
	day, all := at.Right.(*ast.IntegerNode)
	if ok && also && all && year.Value > 1900 && year.Value < 2200 && month.Value < 13 && day.Value < 32 {
		u.say(year, "a date or a time is a text: it needs quotes", true)
		ast.Patch(node, &ast.StringNode{Value: fmt.Sprintf("%d-%02d-%02d", year.Value, month.Value, day.Value)})
	}
}

// bareWord puts a word into quotes that is beside a field and can only be a value.
func (u *misuse) bareWord(node *ast.Node, beside ast.Node) {
	at, ok := (*node).(*ast.IdentifierNode)
	if !ok || u.own[at.Value] {
		return
	}
	with, what := mend.Constant(at.Value)
	if with != "" {
		u.say(at, what, true)
		ast.Patch(node, map[string]ast.Node{"nil": &ast.NilNode{}, "true": &ast.BoolNode{Value: true}, "false": &ast.BoolNode{Value: false}}[with])
		return
	}
	level, ok := beside.(*ast.IdentifierNode)
	isLevel := ok && level.Value == "level" && len(at.Value) > 2 && record.ParseLevel([]byte(at.Value)) != record.Other
	isMethod := slices.Contains([]string{"GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS", "CONNECT"}, at.Value)
	if isLevel || isMethod {
		u.say(at, "a text needs quotes", true)
		ast.Patch(node, &ast.StringNode{Value: at.Value})
	}
}

// within looks at the list of an "in".
func (u *misuse) within(at *ast.BinaryNode) {
	var list []ast.Node
	switch right := at.Right.(type) {
	case *ast.ArrayNode:
		if len(right.Nodes) == 1 {
			if list := span(right.Nodes[0]); list != nil {
				u.say(right.Nodes[0], "a range of numbers has .. between them", true)
				at.Right = list
				return
			}
		}
		for i := range right.Nodes {
			u.bareWord(&right.Nodes[i], at.Left)
		}
		return
	case *ast.StringNode:
		for _, one := range strings.Split(right.Value, ",") {
			one = strings.TrimSpace(one)
			if n, err := strconv.Atoi(one); err == nil {
				list = append(list, &ast.IntegerNode{Value: n})
			} else {
				list = append(list, &ast.StringNode{Value: one})
			}
		}
	case *ast.IntegerNode, *ast.FloatNode:
		list = []ast.Node{right}
	default:
		return
	}
	u.say(at.Right, "behind in stands a list, in square brackets", true)
	ast.Patch(&at.Right, &ast.ArrayNode{Nodes: list})
}

// joined looks at a value beside "and" or "or": a comparison with it was meant.
func (u *misuse) joined(at *ast.BinaryNode) {
	if !constants([]ast.Node{at.Right}) || boolean(at.Right) || alternatives(at) != nil {
		return
	}
	beside := at.Left
	for {
		of, ok := beside.(*ast.BinaryNode)
		if !ok {
			u.say(at.Right, "a value alone is no condition", false)
			return
		}
		if compares(of.Operator) {
			ast.Patch(&at.Right, &ast.BinaryNode{Operator: of.Operator, Left: of.Left, Right: at.Right})
			if of.Operator == "!=" && (at.Operator == "or" || at.Operator == "||") {
				at.Operator = "and"
			}
			u.say(at.Right, "a value alone is no condition: each comparison needs its field", true)
			return
		}
		beside = of.Right
	}
}

// condition looks at conditions that are values, in parts of a tree that are joined.
func (u *misuse) condition(node *ast.Node) {
	switch at := (*node).(type) {
	case *ast.BinaryNode:
		if at.Operator == "and" || at.Operator == "or" || at.Operator == "&&" || at.Operator == "||" {
			u.condition(&at.Left)
			u.condition(&at.Right)
		}
		if strings.Contains("+-*/%^**..", at.Operator) && dashed(at) == "" {
			u.number(node)
		}
	case *ast.BuiltinNode:
		if slices.Contains([]string{"len", "int", "float", "abs", "indexOf", "lastIndexOf", "sum", "mean", "median"}, at.Name) || at.Name == "count" && len(at.Arguments) > 0 {
			u.number(node)
		}
	}
}

// number says that a condition is a number.
func (u *misuse) number(node *ast.Node) {
	u.say(*node, (*node).String()+" is a number: compare it", true)
	ast.Patch(node, &ast.BinaryNode{Operator: ">", Left: *node, Right: &ast.IntegerNode{Value: 100}})
}

// call looks at a call of a function that does not exist.
func (u *misuse) call(node *ast.Node, at *ast.CallNode) {
	if of, ok := at.Callee.(*ast.MemberNode); ok {
		if of, ok := of.Node.(*ast.IdentifierNode); ok && !u.own[of.Value] {
			u.say(at, "a field has no functions of its own", false)
		}
		return
	}
	of, ok := at.Callee.(*ast.IdentifierNode)
	if !ok {
		return
	}
	operator := map[string]string{"contains": "contains", "includes": "contains", "startswith": "startsWith", "starts_with": "startsWith", "hasprefix": "startsWith", "endswith": "endsWith", "ends_with": "endsWith", "matches": "matches", "match": "matches",
		"regex": "matches", "regexp_like": "matches", "regexp_match": "matches", "in": "in"}[strings.ToLower(of.Value)]
	if operator != "" && len(at.Arguments) == 2 {
		u.say(of, operator+" stands between its values", true)
		ast.Patch(node, &ast.BinaryNode{Operator: operator, Left: at.Arguments[0], Right: at.Arguments[1]})
		return
	}
	low := strings.ToLower(of.Value)
	switch low {
	case "exists", "isset", "has", "isnotnull", "isnull", "isempty", "defined", "missing", "present":
		if len(at.Arguments) == 1 {
			sign := "!="
			if low == "isnull" || low == "missing" || low == "isempty" {
				sign = "=="
			}
			u.say(of, "a field that a record does not have is nil", true)
			ast.Patch(node, &ast.BinaryNode{Operator: sign, Left: at.Arguments[0], Right: &ast.NilNode{}})
			return
		}
	}
	near := mend.Function(of.Value)
	if near == "" {
		if near = spelling.Near(of.Value, builtin.Names); near == "" {
			near = low
		}
	}
	if _, ok := builtin.Index[near]; !ok {
		u.say(of, fmt.Sprintf("there is no function %s; there are len, lower, upper, trim, split, float, int, string, fromJSON, date, duration, any, all and others, and msg[0:4] is the beginning of a text", of.Value), false)
		return
	}
	u.say(of, fmt.Sprintf("there is no function %s; there is %s", of.Value, near), false)
	if b, ok := builtin.Builtins[builtin.Index[near]], true; ok && !b.Predicate {
		u.fixed = true
		ast.Patch(node, &ast.BuiltinNode{Name: near, Arguments: at.Arguments})
	}
}
