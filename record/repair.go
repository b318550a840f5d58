package record

import "bytes"

// repairable reports whether an error of a scan may be one that [repair] mends.
func repairable(src []byte, bad *RejectError) bool {
	if !bad.Syntax || bad.Offset >= len(src) {
		return false
	}
	c := src[bad.Offset]
	return c == 'N' || c == 'I' || c < ' ' && c != '\n' && c != '\r'
}

// scanRepaired scans the object that src begins with, as [repair] has mended it. n is the length of
// that, and read of the object in src; 0: it cannot be mended.
func (p *Scanner) scanRepaired(src []byte) (n, read int) {
	if p.repaired, read = repair(p.repaired[:0], src); read == 0 {
		return 0, 0
	}
	p.reset()
	n, bad := p.scanObject(p.repaired)
	if bad != nil {
		return 0, 0
	}
	return n, read
}

// repair appends the object that src begins with, in valid JSON: NaN, Infinity and -Infinity of
// Python and Go become texts, and control characters in strings get escapes, as programs write them
// that make JSON by hand. n is the length of the object in src, 0 if it does not end in its line: so a
// string that was cut takes no other line, and a body is read once.
func repair(dst, src []byte) (fixed []byte, n int) {
	depth, quoted := 0, false
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case quoted && c == '\\' && i+1 < len(src):
			dst = append(dst, c, src[i+1])
			i++
			continue
		case c == '"':
			quoted = !quoted
		case c == '\n', quoted && c == '\r':
			return dst, 0
		case quoted && c < ' ':
			dst = appendByte(dst, c)
			continue
		case quoted:
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			if depth--; depth == 0 {
				return append(dst, c), i + 1
			}
		case c == 'N', c == 'I', c == '-':
			if word := notANumber(src[i:]); word != "" {
				dst = append(append(append(dst, '"'), word...), '"')
				i += len(word) - 1
				continue
			}
		}
		dst = append(dst, c)
	}
	return dst, 0
}

// notANumber returns the word for a number that JSON cannot express, if src begins with one.
func notANumber(src []byte) string {
	for _, word := range [...]string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(src, []byte(word)) {
			return word
		}
	}
	return ""
}
