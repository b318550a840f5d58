package where

import (
	"bytes"
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"

	"blobtail/record"
)

// levels is a set of levels, a bit for each.
type levels uint8

const allLevels = 1<<record.NumLevels - 1

// needs is what a line must have so that an expression can be true.
type needs struct {
	levels levels
	texts  [][]byte // in quotes, as canonical lines have them
}

// needsOf finds the needs of a tree whose conditions are joined by "and".
func needsOf(node ast.Node, n *names) needs {
	found := needs{levels: levelsOf(node, n)}
	for _, text := range equals(node, n, nil) {
		quoted := append(record.AppendEscaped([]byte{'"'}, []byte(text)), '"')
		if !bytes.Contains(quoted, []byte(`\\`)) { // a line may have half a surrogate pair for it
			found.texts = append(found.texts, quoted)
		}
	}
	return found
}

// levelsOf returns the levels that a record may have for a condition to be true.
func levelsOf(node ast.Node, n *names) levels {
	at, ok := node.(*ast.BinaryNode)
	if !ok {
		return allLevels
	}
	switch at.Operator {
	case "&&", "and":
		return levelsOf(at.Left, n) & levelsOf(at.Right, n)
	case "||", "or":
		return levelsOf(at.Left, n) | levelsOf(at.Right, n)
	case "==":
		one := names{own: n.own}
		one.compare(at)
		if len(one.compared) == 1 && one.compared[0].name == "level" {
			return levelNamed(one.compared[0].value)
		}
	case "in":
		field, named := at.Left.(*ast.IdentifierNode)
		list, fixed := at.Right.(*ast.ArrayNode)
		if !named || !fixed || n.own[field.Value] || outside(field.Value) != "level" {
			return allLevels
		}
		some := levels(0)
		for _, item := range list.Nodes {
			text, ok := item.(*ast.StringNode)
			if !ok {
				return allLevels
			}
			some |= levelNamed(text.Value)
		}
		return some
	}
	return allLevels
}

// levelNamed is the set of the level with a word. Other has all words that are no level's.
func levelNamed(word any) levels {
	text, _ := word.(string)
	return 1 << record.LevelOf([]byte(text))
}

// Select is [Expr.Match] for a line that is one of very many, at an ingester. It keeps
// nothing for [Expr.Notes]. It evaluates the expression only if the line has a level and
// the texts that the expression needs.
func (e *Expr) Select(line []byte) bool {
	if e.needs.levels != allLevels && e.needs.levels>>record.LineLevel(line)&1 == 0 {
		return false
	}
	if slices.ContainsFunc(e.needs.texts, func(text []byte) bool { return !bytes.Contains(line, text) }) {
		return false
	}
	machine := e.vms.Get().(*vm.VM)
	result, _ := e.root.of(machine, e.values(line))
	e.vms.Put(machine)
	return result == yes
}
