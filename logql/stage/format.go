package stage

import "blobtail/logql"

const templateErr = "TemplateFormatErr"

// A lineFormat makes a new line of the labels.
type lineFormat struct{ form *form }

func newLineFormat(all *templates, text string) (stage, error) {
	form, err := all.form(text)
	return &lineFormat{form}, err
}

func (f *lineFormat) changes(string) bool { return false }
func (f *lineFormat) changesLine() bool   { return true }
func (f *lineFormat) mayFail() bool       { return true }

func (f *lineFormat) before(n *need) step {
	mayFail := f.form.plain == nil
	if !n.line && (!n.failure || !mayFail) {
		return nil
	}
	n.line = n.line && mayFail // a line stays as it is if the template fails
	f.form.needs(n)
	return f
}

func (f *lineFormat) run(s *state) bool {
	out, err := f.form.render(s)
	if err != nil {
		s.failForm(err)
		return true
	}
	s.setLine(s.keep(out))
	return true
}

// A labelFormat renames labels, and makes labels by templates.
type labelFormat struct{ sets []renaming }

// A renaming sets a label to another one, which it removes, or to the output of a template.
type renaming struct {
	name string
	from *ref
	form *form
}

func newLabelFormat(all *templates, trees []logql.Rename) (stage, error) {
	f := &labelFormat{}
	for _, tree := range trees {
		one := renaming{name: tree.Name}
		if tree.From != "" {
			one.from = newRef(tree.From)
		} else {
			form, err := all.form(tree.Template)
			if err != nil {
				return nil, err
			}
			one.form = form
		}
		f.sets = append(f.sets, one)
	}
	return f, nil
}

func (f *labelFormat) changesLine() bool { return false }
func (f *labelFormat) mayFail() bool     { return true }

func (f *labelFormat) changes(name string) bool {
	for _, one := range f.sets {
		if one.name == name || one.from != nil && same(one.from.name, name) {
			return true
		}
	}
	return false
}

func (f *labelFormat) before(n *need) step {
	mayFail := false
	for _, one := range f.sets {
		mayFail = mayFail || one.form != nil && one.form.plain == nil
	}
	if !n.some(f.changes) && (!n.failure || !mayFail) {
		return nil
	}
	for _, one := range f.sets {
		if one.form != nil {
			one.form.needs(n)
		} else {
			n.add(one.from)
		}
	}
	return f
}

func (f *labelFormat) run(s *state) bool {
	for i := range f.sets {
		if s.over() {
			return false
		}
		one := &f.sets[i]
		if one.form == nil {
			if value, ok := s.get(one.from); ok && one.from.name != one.name {
				s.remove(one.from.name)
				s.put(made{name: one.name, value: value})
			}
			continue
		}
		out, err := one.form.render(s)
		if err != nil {
			s.failForm(err)
			continue
		}
		s.put(made{name: one.name, value: s.keep(out)})
	}
	return true
}
