package formats

import "bytes"

// masked stands for a signature, as in Azure's own logs.
const masked = "XXXXX"

// appendMasked appends a line to dst without the signatures of shared access (sig=…). Azure
// has replaced those of requests, and not those in other places, such as a referrer.
func appendMasked(dst, line []byte) []byte {
	from := 0                           // of the bytes that are not appended yet
	for i := 2; i < len(line); i += 3 { // one letter of each word of three is looked at
		at := i
		switch line[i] | 0x20 {
		case 's':
		case 'i':
			at = i - 1
		case 'g':
			at = i - 2
		default:
			continue
		}
		if at+3 > len(line) || line[at]|0x20 != 's' || line[at+1]|0x20 != 'i' || line[at+2]|0x20 != 'g' {
			continue
		}
		if begin, end := signature(line, at); begin > 0 {
			dst = append(append(dst, line[from:begin]...), masked...)
			from, i = end, end-1
		}
	}
	return append(dst, line[from:]...)
}

// signature returns the value of a parameter sig whose name is at a place, also in a part of
// an address that was escaped once or more often. begin is 0 if this is no such parameter.
func signature(line []byte, at int) (begin, end int) {
	if at > 0 && isAlnum(line[at-1]) && !endsEscape(line[:at], "26", "3f") {
		return 0, 0
	}
	begin = at + len("sig")
	if n := escapeLen(line[begin:], "3d"); n > 0 {
		begin += n
	} else if begin < len(line) && line[begin] == '=' {
		begin++
	} else {
		return 0, 0
	}
	for end = begin; end < len(line) && inSignature(line[end]); end++ {
		if escapeLen(line[end:], "26") > 0 {
			break
		}
	}
	if begin == end {
		return 0, 0
	}
	return begin, end
}

// escapeLen returns the length of an escaped byte at the start of text: %3d, or %253d if it
// was escaped twice; 0 if there is none.
func escapeLen(text []byte, code string) int {
	if len(text) == 0 || text[0] != '%' {
		return 0
	}
	n := 1
	for len(text) >= n+2 && string(text[n:n+2]) == "25" {
		n += 2
	}
	if len(text) < n+2 || !bytes.EqualFold(text[n:n+2], []byte(code)) {
		return 0
	}
	return n + 2
}

// endsEscape reports whether a text ends in one of some escaped bytes.
func endsEscape(text []byte, codes ...string) bool {
	at := bytes.LastIndexByte(text, '%')
	if at < 0 {
		return false
	}
	for _, code := range codes {
		if escapeLen(text[at:], code) == len(text)-at {
			return true
		}
	}
	return false
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// inSignature reports whether a byte may be in a signature: base64, escaped or not.
func inSignature(c byte) bool { return isAlnum(c) || bytes.IndexByte([]byte("%+/=_~.-"), c) >= 0 }
