package text

import (
	"bytes"

	"blobtail/record/times"
)

const (
	// Reach is how many bytes behind the time may have a level, and levelWords how many
	// words.
	Reach      = 160
	levelWords = 12
	// levelNames is how many words behind a time may stand before a level in upper case:
	// those of a host, a thread, a logger.
	levelNames = 3
)

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
	if timed && len(rest) > 0 && rest[0] == ',' {
		if word := columnLevel(rest); word != nil || len(rest) < 2 || rest[1] != ' ' {
			return word
		}
	}
	if word := Uncaught(rest); word != nil {
		return word
	}
	if word := headLetter(rest); word != nil {
		return word
	}
	if word := formLevel(rest, timed); word != nil {
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
// the number of its bytes. ok is false if it has none.
func priority(line []byte) (level []byte, ok bool) {
	if len(line) > 4 && IsDigit(line[0]) {
		n := 0
		for n < len(line) && n < 6 && IsDigit(line[n]) {
			n++
		}
		if n+1 >= len(line) || line[n] != ' ' || line[n+1] != '<' {
			return nil, false
		}
		line = line[n+1:]
	}
	if len(line) < 3 || line[0] != '<' {
		return nil, false
	}
	n := bytes.IndexByte(line[:min(len(line), 5)], '>')
	if n < 2 {
		return nil, false
	}
	return severity(line[1:n]), true
}

// columnLevel returns the level in a line of the comma-separated log of PostgreSQL, behind its
// time: a column in upper case without quotation marks; or that of App Service: the first column.
func columnLevel(rest []byte) []byte {
	const columns, reach = 16, 2 << 10
	rest = rest[:min(len(rest), reach)]
	for i := range columns {
		if len(rest) == 0 || rest[0] != ',' {
			return nil
		}
		rest = rest[1:]
		n := 0
		for quoted := false; n < len(rest) && (quoted || rest[n] != ','); n++ {
			quoted = quoted != (rest[n] == '"')
		}
		word := rest[:n]
		for len(word) > 0 && IsDigit(word[len(word)-1]) { // DEBUG1 to DEBUG5
			word = word[:len(word)-1]
		}
		if (allUpper(word) || i == 0) && n < len(rest) && levelMark(word) != noLevel {
			return word
		}
		rest = rest[n:]
	}
	return nil
}

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
	word := s.rest[from:s.at]
	for n := len(word); n > 0 && (word[n-1] == '-' || word[n-1] == '.' || word[n-1] == ','); n-- {
		word = word[:n-1]
	}
	before, after := byte(0), byte(0)
	if from > 0 {
		before = s.rest[from-1]
	}
	if s.at < len(s.rest) {
		after = s.rest[s.at]
	}
	first := s.names < 0 || s.names == levelNames // no name came
	marked := after == ':' && s.colon(word) || (after == ']' || after == ' ' && before == '[' && s.padded()) && (before == '[' || before == ':') || after == ')' && before == '(' || after == '>' && before == '<'
	if mark := cisco(word); mark != nil && (after == ':' || bytes.HasPrefix(s.rest[s.at:], []byte(" :"))) {
		return mark, true
	}
	if string(word) == "PHP" && after == ' ' {
		return phpLevel(s.rest[s.at+1:]), true
	}
	if level := s.named(word, before, after); level != nil {
		return level, true
	}
	whole, close := word, after
	word = s.withoutStep(word)
	if len(word) < len(whole) && whole[len(word)] == '/' {
		close = ' '
	}
	switch mark := levelMark(word); {
	case len(whole) < s.at-from, !first && !allUpper(word) && !s.angled(from): // <Error>: of macOS
	case mark == sure && (marked || allUpper(word) && ends(close) || s.behind && ends(close)):
		return word, true
	case mark == rare && (marked || s.behind && allUpper(word) && ends(close)), mark == upper && allUpper(word) && (marked || s.behind && ends(close)):
		return word, true
	case mark == rare && s.behind && before == ' ' && bytes.HasPrefix(s.rest[s.at:], []byte(" \t")): // of go-zero
		return word, true
	case mark == note && before == '[' && after == ']':
		return word, true
	case string(word) == "System" && before == '[' && bytes.HasPrefix(s.rest[s.at:], []byte("] [MY-")): // of MySQL
		return []byte("info"), true
	}
	if level := s.dressed(word, from, after); level != nil {
		return level, true
	}
	return nil, !s.pass(whole, before, after)
}

// padded reports whether blanks and a closing bracket follow: [info ].
func (s *levelScan) padded() bool {
	at := SkipBlanks(s.rest, s.at)
	return at < len(s.rest) && s.rest[at] == ']'
}

// colon reports whether the colon behind a word marks a level: in lower case a blank has to
// follow, because keys and addresses have colons too.
func (s *levelScan) colon(word []byte) bool {
	return len(word) == 0 || s.at+1 >= len(s.rest) || s.rest[s.at+1] <= ' ' || word[0]-'A' < 26 || s.rest[s.at+1] == ':'
}

// named returns the level of a word that has more than that: behind the name of a channel, as in
// orders.INFO: of Monolog; of a logger, as in [orders#info] of Twisted; or the letter in front of a
// bracket or a bar, as in E [1149:main] of semantic_logger and E | rafthttp: of etcd.
func (s *levelScan) named(word []byte, before, after byte) []byte {
	if s.names >= 0 && after == ']' && before != '[' && s.open { // [Server thread/WARN] of Minecraft
		if at := bytes.LastIndexByte(word, '/'); at > 0 && allUpper(word[at+1:]) && levelMark(word[at+1:]) != noLevel {
			return word[at+1:]
		}
	}
	if len(word) == 1 && s.names >= 0 && before == '[' && after == ']' && s.placed() && bytes.IndexByte([]byte("TDINWEFCV"), word[0]) >= 0 {
		return word
	}
	if !s.behind {
		return nil
	}
	switch {
	case len(word) == 1:
		rest := s.rest[s.at:]
		if (bytes.HasPrefix(rest, []byte(" [")) || bytes.HasPrefix(rest, []byte(" | "))) && bytes.IndexByte([]byte("TDINWEFC"), word[0]) >= 0 {
			return word
		}
	case after == ':':
		if at := bytes.LastIndexByte(word, '.'); at > 0 && allUpper(word[at+1:]) && levelMark(word[at+1:]) != noLevel {
			return word[at+1:]
		}
	case before == '[' && after == ']':
		if at := bytes.LastIndexByte(word, '#'); at > 0 && levelMark(word[at+1:]) != noLevel {
			return word[at+1:]
		}
		if at := bytes.LastIndexByte(word, '/'); at > 0 && allUpper(word[at+1:]) && levelMark(word[at+1:]) != noLevel {
			return word[at+1:]
		}
	}
	return nil
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
	step := word[n+1:]
	if IsDigit(word[n]) && len(step) == 0 && (bytes.EqualFold(word[:n], []byte("debug")) || bytes.EqualFold(word[:n], []byte("trace"))) {
		return word[:n]
	}
	switch word[n] {
	case '+', '-':
		if len(step) <= 2 && AllDigits(step) {
			return word[:n]
		}
	case '/':
		if s.behind && allUpper(word[:n]) {
			return word[:n]
		}
	}
	return word
}

// pass reports whether a level may follow a word that is none. before and after are the
// bytes next to it.
func (s *levelScan) pass(word []byte, before, after byte) bool {
	clock, calendar, plain := isClock(word, s.rest[s.at:]), s.calendar, !hasLetterOrDigit(word)
	if clock {
		s.at += len(":05:06") // with its minutes and seconds
		for s.at < len(s.rest) && (IsDigit(s.rest[s.at]) || s.rest[s.at] == '.' || s.rest[s.at] == ',') {
			s.at++
		}
		s.names = levelNames
	}
	s.behind, s.calendar = clock || s.behind && plain || s.isSign(word), IsCalendar(word) || calendar && AllDigits(word)
	if s.names >= 0 && (after == ':' || bytes.HasPrefix(s.rest[s.at:], []byte("]:")) || bytes.HasPrefix(s.rest[s.at:], []byte("):"))) {
		s.names = levelNames // the names of syslog are complete
	}
	switch {
	case clock, plain, s.calendar, s.isSymbol(word), s.isAt(word), after == ':', s.names < 0 && isDate(word), s.open, s.barred(), s.isSign(word), bytes.HasPrefix(s.rest[s.at:], []byte("):")):
		return true
	case s.at == len(word) && AllDigits(word) && bytes.HasPrefix(s.rest[s.at:], []byte(" [")): // of Log4j 1
		return true
	case (s.names >= 0 || calendar || before == ':') && hasDigit(word):
		return true
	}
	s.names--
	return s.names >= 0
}

// isSign reports whether a word begins the line, has no byte of ASCII, and has two blanks behind it:
// it is the sign of a level, and the level stands next.
func (s *levelScan) isSign(word []byte) bool {
	if s.at != len(word) || !bytes.HasPrefix(s.rest[s.at:], []byte("  ")) {
		return false
	}
	for _, c := range word {
		if c < 0x80 {
			return false
		}
	}
	return true
}

// isSymbol reports whether a word that begins the line is a symbol or an emoji.
func (s *levelScan) isSymbol(word []byte) bool {
	if s.at != len(word) || len(word) < 3 || word[0] != 0xe2 && (word[0] != 0xf0 || word[1] != 0x9f) {
		return false
	}
	for _, c := range word {
		if c < 0x80 {
			return false
		}
	}
	return true
}

// barred reports whether a bar, or a dash between blanks, follows.
func (s *levelScan) barred() bool {
	at := s.at
	for at < len(s.rest) && s.rest[at] == ' ' {
		at++
	}
	return at < len(s.rest) && (s.rest[at] == '|' || s.rest[at] == '-' && at+1 < len(s.rest) && s.rest[at+1] == ' ')
}

// ends reports whether a level may stand before a byte; 0 is the end of the line.
func ends(c byte) bool {
	switch c {
	case 0, ' ', '\t', '\r', '\n', ':', '[', ']', ')', '>', '|', ',', ';', '"':
		return true
	}
	return false
}

// Uncaught returns the level of a line that a runtime writes when a program ends: of Go and PHP,
// of Java, Python, Rust, JavaScript and .NET.
func Uncaught(line []byte) []byte {
	at := 0
	for at < len(line) && (line[at] == ' ' || line[at] == ']' || line[at] == ')') {
		at++
	}
	if php, ok := bytes.CutPrefix(line[at:], []byte("PHP ")); ok {
		return phpLevel(php)
	}
	if len(line) == 0 {
		return nil
	}
	found := false
	switch line[0] {
	case 'f', 'F':
		if bytes.HasPrefix(line[1:], []byte("atal error: ")) {
			return []byte("critical")
		}
	case 'E':
		found = bytes.HasPrefix(line, []byte("Exception in thread "))
	case 'T':
		found = bytes.HasPrefix(line, []byte("Traceback (most recent call last):"))
	case 'U':
		found = bytes.HasPrefix(line, []byte("Unhandled exception")) || bytes.HasPrefix(line, []byte("Uncaught "))
	case 't':
		found = IsPanic(line)
	}
	if !found {
		return nil
	}
	return []byte("error")
}

// phpLevel returns the level of a message of PHP, behind its name.
func phpLevel(line []byte) []byte {
	word, _, _ := bytes.Cut(line[:min(len(line), Reach)], []byte(":"))
	switch string(word) {
	case "Fatal error", "Parse error", "Core error", "Compile error":
		return []byte("critical")
	case "Recoverable fatal error":
		return []byte("error")
	case "Warning", "Core warning", "Compile warning":
		return []byte("warn")
	case "Notice", "Deprecated", "Strict Standards":
		return []byte("info")
	}
	return nil
}

// severity returns the last of syslog's eight levels that a priority has, as a digit.
func severity(priority []byte) []byte {
	if !AllDigits(priority) {
		return nil
	}
	n := 0
	for _, c := range priority {
		n = 10*n + int(c-'0')
	}
	if n > 191 {
		return nil
	}
	return []byte{'0' + byte(n%8)}
}

// IsPanic reports whether a line begins a panic of Rust, perhaps with the id of its thread. Its
// message may be on the next line.
func IsPanic(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("thread '"))
	if !ok {
		return false
	}
	n := bytes.IndexByte(rest, '\'')
	if n < 0 {
		return false
	}
	rest = rest[n+1:]
	if bytes.HasPrefix(rest, []byte(" (")) {
		end := bytes.IndexByte(rest, ')')
		if end < 0 || !AllDigits(rest[2:end]) {
			return false
		}
		rest = rest[end+1:]
	}
	return bytes.HasPrefix(rest, []byte(" panicked at ")) || bytes.HasPrefix(rest, []byte(" has overflowed its stack"))
}

// Stream reads the head of CRI behind its time: the stream, F or P, and behind a blank the text of the
// container. final says that the line is the last part of a line of the program.
func Stream(head []byte) (stream, text []byte, final, ok bool) {
	if len(head) < len(" stdout F") || !bytes.HasPrefix(head, []byte(" stdout ")) && !bytes.HasPrefix(head, []byte(" stderr ")) {
		return nil, nil, false, false
	}
	n := len(" stdout ")
	if len(head) > n+1 {
		if head[n+1] != ' ' {
			return nil, nil, false, false
		}
		text = head[n+2:]
	}
	return head[1 : n-1], text, head[n] == 'F', head[n] == 'F' || head[n] == 'P'
}
