package text

import (
	"bytes"

	"blobtail/record/times"
)

// longestMark is how many bytes the text in a bracket in front of a time may have.
const longestMark = 64

// marked finds a time behind the marks that [skipMark] knows.
func marked(r *times.Reader, line []byte) (text []byte, ns int64, ok bool) {
	const mostMarks = 5
	for at, n := 0, 0; n < mostMarks; n++ {
		next := skipMark(line, at)
		if next == at || next >= len(line) {
			break
		}
		if text, ns, ok = behindMark(r, line, at, next); ok {
			return text, ns, true
		}
		at = next
	}
	return nil, 0, false
}

// restBehind is the line behind its time, a part of it, or the whole line if the marks in front
// of the time say its level.
func restBehind(r *times.Reader, line, stamp []byte) []byte {
	at := cap(line) - cap(stamp)
	if line[0] == '<' || line[0] == '=' || headLetter(line) != nil || Level(r, line[:at], false) != nil {
		return line
	}
	return line[at+len(stamp):]
}

// skipMark skips one of the marks that loggers write in front of a time, with the blanks behind
// it, and returns the place behind them; at if there is none.
//
//	<34>Nov 20 15:04:05 web1 app: text              syslog
//	86 <40>1 2026-11-20T15:04:05Z web1 app - text   Heroku
//	<189>45: *Nov 20 15:04:05.257: text             Cisco
//	1:M 20 Nov 2026 15:04:05.123 * text             Redis
//	I, [2026-11-20T15:04:05.123456 #812]  INFO      Ruby
//	INFO  [main] 2026-11-20 15:04:05,123 text       log4j, Cassandra
//	[24214] 2026/11/20 15:04:05.319440 [INF] text   NATS, AWS Lambda
//	[E 261120 15:04:05 web:2239] text               Tornado, Jupyter
//	=ERROR REPORT==== 20-Nov-2026::15:04:05         Erlang
//	# Time: 2026-11-20T15:04:05.257312Z             MySQL, its log of slow queries
func skipMark(line []byte, at int) int {
	if at >= len(line) {
		return at
	}
	rest := line[at:]
	switch c := rest[0]; {
	case c == '<':
		n := 1
		for n < len(rest) && n < 5 && IsDigit(rest[n]) {
			n++
		}
		if n == 1 || n >= len(rest) || rest[n] != '>' {
			return at
		}
		if bytes.HasPrefix(rest[n:], []byte(">1 ")) {
			n += 2
		}
		return SkipBlanks(line, at+n+1)
	case at == 0 && isTornado(line):
		return len("[E ")
	case c == '[', c == '(':
		return skipBracket(line, at)
	case c == '*', c == '.':
		return at + 1
	case c == '#':
		return at + len(rest) - len(bytes.TrimPrefix(rest, []byte("# Time: ")))
	case c == '=':
		if n := bytes.Index(rest[:min(len(rest), longestMark)], []byte("==== ")); n > 0 {
			return at + n + len("==== ")
		}
	case IsDigit(c):
		return skipNumber(line, at)
	case c-'A' < 26:
		return skipUpper(line, at)
	case (c|0x20)-'a' < 26:
		return skipName(line, at)
	}
	return at
}

// skipBracket skips a text in brackets.
func skipBracket(line []byte, at int) int {
	closer := byte(']')
	if line[at] == '(' {
		closer = ')'
	}
	n := bytes.IndexByte(line[at:min(len(line), at+longestMark)], closer)
	if n < 0 {
		return at
	}
	return SkipBlanks(line, at+n+1)
}

// skipNumber skips the number of a message and its colon, as Cisco's devices write it; a process
// and its role, of Redis; a number of bytes before a priority of syslog; a number between
// a name and a dash, of Nest.
func skipNumber(line []byte, at int) int {
	n := at
	for n < len(line) && IsDigit(line[n]) {
		n++
	}
	switch rest := line[n:]; {
	case bytes.HasPrefix(rest, []byte(": ")):
		return SkipBlanks(line, n+1)
	case len(rest) > 2 && rest[0] == ':' && rest[1]-'A' < 26 && rest[2] == ' ':
		return n + 3
	case bytes.HasPrefix(rest, []byte(" <")):
		return n + 1
	case at > 0 && bytes.HasPrefix(rest, []byte("  - ")):
		return n + len("  - ")
	}
	return at
}

// skipUpper skips a word in upper case and blanks, and the letter of Ruby's Logger.
func skipUpper(line []byte, at int) int {
	n := at
	for n < len(line) && line[n]-'A' < 26 {
		n++
	}
	switch rest := line[n:]; {
	case n-at == 1 && bytes.HasPrefix(rest, []byte(", [")):
		return n + len(", [")
	case n-at >= 3 && len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t'):
		return SkipBlanks(line, n)
	case n-at >= 3 && len(rest) > 0 && rest[0] == '[': // EROR[11-20|10:00:06.257] of go-ethereum
		return n
	}
	return skipName(line, at)
}

// skipName skips the name of a host behind the number of a message, and the prefix of a logger of
// Go, if a time in Go's form follows.
func skipName(line []byte, at int) int {
	if at > 0 && line[0] != '<' {
		return at
	}
	n := at
	for n < len(line) && n-at < longestMark && (IsNameByte(line[n])) {
		n++
	}
	if n+2 >= len(line) || line[n] != ':' || line[n+1] != ' ' {
		return at
	}
	next := n + 2
	date := line[next:]
	if at > 0 && line[0] == '<' || len(date) > len("2026/11/20 15:04:05") && date[4] == '/' && date[7] == '/' {
		return next
	}
	return at
}

// behindMark reads the time behind a mark that goes from at to next.
func behindMark(r *times.Reader, line []byte, at, next int) (text []byte, ns int64, ok bool) {
	place := SkipColours(line, next)
	if place < len(line) && line[place] == '[' {
		place++
	}
	if place >= len(line) {
		return nil, 0, false
	}
	switch c := line[place]; {
	case IsDigit(c) && IsDigit(line[at]) && line[next-1] == ' ' && bytes.HasPrefix(line, []byte("[Nest] ")):
		american := *r
		american.MonthFirst = true
		ns, n := american.Prefix(line[place:])
		return line[place : place+n], ns, n > 0
	case c == 'd':
		if text, ns, ok := apart(r, line[place:]); ok {
			return text, ns, true
		}
	case IsDigit(c):
		if ns, n := seconds(line, place, r.Now); n > 0 {
			return line[place : place+n], ns, true
		}
		if ns, n := number(line[place:], false); n > 0 {
			return line[place : place+n], ns, true
		}
		if line[at]-'A' < 26 && len(line) > place+2 && line[place+2] == '-' { // of vLLM
			short := *r
			short.MonthDay = true
			ns, n := short.Prefix(line[place:])
			return line[place : place+n], ns, n > 0
		}
	}
	ns, n := r.Prefix(line[place:])
	return line[place : place+n], ns, n > 0
}
