package where

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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
	fixed bool   // it is a constant
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
	case *ast.StringNode:
		o.fixed, o.value = true, at.Value
	case *ast.IntegerNode:
		o.fixed, o.value = true, float64(at.Value)
	case *ast.FloatNode:
		o.fixed, o.value = true, at.Value
	case *ast.BoolNode:
		o.fixed, o.value = true, at.Value
	case *ast.ArrayNode:
		list := []any{}
		for _, one := range at.Nodes {
			list = append(list, v.operand(one).value)
		}
		o.fixed, o.value = true, list
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

// kinds are the types of the values of a use.
func (u *use) kinds(value func(field string) any) string {
	kinds := ""
	for _, o := range []*operand{&u.left, &u.right} {
		if o.field != "" {
			kinds += " " + kindOf(value(o.field))
		}
	}
	return kinds
}

// unlike tells that a comparison with == or in cannot be true for a record, because of the type of
// its field; "": it can.
func (u *use) unlike(value func(field string) any) string {
	if u.operator != "==" && u.operator != "in" {
		return ""
	}
	field, constant := u.left, u.right
	if u.right.field != "" {
		field, constant = u.right, u.left
	}
	if !constant.fixed || u.operator == "in" && u.right.field != "" {
		return ""
	}
	v, other := value(field.field), constant.value
	if list, ok := other.([]any); ok && u.operator == "in" {
		kind := func(v any) string { return fmt.Sprintf("%T", v) }
		if len(list) == 0 || slices.ContainsFunc(list, func(one any) bool { return kind(one) != kind(list[0]) }) {
			return ""
		}
		other = list[0]
	}
	if list, ok := other.([]any); ok && u.operator == "==" && len(list) > 0 && kindOf(v) == kindOf(list[0]) {
		return fmt.Sprintf("%s is %s; write %s in %s", field.text, kindOf(v), field.text, constant.text)
	}
	switch v.(type) {
	case nil:
		return ""
	case float64:
		if text, ok := other.(string); ok {
			return u.numberFor(field, text)
		}
		return ""
	case string:
		if n, ok := other.(float64); ok {
			return fmt.Sprintf("%s is a text; write %s", field.text, u.with(field, constant, func(any) string { return fmt.Sprintf(`"%v"`, number(n)) }))
		}
		if _, ok := other.(bool); ok {
			return fmt.Sprintf("%s is a text; write %s == \"%v\"", field.text, field.text, other)
		}
		return ""
	case bool:
		if _, ok := other.(bool); !ok {
			return fmt.Sprintf("%s is true or false; write %s == true", field.text, field.text)
		}
		return ""
	case []any:
		if _, ok := other.([]any); ok {
			return ""
		}
		return fmt.Sprintf("%s is a list; write %s in %s", field.text, constant.text, field.text)
	}
	return inner(field, v)
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

// number is a number as an expression has it.
func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// numberFor tells that a field is a number, and is compared with a text.
func (u *use) numberFor(field operand, text string) string {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		constant := u.right
		if u.right.field != "" {
			constant = u.left
		}
		return fmt.Sprintf("%s is a number; write %s", field.text, u.with(field, constant, func(v any) string { return fmt.Sprint(v) }))
	}
	if low := int64(0); len(text) > 1 && text[0] >= '1' && text[0] <= '5' && strings.Trim(strings.ToLower(text[1:]), "x*") == "" {
		low = int64(text[0]-'0') * 100
		return fmt.Sprintf("%s is a number; write %s >= %d and %s < %d", field.text, field.text, low, field.text, low+100)
	}
	digits := text[:len(text)-len(strings.TrimLeft(text, "0123456789."))]
	if _, err := strconv.ParseFloat(digits, 64); err != nil {
		digits = "500"
		if u.operator == "in" {
			digits = "[500]"
		}
	} else if u.operator == "in" {
		digits = "[" + digits + "]"
	}
	return fmt.Sprintf("%s is a number, and %q is a text; write a number: %s %s %s", field.text, text, field.text, u.fromField(), digits)
}

// fromField is the operator as it stands behind the field.
func (u *use) fromField() string {
	if u.right.field != "" && rising(u.operator) {
		return turned(u.operator)
	}
	return u.operator
}

// with is the use with another form of its constants.
func (u *use) with(field, constant operand, form func(v any) string) string {
	text := ""
	if list, ok := constant.value.([]any); ok {
		var parts []string
		for _, one := range list {
			if n, ok := one.(float64); ok {
				one = number(n)
			}
			parts = append(parts, form(one))
		}
		text = "[" + strings.Join(parts, ", ") + "]"
	} else {
		text = form(constant.value)
	}
	return field.text + " " + u.fromField() + " " + text
}

// inner tells of a field that is a list or an object.
func inner(field operand, v any) string {
	switch v := v.(type) {
	case []any:
		return fmt.Sprintf(`%s is a list; write "text" in %s, or any(%s, # == "text")`, field.text, field.text, field.text)
	case map[string]any:
		if names := slices.Sorted(maps.Keys(v)); len(names) > 0 && isName(names[0]) {
			return fmt.Sprintf("%s is an object; name a field of it: %s.%s", field.text, field.text, names[0])
		}
		return fmt.Sprintf("%s is an object; name a field of it", field.text)
	}
	return ""
}

// fails tells why the use has no result for a record, because of the types of its fields; "": it
// has one.
func (u *use) fails(value func(field string) any) string {
	field, other := u.left, u.right
	if u.left.field == "" {
		field, other = u.right, u.left
	}
	if field.field == "" || u.operator == "==" || u.operator == "!=" {
		return ""
	}
	v, beside := value(field.field), other.value
	if other.field != "" {
		beside = value(other.field)
	}
	switch {
	case v == nil || other.field != "" && beside == nil:
		return ""
	case u.operator == "":
		return alone(field, v)
	case u.operator == "in":
		return u.noList(value)
	case ofTexts(u.operator):
		return u.noText(field, other, v)
	}
	return u.noNumber(field, other, v, beside)
}

// alone tells of a field that is a condition, and is neither true nor false.
func alone(field operand, v any) string {
	switch v.(type) {
	case float64:
		return fmt.Sprintf("%s is a number: compare it (%s >= 500), and put the whole in single quotes, or the shell takes > as a file", field.text, field.text)
	case string:
		return fmt.Sprintf(`%s is a text: compare it (%s == "text", or %s contains "text"), and put the whole in single quotes for the shell`, field.text, field.text, field.text)
	case bool:
		return ""
	}
	return inner(field, v)
}

// noList tells of a value behind "in" that is no list.
func (u *use) noList(value func(field string) any) string {
	if u.right.field == "" {
		return ""
	}
	switch v := value(u.right.field).(type) {
	case string:
		return fmt.Sprintf("%s is a text; write %s contains %s", u.right.text, u.right.text, u.left.text)
	case float64, bool:
		return fmt.Sprintf("%s is %s; write %s == %s", u.right.text, kindOf(v), u.right.text, u.left.text)
	}
	return ""
}

// noText tells of a value beside an operator for texts that is none.
func (u *use) noText(field, other operand, v any) string {
	switch v.(type) {
	case string:
		return ""
	case []any:
		if u.operator == "contains" && u.left.field != "" {
			return fmt.Sprintf("%s is a list; write %s in %s", field.text, other.text, field.text)
		}
	case float64, bool:
		left, right := u.left.text, u.right.text
		if u.left.field != "" {
			left = "string(" + left + ")"
		} else {
			right = "string(" + right + ")"
		}
		return fmt.Sprintf("%s is %s; write %s %s %s", field.text, kindOf(v), left, u.operator, right)
	}
	return inner(field, v)
}

// noNumber tells of two values of which one is a number, and the other is none.
func (u *use) noNumber(field, other operand, v, beside any) string {
	text, isText := v.(string)
	_, isNumber := v.(float64)
	want, textBeside := beside.(string)
	_, numberBeside := beside.(float64)
	switch {
	case other.field != "" && kindOf(v) != kindOf(beside):
		return fmt.Sprintf("%s is %s, and %s is %s", field.text, kindOf(v), other.text, kindOf(beside))
	case isNumber && textBeside:
		return u.numberFor(field, want)
	case isText && numberBeside:
		whole := func(of string, text string) string {
			if u.left.field != "" {
				return of + " " + u.operator + " " + text
			}
			return text + " " + u.operator + " " + of
		}
		if _, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil {
			return fmt.Sprintf("%s is a text; write %s", field.text, whole("float("+field.text+")", other.text))
		}
		if strings.Trim(text, "0123456789.nuµmsh") == "" && strings.ContainsAny(text, "sh") && strings.ContainsAny(text, "0123456789") && rising(u.operator) {
			return fmt.Sprintf("%s is a text such as %q; write %s", field.text, text, whole("duration("+field.text+")", `duration("1s")`))
		}
		if !rising(u.operator) {
			return fmt.Sprintf("%s is a text such as %q, and %s is for numbers", field.text, shorter(text), u.operator)
		}
		return fmt.Sprintf("%s is a text such as %q, and %s is a number; write a text: %s", field.text, shorter(text), other.text, whole(field.text, `"`+other.text+`"`))
	case isNumber || isText:
		return ""
	}
	if _, list := v.([]any); list && rising(u.operator) {
		return fmt.Sprintf("%s is a list; write any(%s, # %s %s)", field.text, field.text, u.fromField(), other.text)
	}
	if v, ok := v.(bool); ok {
		return fmt.Sprintf("%s is true or false; write %s == %v", field.text, field.text, v)
	}
	return inner(field, v)
}

// shorter is a text that fits into a note.
func shorter(text string) string {
	const most = 40
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
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
