// Package where selects records by an expression over their fields, such as
//
//	status >= 500 && path startsWith "/api"
//
// Make an [Expr] by [Parse], and ask it whether a line matches ([Expr.Match]). After a
// read, [Expr.Notes] explains what the expression may have missed.
//
// The language is that of github.com/expr-lang/expr. A name is a field at the top level of
// a record, with ts, level, service and msg among them. "http.status" is the field of that
// name, or else status in the object http. Values are those of encoding/json: text,
// float64, bool, nil, lists and objects. A field that a record lacks is nil.
//
// A record matches if the result is true. It does not match if the expression fails for
// it, as status >= 500 does where status is a text or is missing.
package where

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"blobtail/record"
)

// Expr is a compiled expression. It may be used by several goroutines at once.
type Expr struct {
	program *vm.Program
	names   []string // that it uses
	whole   bool     // it uses $env, which has all fields
	vms     sync.Pool

	matched atomic.Bool
	mu      sync.Mutex
	seen    map[string]bool // of names: a record had it
	others  map[string]bool // some names that records have
	failed  error           // of the first record that has all names
	records int             // whose names are in others
}

const (
	// surveyed is how many records are searched for names that exist.
	surveyed = 1000
	// mostNames bounds the names that a note lists.
	mostNames = 20
)

// Parse compiles an expression. An error says what is wrong, and where.
func Parse(text string) (*Expr, error) {
	names := &names{used: map[string]bool{}, own: map[string]bool{}}
	tree, err := parser.Parse(text)
	if err != nil {
		return nil, reason(err)
	}
	ast.Walk(&tree.Node, (*variables)(names))
	program, err := expr.Compile(text, expr.AllowUndefinedVariables(), expr.AsBool(), expr.Patch(names))
	switch {
	case err != nil:
		return nil, reason(err)
	case names.function != "":
		return nil, fmt.Errorf("there is no function %s", names.function)
	}
	e := &Expr{program: program, whole: names.used["$env"], seen: map[string]bool{}, others: map[string]bool{}}
	delete(names.used, "$env")
	e.names = slices.Sorted(maps.Keys(names.used))
	if len(e.names) == 0 && !e.whole {
		return nil, errors.New("it names no field; want one such as status >= 500")
	}
	e.vms.New = func() any { return new(vm.VM) }
	return e, nil
}

// reason is an error in one line. A column counts from 1.
func reason(err error) error {
	if at, ok := errors.AsType[*file.Error](err); ok {
		return fmt.Errorf("column %d: %s", at.Column+1, at.Message)
	}
	return err
}

// names finds the fields that an expression uses. It makes one name of a.b.c.
type names struct {
	used, own map[string]bool // own are variables of the expression
	function  string          // an unknown one
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
			n.used[at.Value] = true
		}
	case *ast.CallNode:
		if of, ok := at.Callee.(*ast.IdentifierNode); ok {
			n.function = of.Value
		}
	case *ast.MemberNode:
		of, named := at.Node.(*ast.IdentifierNode)
		field, fixed := at.Property.(*ast.StringNode)
		if named && fixed && !at.Method && !n.own[of.Value] && of.Value != "$env" {
			delete(n.used, of.Value)
			name := of.Value + "." + field.Value
			n.used[name] = true
			ast.Patch(node, &ast.IdentifierNode{Value: name})
		}
	}
}

// Match reports whether a canonical line matches.
func (e *Expr) Match(line []byte) bool {
	env := e.fields(line)
	machine := e.vms.Get().(*vm.VM)
	result, err := machine.Run(e.program, env)
	e.vms.Put(machine)
	if err != nil {
		e.fail(env, err)
		return false
	}
	matched := result == true
	if matched {
		e.matched.Store(true)
	}
	return matched
}

// fields decodes the values of the expression's names.
func (e *Expr) fields(line []byte) map[string]any {
	env := make(map[string]any, len(e.names))
	for _, name := range e.names {
		if value, ok := record.Lookup(line, name); ok {
			env[name] = decode(value)
		}
	}
	survey := e.survey()
	if !survey && !e.whole {
		return env
	}
	var keys []string
	for key, value := range record.Fields(line) {
		name := string(record.AppendUnescaped(nil, key))
		keys = append(keys, name)
		if e.whole {
			env[name] = decode(value)
		}
	}
	if survey {
		e.note(keys, env)
	}
	return env
}

// decode returns a value as encoding/json decodes it; nil if that fails.
func decode(value []byte) any {
	if record.IsString(value) {
		return string(record.AppendUnescaped(nil, value[1:len(value)-1]))
	}
	var v any
	if json.Unmarshal(value, &v) != nil {
		return nil
	}
	return v
}

func (e *Expr) survey() bool {
	if e.matched.Load() {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.records++
	return e.records <= surveyed
}

func (e *Expr) note(keys []string, env map[string]any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, key := range keys {
		if len(e.others) < mostNames {
			e.others[key] = true
		}
	}
	for name := range env {
		e.seen[name] = true
	}
}

// fail keeps the first error of a record that has all fields.
func (e *Expr) fail(env map[string]any, err error) {
	if len(env) < len(e.names) || e.matched.Load() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed == nil {
		e.failed = reason(err)
	}
}

// Notes explains why no record has matched: a field that no record had, next to those that
// there are, or a failure. It returns nothing if a record has matched.
func (e *Expr) Notes() (notes []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.matched.Load() || len(e.others) == 0 {
		return nil
	}
	for _, name := range e.names {
		if !e.seen[name] {
			notes = append(notes, fmt.Sprintf("no record has the field %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(e.others)), ", ")))
		}
	}
	if e.failed != nil {
		notes = append(notes, fmt.Sprintf("the expression fails where all its fields are: %v", e.failed))
	}
	return notes
}
