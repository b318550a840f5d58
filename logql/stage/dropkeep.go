package stage

import (
	"slices"

	"blobtail/internal/budget"
	"blobtail/logql"
)

// A nameMatch is a label, or one with some values.
type nameMatch struct {
	of *ref
	m  *matcher // nil: with any value
}

func compileNames(b *budget.Budget, trees []logql.NameMatch) ([]nameMatch, error) {
	names := make([]nameMatch, 0, len(trees))
	for _, tree := range trees {
		one := nameMatch{of: newRef(tree.Name)}
		if tree.Op != "" {
			m, err := newMatcher(b, tree.Op, tree.Value)
			if err != nil {
				return nil, err
			}
			one.m = m
		}
		names = append(names, one)
	}
	return names, nil
}

// matches reports whether a label is meant.
func (n *nameMatch) matches(name string, value []byte) bool {
	return same(n.of.name, name) && (n.m == nil || n.m.match(value))
}

// A dropStage removes labels.
type dropStage struct{ names []nameMatch }

func (d *dropStage) changes(name string) bool {
	for _, n := range d.names {
		if same(n.of.name, name) {
			return true
		}
	}
	return false
}

func (d *dropStage) changesLine() bool { return false }
func (d *dropStage) mayFail() bool     { return false }

// onlyErrors reports whether the stage removes no other labels than those of an error.
func (d *dropStage) onlyErrors() bool {
	return !slices.ContainsFunc(d.names, func(n nameMatch) bool { return n.of.kind != refError && n.of.kind != refDetails })
}

func (d *dropStage) before(n *need) step {
	var some []nameMatch
	for _, one := range d.names {
		failure := one.of.kind == refError || one.of.kind == refDetails
		if failure && n.failure || !failure && n.some(func(name string) bool { return same(one.of.name, name) }) {
			some = append(some, one)
		}
	}
	if some == nil {
		return nil
	}
	for _, one := range some {
		switch {
		case one.m != nil:
			n.add(one.of)
		case one.of.kind == refError:
			n.failure = false
		case one.of.kind == refLevel || one.of.kind == refService:
			// Which labels go depends on those that were made.
			n.addSame(one.of.name)
		default:
			n.drop(func(name string) bool { return same(one.of.name, name) })
		}
	}
	return &dropStage{some}
}

func (d *dropStage) run(s *state) bool {
	for i := range d.names {
		one := &d.names[i]
		if one.m != nil {
			if value, ok := s.get(one.of); !ok || !one.m.match(value) {
				continue
			}
		}
		switch one.of.kind {
		case refError:
			s.failure = ""
		case refDetails:
			s.details = ""
		default:
			s.remove(one.of.name)
		}
	}
	return true
}

// A keepStage removes all labels but some.
type keepStage struct{ names []nameMatch }

func (k *keepStage) changes(name string) bool {
	for _, n := range k.names {
		if n.m == nil && same(n.of.name, name) {
			return false
		}
	}
	return true
}

func (k *keepStage) changesLine() bool { return false }
func (k *keepStage) mayFail() bool     { return false }

func (k *keepStage) before(n *need) step {
	if !n.failure && !n.some(k.changes) {
		return nil
	}
	if n.all { // of those that stages made, only these are left
		n.all = false
		for _, one := range k.names {
			n.addSame(one.of.name)
		}
	}
	n.drop(func(name string) bool { return !k.mayKeep(name) })
	return k
}

// mayKeep reports whether the stage may keep a label.
func (k *keepStage) mayKeep(name string) bool {
	for _, n := range k.names {
		if same(n.of.name, name) {
			return true
		}
	}
	return false
}

// keeps reports whether the stage keeps a label.
func (k *keepStage) keeps(name string, value []byte) bool {
	for i := range k.names {
		if k.names[i].matches(name, value) {
			return true
		}
	}
	return false
}

func (k *keepStage) run(s *state) bool {
	for i := range s.made {
		if s.over() {
			return false
		}
		if m := &s.made[i]; !m.gone && !k.keeps(m.name, m.value) {
			m.gone = true
		}
	}
	if !k.keeps(nameError, []byte(s.failure)) {
		s.failure = ""
	}
	if !k.keeps(nameDetails, []byte(s.details)) {
		s.details = ""
	}
	s.kept = append(s.kept, k)
	return true
}
