package where

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"

	"blobtail/internal/spelling"
	"blobtail/record"
)

// A misuse looks for parts of a tree that the language takes, and that are true for no record: they
// were meant otherwise. It is walked over the tree before [names].
type misuse struct {
	own   map[string]bool // variables of the expression
	first *mistake
}

// misused returns the first misuse in a tree; nil: there is none.
func misused(tree ast.Node, own map[string]bool) error {
	u := &misuse{own: own}
	if text, ok := tree.(*ast.StringNode); ok {
		return &mistake{what: noField, hint: fmt.Sprintf("for a text write has(%q)", text.Value)}
	}
	if constants([]ast.Node{tree}) {
		return &mistake{what: noField, hint: example}
	}
	if ast.Walk(&tree, u); u.first != nil {
		return u.first
	}
	return nil
}

// say keeps a misuse.
func (u *misuse) say(node ast.Node, what string) {
	if u.first == nil || node.Location().From < u.first.at {
		what, hint, _ := strings.Cut(what, "; ")
		u.first = &mistake{at: node.Location().From, what: what, hint: hint}
	}
}

// Visit implements [ast.Visitor]. It sees the parts of a node before the node.
func (u *misuse) Visit(node *ast.Node) {
	switch at := (*node).(type) {
	case *ast.BinaryNode:
		u.binary(at)
	case *ast.SequenceNode:
		u.say(at.Nodes[1], "conditions are joined by and, or or")
	case *ast.CallNode:
		u.call(at)
	case *ast.MemberNode:
		if name := dashed(at.Property); isAll(at.Node) && name != "" && !u.own[name] {
			u.say(at.Property, fmt.Sprintf(
				"the name in $env[...] needs quotes, $env[%q]: if the shell took them away, put the whole in single quotes", name))
		}
	}
}

// binary looks at two operands.
func (u *misuse) binary(at *ast.BinaryNode) {
	left, right := constants([]ast.Node{at.Left}), constants([]ast.Node{at.Right})
	switch {
	case at.Operator == "and" || at.Operator == "or" || at.Operator == "&&" || at.Operator == "||":
		if right && !boolean(at.Right) {
			u.say(at.Right, "a value alone is no condition: each comparison needs its field")
		}
		return
	case !compares(at.Operator) && at.Operator != "in":
		return
	}
	of, ok := at.Left.(*ast.UnaryNode)
	if ok && (of.Operator == "not" || of.Operator == "!") && !boolean(at.Right) && (right || at.Operator == "in") {
		u.say(of, of.Operator+" belongs to the value beside it alone: it needs ( ) around the comparison")
	}
	if _, list := at.Left.(*ast.ArrayNode); right && (left || list) {
		u.say(at.Left, `a field is missing here: its name has no quotes, and one with a sign in it is $env["a-b"], the whole in single quotes`)
	}
	if of, ok := at.Right.(*ast.BinaryNode); ok && of.Operator == ".." && !rising(at.Operator) && at.Operator != "in" {
		u.say(of, aRange)
	}
	values := []ast.Node{at.Left, at.Right}
	if list, ok := at.Right.(*ast.ArrayNode); ok {
		values = append(values, list.Nodes...)
	}
	for _, one := range values {
		u.value(one, at)
	}
}

const aRange = "a range of numbers is written in 400..499"

// value looks at a value beside a comparison, which may be one without its quotes.
func (u *misuse) value(node ast.Node, at *ast.BinaryNode) {
	text, name := dashed(node), ""
	if of, ok := node.(*ast.IdentifierNode); ok && !u.own[text] {
		name = of.Value
	}
	beside, _ := at.Left.(*ast.IdentifierNode)
	switch {
	case slices.Contains([]string{"null", "Null", "NULL", "None", "undefined", "NIL", "True", "TRUE", "False", "FALSE"}, name):
		u.say(node, "the values are true and false, and nil where a record lacks the field")
	case len(name) > 2 && beside != nil && beside.Value == "level" && record.ParseLevel([]byte(name)) != record.Other,
		regexp.MustCompile(`^(19|20|21)\d\d-\d\d?-\d\d?$`).MatchString(text):
		u.say(node, "a text needs quotes, and so does a time")
	case regexp.MustCompile(`^\d+-\d+$`).MatchString(text) && !rising(at.Operator):
		u.say(node, aRange)
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

// isName reports whether a text can be the name of a field.
func isName(text string) bool {
	return regexp.MustCompile(`^[A-Za-z_](?:[A-Za-z0-9_.]*[A-Za-z0-9_])?$`).MatchString(text)
}

func boolean(node ast.Node) bool { _, ok := node.(*ast.BoolNode); return ok }

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

// call looks at a call of a function that does not exist.
func (u *misuse) call(at *ast.CallNode) {
	if of, ok := at.Callee.(*ast.MemberNode); ok {
		if of, ok := of.Node.(*ast.IdentifierNode); ok && !u.own[of.Value] {
			u.say(at, "a field has no functions of its own: they stand before it, as in len(msg)")
		}
		return
	}
	of, ok := at.Callee.(*ast.IdentifierNode)
	if !ok || isHas(at) {
		return
	}
	if of.Value == nameHas {
		u.say(of, `has looks for a text or an expression: has("two words"), has(/re/); for a field of a record: status != nil`)
		return
	}
	there := "there are len, lower, upper, trim, split, float, int, string, fromJSON, date, duration, any, all and others"
	if near := spelling.Near(strings.ToLower(of.Value), builtin.Names); near != "" {
		there = "there is " + near
	}
	u.say(of, "there is no function "+of.Value+"; "+there)
}
