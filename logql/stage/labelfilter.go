package stage

import (
	"fmt"

	"blobtail/internal/budget"
	"blobtail/logql"
	"blobtail/record"
)

// A labelFilter drops records if a condition is not true for their labels.
type labelFilter struct{ cond cond }

func (f *labelFilter) changes(string) bool { return false }
func (f *labelFilter) changesLine() bool   { return false }
func (f *labelFilter) mayFail() bool       { return f.cond.mayFail() }

func (f *labelFilter) run(s *state) bool {
	if s.limit != nil && ofError(f.cond) {
		s.limit = nil // the filter of the query decides on the record
	}
	return f.cond.holds(s)
}

func (f *labelFilter) before(n *need) step {
	f.cond.needs(n)
	return f
}

// A cond is a compiled condition.
type cond interface {
	holds(s *state) bool
	needs(n *need)
	mayFail() bool
	// onlyLevel reports whether the condition looks at nothing but the level, and ofLevel
	// whether it holds for one.
	onlyLevel() bool
	ofLevel(name []byte) bool
	// ofWord is for a condition on the word of the level as stored. It reports whether it looks at
	// nothing else, and whether it may hold for a word that is no known level.
	ofWord() (only, unknown bool)
}

func compileCond(b *budget.Budget, tree logql.Cond) (cond, error) {
	switch tree := tree.(type) {
	case *logql.And:
		return compileJoined(b, tree.Left, tree.Right, false)
	case *logql.Or:
		return compileJoined(b, tree.Left, tree.Right, true)
	case *logql.MatchCond:
		m, err := newMatcher(b, tree.Op, tree.Value)
		return &matchCond{newRef(tree.Name), m}, err
	case *logql.CompareCond:
		return newCompare(tree)
	case *logql.IPCond:
		m, err := newIPs(tree.Text)
		return &ipCond{newRef(tree.Name), m, tree.Op == logql.NotEqual}, err
	}
	return nil, fmt.Errorf("blobtail does not have the condition %s", tree)
}

// A joined is two conditions: one or both of them must be true.
type joined struct {
	left, right cond
	or          bool
}

func compileJoined(b *budget.Budget, left, right logql.Cond, or bool) (cond, error) {
	first, err := compileCond(b, left)
	if err != nil {
		return nil, err
	}
	second, err := compileCond(b, right)
	return &joined{first, second, or}, err
}

func (p *joined) holds(s *state) bool {
	if p.left.holds(s) == p.or || s.over() {
		return p.or
	}
	return p.right.holds(s)
}

func (p *joined) needs(n *need) {
	p.left.needs(n)
	p.right.needs(n)
}

func (p *joined) mayFail() bool { return p.left.mayFail() || p.right.mayFail() }

func (p *joined) onlyLevel() bool { return p.left.onlyLevel() && p.right.onlyLevel() }

func (p *joined) ofWord() (only, unknown bool) {
	a, unknownA := p.left.ofWord()
	b, unknownB := p.right.ofWord()
	return a && b, unknownA && unknownB || p.or && (unknownA || unknownB)
}

func (p *joined) ofLevel(name []byte) bool {
	if p.left.ofLevel(name) == p.or {
		return p.or
	}
	return p.right.ofLevel(name)
}

// A matchCond compares a label with a text. A label that is missing is "".
type matchCond struct {
	of *ref
	m  *matcher
}

func (c *matchCond) holds(s *state) bool {
	value, _ := s.get(c.of)
	return c.m.match(value)
}

func (c *matchCond) needs(n *need)            { n.add(c.of) }
func (c *matchCond) mayFail() bool            { return false }
func (c *matchCond) onlyLevel() bool          { return c.of.kind == refLevel }
func (c *matchCond) ofLevel(name []byte) bool { return c.m.match(name) }

func (c *matchCond) ofWord() (only, unknown bool) {
	unknown = c.m.not || c.m.texts == nil
	for _, text := range c.m.texts {
		unknown = unknown || record.LevelOf([]byte(text)) == record.Other
	}
	return c.of.name == nameLevel, unknown
}

// A compare compares a label with a number.
type compare struct {
	of    *ref
	op    logql.CompareOp
	value float64
	read  func([]byte) (float64, error)
}

func newCompare(tree *logql.CompareCond) (cond, error) {
	c := &compare{of: newRef(tree.Name), op: tree.Op, value: tree.Value}
	switch tree.Unit {
	case logql.Plain:
		c.read = number
	case logql.Duration:
		c.read = seconds
	case logql.Bytes:
		c.read = size
	}
	switch c.op {
	case logql.EQ, logql.NE, logql.GT, logql.GE, logql.LT, logql.LE:
		return c, nil
	}
	return nil, fmt.Errorf("blobtail does not have the operator %s", c.op)
}

// holds is true for each record that failed already: only filters of lines and of texts drop
// one.
func (c *compare) holds(s *state) bool {
	if s.failure != "" {
		return true
	}
	text, ok := s.get(c.of)
	if !ok {
		return false
	}
	value, err := c.read(text)
	if err != nil {
		s.fail("LabelFilterErr", err.Error())
		return true
	}
	switch c.op {
	case logql.EQ:
		return value == c.value
	case logql.NE:
		return value != c.value
	case logql.GT:
		return value > c.value
	case logql.GE:
		return value >= c.value
	case logql.LT:
		return value < c.value
	}
	return value <= c.value
}

func (c *compare) needs(n *need) {
	n.add(c.of)
	n.failure = true
}

func (c *compare) mayFail() bool        { return true }
func (c *compare) onlyLevel() bool      { return false }
func (c *compare) ofLevel([]byte) bool  { return true }
func (c *compare) ofWord() (bool, bool) { return false, true }

// An ipCond compares a label with a range of addresses.
type ipCond struct {
	of  *ref
	ips *ips
	not bool
}

func (c *ipCond) holds(s *state) bool {
	if s.failure != "" {
		return true
	}
	text, ok := s.get(c.of)
	return ok && c.ips.in(text) != c.not
}

func (c *ipCond) needs(n *need) {
	n.add(c.of)
	n.failure = true
}

func (c *ipCond) mayFail() bool        { return false }
func (c *ipCond) onlyLevel() bool      { return false }
func (c *ipCond) ofLevel([]byte) bool  { return true }
func (c *ipCond) ofWord() (bool, bool) { return false, true }
