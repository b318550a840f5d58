package stage

import (
	"bytes"

	"blobtail/internal/budget"
	"blobtail/record"
)

// A made label is one that a stage made, or with gone set one that a stage removed.
type made struct {
	name   string
	value  []byte
	gone   bool
	parsed bool // by a parser, so that no other parser overwrites it
}

// A state is the memory of one record on its way through a pipeline.
type state struct {
	budget   *budget.Budget
	share    budget.Share // memory of the results for the record
	lines    bool
	streams  []*ref // labels of the stream
	levelRef *ref

	raw              []byte // stored line without its newline
	level            record.Level
	service          []byte
	msg              int // offset of the value of msg, 0 if the line is not canonical
	msgEnd           int // of its closing quote; 0: not searched yet
	line             []byte
	hasLine          bool // else it is made of raw when it is needed
	made             []made
	index            map[string]int // of made, if there are many
	kept             []*keepStage   // those that the record passed
	failure, details string         // __error__ and __error_details__
	limit            error          // why a template made nothing, if it would have made too much

	arena []byte // values that are no part of raw; see room
	spare []byte // of a stage, for values that live no longer than its run
	names map[string]string
	sink  labelSink

	all       []pair // labels that are put out
	fieldSink fieldSink

	forms forms

	judged  []byte // the service that was judged last
	welcome bool   // the judgement
}

func newState(v View, streams []*ref) *state {
	return &state{
		budget: v.Budget, share: v.Budget.Share(),
		lines: v.Lines, streams: streams, levelRef: newRef(nameDetected), names: map[string]string{},
	}
}

const (
	linear    = 16      // made labels that are searched without an index
	keepNames = 4096    // remembered names
	keepArena = 1 << 20 // bytes
	// madeBytes and labelBytes are the memory of a label that a stage makes, and of one that is
	// put out, beside their texts.
	madeBytes, labelBytes = 128, 80
)

// takes takes bytes for the record from the budget. If the budget ends, they must not be made.
func (s *state) takes(n int) bool { return s.share.Take(n) == nil }

// over reports whether the budget has ended. Loops that a query or a record can make long look at
// it.
func (s *state) over() bool { return s.budget.Err() != nil }

// room makes room in the arena. Values that are there stay where they are, so the old memory is
// not copied.
func (s *state) room(n int) (ok bool) {
	if !s.takes(n) {
		return false
	}
	if cap(s.arena)-len(s.arena) < n {
		s.arena = make([]byte, 0, max(n, min(2*cap(s.arena), keepArena), 1024))
	}
	return true
}

// set begins a record. The caller has found its head.
func (s *state) set(raw []byte) {
	s.raw = raw
	s.msg, s.msgEnd, s.line, s.hasLine = 0, 0, nil, false
}

// release forgets a record.
func (s *state) release() {
	s.raw, s.line, s.service = nil, nil, nil
	if len(s.made) > 0 {
		if len(s.made) > linear {
			clear(s.index)
		}
		clear(s.made)
		s.made = s.made[:0]
	}
	s.kept = s.kept[:0]
	s.failure, s.details, s.limit = "", "", nil
	if s.arena = s.arena[:0]; cap(s.arena) > keepArena {
		s.arena = nil
	}
	if len(s.all) > 0 {
		clear(s.all)
	}
	if cap(s.all)+cap(s.made) > 2*keepNames {
		s.all, s.made, s.index = nil, nil, nil
	}
	if cap(s.spare) > keepArena {
		s.spare = nil
	}
	if len(s.names) > keepNames {
		clear(s.names)
	}
	s.share.Release()
}

// run runs steps until one of them drops the record.
func (s *state) run(steps []step) bool {
	for _, one := range steps {
		if s.over() || !one.run(s) {
			return false
		}
	}
	return true
}

// text is the line as it is at this stage.
func (s *state) text() []byte {
	if s.hasLine {
		return s.line
	}
	s.hasLine = true
	s.line = s.raw
	if s.lines || s.msg == 0 {
		return s.line
	}
	switch end := s.endOfMsg(); {
	case end > s.msg:
		s.line = s.unescaped(s.raw[s.msg:end])
	case end+2 < len(s.raw) && s.raw[end+1] == ',' && s.room(len(s.raw)-end):
		at := len(s.arena)
		s.arena = append(append(s.arena, '{'), s.raw[end+2:]...)
		s.line = s.arena[at:]
	default:
		s.line = nil
	}
	return s.line
}

// setLine replaces the line.
func (s *state) setLine(line []byte) { s.line, s.hasLine = line, true }

// keep copies a text that lives as long as the record.
func (s *state) keep(text []byte) []byte {
	if !s.room(len(text)) {
		return nil
	}
	at := len(s.arena)
	s.arena = append(s.arena, text...)
	return s.arena[at:]
}

// unescaped is the text of the inside of a string.
func (s *state) unescaped(inside []byte) []byte {
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside
	}
	if !s.room(len(inside)) {
		return nil
	}
	at := len(s.arena)
	s.arena = record.AppendUnescaped(s.arena, inside)
	return s.arena[at:]
}

// textOf is the text of a value: of a string its content without escapes, else the JSON.
func (s *state) textOf(value []byte) []byte {
	if len(value) >= 2 && value[0] == '"' {
		return s.unescaped(value[1 : len(value)-1])
	}
	return value
}

// endOfMsg returns the offset of the closing quote of msg.
func (s *state) endOfMsg() int {
	if s.msgEnd == 0 {
		if s.msgEnd = record.StringEnd(s.raw, s.msg) - 1; s.msgEnd < 0 {
			s.msgEnd = len(s.raw)
		}
	}
	return s.msgEnd
}

// find returns the place of a made label, -1 for none.
func (s *state) find(name string) int {
	if len(s.made) > linear {
		if i, ok := s.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range s.made {
		if s.made[i].name == name {
			return i
		}
	}
	return -1
}

// put sets a made label.
func (s *state) put(m made) {
	if i := s.find(m.name); i >= 0 {
		s.made[i] = m
		return
	}
	if !s.takes(madeBytes) {
		return
	}
	s.made = append(s.made, m)
	switch n := len(s.made); {
	case n == linear+1:
		if s.index == nil {
			s.index = make(map[string]int)
		}
		for i := range s.made {
			s.index[s.made[i].name] = i
		}
	case n > linear:
		s.index[m.name] = n - 1
	}
}

// get returns the value of a label by its name in the query; nil and false if the record has none.
func (s *state) get(r *ref) ([]byte, bool) {
	switch r.kind {
	case refError:
		return []byte(s.failure), s.failure != ""
	case refDetails:
		return []byte(s.details), s.details != ""
	}
	if len(s.made) > 0 {
		if i := s.find(r.name); i >= 0 {
			if s.made[i].gone {
				return nil, false
			}
			return s.made[i].value, true
		}
	}
	return s.shown(r)
}

// unmade returns the value of a label that no stage made or removed.
func (s *state) unmade(r *ref) ([]byte, bool) {
	if len(s.made) > 0 && s.find(r.name) >= 0 {
		return nil, false
	}
	return s.shown(r)
}

// shown returns the value of a label of the record itself, if all stages that keep labels
// have kept it.
func (s *state) shown(r *ref) ([]byte, bool) {
	value, ok := s.own(r)
	for _, k := range s.kept {
		if ok {
			ok = k.keeps(r.name, value)
		}
	}
	if !ok {
		return nil, false
	}
	return value, true
}

// own returns the value of a label of the record itself.
func (s *state) own(r *ref) ([]byte, bool) {
	switch r.kind {
	case refService:
		return s.service, s.service != nil
	case refLevel:
		return levelNames[s.level], true
	case refTime:
		return s.head(len(`{"ts":"`))
	case refMsg:
		if s.msg == 0 {
			return nil, false
		}
		return s.unescaped(s.raw[s.msg:s.endOfMsg()]), true
	case refWord:
		if word, ok := s.word(); ok {
			return word, true
		}
	case refTaken:
		if value, ok := s.field(r.field, r.start); ok {
			return value, true
		}
		return s.field(r.name, nil)
	}
	return s.field(r.field, r.start)
}

// head returns the text of a string in the head of the line.
func (s *state) head(at int) ([]byte, bool) {
	if s.msg == 0 {
		return nil, false
	}
	return s.unescaped(s.raw[at : record.StringEnd(s.raw, at)-1]), true
}

// word returns the stored word of a level that is no known one.
func (s *state) word() ([]byte, bool) {
	if s.level != record.Other {
		return nil, false
	}
	word, ok := s.head(len(`{"ts":"2026-11-20T15:04:05.000000000Z","level":"`))
	return word, ok && len(word) > 0
}

// field returns the text of a field behind msg.
func (s *state) field(name string, start []byte) ([]byte, bool) {
	if s.msg == 0 || name == "" || s.over() {
		return nil, false
	}
	w := s.fields()
	if start != nil && !w.Skip(start) {
		return nil, false
	}
	value := findField(w, name, true, true)
	if value == nil {
		return nil, false
	}
	return s.textOf(value), true
}

// name returns a name as a string that is made once.
func (s *state) name(b []byte) string {
	if name, ok := s.names[string(b)]; ok {
		return name
	}
	if !s.takes(len(b) + madeBytes) {
		return ""
	}
	name := string(b)
	s.names[name] = name
	return name
}

// streamHas reports whether a label of the stream has a name.
func (s *state) streamHas(name []byte) bool {
	for _, r := range s.streams {
		if r.name == string(name) {
			_, ok := s.own(r)
			return ok
		}
	}
	return false
}

// extract sets a label that a parser found, unless one had it before. Only its value is kept: of
// JSON its text.
func (s *state) extract(name, value []byte, isJSON bool) (set bool) {
	return s.extractName(s.name(name), value, isJSON)
}

// extractAs is extract for a name that a query has. If a label of the stream has it, the label is
// another one.
func (s *state) extractAs(name string, value []byte, isJSON bool) {
	for _, r := range s.streams {
		if r.name == name {
			if _, ok := s.own(r); ok {
				name += extracted
			}
			break
		}
	}
	s.extractName(name, value, isJSON)
}

func (s *state) extractName(name string, value []byte, isJSON bool) (set bool) {
	if i := s.find(name); i >= 0 && s.made[i].parsed && !s.made[i].gone {
		return false
	}
	if isJSON {
		value = s.textOf(value)
	}
	s.put(made{name: name, value: value, parsed: true})
	return true
}

// remove removes a label.
func (s *state) remove(name string) {
	if i := s.find(name); i >= 0 {
		s.made[i].gone = true
		return
	}
	s.put(made{name: name, gone: true})
	for _, other := range [...]string{nameLevel, nameDetected, nameService, nameServiceName} {
		if same(name, other) && s.find(other) < 0 {
			s.put(made{name: other, gone: true})
		}
	}
}

// fail sets __error__.
func (s *state) fail(name, details string) { s.failure, s.details = name, details }

// levelNames are the values of the label detected_level, which Grafana knows.
var levelNames = [record.NumLevels][]byte{
	[]byte("trace"), []byte("debug"), []byte("info"), []byte("warn"), []byte("error"), []byte("critical"), []byte("unknown"),
}

// LevelName is the value of the label detected_level: the word of the level, or "unknown".
func LevelName(l record.Level) string { return string(levelNames[min(l, record.Other)]) }
