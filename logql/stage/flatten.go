package stage

import (
	"slices"

	"blobtail/record"
)

// addFields adds the fields of the record, each under its flattened name. The first of several
// with one name counts.
func (s *state) addFields() {
	if s.msg == 0 {
		return
	}
	from := len(s.all)
	if word, ok := s.word(); ok {
		s.all = append(s.all, pair{nameLevel + extracted, word})
	}
	s.fieldSink = fieldSink{s: s, from: from, seen: s.fieldSink.seen}
	clear(s.fieldSink.seen)
	w := s.fields()
	s.spare, _ = flatten(&w, s.spare[:0], 0, &s.fieldSink)
	if len(s.made)+len(s.kept) > 0 {
		own := slices.DeleteFunc(s.all[from:], func(p pair) bool { return s.hidden(p.name, p.value) })
		s.all = s.all[:from+len(own)]
	}
}

// hidden reports whether a stage has made or removed a label of the name of one that the record
// has itself.
func (s *state) hidden(name string, value []byte) bool {
	if s.over() || len(s.made) > 0 && s.find(name) >= 0 {
		return true
	}
	for _, k := range s.kept {
		if !k.keeps(name, value) {
			return true
		}
	}
	return false
}

// fields is a walker before the first field behind msg.
func (s *state) fields() record.Walker {
	return record.Walk(s.raw[min(s.endOfMsg()+1, len(s.raw)):])
}

// fieldSink gathers the labels of a record that are fields.
type fieldSink struct {
	s    *state
	from int             // the first of the record in all
	seen map[string]bool // used when there are many
}

func (f *fieldSink) into([]byte) bool { return true }

func (f *fieldSink) field(name, value []byte) bool {
	if taken(string(name)) {
		name = append(name, extracted...)
	}
	if f.had(name) || f.s.streamHas(name) {
		return true
	}
	known := f.s.name(name)
	if !f.s.takes(labelBytes) {
		return false
	}
	if len(f.s.all)-f.from >= linear {
		f.seen[known] = true
	}
	f.s.all = append(f.s.all, pair{known, f.s.textOf(value)})
	return true
}

// had reports whether the record has a label of that name already.
func (f *fieldSink) had(name []byte) bool {
	own := f.s.all[f.from:]
	for i := range own[:min(len(own), linear)] {
		if own[i].name == string(name) {
			return true
		}
	}
	if len(own) >= linear && f.seen == nil {
		f.seen = map[string]bool{}
	}
	return f.seen[string(name)]
}

// A sink takes the members of an object.
type sink interface {
	// into reports whether the sink wants the members of an object. Their names have a prefix.
	into(prefix []byte) bool
	// field takes a member that is neither an object nor null, and reports whether it wants
	// more. The name is valid until it returns, and may be appended to.
	field(name, value []byte) bool
}

// flatten hands the members of an object to a sink, under their flattened names. buf is memory:
// its first at bytes are a prefix of the names. It returns that memory. It goes through the object
// once, however deep it is.
func flatten(w *record.Walker, buf []byte, at int, to sink) (memory []byte, more bool) {
	for {
		key, place := w.Key()
		if place < 0 {
			return buf, true
		}
		wanted := len(key) > 0
		if wanted {
			buf = appendName(buf[:at], key, at == 0)
			wanted = len(buf) <= maxName
		}
		if wanted && w.First(place) == '{' {
			if buf = append(buf, '_'); to.into(buf) {
				w.Enter(place)
				if buf, more = flatten(w, buf, len(buf), to); !more || !w.Leave() {
					return buf, false
				}
				continue
			}
			wanted = false
		}
		value, ok := w.Value(place)
		if !ok || wanted && value[0] != 'n' && !to.field(buf, value) {
			return buf, false
		}
	}
}
