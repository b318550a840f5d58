package stage

// metadata appends the fields of the record, each under its flattened name. The first of
// several with one name counts.
func (s *state) metadata(dst []Label) []Label {
	if word, ok := s.word(); ok {
		dst = s.appendOwn(dst, nameLevel+extracted, word)
	}
	if s.msg == 0 {
		return dst
	}
	all := &ownFields{s: s, labels: dst, seen: map[string]bool{}}
	s.spare = flatten(s.fields(), s.spare[:0], 0, all)
	return all.labels
}

// fields is a cursor before the first field behind msg.
func (s *state) fields() cursor {
	return cursor{b: s.raw[min(s.endOfMsg()+1, len(s.raw)):]}
}

// ownFields gathers the labels of a record that are fields.
type ownFields struct {
	s      *state
	labels []Label
	seen   map[string]bool
}

func (f *ownFields) into([]byte) bool { return true }

func (f *ownFields) field(name, value []byte) bool {
	if taken(string(name)) {
		name = append(name, extracted...)
	}
	if f.seen[string(name)] || f.s.streamHas(name) {
		return true
	}
	known := f.s.name(name)
	f.seen[known] = true
	f.labels = f.s.appendOwn(f.labels, known, f.s.textOf(value))
	return true
}

// appendOwn appends a label of the record, unless a stage has made or removed one of its name.
func (s *state) appendOwn(dst []Label, name string, value []byte) []Label {
	if len(s.made) > 0 && s.find(name) >= 0 {
		return dst
	}
	for _, k := range s.kept {
		if !k.keeps(name, value) {
			return dst
		}
	}
	return append(dst, Label{name, string(value)})
}

// A sink takes the members of an object.
type sink interface {
	// into reports whether the members of an object are wanted, whose names have a prefix.
	into(prefix []byte) bool
	// field takes a member that is neither an object nor null, and reports whether it wants
	// more. The name is valid until it returns, and may be appended to.
	field(name, value []byte) bool
}

// flatten hands the members of an object to a sink, under their flattened names. buf is memory,
// of which the first at bytes are a prefix of the names. It returns that memory.
func flatten(c cursor, buf []byte, at int, to sink) []byte {
	for {
		key, value, ok := c.member()
		if !ok {
			return buf
		}
		if len(key) == 0 || value[0] == 'n' {
			continue
		}
		buf = appendName(buf[:at], key, at == 0)
		switch {
		case len(buf) > maxName:
		case value[0] != '{':
			if !to.field(buf, value) {
				return buf
			}
		default:
			if buf = append(buf, '_'); to.into(buf) {
				buf = flatten(cursor{b: value}, buf, len(buf), to)
			}
		}
	}
}
