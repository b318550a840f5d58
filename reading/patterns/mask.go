package patterns

import (
	"bytes"
	"strings"

	"blobtail/record"
)

// A masked message is its first line as words with a zero byte between two, in which a wildcard byte
// stands for each text that is probably a value. No other control byte is in it: those of a message
// are wildcards.
const (
	between = 0 // between two words
	wild    = 1 // for a text without blanks
	phrase  = 2 // for a text that may have blanks
	unit    = 3 // for the unit of a size
)

const (
	// maxLooked is how many bytes of a message are looked at, and maxWords how many words.
	maxLooked, maxWords = 4096, 100
	// maxQuoted is the longest quoted text that is masked part by part; a longer one is one value.
	maxQuoted = 80
	// maxWord is the longest masked word; a longer one with a value is a value as a whole.
	maxWord = 256
	// maxPeriod is how many words the parts of a list have at most.
	maxPeriod = 4
)

// A form tells what a masked message leaves out.
type form uint8

const (
	cut    form = 1 << iota // the rest of a long line
	more                    // further lines
	spaced                  // blanks that are not one space between two words
	loose                   // values with blanks, and lists of values, that one wildcard stands for
	aside                   // a size that is repeated in another unit, as in 1165 bytes (1.13 KB)
)

// A masker masks messages. One goroutine may use it.
type masker struct {
	in    []byte
	i     int // the next byte of in
	out   []byte
	word  int   // where the present word begins in out
	ends  []int // where the complete words end
	quote byte  // the quote that the present byte is in; 0: none
	end   int   // the end of the quoted text
	form  form
	json  bool // the message is an object
}

// mask returns the masked form of a message. It is valid until the next call.
func (m *masker) mask(msg []byte) ([]byte, form) {
	m.form = 0
	text := bytes.TrimRight(msg, " \t\r\n\f")
	if len(text) < len(msg) {
		m.form |= spaced
	}
	if at := len(text) - len(bytes.TrimLeft(text, " \t\r\n\f")); at > 0 {
		text, m.form = text[at:], m.form|spaced
	}
	if len(text) > maxLooked {
		text, m.form = record.CutText(text, maxLooked), m.form|cut
	}
	if at := bytes.IndexByte(text, '\n'); at >= 0 {
		text, m.form = bytes.TrimRight(text[:at], " \t\r\f"), m.form&^cut|more
	}
	m.in, m.i, m.out, m.word, m.ends, m.quote = text, 0, m.out[:0], 0, m.ends[:0], 0
	m.json = len(text) > 1 && text[0] == '{' && (text[1] == '"' || text[1] == '}' || class(text[1]) == blank) && (text[len(text)-1] == '}' || m.form&(cut|more) != 0)
	if m.json {
		m.object()
	} else {
		m.line()
	}
	m.endWord()
	return m.out, m.form
}

// line masks a line of text.
func (m *masker) line() {
	for m.i < len(m.in) && len(m.ends) < maxWords {
		c := m.in[m.i]
		if m.quote != 0 && m.i >= m.end {
			m.quote = 0
			if m.i == m.end {
				m.copy(1)
			}
			continue
		}
		switch class(c) {
		case blank:
			m.blanks()
		case letter:
			m.run()
		case digit:
			m.number()
		case control:
			m.i++
			m.wild()
		default:
			m.sign(c)
		}
	}
	if m.i < len(m.in) {
		m.form |= cut
	}
}

const (
	other = iota
	letter
	digit
	blank
	control
)

// class tells the kind of a byte. Those of text that is not ASCII are letters.
func class(c byte) int {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= 0x80:
		return letter
	case c >= '0' && c <= '9':
		return digit
	case c == ' ', c == '\t', c == '\n', c == '\f', c == '\r': // those of \s
		return blank
	case c < ' ', c == 0x7f:
		return control
	}
	return other
}

// copy takes bytes as they are.
func (m *masker) copy(n int) {
	m.out = append(m.out, m.in[m.i:m.i+n]...)
	m.i += n
}

// blanks ends a word, but not within quotes.
func (m *masker) blanks() {
	from := m.i
	for m.i < len(m.in) && class(m.in[m.i]) == blank && (m.quote == 0 || m.i < m.end) {
		m.i++
	}
	if m.i-from > 1 || m.in[from] != ' ' {
		m.form |= spaced
	}
	if m.quote != 0 {
		m.out = append(m.out, ' ')
		return
	}
	if m.endWord(); len(m.out) > 0 {
		m.out = append(m.out, between)
	}
	m.word = len(m.out)
	if n := unitOf(m.in[m.i:]); n > 0 && m.word > 1 && m.out[m.word-2] == wild {
		m.out = append(m.out, unit)
		m.i += n
	}
}

// endWord ends the present word. Words that repeat those before them and have a wildcard are parts of
// a list, which has any length.
func (m *masker) endWord() {
	w := m.out[m.word:]
	if len(w) == 0 {
		if m.word > 0 && m.out[m.word-1] == between {
			m.out = m.out[:m.word-1]
		}
		return
	}
	if len(w) > maxWord && !m.json && (bytes.IndexByte(w, wild) >= 0 || bytes.IndexByte(w, phrase) >= 0) {
		star := byte(wild)
		if bytes.IndexByte(w, phrase) >= 0 || bytes.IndexByte(w, ' ') >= 0 {
			star = phrase
		}
		m.out = append(m.out[:m.word+label(w)], star)
	}
	if m.afterUser() {
		m.user()
	}
	m.ends = append(m.ends, len(m.out))
	for n := 1; n <= maxPeriod && 2*n <= len(m.ends); n++ {
		if at := len(m.ends) - n; m.repeats(at, n) {
			m.ends = m.ends[:at]
			m.out = m.out[:m.ends[at-1]]
			m.form |= loose
			return
		}
	}
}

// repeats reports whether the last n words, from word at on, are those before them.
func (m *masker) repeats(at, n int) bool {
	begin := 0
	if at > n {
		begin = m.ends[at-n-1] + 1
	}
	before, last := m.out[begin:m.ends[at-1]], m.out[m.ends[at-1]+1:]
	return len(last) == len(before) && bytes.Equal(last, before) && bytes.IndexByte(last, wild) >= 0
}

// afterUser reports whether the present word is behind "for user" or its like, as in the messages of
// PAM and sshd: it is a name then, also if there are few.
func (m *masker) afterUser() bool {
	n := len(m.ends)
	if n < 2 || m.out[m.word] == wild || string(m.before()) != "user" {
		return false
	}
	begin := 0
	if n > 2 {
		begin = m.ends[n-3] + 1
	}
	switch string(bytes.ToLower(m.out[begin:m.ends[n-2]])) {
	case "for", "invalid", "by":
		return true
	}
	return false
}

// user masks the present word but for the marks at its end.
func (m *masker) user() {
	n := m.word
	for n < len(m.out) && (m.out[n] <= wild || class(m.out[n]) == letter || class(m.out[n]) == digit || strings.IndexByte("._-$@", m.out[n]) >= 0) {
		n++
	}
	if n > m.word {
		m.out = append(append(m.out[:m.word:m.word], wild), m.out[n:]...)
	}
}

// before is the last complete word; nil: there is none.
func (m *masker) before() []byte {
	switch n := len(m.ends); n {
	case 0:
		return nil
	case 1:
		return m.out[:m.ends[0]]
	default:
		return m.out[m.ends[n-2]+1 : m.ends[n-1]]
	}
}

// wild puts a wildcard. Values with one character between them that joins parts of numbers, dates
// and addresses are one value.
func (m *masker) wild() {
	w := m.out[m.word:]
	n := len(w)
	switch {
	case n > 0 && (w[n-1] == wild || w[n-1] == phrase):
	case n > 1 && w[n-2] == wild && joins(w[n-1]):
		m.out = m.out[:len(m.out)-1]
	case n > 2 && w[n-3] == wild && w[n-2] == ':' && w[n-1] == ':': // an address of IPv6
		m.out = m.out[:len(m.out)-2]
	case n > 3 && w[n-4] == wild && joins(w[n-3]) && class(w[n-2]) == letter && joins(w[n-1]): // task_2015_m_0001
		m.out = m.out[:len(m.out)-3]
	default:
		m.out = append(m.out, wild)
	}
}

// joins reports whether a character joins the parts of a value.
func joins(c byte) bool { return strings.IndexByte("-:.,/_+@~x", c) >= 0 }

// edge reports whether a value may begin here: the byte before is no part of a name.
func (m *masker) edge() bool {
	if len(m.out) == m.word {
		return true
	}
	switch c := m.out[len(m.out)-1]; c {
	case '/', '.', '-', '_', '\\', '@', '~', wild:
		return false
	default:
		return class(c) != letter && class(c) != digit
	}
}

// sign masks the parts that begin with a punctuation mark.
func (m *masker) sign(c byte) {
	next := byte(0)
	if m.i+1 < len(m.in) {
		next = m.in[m.i+1]
	}
	switch {
	case (c == '"' || c == '\'') && m.quote == 0 && m.quoted(c):
	case c == '/' && m.edge() && m.path():
	case (c == '-' || c == '+') && class(next) == digit && (m.edge() || m.out[len(m.out)-1] == '_'):
		m.i++
		m.number()
	case c == '(' && next == ')' && m.empty():
	case c == '(' && class(next) == digit && m.repeated():
	case c == '<' && class(next) == digit && m.edge() && m.less():
	default:
		m.copy(1)
	}
}

// empty masks the empty parentheses behind a value, as those of an address without a name.
func (m *masker) empty() bool {
	if before := m.before(); len(m.out) != m.word || len(before) != 1 || before[0] != wild || m.i+2 < len(m.in) && class(m.in[m.i+2]) != blank {
		return false
	}
	m.out = append(m.out, '(', wild, ')')
	m.i += 2
	return true
}

// repeated leaves out the size in another unit that stands in parentheses behind a number of bytes.
func (m *masker) repeated() bool {
	if len(m.out) != m.word || !bytes.EqualFold(m.before(), []byte("bytes")) {
		return false
	}
	end := bytes.IndexByte(m.in[m.i:], ')')
	if end < 0 || end > 40 || !isSize(m.in[m.i+1:m.i+end]) || m.i+end+1 < len(m.in) && class(m.in[m.i+end+1]) != blank {
		return false
	}
	m.i += end + 1
	m.form |= aside
	return true
}

// isSize reports whether a text is a number and a unit, or several with commas.
func isSize(text []byte) bool {
	for part := range bytes.SplitSeq(text, []byte(", ")) {
		n := 0
		for n < len(part) && (class(part[n]) == digit || part[n] == '.' || part[n] == ',') {
			n++
		}
		if rest := bytes.TrimPrefix(part[n:], []byte(" ")); n == 0 || unitOf(rest) != len(rest) {
			return false
		}
	}
	return true
}

// unitOf is the length of the unit of a size that a text begins with, or 0.
func unitOf(text []byte) int {
	n := 0
	if n < len(text) && strings.IndexByte("KMGTPk", text[n]) >= 0 {
		if n++; n < len(text) && text[n] == 'i' {
			n++
		}
	}
	if n == len(text) || text[n] != 'B' || n+1 < len(text) && (class(text[n+1]) == letter || class(text[n+1]) == digit) {
		return 0
	}
	return n + 1
}

// less masks a number that is less than another one, as in <1 sec.
func (m *masker) less() bool {
	rest := m.in[m.i+1:]
	n := 0
	for n < len(rest) && (class(rest[n]) == digit || rest[n] == '.') {
		n++
	}
	for _, unit := range []string{" sec", " s", " ms", " min", "s", "ms", ""} {
		if end := n + len(unit); bytes.HasPrefix(rest[n:], []byte(unit)) && (end == len(rest) || class(rest[end]) == blank || strings.IndexByte(",;)]", rest[end]) >= 0) {
			m.i += 1 + end
			m.wide()
			return true
		}
	}
	return false
}

// wide puts a wildcard for a text that may have blanks.
func (m *masker) wide() {
	if len(m.out) > m.word && m.out[len(m.out)-1] == wild {
		m.out = m.out[:len(m.out)-1]
	}
	m.out = append(m.out, wild)
	m.form |= loose
}

// quoted begins a quoted text, or masks it as a whole if it is long.
func (m *masker) quoted(c byte) bool {
	if c == '\'' && !m.edge() {
		return false
	}
	end := m.i + 1
	for end < len(m.in) && m.in[end] != c {
		if m.in[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(m.in) || c == '\'' && end+1 < len(m.in) && class(m.in[end+1]) == letter {
		return false
	}
	text := m.in[m.i+1 : end]
	if len(text) > maxQuoted && !request(text) {
		m.out = append(m.out, c, phrase, c)
		m.i = end + 1
		return true
	}
	m.quote, m.end = c, end
	m.copy(1)
	return true
}

// request reports whether a text is the first line of a request over HTTP.
func request(text []byte) bool {
	for _, method := range []string{"GET /", "POST /", "PUT /", "HEAD /", "DELETE /", "PATCH /", "OPTIONS /"} {
		if bytes.HasPrefix(text, []byte(method)) {
			return true
		}
	}
	return false
}

// path masks a path of more than one part.
func (m *masker) path() bool {
	n, slashes := m.extent(m.i)
	if slashes < 2 {
		return false
	}
	m.i = n
	m.wild()
	return true
}

// extent returns the end of a path or address that begins at i, and its slashes.
func (m *masker) extent(i int) (end, slashes int) {
	limit := len(m.in)
	if m.quote != 0 {
		limit = m.end
	}
	for ; i < limit; i++ {
		c := m.in[i]
		if k := class(c); k == blank || k == control || strings.IndexByte("\"'<>|()[]{},;", c) >= 0 {
			break
		}
		if c == '/' || c == '\\' {
			slashes++
		}
	}
	for i > 0 && strings.IndexByte(".:=!?", m.in[i-1]) >= 0 {
		i--
	}
	return i, slashes
}
