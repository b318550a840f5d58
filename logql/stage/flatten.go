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
	seen := map[string]bool{}
	rest := s.raw[min(s.endOfMsg()+1, len(s.raw)):]
	flatten(cursor{b: rest}, s.spare[:0], func(name, value []byte) {
		if taken(string(name)) {
			name = append(name, extracted...)
		}
		if seen[string(name)] || s.streamHas(name) {
			return
		}
		known := s.name(name)
		seen[known] = true
		dst = s.appendOwn(dst, known, s.textOf(value))
	})
	return dst
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

// flatten calls emit for each member of an object that is neither an object nor null, with its
// flattened name behind a prefix. The name is valid until emit returns, which may append to it.
func flatten(c cursor, prefix []byte, emit func(name, value []byte)) {
	at := len(prefix)
	for {
		key, value, ok := c.member()
		if !ok {
			return
		}
		if len(key) == 0 || value[0] == 'n' {
			continue
		}
		name := appendName(prefix[:at], key, at == 0)
		switch {
		case len(name) > maxName:
		case value[0] == '{':
			flatten(cursor{b: value}, append(name, '_'), emit)
		default:
			emit(name, value)
		}
		prefix = name
	}
}
