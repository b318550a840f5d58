package rules

import (
	"bytes"
	"strconv"

	"blobtail/record"
)

// cutEnd is how many bytes are taken off the end of a rejected record that was cut there: the
// beginning of a secret may be in them, and the rest of it is not there for a pattern.
const cutEnd = 4 << 10

// rejected appends a line of the service _rejected with masks to dst; ok is false if it stays
// as it is. Its message is the original bytes of a record that could not be read. So
// patterns apply to all of it, as it is and with its escapes decoded. The value of a field
// cannot be found in it: from the first place that has the field's name on, it is masked.
func (w *rewriter) rejected(dst, line []byte, masks []mask) (_ []byte, ok bool, err error) {
	start, found := record.LineMsg(line)
	end := record.StringEnd(line, start) - 1
	if !found || end < 0 {
		return dst, false, errLine
	}
	text, hits := rawMasked(record.AppendUnescaped(nil, line[start:end]), masks)
	cut := wasCut(line)
	if cut {
		text = record.CutText(text, max(0, len(text)-cutEnd))
	}
	if ok = cut || hits != 0; ok {
		head := record.AppendEscaped(bytes.Clone(line[:start]), text)
		line = append(head, line[end:]...)
	}
	// The other fields may quote the record: the reason has names of its fields.
	w.raw = true
	defer func() { w.raw = false }()
	masked, more, err := w.mask(dst, line, patterns(masks))
	w.hits |= hits
	if ok && !more && err == nil {
		masked = append(dst, line...)
	}
	return masked, ok || more, err
}

// wasCut reports whether a rejected record was longer than its message.
func wasCut(line []byte) bool {
	size, _ := record.Lookup(line, "bytes")
	n, err := strconv.Atoi(string(size))
	return err == nil && n > record.MaxRejected
}

// patterns returns the masks that find their texts by themselves, for all values.
func patterns(masks []mask) (all []mask) {
	for _, m := range masks {
		if m.find != nil {
			m.field = nil
			all = append(all, m)
		}
	}
	return all
}

// rawMasked masks the text of a record that could not be read. It returns the rules with an
// effect.
func rawMasked(text []byte, masks []mask) (_ []byte, hits uint64) {
	text, hits = maskedOnce(text, masks)
	if bytes.IndexByte(text, '\\') >= 0 {
		plain, more := maskedOnce(record.AppendUnescaped(nil, text), masks)
		if more != 0 {
			return plain, hits | more
		}
	}
	return text, hits
}

func maskedOnce(text []byte, masks []mask) (_ []byte, hits uint64) {
	for i := range masks {
		m := &masks[i]
		if m.find != nil {
			next, ok := m.find.replace(text)
			if text = next; ok {
				hits |= 1 << m.rule
			}
		} else if at := bytes.Index(inLowerCase(text), m.hint); at >= 0 {
			text = append(bytes.Clone(text[:at]), m.with...)
			hits |= 1 << m.rule
		}
	}
	return text, hits
}

// inLowerCase returns a copy of a text with its ASCII letters in lower case. All places stay.
func inLowerCase(text []byte) []byte {
	text = bytes.Clone(text)
	lower(text)
	return text
}

// lower changes the ASCII letters of a text to lower case.
func lower(text []byte) {
	for i, c := range text {
		if c >= 'A' && c <= 'Z' {
			text[i] = c | 0x20
		}
	}
}
