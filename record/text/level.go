package text

import (
	"bytes"
	"strconv"

	"blobtail/record/times"
)

// Reach is how many bytes behind the time may have a level.
const Reach = 160

// lineLevel returns the level of a line with its time.
func lineLevel(r *times.Reader, line []byte) []byte {
	var at Stamp
	at.Read(r, line)
	return Level(r, at.Rest, len(at.Rest) < len(line))
}

// withoutColours returns the beginning of a line without the codes of colours, or the line
// itself if it has none there.
func withoutColours(line []byte) []byte {
	const reach = 4 * Reach
	head := line[:min(len(line), reach)]
	if plain := Uncoloured(head); len(plain) < len(head) {
		return plain
	}
	return line
}

// Level finds the level of a line of text. It returns a part of the line, or a word for
// it, or nil. rest is the line behind its time, if timed.
//
// A word is a level only where loggers write one, because sentences have such words too:
// a pair of logfmt; the mark of a Cisco device or of Redis; the number of syslog or the letter of
// glog at the beginning; a word in brackets or before a colon, in any case; a word in upper case, or
// in any case right behind a time. Names in brackets, numbers and words before ":" or "|" may stand
// before it. Behind a time so may other words, before one in upper case.
func Level(r *times.Reader, rest []byte, timed bool) []byte {
	rest = withoutColours(rest)
	if timed {
		if _, line, _, ok := Stream(rest); ok && len(line) > 0 {
			return lineLevel(r, line)
		}
	}
	if word, ok := logfmtLevel(rest); ok {
		return word
	}
	if word, ok := priority(rest[SkipBlanks(rest, 0):]); ok {
		return word
	}
	if word := Uncaught(rest); word != nil {
		return word
	}
	if word := formLevel(rest, timed); word != nil || timed && len(rest) > 1 && rest[0] == ',' && rest[1] != ' ' { // of columns
		return word
	}
	s := levelScan{rest: rest[:min(len(rest), Reach)], behind: timed, names: -1}
	if timed {
		s.names = levelNames
	}
	for range levelWords {
		word, done := s.next()
		if word != nil {
			return word
		}
		if done {
			break
		}
	}
	if timed || len(rest) > len("Nov 20 15:04:05") && IsCalendar(rest[:3]) {
		return tagged(rest)
	}
	return nil
}

// priority returns the level of the priority of syslog that a line begins with, perhaps behind
// the number of its bytes: the last of its eight. ok is false if it has none.
func priority(line []byte) (level []byte, ok bool) {
	if len(line) == 0 || line[0] != '<' && !IsDigit(line[0]) {
		return nil, false
	}
	at := bytes.IndexByte(line[:min(len(line), len("123456 <"))], '<')
	if at < 0 || at > 0 && (line[at-1] != ' ' || !allDigits(line[:at-1])) {
		return nil, false
	}
	line = line[at+1:]
	digits, _, ok := bytes.Cut(line[:min(len(line), 4)], []byte(">"))
	n, err := strconv.ParseUint(string(digits), 10, 8)
	if err != nil || n > 191 {
		return nil, ok && len(digits) > 0
	}
	return []byte{'0' + byte(n%8)}, ok
}

// crashes are the forms of lines that a runtime writes when a program ends.
var crashes = table{
	'P': {
		{signs: "PHP Fatal error:", level: "critical", line: "PHP Fatal error:  text"},
		{signs: "PHP Parse error:", level: "critical", line: "PHP Parse error:  text"},
		{signs: "PHP Recoverable fatal error:", level: "error", line: "PHP Recoverable fatal error:  text"},
		{signs: "PHP Warning:", level: "warn", line: "PHP Warning:  text"},
		{signs: "PHP Notice:", level: "info", line: "PHP Notice:  text"},
		{signs: "PHP Deprecated:", level: "info", line: "PHP Deprecated:  text"},
	},
	'E': {{signs: "Exception in thread ", level: "error", line: `Exception in thread "main" text`}}, // Java
	'T': {{signs: "Traceback (most recent call last):", level: "error", line: "Traceback (most recent call last):"}},
	'U': {
		{signs: "Unhandled exception", level: "error", line: "Unhandled exception. text"}, // .NET
		{signs: "Uncaught ", level: "error", line: "Uncaught Error: text"},                // JavaScript
	},
	'F': {{signs: "Fatal error: ", level: "critical", line: "Fatal error: Uncaught TypeError: text"}}, // PHP, Swift, OCaml
	'f': {{signs: "fatal error: ", level: "critical", line: "fatal error: text"}},                     // Go
	't': { // Rust
		{signs: "thread '*' panicked at ", level: "error", line: "thread 'main' panicked at x.rs:1:2:"},
		{signs: "thread '*' (&) panicked at ", level: "error", line: "thread 'main' (812) panicked at x.rs:1:2:"},
		{signs: "thread '*' has overflowed its stack", level: "error", line: "thread 'main' has overflowed its stack"},
		{signs: "thread '*' (&) has overflowed its stack", level: "error", line: "thread 'main' (812) has overflowed its stack"},
	},
}

// Uncaught returns the level of a line that a runtime writes when a program ends, or PHP at any time.
func Uncaught(line []byte) []byte {
	s := behindTime(line)
	if len(s) < 4 || !mayStart(s) {
		return nil
	}
	if f, _, _ := crashes.of(s[0], s); f != nil && (len(s) == len(line) || f.signs[0] == 'P') {
		return []byte(f.level)
	}
	return nil
}

// Stream reads the head of CRI behind its time: the stream, F or P, and behind a blank the text of the
// container. final says that the line is the last part of a line of the program.
func Stream(head []byte) (stream, text []byte, final, ok bool) {
	const stdout, stderr = " stdout ", " stderr "
	if len(head) <= len(stdout) || string(head[:len(stdout)]) != stdout && string(head[:len(stderr)]) != stderr {
		return nil, nil, false, false
	}
	final, text = head[len(stdout)] == 'F', head[len(stdout)+1:]
	ok = (final || head[len(stdout)] == 'P') && (len(text) == 0 || text[0] == ' ')
	return head[1:len(" stdout")], bytes.TrimPrefix(text, []byte(" ")), final, ok
}
