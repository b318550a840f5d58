// Package where selects records by an expression over their fields, such as
//
//	status >= 500 && path startsWith "/api"
//
// Make an [Expr] by [Parse], and ask it whether a line matches ([Expr.Match]). After a
// read, [Expr.Unjudged] tells whether that is known of all of them, and [Expr.Notes] explains why
// lines have not matched. Errors and notes are in the words of the writer of the expression, with
// the text to write: testdata/mistakes.txt has them.
//
// The language is that of github.com/expr-lang/expr. A name is a field at the top level of
// a record, with ts, level, service and msg among them, also if the language has a function
// of that name. "http.status" is the field of that name, or else status in the object http.
// Values are those of encoding/json: text, float64, bool, nil, lists and objects. A field
// that a record lacks is nil.
//
// has("text") and has(/re/) look for a text in the whole record, as a text filter does.
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
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"blobtail/internal/budget"
	"blobtail/internal/spelling"
	"blobtail/record"
)

// Expr is a compiled expression. It may be used by several goroutines at once.
type Expr struct {
	text  string
	root  *condition
	names []string // that it uses
	noted []string // the same, with those in $env["name"]
	whole bool     // it uses $env, which has all fields
	// calls says that it calls functions that need the run.
	calls bool
	// folds says that it needs lines in lower case.
	folds  bool
	budget *budget.Budget
	runs   sync.Pool
	// Made makes fields of messages. It is set before any match.
	Made Made

	uses  []use
	needs needs

	matched atomic.Bool
	records atomic.Int64 // with their names in others
	mu      sync.Mutex
	seen    map[string]bool // of names: a record had it
	others  map[string]bool // some names that records have
	reasons
	doubted int64 // records that could not be judged
	why     error // of the first of them
}

// Made makes fields of the messages of records. Texts are searched in what is stored.
type Made struct {
	ID     string                         // equal for what makes the same fields
	Append func(dst, line []byte) []byte  // appends the line with the fields too
	Field  func(name string) (might bool) // whether it makes a field of a name
}

const (
	// surveyed is how many records are searched for names that exist.
	surveyed = 1000
	// mostNames bounds the names that a note lists.
	mostNames = 20
)

// String is the text of the expression, and what makes its fields.
func (e *Expr) String() string { return e.text + e.Made.ID }

// AsksTime reports whether the expression may match a record now and not later: it calls now().
func (e *Expr) AsksTime() bool { return e.needs.asksTime }

// FieldsCompared is the first comparison of two fields, which counts a record without both as one with
// equal ones; "": there is none.
func (e *Expr) FieldsCompared() string {
	for i := range e.uses {
		u := &e.uses[i]
		list := u.operator == "in" && u.left.field != "" && u.right.value == nil && strings.HasPrefix(u.right.text, "[")
		if list || (u.operator == "==" || u.operator == "!=") && u.left.field != "" && u.right.field != "" {
			return fmt.Sprintf("%s %s %s", u.left.text, u.operator, u.right.text)
		}
	}
	return ""
}

// Match reports whether a canonical line matches.
func (e *Expr) Match(line []byte) bool {
	r := e.runs.Get().(*run)
	r.raw = line
	if e.survey() {
		r.load()
		e.note(r.full, r.env)
	}
	result, err := e.root.of(r)
	matched := result == yes && e.budget.Err() == nil
	switch {
	case result == unknown && limited(err):
		e.doubt(err)
	case err != nil && !matched:
		e.fail(line, r.env, err)
	}
	r.end()
	e.runs.Put(r)
	if matched {
		e.matched.Store(true)
	}
	return matched
}

// load decodes the values of the expression's names, or all if it uses the whole record. Texts may have
// decided before that they are not wanted.
func (r *run) load() {
	if r.loaded {
		return
	}
	r.loaded = true
	e, line := r.of, r.raw
	if e.Made.Append != nil {
		r.made = e.Made.Append(r.made[:0], line)
		line = bytes.TrimSuffix(r.made, []byte("\n"))
	}
	r.full = line
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

// AsksFields reports whether the expression depends on fields, and not on texts alone.
func (e *Expr) AsksFields() bool { return e.whole || len(e.names) > 0 }

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
	value := valuesIn(env)
	for _, name := range e.noted {
		if _, ok := env[inside(name)]; ok || value(name) != nil {
			e.seen[name] = true
		}
	}
	if text, search := e.clash(value, false); text != "" {
		e.unlike.add(text, text, search, e.seed, line)
	}
}

// valuesIn returns the values of fields by their names.
func valuesIn(env map[string]any) func(field string) any {
	return func(field string) any {
		if v, ok := env[inside(field)]; ok {
			return v
		}
		all, _ := env[nameAll].(map[string]any)
		return all[field]
	}
}

// clash is the first one of the uses that have no result if the types of their values differ (failing),
// or of those that have one.
func (e *Expr) clash(value func(field string) any, failing bool) (text, search string) {
	for i := range e.uses {
		u := &e.uses[i]
		if equal := u.operator == "==" || u.operator == "in" && u.right.field == ""; equal == failing || u.operator == "!=" {
			continue
		}
		if text, search = u.clash(value); text != "" {
			break
		}
	}
	return text, search
}

// trouble are the records that did not match for one reason.
type trouble struct {
	text, search string
	lines        map[uint64]bool // hashes: a read may see a record twice
	others       int             // that other processes have read
}

func (t *trouble) note(meant func(condition string) string) string {
	records := "1 record"
	if n := len(t.lines) + t.others; n >= mostCounted {
		records = fmt.Sprint(mostCounted, " records or more")
	} else if n > 1 {
		records = fmt.Sprint(n, " records")
	}
	text := "in " + records + " " + t.text
	if t.search != "" && meant != nil {
		if line := meant(t.search); line != "" {
			text += "; as a search: " + line
		}
	}
	return text
}

const (
	// mostCounted is how many records of a trouble are counted.
	mostCounted = 1000
	// mostTroubles is how many of a kind are told.
	mostTroubles = 3
)

// troubles are those of a kind, by their key.
type troubles struct {
	by    map[string]*trouble
	order []*trouble
}

// add counts a record. It reports whether more records would be counted.
func (t *troubles) add(key, text, search string, seed maphash.Seed, line []byte) (more bool) {
	one := t.of(key, text, search)
	if one == nil {
		return false
	}
	if len(one.lines) < mostCounted {
		one.lines[maphash.Bytes(seed, line)] = true
	}
	return len(one.lines) < mostCounted
}

// of is the trouble of a key; nil: there are enough others.
func (t *troubles) of(key, text, search string) *trouble {
	one := t.by[key]
	if one == nil && len(t.order) < mostTroubles {
		if t.by == nil {
			t.by = map[string]*trouble{}
		}
		one = &trouble{text: text, search: search, lines: map[uint64]bool{}}
		t.by[key], t.order = one, append(t.order, one)
	}
	return one
}

// reasons are what [Expr.Notes] tells.
type reasons struct {
	seed   maphash.Seed
	unlike troubles    // of comparisons that cannot be true
	failed troubles    // of records that have all fields
	full   atomic.Bool // failed counts no more
}

// fail counts a record that has all fields, and an error.
func (e *Expr) fail(line []byte, env map[string]any, err error) {
	if e.full.Load() {
		return
	}
	value := valuesIn(env)
	for _, name := range e.noted {
		if value(name) == nil {
			return
		}
	}
	text, search := e.clash(value, true)
	key := text
	if text == "" {
		text = "the expression has no result: " + explain(err).Error()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.failed.add(key, text, search, e.seed, line) {
		e.full.Store(true)
	}
}

// doubt counts a record that may match, or not.
func (e *Expr) doubt(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.doubted++; e.doubted == 1 {
		e.why = explain(err)
	}
}

// Certain reports whether there was nothing so far that a read has to tell of the records: each of them
// was judged, and no part of the expression was without a result.
func (e *Expr) Certain() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.budget.Err() == nil && e.doubted == 0 && len(e.failed.order) == 0
}

// Findings are what [Expr.Notes] tells, for another process that reads other records.
type Findings struct {
	Matched        bool
	Seen, Others   []string
	Unlike, Failed map[string]Finding // by their keys
}

// Finding is of records that did not match for one reason.
type Finding struct {
	Text, Search string
	Records      int
}

// Findings returns those so far.
func (e *Expr) Findings() *Findings {
	e.mu.Lock()
	defer e.mu.Unlock()
	return &Findings{
		e.matched.Load(), slices.Collect(maps.Keys(e.seen)), slices.Collect(maps.Keys(e.others)), e.unlike.findings(), e.failed.findings(),
	}
}

func (t *troubles) findings() map[string]Finding {
	all := map[string]Finding{}
	for key, of := range t.by {
		all[key] = Finding{of.text, of.search, len(of.lines)}
	}
	return all
}

// Join adds those of another process.
func (e *Expr) Join(f *Findings) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.matched.Store(e.matched.Load() || f.Matched)
	for _, name := range f.Seen {
		e.seen[name] = true
	}
	for _, name := range f.Others {
		if len(e.others) < mostNames {
			e.others[name] = true
		}
	}
	e.unlike.join(f.Unlike)
	e.failed.join(f.Failed)
}

// join adds those of another process.
func (t *troubles) join(all map[string]Finding) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if one := t.of(key, all[key].Text, all[key].Search); one != nil {
			one.others += all[key].Records
		}
	}
}

// Found notes that a record matches, without the record.
func (e *Expr) Found() { e.matched.Store(true) }

// Unjudged returns how many records could not be judged so far, because the expression would have
// made too much of them, and why. A result without them is not complete.
func (e *Expr) Unjudged() (records int64, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.doubted, e.why
}

// Notes explains why records have not matched. If none has: a field that no record had, next to
// those that there are, or a number that is compared with a text. In any case: in how many records
// a part of the expression had no result because of the types of their fields. meant is the search for a
// condition, which this package does not know; nil: there is none.
func (e *Expr) Notes(meant func(condition string) string) (notes []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.others) == 0 {
		return nil
	}
	if !e.matched.Load() {
		notes = e.absent()
		for _, t := range e.unlike.order {
			notes = append(notes, t.note(meant))
		}
	}
	for _, t := range e.failed.order {
		notes = append(notes, t.note(meant))
	}
	return notes
}

// absent names the fields that no record had, and what was probably meant by them.
func (e *Expr) absent() (notes []string) {
	for _, name := range e.noted {
		if e.seen[name] {
			continue
		}
		others := slices.Sorted(maps.Keys(e.others))
		hint := "there are " + strings.Join(others, ", ")
		note := fmt.Sprintf("no record has the field %q; ", name)
		if near := spelling.Near(name, others); 2*len(near) > len(name) {
			hint = fmt.Sprintf("is it %s?", near)
		}
		for i := range e.uses {
			if text := e.uses[i].dashes(e.text, name); text != "" {
				note, hint = text, ""
			}
			if e.uses[i].operator == "" && e.uses[i].left.field == name {
				hint = fmt.Sprintf("for a text write has(%q)", name)
			}
			if u := &e.uses[i]; u.right.field == name && u.left.field != "" && compares(u.operator) {
				hint = fmt.Sprintf("for a text write %s %s %q", u.left.text, u.operator, name)
			}
		}
		if note += hint; !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}
