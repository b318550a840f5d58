package where

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"
)

// A use is a part of an expression in which the type of a field counts: a condition that is a field
// alone, or an operator with a field beside it. After a read it tells why records did not match.
type use struct {
	operator    string // "": the field is a condition
	left, right operand
}

// An operand is a field, or a constant.
type operand struct {
	text  string // as the expression has it
	field string // "": it is none
	value any    // the constant; a list has []any
	dash  string // the name of which the expression has made names with a minus between them
}

// usesOf are the uses in a tree that [names] has not changed.
func usesOf(tree ast.Node, own map[string]bool) []use {
	v := &users{own: own}
	v.condition(tree)
	ast.Walk(&tree, v)
	return v.uses
}

type users struct {
	own  map[string]bool
	uses []use
}

// condition keeps the fields that are conditions alone.
func (v *users) condition(node ast.Node) {
	switch at := node.(type) {
	case *ast.BinaryNode:
		if at.Operator == "and" || at.Operator == "or" || at.Operator == "&&" || at.Operator == "||" {
			v.condition(at.Left)
			v.condition(at.Right)
		}
	case *ast.UnaryNode:
		v.condition(at.Node)
	case *ast.IdentifierNode, *ast.MemberNode:
		if o := v.operand(node); o.field != "" {
			v.uses = append(v.uses, use{left: o})
		}
	}
}

// Visit implements [ast.Visitor].
func (v *users) Visit(node *ast.Node) {
	at, ok := (*node).(*ast.BinaryNode)
	if !ok || !compares(at.Operator) && at.Operator != "in" && !strings.Contains("+-*/%", at.Operator) {
		return
	}
	u := use{operator: at.Operator, left: v.operand(at.Left), right: v.operand(at.Right)}
	if u.left.field != "" || u.right.field != "" || u.left.dash != "" || u.right.dash != "" {
		v.uses = append(v.uses, u)
	}
}

func (v *users) operand(node ast.Node) operand {
	o := operand{text: node.String()}
	switch at := node.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.ArrayNode:
		_ = json.Unmarshal([]byte(o.text), &o.value) // one that is not JSON has no value
	case *ast.IdentifierNode:
		if !v.own[at.Value] && at.Value != "$env" {
			o.field = at.Value
		}
	case *ast.MemberNode:
		property, ok := at.Property.(*ast.StringNode)
		switch {
		case !ok || at.Method:
		case isAll(at.Node):
			o.field, o.text = property.Value, fmt.Sprintf("$env[%q]", property.Value)
		default:
			if of := v.operand(at.Node); of.field != "" {
				o.field = of.field + "." + property.Value
			}
		}
	case *ast.BinaryNode:
		if at.Operator == "-" {
			o.dash = dashed(at)
		}
	}
	return o
}

// of is the value of an operand in a record; nil: it has none.
func (o *operand) of(value func(field string) any) any {
	if o.field != "" {
		return value(o.field)
	}
	return o.value
}

// clash tells that the use cannot be true for a record, because of the types of its values; "": it can.
// search is the condition for a search, which takes numbers for texts; "": there is none.
func (u *use) clash(value func(field string) any) (text, search string) {
	field, other, operator := u.left, u.right, u.operator
	if field.field == "" {
		if field, other = other, field; rising(operator) {
			operator = turned(operator)
		}
	}
	v, beside := field.of(value), other.of(value)
	list, several := beside.([]any)
	if several = several && operator == "in" && other.field == ""; several && len(list) > 0 {
		if beside = list[0]; slices.ContainsFunc(list, func(one any) bool { return kindOf(one) == kindOf(v) }) {
			return "", ""
		}
	}
	if operator == "" {
		beside = true
	}
	if field.field == "" || v == nil || beside == nil || kindOf(v) == kindOf(beside) {
		return "", ""
	}
	text = fmt.Sprintf("%s is %s", field.text, kindOf(v))
	switch v := v.(type) {
	case []any:
		switch {
		case operator == "in" && !several:
			return "", ""
		case rising(operator) || several:
			return fmt.Sprintf("%s; write any(%s, # %s %s)", text, field.text, operator, other.text), ""
		case operator == "":
			return fmt.Sprintf(`%s; write "text" in %s`, text, field.text), ""
		}
		return fmt.Sprintf("%s; write %s in %s", text, other.text, field.text), ""
	case map[string]any:
		if names := slices.Sorted(maps.Keys(v)); len(names) > 0 && isName(names[0]) {
			text += "; name a field of it: " + field.text + "." + names[0]
		}
		return text, ""
	case string:
		if _, err := time.ParseDuration(v); err == nil && rising(operator) {
			return fmt.Sprintf(`%s; write duration(%s) %s duration("1s")`, text, field.text, operator), ""
		}
	}
	if operator == "" {
		example := `== "text"`
		if kindOf(v) == kindOf(0.0) {
			example = ">= 500"
		}
		return fmt.Sprintf("%s: compare it, as in '%s %s', with the single quotes for the shell", text, field.text, example), ""
	}
	if plain := regexp.MustCompile(`"(-?\d[\w.,]*|true|false)"`); compares(operator) && u.left.field != "" || operator == "==" || rising(operator) || several {
		search = fmt.Sprintf("%s %s %s", field.text, operator, plain.ReplaceAllString(other.text, "$1"))
	}
	if other.field != "" || rising(operator) && !regexp.MustCompile(`^[\d.]+$`).MatchString(fmt.Sprint(v)) {
		search = "" // it finds no more
	}
	if several {
		return fmt.Sprintf("%s, and %s has none", text, other.text), search
	}
	return fmt.Sprintf("%s, and %s is %s", text, other.text, kindOf(beside)), search
}

// dashes tells that a field that no record has is a part of a name with a minus in it, which the
// expression takes for a subtraction; "": it is not.
func (u *use) dashes(text, field string) string {
	part := func(o *operand) bool {
		return o.dash != "" && strings.Contains(text, o.dash) && slices.Contains(strings.Split(o.dash, "-"), field)
	}
	switch {
	case part(&u.left):
		return fmt.Sprintf("%s is a subtraction; for the field of that name write $env[%q] %s %s, the whole in single quotes", u.left.dash, u.left.dash, u.operator, u.right.text)
	case part(&u.right):
		return fmt.Sprintf("%s is a subtraction; for a text write %s %s %q", u.right.dash, u.left.text, u.operator, u.right.dash)
	}
	return ""
}

// kindOf is the type of a value in words.
func kindOf(v any) string {
	switch v.(type) {
	case float64:
		return "a number"
	case string:
		return "a text"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "nothing"
}
