package text

import (
	"bytes"
	"strings"

	"blobtail/record"
)

// The marks that a word needs to be a level of a text, as of [record.LookupWord].
const (
	noLevel, sure, rare, upper, note = 0, 's', 'r', 'u', 'n'
)

// levelMark is the mark of a word.
func levelMark(word []byte) byte {
	_, mark := record.LookupWord(word)
	return mark
}

const (
	levelWords = 12 // how many words may have a level
	// levelNames is how many words behind a time may stand before a level in upper case:
	// those of a host, a thread, a logger.
	levelNames = 3
)

// levelScan goes through the words of a line until one is a level, or none can be.
type levelScan struct {
	rest   []byte
	at     int
	behind bool // the next word is right behind a time
	names  int  // names that may come yet; less than 0: none, as no time came
	open   bool // a bracket is open
	// The word before is a month or a day of the week.
	calendar bool
}

// next returns the next word if it is a level. done says that there is nothing to look at
// behind it.
func (s *levelScan) next() (level []byte, done bool) {
	for ; s.at < len(s.rest) && !IsNameByte(s.rest[s.at]); s.at++ {
		if c := s.rest[s.at]; c == '[' || c == ']' {
			s.open = c == '['
		}
	}
	from := s.at
	for s.at < len(s.rest) && IsNameByte(s.rest[s.at]) {
		s.at++
	}
	if from == s.at {
		return nil, true
	}
	word, behind := s.rest[from:s.at], s.rest[s.at:]
	for n := len(word); n > 0 && (word[n-1] == '-' || word[n-1] == '.'); n-- {
		word = word[:n-1]
	}
	before, after := s.byteAt(from-1), s.byteAt(s.at)
	if string(word) == "PHP" && after == ' ' {
		return Uncaught(s.rest[from:]), true
	}
	if level := s.part(word, before, after); level != nil {
		return level, true
	}
	whole, close := word, after
	if word = s.withoutStep(word); len(word) < len(whole) && whole[len(word)] == '/' {
		close = ' '
	}
	isUpper, first := allUpper(word), s.names < 0 || s.names == levelNames // no name came
	marked := s.marked(word, before, after)
	alone := s.behind && ends(close) // right behind the time
	switch mark := levelMark(word); {
	case len(whole) < s.at-from, !first && !isUpper && !s.angled(from): // <Error>: of macOS
	case mark == sure && (marked || isUpper && ends(close) || alone),
		mark == rare && (marked || alone && isUpper || s.behind && before == ' ' && bytes.HasPrefix(behind, []byte(" \t"))), // of go-zero
		mark == upper && isUpper && (marked || alone),
		mark == note && before == '[' && after == ']':
		return word, true
	}
	return nil, !s.pass(whole, before, after)
}

// byteAt is the byte at a place, 0 for none.
func (s *levelScan) byteAt(at int) byte {
	if at < 0 || at >= len(s.rest) {
		return 0
	}
	return s.rest[at]
}

// marked reports whether a word has the marks of a level around it. In lower case a blank has to follow a
// colon, because keys and addresses have colons too.
func (s *levelScan) marked(word []byte, before, after byte) bool {
	switch after {
	case ':':
		next := s.byteAt(s.at + 1)
		return len(word) == 0 || isUpper(word[0]) || next <= ' ' || next == ':'
	case ']':
		return before == '[' || before == ':'
	case ' ':
		return before == '[' && s.byteAt(SkipBlanks(s.rest, s.at)) == ']' // [info ]
	}
	return after == ')' && before == '(' || after == '>' && before == '<'
}

// facilities are those of syslog.
const facilities = " kern user mail daemon auth syslog lpr news uucp cron authpriv ftp ntp security" +
	" local0 local1 local2 local3 local4 local5 local6 local7 "

// part returns the level that a part of a word is, by the marks in the word and around it.
//
//	%LINK-3-UPDOWN:          Cisco's devices
//	[I]   E [1149:main]      Beego, semantic_logger
//	E | rafthttp:            etcd
//	orders.INFO:             Monolog
//	[orders#info]            Twisted
//	[Server thread/WARN]     Minecraft
//	daemon.err               OpenWrt and BusyBox
//	*ERROR*                  Sling, the kernel's graphics
func (s *levelScan) part(word []byte, before, after byte) []byte {
	behind, ok := s.rest[s.at:], false
	switch {
	case len(word) == 0:
		return nil
	case word[0] == '%' && (after == ':' || bytes.HasPrefix(behind, []byte(" :"))):
		for i := 1; i+2 < len(word); i++ {
			if word[i] == '-' && word[i+1]-'0' < 8 && word[i+2] == '-' {
				return word[i+1 : i+2]
			}
		}
		return nil
	case len(word) == 1:
		if s.names >= 0 && before == '[' && after == ']' {
			ok = bytes.IndexByte([]byte("TDINWEFCV"), word[0]) >= 0 && s.placed()
		} else if s.behind && (bytes.HasPrefix(behind, []byte(" [")) || bytes.HasPrefix(behind, []byte(" | "))) {
			ok = bytes.IndexByte([]byte("TDINWEFC"), word[0]) >= 0
		}
		if !ok {
			return nil
		}
		return word
	case s.names < 0 && !s.behind && word[0] != '*':
		return nil
	}
	at := len(word) - 1
	for at > 0 && isLetter(word[at]) {
		at--
	}
	level := word[at+1:]
	switch word[at] {
	case '*':
		if at < len("*WARN") || word[0] != '*' {
			return nil
		}
		level = word[1:at]
		ok = at == len(word)-1 && allUpper(level)
	case '.':
		ok = at > 0 && (s.behind && after == ':' && allUpper(level) || s.names >= 0 && after == ' ' &&
			strings.Contains(facilities, " "+string(word[:at])+" "))
	case '#':
		ok = at > 0 && s.behind && before == '[' && after == ']'
	case '/':
		ok = at > 0 && s.names >= 0 && s.open && after == ']' && allUpper(level)
	}
	if !ok || levelMark(level) == noLevel {
		return nil
	}
	return level
}

// withoutStep returns the level in INFO+2 of slog, in DEBUG2 of PostgreSQL, and in
// WARNING/MainProcess of Celery behind its time; else the word.
func (s *levelScan) withoutStep(word []byte) []byte {
	n := 0
	for n < len(word) && (word[n]|0x20)-'a' < 26 {
		n++
	}
	if n < 3 || n == len(word) {
		return word
	}
	name, step, ok := word[:n], word[n+1:], false
	switch word[n] {
	case '+', '-':
		ok = len(step) <= 2 && allDigits(step)
	case '/':
		ok = s.behind && allUpper(name)
	default:
		ok = IsDigit(word[n]) && len(step) == 0 && (bytes.EqualFold(name, []byte("debug")) || bytes.EqualFold(name, []byte("trace")))
	}
	if ok {
		return name
	}
	return word
}

// pass reports whether a level may follow a word that is none. before and after are the
// bytes next to it.
func (s *levelScan) pass(word []byte, before, after byte) bool {
	begins := s.at == len(word)
	clock, calendar, plain := isClock(word, s.rest[s.at:]), s.calendar, len(word) == 0 || all(word, isPlain)
	if clock {
		s.at += len(":05:06") // with its minutes and seconds
		for s.at < len(s.rest) && (IsDigit(s.rest[s.at]) || s.rest[s.at] == '.' || s.rest[s.at] == ',') {
			s.at++
		}
		s.names = levelNames
	}
	behind := s.rest[s.at:]
	// A word without a byte of ASCII that begins the line is an emoji or another sign of a level, which stands next.
	foreign := begins && all(word, isHigh)
	sign := foreign && bytes.HasPrefix(behind, []byte("  "))
	s.behind, s.calendar = clock || s.behind && plain || sign, IsCalendar(word) || calendar && allDigits(word)
	called := bytes.HasPrefix(behind, []byte("):"))
	if s.names >= 0 && (after == ':' || called || bytes.HasPrefix(behind, []byte("]:"))) {
		s.names = levelNames // the names of syslog are complete
	}
	switch {
	case clock, plain, s.calendar, sign, called, after == ':', s.open, s.barred(),
		foreign && len(word) > 2 && (word[0] == 0xe2 || word[0] == 0xf0 && word[1] == 0x9f),
		begins && string(word) == "at" && len(behind) > 6 && allDigits(behind[1:3]) && behind[3] == ':' && IsDigit(behind[4]), // at 15:04 ERROR
		s.names < 0 && isDate(word),
		begins && allDigits(word) && bytes.HasPrefix(behind, []byte(" [")), // of Log4j 1
		(s.names >= 0 || calendar || before == ':') && hasDigit(word):
		return true
	}
	s.names--
	return s.names >= 0
}

// barred reports whether a bar, or a dash between blanks, follows.
func (s *levelScan) barred() bool {
	behind := s.rest[s.at:]
	for len(behind) > 0 && behind[0] == ' ' {
		behind = behind[1:]
	}
	return bytes.HasPrefix(behind, []byte("|")) || bytes.HasPrefix(behind, []byte("- "))
}

// angled reports whether the word that begins at from is in angle brackets, of which others end right
// before it, as in WebLogic, or a colon follows, as in macOS: <Error>:
func (s *levelScan) angled(from int) bool {
	behind := s.rest[s.at:]
	return from > 2 && s.rest[from-1] == '<' &&
		(bytes.HasPrefix(behind, []byte(">:")) || s.rest[from-3] == '>' && bytes.HasPrefix(behind, []byte("> <")))
}

// placed reports whether nothing but a time, texts in brackets and a place of Go stand before the
// bracket of the last word: 2026/11/20 10:00:06 ...go:108:run() [I] up
func (s *levelScan) placed() bool {
	rest := s.rest[:s.at]
	rest = bytes.TrimRight(rest[:bytes.LastIndexByte(rest, '[')], " ")
	if s.behind || len(rest) == 0 {
		return true
	}
	last := rest[len(rest)-1]
	return last == ']' && s.names == levelNames || bytes.HasSuffix(rest, []byte("()")) && bytes.Contains(rest, []byte(".go:"))
}

// ends reports whether a level may stand before a byte; 0 is the end of the line.
func ends(c byte) bool { return bytes.IndexByte([]byte("\x00 \t\r\n:[])>|,;\""), c) >= 0 }
