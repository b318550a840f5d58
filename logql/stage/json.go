package stage

import (
	"bytes"
	"strings"

	"blobtail/logql"
	"blobtail/record"
)

// A jsonStage makes labels of the members of a line that is a JSON object. In the view of
// messages a line that is none makes no labels and no error: its record has the fields already.
type jsonStage struct {
	lines    bool
	first    bool // no stage before it changes the line
	extracts []jsonPath
}

// A jsonPath names the label for a member.
type jsonPath struct {
	name string
	path []logql.Step
}

func (c *compiler) newJSON(tree *logql.JSON) (stage, error) {
	j := &jsonStage{lines: c.view.Lines, first: !c.changedLine()}
	for _, e := range tree.Extract {
		path, err := logql.Path(e.Path)
		if err != nil {
			return nil, err
		}
		j.extracts = append(j.extracts, jsonPath{e.Name, path})
	}
	return j, nil
}

func (j *jsonStage) changesLine() bool { return false }

func (j *jsonStage) changes(name string) bool {
	if j.extracts == nil {
		return name != nameServiceName
	}
	for _, e := range j.extracts {
		if e.name == name || e.name+extracted == name {
			return true
		}
	}
	return false
}

// mayFail reports whether the stage may set __error__.
func (j *jsonStage) mayFail() bool { return j.lines && !j.first }

func (j *jsonStage) before(n *need) step {
	if !n.some(j.changes) && (!n.failure || !j.mayFail()) {
		return nil
	}
	n.line = true
	if j.extracts != nil {
		return &jsonPaths{j}
	}
	if few := j.few(n); few != nil {
		return few
	}
	return &jsonAll{j, newWish(n)}
}

// few returns a step that looks for the needed labels one by one, if there are few. It is several
// times as quick as a walk through all members. nil: there are many, or one may be of a member
// with the name of a label of the stream.
func (j *jsonStage) few(n *need) step {
	const most = 4
	if n.all || len(n.names) > most {
		return nil
	}
	f := &jsonFew{jsonStage: j}
	for name := range n.names {
		if strings.HasSuffix(name, extracted) {
			return nil
		}
		r := ref{name: name, field: name}
		if name != "ts" { // it is the first, so no comma is before it
			r.begin()
		}
		f.refs = append(f.refs, &r)
	}
	return f
}

// object returns the line if that is a JSON object.
func (j *jsonStage) object(s *state) (line []byte, ok bool) {
	line = s.text()
	if j.lines && j.first {
		return line, s.msg > 0
	}
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' || record.ValueLen(line) != len(line) {
		return nil, false
	}
	return line, true
}

func (j *jsonStage) fail(s *state) {
	if j.lines {
		s.fail("JSONParserErr", "the line is no JSON object")
	}
}

// A wish says which labels of a parser are needed.
type wish struct {
	names map[string]bool // nil: all
}

func newWish(n *need) wish {
	if n.all {
		return wish{}
	}
	w := wish{map[string]bool{}}
	for name := range n.names {
		w.names[name] = true
	}
	return w
}

// wants reports whether a label is needed.
func (w *wish) wants(name []byte) bool { return w.names == nil || w.names[string(name)] }

// under reports whether the query needs a label with a name that begins with a prefix.
func (w *wish) under(prefix []byte) bool {
	if w.names == nil {
		return true
	}
	for name := range w.names {
		if len(name) > len(prefix) && name[:len(prefix)] == string(prefix) {
			return true
		}
	}
	return false
}

// jsonAll makes labels of all members.
type jsonAll struct {
	*jsonStage
	wish wish
}

func (j *jsonAll) run(s *state) bool {
	line, ok := j.object(s)
	if !ok {
		j.fail(s)
		return true
	}
	s.sink = labelSink{s: s, wish: &j.wish, left: -1}
	if j.wish.names != nil {
		s.sink.left = len(j.wish.names)
	}
	w := record.Walk(line)
	s.spare, _ = flatten(&w, s.spare[:0], 0, &s.sink)
	return true
}

// jsonFew makes labels of the members of a few names.
type jsonFew struct {
	*jsonStage
	refs []*ref
}

func (j *jsonFew) run(s *state) bool {
	line, ok := j.object(s)
	if !ok {
		j.fail(s)
		return true
	}
	canonical := j.lines && j.first
	for _, r := range j.refs {
		w := record.Walk(line)
		if canonical && r.start != nil && !w.Skip(r.start) {
			continue
		}
		if value := findField(w, r.name, true, false); value != nil && !s.streamHas([]byte(r.name)) {
			s.extractName(r.name, value, true)
		}
	}
	return true
}

// A labelSink makes labels.
type labelSink struct {
	s    *state
	wish *wish
	left int // needed labels that were not found yet; negative for all
}

func (l *labelSink) into(prefix []byte) bool { return l.wish.under(prefix) }

func (l *labelSink) field(name, value []byte) bool {
	if value[0] == '[' {
		return true
	}
	if l.s.streamHas(name) {
		name = append(name, extracted...)
	}
	if !l.wish.wants(name) {
		return true
	}
	if l.s.extract(name, value, true) {
		l.left--
	}
	return l.left != 0
}

// jsonPaths makes labels of some members.
type jsonPaths struct{ *jsonStage }

func (j *jsonPaths) run(s *state) bool {
	line, ok := j.object(s)
	if !ok {
		if j.fail(s); j.lines {
			return true
		}
		line = s.raw
	}
	for i := range j.extracts {
		if s.over() {
			return false
		}
		e := &j.extracts[i]
		value := member(line, e.path)
		if len(value) > 0 && value[0] == 'n' {
			value = nil
		}
		s.extractAs(e.name, value, true)
	}
	return true
}

// member returns the value at a path, nil if there is none.
func member(value []byte, path []logql.Step) []byte {
	for _, step := range path {
		if value = inside(value, step); value == nil {
			return nil
		}
	}
	return value
}

// inside returns the value of a member of an object, or of an element of an array.
func inside(of []byte, step logql.Step) []byte {
	if len(of) == 0 || step.Index < 0 && of[0] != '{' || step.Index >= 0 && of[0] != '[' {
		return nil
	}
	w := record.Walk(of)
	for i := 0; ; i++ {
		if step.Index >= 0 {
			value, ok := w.Element()
			if !ok || i == step.Index {
				return value
			}
			continue
		}
		key, value, ok := w.Member()
		if !ok {
			return nil
		}
		if string(key) == step.Key || bytes.IndexByte(key, '\\') >= 0 && string(record.AppendUnescaped(nil, key)) == step.Key {
			return value
		}
	}
}

// An unpackStage undoes the packing of labels into a line by senders.
type unpackStage struct{}

func (u *unpackStage) changes(name string) bool { return name != nameServiceName }
func (u *unpackStage) changesLine() bool        { return true }

func (u *unpackStage) before(n *need) step {
	if !n.line && !n.failure && !n.some(u.changes) {
		return nil
	}
	n.line = true
	return &unpackStep{newWish(n)}
}

type unpackStep struct{ wish wish }

func (u *unpackStep) mayFail() bool { return true }

func (u *unpackStep) run(s *state) bool {
	line := bytes.TrimSpace(s.text())
	if len(line) == 0 || line[0] != '{' || record.ValueLen(line) != len(line) {
		s.fail("JSONParserErr", "the line is no JSON object with packed labels")
		return true
	}
	for w := record.Walk(line); ; {
		key, value, ok := w.Member()
		if !ok {
			return true
		}
		if value[0] != '"' || len(key) == 0 {
			continue
		}
		if string(key) == "_entry" {
			s.setLine(s.textOf(value))
			continue
		}
		name := appendName(s.spare[:0], key, true)
		s.spare = name
		if s.streamHas(name) {
			name = append(name, extracted...)
		}
		if len(name) <= maxName && u.wish.wants(name) {
			s.extract(name, value, true)
		}
	}
}
