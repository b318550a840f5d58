package meaning

import (
	"bytes"

	"blobtail/record"
)

// spreadJournal scans a record of journald again if its fields have arrays: journalctl -o json writes a
// value with bytes that it cannot print as an array of numbers, and the values of a field that an entry
// has several times as an array of these. The first become texts, the others fields with one name.
func (p *Reader) spreadJournal() {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
	var fixed []byte
	from := int32(0)
	for i := range p.Fields {
		f := &p.Fields[i]
		if p.Src[f.Val] != '[' || len(bytes.Trim(p.Src[f.Key:f.KeyEnd], letters)) > 0 {
			continue
		}
		if all, ok := appendValues(append(fixed, p.Src[from:f.Key-1]...), p.Src[f.Key-1:f.Val], p.Value(f)); ok {
			fixed, from = all, f.ValEnd
		}
	}
	if from == 0 || len(fixed)+len(p.Src)-int(from) > record.MaxRecord {
		return
	}
	fixed = append(fixed, p.Src[from:]...)
	_, _ = p.Scanner.Scan(fixed) // it is as valid as before
}

// appendValues appends a field for each value of an array; ok is false if one is no text and no bytes.
func appendValues(dst, key, array []byte) (all []byte, ok bool) {
	if text := bytesText(array); text != nil {
		return append(append(dst, key...), text...), true
	}
	for w := record.Walk(array); ; {
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
	if raw := record.Walk(array).Bytes(); raw != nil {
		text = append(record.AppendEscaped([]byte{'"'}, raw), '"')
	}
	return text
}
