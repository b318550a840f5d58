package record

import "strconv"

// journalctl -o json writes a value with bytes that it cannot print as an array of numbers, and the
// values of a field that an entry has several times as an array.

// spreadJournal makes texts of the arrays of bytes in a record of journald, and fields of the values
// of an array, and scans the result. The record stays as it is if it has no such array.
func (p *Parser) spreadJournal() {
	var fixed []byte
	from := int32(0)
	for i := range p.fields {
		f := &p.fields[i]
		if p.src[f.val] != '[' || f.flags&keyDirty != 0 || !isJournalName(p.src[f.key:f.keyEnd]) {
			continue
		}
		if values := p.journalValues(f); values != nil {
			fixed = append(append(fixed, p.src[from:f.key-1]...), values...)
			from = f.valEnd
		}
	}
	if from == 0 || len(fixed)+len(p.src)-int(from) > MaxRecord {
		return
	}
	fixed = append(fixed, p.src[from:]...)
	p.reset()
	p.src, p.repaired = fixed, fixed
	_, _ = p.scanObject(fixed) // it is as valid as before
}

// journalValues returns a field with an array as a field of each value; nil if a value is no text and
// no bytes.
func (p *Parser) journalValues(f *field) (fields []byte) {
	key, array := p.src[f.key-1:f.val], p.src[f.val:f.valEnd]
	if text, ok := p.journalBytes(array); ok {
		return append(append(fields, key...), text...)
	}
	for w := Walk(array); ; {
		v, ok := w.Element()
		switch {
		case !ok:
			return fields
		case v[0] == '[':
			if v, ok = p.journalBytes(v); !ok {
				return nil
			}
		case v[0] != '"' && v[0] != 'n':
			return nil
		}
		if fields != nil {
			fields = append(fields, ',')
		}
		fields = append(append(fields, key...), v...)
	}
}

// journalBytes returns an array of bytes as a string of JSON. ok is false if it is none.
func (p *Parser) journalBytes(array []byte) (text []byte, ok bool) {
	p.scratch = p.scratch[:0]
	for w := Walk(array); ; {
		v, more := w.Element()
		if !more {
			break
		}
		n, err := strconv.ParseUint(string(v), 10, 8)
		if err != nil {
			return nil, false
		}
		p.scratch = append(p.scratch, byte(n))
	}
	text = AppendEscaped([]byte{'"'}, p.scratch)
	return append(text, '"'), len(p.scratch) > 0
}

// isJournalName reports whether a field has a name of journald: letters in upper case, digits and _.
func isJournalName(key []byte) bool {
	for _, c := range key {
		if c-'A' >= 26 && !isDigit(c) && c != '_' {
			return false
		}
	}
	return len(key) > 0
}
