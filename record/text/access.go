package text

import (
	"bytes"

	"blobtail/record/times"
)

// IsHead reports whether a text is nothing but what loggers write in front of a record: names before
// a bar, brackets, the priority of syslog.
func IsHead(s []byte) bool {
	for at := SkipColours(s, 0); at < len(s); {
		n := 0
		if c := s[at]; c == '[' || c == '(' || c == '<' {
			_, n, _ = marks.find(s[at:])
		} else {
			n, _ = prefixOf(s[at:])
		}
		if n == 0 {
			return false
		}
		at = SkipBlanks(s, at+n)
	}
	return true
}

// isAccess reports whether a time in brackets stands in the line of a server of requests, and not in a
// Sentence. Before it is an address, and no word but that of the user behind a dash; or behind it is
// the request or an address, and before it an address, a dash or the number of an owner.
func isAccess(before, behind []byte) bool {
	if len(before) > 0 && IsDigit(before[0]) && bytes.HasPrefix(behind, []byte(`] "`)) && bytes.Contains(before, []byte(" -")) {
		return true // as nearly all
	}
	address, dash, prose, first := false, false, false, []byte(nil)
	for word := range bytes.FieldsSeq(before) {
		dash, address = dash || string(word) == "-", address || isAddress(word)
		prose = prose || first != nil && !dash && all(word, isLetter)
		if first == nil {
			first = word
		}
	}
	if address && !prose {
		return true
	}
	method, path, _ := bytes.Cut(bytes.TrimLeft(behind, "] "), []byte(" "))
	switch quoted := bytes.TrimPrefix(method, []byte{'"'}); {
	case isAddress(method):
		return hasDigit(first)
	case len(quoted) < len(method):
		return (address || dash) && (allUpper(quoted) || bytes.HasPrefix(quoted, []byte{'-'}) || bytes.HasPrefix(quoted, []byte{'\\'}))
	}
	return (address || dash) && allUpper(method) && bytes.HasPrefix(path, []byte("/"))
}

// isAddress reports whether a word may be an address: it has a digit, and a dot or a colon.
func isAddress(word []byte) bool { return hasDigit(word) && bytes.ContainsAny(word, ".:") }

// accessTime finds the time of an access log: a date with slashes or of ctime, in brackets or,
// behind an address, without.
//
//	192.0.2.1 - - [20/Nov/2026:15:04:05 +0100] "GET / HTTP/1.1" 200 12    nginx, Apache, Traefik
//	192.0.2.1 - 20/Nov/2026:15:04:05 +0100 "GET / HTTP/1.1" 200           PHP-FPM
func (t *Stamp) accessTime(r *times.Reader, line []byte, from int) bool {
	line = line[from:]
	head := line[:min(len(line), longestHead)]
	mark := byte('[')
	if len(line) > 0 && IsDigit(line[0]) && bytes.IndexByte(head, mark) < 0 {
		mark = ' '
	}
	for at := 0; at < len(head); at++ {
		n := bytes.IndexByte(head[at:], mark)
		if n < 0 {
			break
		}
		if at += n; at+4 >= len(line) || line[at+3] != '/' && (line[at+4] != ' ' || line[at+1]-'A' >= 26) {
			continue
		}
		if bytes.IndexByte(head[:at], '"') >= 0 { // the text of somebody
			break
		}
		if ns, n := r.Prefix(line[at+1:]); n > 0 {
			t.Text, t.NS, t.Head = line[at+1:at+1+n], ns, isAccess(line[:at], line[at+1+n:])
			return true
		}
	}
	return false
}
