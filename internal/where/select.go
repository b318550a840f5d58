package where

import (
	"bytes"
	"slices"

	"github.com/expr-lang/expr/ast"

	"blobtail/record"
)

// levels is a set of levels, a bit for each.
type levels uint8

const allLevels = 1<<record.NumLevels - 1

// needs are the levels and texts that a line must have so that an expression can be true.
type needs struct {
	levels levels
	enough bool     // the level alone decides
	texts  [][]byte // in quotes, as canonical lines have them

	asksTime bool // it calls now()
}

// needsOf finds the needs of a tree with conditions joined by "and".
func needsOf(node ast.Node, n *names) needs {
	found := needs{asksTime: n.asksTime}
	found.levels, found.enough = levelsOf(node, n)
	for _, of := range equals(node, n, nil) {
		text, _ := of.value.(string)
		quoted := append(record.AppendEscaped([]byte{'"'}, []byte(text)), '"')
		if !bytes.Contains(quoted, []byte(`\\`)) { // a line may have half a surrogate pair for it
			found.texts = append(found.texts, quoted)
		}
	}
	return found
}

// levelsOf returns the levels that a record may have for a condition to be true, and whether
// it is true for each record that has one of them.
func levelsOf(node ast.Node, n *names) (_ levels, enough bool) {
	at, ok := node.(*ast.BinaryNode)
	if !ok {
		return allLevels, false
	}
	switch at.Operator {
	case "&&", "and", "||", "or":
		left, enough := levelsOf(at.Left, n)
		right, both := levelsOf(at.Right, n)
		if at.Operator == "&&" || at.Operator == "and" {
			return left & right, enough && both
		}
		return left | right, enough && both
	case "==":
		one := names{own: n.own}
		one.compare(at)
		if len(one.compared) == 1 && one.compared[0].name == "level" {
			return levelsNamed(one.compared[0].value)
		}
	case "<", "<=", ">", ">=":
		return levelsFrom(at, n)
	case "in":
		field, named := at.Left.(*ast.IdentifierNode)
		list, fixed := at.Right.(*ast.ArrayNode)
		if !named || !fixed || n.own[field.Value] || outside(field.Value) != "level" {
			return allLevels, false
		}
		var words []any
		for _, item := range list.Nodes {
			text, ok := item.(*ast.StringNode)
			if !ok {
				return allLevels, false
			}
			words = append(words, text.Value)
		}
		return levelsNamed(words...)
	}
	return allLevels, false
}

// levelsNamed is the set of the levels with these words. Other has all words that are no
// level's, so it decides nothing.
func levelsNamed(words ...any) (some levels, enough bool) {
	for _, word := range words {
		text, _ := word.(string)
		some |= 1 << record.LevelOf([]byte(text))
	}
	return some, some>>record.Other&1 == 0
}

// Select is [Expr.Match] for a line that is one of very many, at an ingester. It keeps
// nothing for [Expr.Notes]. It evaluates the expression only if the line has a level and
// the texts that the expression needs. A line that cannot be judged is not selected.
func (e *Expr) Select(line []byte) bool { return e.sort(line, false) }

// MaySelect is Select for code that must not miss a line: one that cannot be judged is selected.
func (e *Expr) MaySelect(line []byte) bool { return e.sort(line, true) }

func (e *Expr) sort(line []byte, unjudged bool) bool {
	if e.needs.levels != allLevels && e.needs.levels>>record.LineLevel(line)&1 == 0 {
		return false
	}
	if e.needs.enough {
		return true
	}
	if slices.ContainsFunc(e.needs.texts, func(text []byte) bool { return !bytes.Contains(line, text) }) {
		return false
	}
	r := e.runs.Get().(*run)
	r.raw = line
	result, err := e.root.of(r)
	r.end()
	e.runs.Put(r)
	return (result == yes || unjudged && result == unknown && limited(err)) && e.budget.Err() == nil
}
