package stage

import (
	"fmt"
	"slices"

	"blobtail/logql"
	"blobtail/record"
)

// A step runs on each record. It returns false to drop the record.
type step interface {
	run(s *state) bool
	// mayFail reports whether the step may set __error__.
	mayFail() bool
}

// A stage is a compiled stage of a query. A query has a program of steps for each purpose,
// without the stages that the purpose does not need.
type stage interface {
	// changes reports whether the stage may set or remove a label.
	changes(name string) bool
	// changesLine reports whether the stage may change the line.
	changesLine() bool
	// before gets the need behind the stage. It returns the step for that, or nil for none, and
	// changes n to the need in front of it.
	before(n *need) step
}

// A need is the part of the state of a record that is used later.
type need struct {
	all     bool            // all labels that stages make
	names   map[string]bool // these labels
	line    bool
	failure bool // __error__
}

// add adds the label of a name.
func (n *need) add(refs ...*ref) {
	for _, r := range refs {
		if r.kind == refError || r.kind == refDetails {
			n.failure = true
			continue
		}
		if n.names == nil {
			n.names = map[string]bool{}
		}
		n.names[r.name] = true
	}
}

// addSame adds all names that may mean the same label.
func (n *need) addSame(name string) {
	for _, other := range [...]string{name, nameLevel, nameDetected, nameService, nameServiceName} {
		if same(name, other) {
			n.add(newRef(other))
		}
	}
}

// some reports whether one of the needed labels has a property.
func (n *need) some(has func(name string) bool) bool {
	for name := range n.names {
		if has(name) {
			return true
		}
	}
	return n.all
}

// drop removes labels that need not be there, because they are removed.
func (n *need) drop(gone func(name string) bool) {
	for name := range n.names {
		if gone(name) {
			delete(n.names, name)
		}
	}
}

// A compiler compiles one query.
type compiler struct {
	view    View
	streams []*ref
	head    head
	stages  []stage
	// templates are those of the query.
	templates *templates
}

func (v View) compile(e *logql.LogExpr) (*compiler, error) {
	c := &compiler{view: v, templates: new(templates)}
	for l := range c.head.levels {
		c.head.levels[l] = true
	}
	c.head.all = true
	c.streams = append(c.streams, newRef(nameServiceName))
	for _, name := range v.Labels {
		if r := newRef(name); r.kind == refField {
			c.streams = append(c.streams, r)
		}
	}
	for _, m := range e.Selector {
		if err := c.matcher(m); err != nil {
			return nil, fmt.Errorf("%s%s%q: %w", m.Name, m.Op, m.Value, err)
		}
	}
	for _, tree := range e.Stages {
		if err := v.Budget.Err(); err != nil {
			return nil, err
		}
		if err := c.stage(tree); err != nil {
			return nil, fmt.Errorf("%s: %w", tree, err)
		}
	}
	return c, nil
}

// matcher compiles a matcher of the selector.
func (c *compiler) matcher(m logql.Matcher) error {
	switch newRef(m.Name).kind {
	case refService:
		return c.head.serviceMatcher(c.view.Budget, m)
	case refLevel:
		one, err := newMatcher(c.view.Budget, m.Op, m.Value)
		if err == nil {
			c.head.levelsOf(one.match)
		}
		return err
	}
	cond, err := compileCond(c.view.Budget, &logql.MatchCond{Matcher: m})
	if err == nil {
		c.stages = append(c.stages, &labelFilter{cond})
	}
	return err
}

// stage compiles a stage.
func (c *compiler) stage(tree logql.Stage) error {
	var one stage
	var err error
	switch tree := tree.(type) {
	case *logql.LineFilter:
		one, err = newLineFilter(c.view.Budget, tree)
	case *logql.LabelFilter:
		return c.labelFilter(tree.Cond)
	case *logql.Drop:
		var names []nameMatch
		names, err = compileNames(c.view.Budget, tree.Labels)
		one = &dropStage{names}
	case *logql.Keep:
		var names []nameMatch
		names, err = compileNames(c.view.Budget, tree.Labels)
		one = &keepStage{names}
	case *logql.JSON:
		one, err = c.newJSON(tree)
	case *logql.Logfmt:
		one = &logfmtStage{tree.Strict, tree.KeepEmpty, tree.Extract}
	case *logql.Regexp:
		one, err = newRegexp(c.view.Budget, tree.Expr)
	case *logql.Pattern:
		one, err = newPatternStage(tree.Text)
	case *logql.Unpack:
		one = &unpackStage{}
	case *logql.LineFormat:
		one, err = newLineFormat(c.templates, tree.Template)
	case *logql.LabelFormat:
		one, err = newLabelFormat(c.templates, tree.Set)
	case *logql.Decolorize:
		one = decolorizeStage{}
	default:
		err = fmt.Errorf("blobtail does not have this stage yet")
	}
	if err == nil && one != nil {
		c.stages = append(c.stages, one)
	}
	return err
}

// labelFilter compiles a filter. Conditions on nothing but the level go to the head, as long as
// no stage may have changed the level.
func (c *compiler) labelFilter(tree logql.Cond) error {
	if and, ok := tree.(*logql.And); ok {
		if err := c.labelFilter(and.Left); err != nil {
			return err
		}
		return c.labelFilter(and.Right)
	}
	one, err := compileCond(c.view.Budget, tree)
	if err != nil {
		return err
	}
	if one.onlyLevel() && !c.changed(nameLevel) && !c.changed(nameDetected) {
		c.head.levelsOf(one.ofLevel)
		return nil
	}
	if only, unknown := one.ofWord(); only && c.levelIsWord() {
		c.head.levelsOf(func(name []byte) bool {
			return one.ofLevel(name) || unknown && string(name) == LevelName(record.Other)
		})
		if !unknown {
			return nil
		}
	}
	c.stages = append(c.stages, &labelFilter{one})
	return nil
}

// levelIsWord reports whether the label level is the word of the stored line: the parser of JSON
// made it of that, and no other stage may have changed it.
func (c *compiler) levelIsWord() bool {
	found := false
	for _, one := range c.stages {
		j, ok := one.(*jsonStage)
		switch {
		case ok && j.lines && j.first && j.extracts == nil:
			found = true
		case one.changes(nameLevel):
			return false
		}
	}
	return found
}

// changed reports whether a stage so far may have changed a label.
func (c *compiler) changed(name string) bool {
	for _, one := range c.stages {
		if one.changes(name) {
			return true
		}
	}
	return false
}

// changedLine reports whether a stage so far may have changed the line.
func (c *compiler) changedLine() bool {
	return slices.ContainsFunc(c.stages, stage.changesLine)
}

// program returns the steps for a need at the end of the query.
func (c *compiler) program(n *need) []step {
	var steps []step
	for i := len(c.stages) - 1; i >= 0; i-- {
		if one := c.stages[i].before(n); one != nil {
			steps = append(steps, one)
		}
	}
	slices.Reverse(steps)
	failed := false
	steps = slices.DeleteFunc(steps, func(one step) bool {
		drop, ok := one.(*dropStage)
		if ok && !failed && drop.onlyErrors() {
			return true // of an error that there cannot be
		}
		failed = failed || one.mayFail()
		return false
	})
	return steps
}
