package where

import (
	"errors"
	"fmt"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"

	"blobtail/record"
)

// The level of a record is a word, and levels have an order that is not that of their letters. So
// <, <=, > and >= beside the level become a call of a function of ours, and each constant word of
// a level beside ==, !=, in and not in becomes the word that records have for it.

// callOrder stands for an ordered comparison of levels.
const callOrder = "\x00order"

// errNoLevel is the failure of an ordered comparison with a value that is no level.
var errNoLevel = errors.New("trace, debug, info, warn, error, critical have an order; a word that is none of them, or no word, is neither above nor below a level")

// A ranking finds the comparisons of a tree with the level. It is walked over the tree after
// [names].
type ranking struct {
	own     map[string]bool          // variables of the expression
	alias   map[string]bool          // those that have the level
	ordered map[*ast.BinaryNode]bool // comparisons of the level
	err     *file.Error              // of the first word that is no level
}

// rank makes a ranking of a tree, and folds the words of levels in it.
func rank(tree *ast.Node, n *names) *ranking {
	k := &ranking{own: n.own, alias: map[string]bool{}, ordered: map[*ast.BinaryNode]bool{}}
	for before := -1; before < len(k.alias); {
		before = len(k.alias) // a variable may have the value of another
		ast.Walk(tree, (*aliases)(k))
	}
	ast.Walk(tree, k)
	return k
}

// aliases finds the variables that have the level, for a ranking.
type aliases ranking

// Visit implements [ast.Visitor].
func (a *aliases) Visit(node *ast.Node) {
	if of, ok := (*node).(*ast.VariableDeclaratorNode); ok && (*ranking)(a).isLevel(of.Value) {
		a.alias[of.Name] = true
	}
}

// isLevel reports whether a node is the level of the record, in any letter case.
func (k *ranking) isLevel(node ast.Node) bool {
	switch at := node.(type) {
	case *ast.IdentifierNode:
		return k.alias[at.Value] || at.Value == "level" && !k.own[at.Value]
	case *ast.MemberNode:
		return isAll(at.Node) && isText(at.Property, "level")
	case *ast.ChainNode:
		return k.isLevel(at.Node)
	case *ast.BinaryNode:
		return at.Operator == "??" && k.isLevel(at.Left)
	case *ast.ConditionalNode:
		return k.isLevel(at.Exp1) && k.isWord(at.Exp2) || k.isWord(at.Exp1) && k.isLevel(at.Exp2)
	case *ast.BuiltinNode:
		switch at.Name {
		case "lower", "upper", "trim", "string":
			return len(at.Arguments) == 1 && k.isLevel(at.Arguments[0])
		case "get":
			return len(at.Arguments) == 2 && isAll(at.Arguments[0]) && isText(at.Arguments[1], "level")
		}
	}
	return false
}

// isWord reports whether a node is the level, or a constant text.
func (k *ranking) isWord(node ast.Node) bool {
	_, ok := node.(*ast.StringNode)
	return ok || k.isLevel(node)
}

func isAll(node ast.Node) bool {
	of, ok := node.(*ast.IdentifierNode)
	return ok && of.Value == "$env"
}

func isText(node ast.Node, text string) bool {
	of, ok := node.(*ast.StringNode)
	return ok && of.Value == text
}

// Visit implements [ast.Visitor].
func (k *ranking) Visit(node *ast.Node) {
	at, ok := (*node).(*ast.BinaryNode)
	if !ok {
		return
	}
	left, right := k.isLevel(at.Left), k.isLevel(at.Right)
	switch {
	case !left && !right:
	case rising(at.Operator):
		k.ordered[at] = true
		if left {
			k.judge(at, at.Right)
		}
		if right {
			k.judge(at, at.Left)
		}
	case at.Operator == "==" || at.Operator == "!=":
		k.judgeAbove(at, at.Right, at.Left)
		if left {
			fold(at.Left, at.Right)
		} else {
			fold(at.Right, at.Left)
		}
	case at.Operator == "in" && left:
		k.judgeAbove(at, at.Right)
		if list, ok := at.Right.(*ast.ArrayNode); ok {
			for _, one := range list.Nodes {
				k.judgeAbove(at, one)
				fold(at.Left, one)
			}
		}
	}
}

// rising reports whether an operator asks for an order.
func rising(operator string) bool {
	return operator == "<" || operator == "<=" || operator == ">" || operator == ">="
}

// judge keeps a mistake: a constant beside the level in an ordered comparison is no level. Numbers
// are none there: those of syslog fall, and those of pino rise.
func (k *ranking) judge(at *ast.BinaryNode, other ast.Node) {
	if k.err != nil || !constants([]ast.Node{other}) {
		return
	}
	what, example := other.String(), record.Warn
	if text, ok := other.(*ast.StringNode); ok {
		if l := record.ParseLevel([]byte(text.Value)); l != record.Other {
			if strings.Trim(text.Value, " 0123456789") != "" {
				return
			}
			example = l
		}
	}
	k.err = &file.Error{Location: other.Location(), Message: fmt.Sprintf(
		"%s is no word of a level; from low to high they are trace, debug, info, warn, error, critical: write level %s %q",
		what, at.Operator, example.String())}
}

// judgeAbove keeps a mistake: a level with + for it and those above it, as --level has, is a text that
// no level equals.
func (k *ranking) judgeAbove(at *ast.BinaryNode, others ...ast.Node) {
	for _, other := range others {
		text, ok := other.(*ast.StringNode)
		if !ok || k.err != nil {
			continue
		}
		word, above := strings.CutSuffix(text.Value, "+")
		l := record.ParseLevel([]byte(word))
		if !above || l == record.Other {
			continue
		}
		order := ">="
		if at.Operator == "!=" {
			order = "<"
		}
		k.err = &file.Error{Location: other.Location(), Message: fmt.Sprintf(
			"%q with + is a form of --level; here levels have an order; write level %s %q", text.Value, order, l.String())}
	}
}

// fold makes of a constant word beside the level the word that records have.
func fold(level, other ast.Node) {
	text, ok := other.(*ast.StringNode)
	if !ok {
		return
	}
	l := record.ParseLevel([]byte(text.Value))
	if l == record.Other {
		return
	}
	text.Value = l.String()
	if of, ok := level.(*ast.BuiltinNode); ok && of.Name == "upper" {
		text.Value = strings.ToUpper(text.Value)
	}
}

// order compares two levels: args are the operator and both. It fails if one of them is none.
func order(_ *run, args []any) (any, error) {
	a, b := levelOf(args[1]), levelOf(args[2])
	if a == record.Other || b == record.Other {
		return nil, errNoLevel
	}
	return inOrder(args[0].(string), a, b), nil
}

func levelOf(v any) record.Level {
	text, _ := v.(string)
	return record.ParseLevel([]byte(text))
}

func inOrder(operator string, a, b record.Level) bool {
	switch operator {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	}
	return a >= b
}

// turned is the operator that compares b with a as operator compares a with b.
func turned(operator string) string {
	return map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<="}[operator]
}

// levelsFrom are the levels for which an ordered comparison with a constant word is true; all
// if it is none of the field itself.
func levelsFrom(at *ast.BinaryNode, n *names) (_ levels, enough bool) {
	operator, left, right := at.Operator, at.Left, at.Right
	if _, swap := right.(*ast.IdentifierNode); swap {
		operator, left, right = turned(operator), right, left
	}
	field, named := left.(*ast.IdentifierNode)
	word, fixed := right.(*ast.StringNode)
	if !named || !fixed || n.own[field.Value] || field.Value != "level" {
		return allLevels, false
	}
	var some levels
	for l := range record.Other {
		if inOrder(operator, l, levelOf(word.Value)) {
			some |= 1 << l
		}
	}
	return some, true
}
