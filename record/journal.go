package record

import "bytes"

// spreadJournal scans a record of journald again if its fields have arrays: journalctl -o json writes a
// value with bytes that it cannot print as an array of numbers, and the values of a field that an entry
// has several times as an array of these. The first become texts, the others fields with one name.
func spreadJournal(p *Parser) {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
	var fixed []byte
	from := int32(0)
	for i := range p.fields {
		f := &p.fields[i]
		if p.src[f.val] != '[' || len(bytes.Trim(p.src[f.key:f.keyEnd], letters)) > 0 {
			continue
		}
		if all, ok := appendValues(append(fixed, p.src[from:f.key-1]...), p.src[f.key-1:f.val], p.src[f.val:f.valEnd]); ok {
			fixed, from = all, f.valEnd
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

// appendValues appends a field for each value of an array; ok is false if one is no text and no bytes.
func appendValues(dst, key, array []byte) (all []byte, ok bool) {
	if text := bytesText(array); text != nil {
		return append(append(dst, key...), text...), true
	}
	for w := Walk(array); ; {
		v, more := w.Element()
		switch {
		case !more:
			return dst, ok
		case v[0] == '[':
			v = bytesText(v)
		case v[0] != '"' && v[0] != 'n':
			v = nil
		}
		if v == nil {
			return dst, false
		}
		if ok {
			dst = append(dst, ',')
		}
		dst, ok = append(append(dst, key...), v...), true
	}
}

// bytesText returns an array of bytes as a string of JSON, nil if it is none.
func bytesText(array []byte) (text []byte) {
	if raw := Walk(array).Bytes(); raw != nil {
		text = append(AppendEscaped([]byte{'"'}, raw), '"')
	}
	return text
}
