// Package where selects records by an expression over their fields, such as
//
//	status >= 500 && path startsWith "/api"
//
// Make an [Expr] by [Parse], and ask it whether a line matches ([Expr.Match]). After a
// read, [Expr.Unjudged] tells whether that is known of all of them, and [Expr.Notes] explains why
// no line has matched.
//
// The language is that of github.com/expr-lang/expr. A name is a field at the top level of
// a record, with ts, level, service and msg among them, also if the language has a function
// of that name. "http.status" is the field of that name, or else status in the object http.
// Values are those of encoding/json: text, float64, bool, nil, lists and objects. A field
// that a record lacks is nil.
//
// The level is compared by the order of levels, in <, <=, > and >=: level >= "warn" is true for
// error and critical. A word that is no level has no place in that order: in a record it makes the
// condition fail, and in the expression [Parse] names it. Beside ==, !=, in and not in, each word
// that [record.ParseLevel] knows counts as its level, so level == "warning" finds warn. A field level
// in an object is a text like others.
//
// A condition that fails for a record is unknown: neither true nor false. So does
// status >= 500 where status is a text or is missing. "and", "or" and "not" treat unknown as
// SQL does: unknown or true is true, unknown and false is false, and not unknown is unknown.
// A record matches if the whole is true.
//
// An evaluation that would make too much of a record is not the record's fault. If the rest of
// the expression does not decide, nobody knows whether the record matches: see [Expr.Unjudged].
// The bytes that an expression makes are also taken from the budget of its query. Once the budget
// has ended no record matches: the code that answers the query asks [budget.Budget.Err] before.
package where

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"blobtail/internal/budget"
	"blobtail/record"
)

// Expr is a compiled expression. It may be used by several goroutines at once.
type Expr struct {
	text  string
	root  *condition
	names []string // that it uses
	whole bool     // it uses $env, which has all fields
	// calls says that it calls functions that need the run.
	calls  bool
	budget *budget.Budget
	runs   sync.Pool

	compared []comparison
	equals   []string
	needs    needs

	matched atomic.Bool
	records atomic.Int64 // with their names in others
	mu      sync.Mutex
	seen    map[string]bool // of names: a record had it
	others  map[string]bool // some names that records have
	unlike  string          // of the first comparison that cannot be true
	failed  error           // of the first record that has all names
	doubted int64           // records that could not be judged
	why     error           // of the first of them
}

const (
	// surveyed is how many records are searched for names that exist.
	surveyed = 1000
	// mostNames bounds the names that a note lists.
	mostNames = 20
)

// String is the text of the expression.
func (e *Expr) String() string { return e.text }

// Match reports whether a canonical line matches.
func (e *Expr) Match(line []byte) bool {
	r := e.runs.Get().(*run)
	e.values(r, line)
	if e.survey() {
		e.note(line, r.env)
	}
	result, err := e.root.of(r)
	matched := result == yes && e.budget.Err() == nil
	switch {
	case result == unknown && limited(err):
		e.doubt(err)
	case err != nil && !matched:
		e.fail(r.env, err)
	}
	r.end()
	e.runs.Put(r)
	if matched {
		e.matched.Store(true)
	}
	return matched
}

// values decodes the values of the expression's names, or all if it uses the whole record.
func (e *Expr) values(r *run, line []byte) {
	for _, name := range e.names {
		if e.budget.Err() != nil {
			return
		}
		if value, ok := record.Lookup(line, name); ok {
			r.env[inside(name)] = r.decode(value)
		}
	}
	if e.whole {
		all := map[string]any{}
		for key, value := range record.Fields(line) {
			all[string(record.AppendUnescaped(nil, key))] = r.decode(value)
		}
		r.env[nameAll] = all
	}
	if e.calls {
		r.env[nameRun] = r
	}
}

// decode returns a value as encoding/json decodes it; nil if that fails.
func (r *run) decode(value []byte) any {
	if record.IsString(value) {
		if r.take(len(value)) != nil {
			return nil
		}
		return string(record.AppendUnescaped(nil, value[1:len(value)-1]))
	}
	if (value[0] == '[' || value[0] == '{') && r.take(jsonBytes*len(value)) != nil {
		return nil
	}
	var v any
	if json.Unmarshal(value, &v) != nil {
		return nil
	}
	return v
}

// Equals returns texts that a field of each matching record equals. None of them is of ts,
// level or service.
func (e *Expr) Equals() []string { return e.equals }

// survey reports whether the names of one more record are wanted.
func (e *Expr) survey() bool {
	return !e.matched.Load() && e.records.Load() < surveyed && e.records.Add(1) <= surveyed
}

// note notes which fields a record has.
func (e *Expr) note(line []byte, env map[string]any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key := range record.Fields(line) {
		if len(e.others) == mostNames {
			break
		}
		e.others[string(record.AppendUnescaped(nil, key))] = true
	}
	for _, name := range e.names {
		if _, ok := env[inside(name)]; ok {
			e.seen[name] = true
		}
	}
	for i := range e.compared {
		if e.unlike == "" {
			e.unlike = e.compared[i].unlike(env[inside(e.compared[i].name)])
		}
	}
}

// fail keeps the first error of a record that has all fields.
func (e *Expr) fail(env map[string]any, err error) {
	if e.matched.Load() {
		return
	}
	for _, name := range e.names {
		if _, ok := env[inside(name)]; !ok {
			return
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed == nil {
		e.failed = reason(err)
	}
}

// doubt counts a record that may match, or not.
func (e *Expr) doubt(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.doubted++; e.doubted == 1 {
		e.why = reason(err)
	}
}

// Unjudged returns how many records could not be judged so far, because the expression would have
// made too much of them, and why. A result without them is not complete.
func (e *Expr) Unjudged() (records int64, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.doubted, e.why
}

// Notes explains why no record has matched: a field that no record had, next to those that
// there are, a number that is compared with a text, or a failure. It returns nothing if a
// record has matched.
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
	if e.unlike != "" {
		notes = append(notes, e.unlike)
	}
	if e.failed != nil {
		notes = append(notes, fmt.Sprintf("the expression fails where all its fields are: %v", e.failed))
	}
	return notes
}
