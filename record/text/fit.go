package text

import "bytes"

// fit returns how many bytes of s have a form, from its first byte on, with the first name and the
// letter in them; 0 if they have it not. Codes of colours may stand anywhere between its parts, and
// a blank at its end may lack at the end of the line. The signs of a form are:
//
//	9 a digit      & digits         @ a clock, 15:04:05
//	^ a letter     ~ a name         ! the name of a pod, with the letters that Kubernetes adds
//	_ blanks, perhaps none          * any text up to the byte behind the sign
//	> a digit follows, which is no part of the form
//
// All other bytes stand for themselves.
func fit(form string, s []byte) (n int, name, letter []byte) {
	for i := 0; i < len(form); i++ {
		if s[min(n, len(s)-1)] == '\x1b' {
			n = skipCodes(s, n)
		}
		from := n
		switch c := form[i]; c {
		case '_':
			n = SkipBlanks(s, n)
			continue
		case '9', '&':
			for n < len(s) && IsDigit(s[n]) && (c == '&' || n == from) {
				n++
			}
		case '@':
			if n+8 <= len(s) && isClock(s[n:n+2], s[n+2:]) {
				for n += 8; n < len(s) && (IsDigit(s[n]) || s[n] == '.' || s[n] == ','); n++ {
				}
			}
		case '^':
			if n < len(s) && s[n]-'A' < 26 {
				letter = s[n : n+1]
				n++
			}
		case '>':
			if n < len(s) && IsDigit(s[n]) {
				return n, name, letter
			}
		case '~', '!':
			for n < len(s) && IsNameByte(s[n]) {
				n++
			}
			if c == '!' && !isPod(s[from:n]) {
				return 0, nil, nil
			}
			if name == nil {
				name = s[from:n]
			}
		case '*':
			n += max(0, bytes.IndexByte(s[n:min(len(s), n+longestMark)], form[i+1]))
		default:
			if n < len(s) && s[n] == c {
				n++
			} else if c == ' ' && n == len(s) && i == len(form)-1 {
				return n, name, letter
			}
		}
		if n == from {
			return 0, nil, nil
		}
	}
	if s[0] == '\x1b' && (bytes.HasPrefix(s[n:], []byte("\x1b[0m")) || bytes.HasPrefix(s[n:], []byte("\x1b[39m"))) {
		n += bytes.IndexByte(s[n:], 'm') + 1 // the end of its colour
	}
	return n, name, letter
}

// isPod reports whether a name ends as that of a pod of a deployment or a job does:
// web-7d4b9c6f5d-x2x9z, job-29412060-x2x9z.
func isPod(name []byte) bool {
	const safe, last = "bcdfghjklmnpqrstvwxz2456789", 5
	n := len(name) - last - 1
	if n < 8 || name[n] != '-' {
		return false
	}
	hash := name[bytes.LastIndexByte(name[:n], '-')+1 : n]
	return len(hash) >= 8 && len(hash) <= 10 && len(hash) < n && len(bytes.Trim(name[n+1:], safe)) == 0 &&
		(AllDigits(hash) || len(bytes.Trim(hash, safe)) == 0)
}
