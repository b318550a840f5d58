package syslog

import (
	"bytes"
	"encoding/xml"

	"blobtail/record"
	"blobtail/record/times"
)

// A message has the parts of a message of syslog. They are slices of its bytes; nil is a
// part that it lacks, or has as "-".
type message struct {
	priority int    // facility * 8 + severity; -1: none
	time     int64  // Unix nanoseconds; 0: none
	stamp    []byte // its text
	host     []byte
	app      []byte
	own      []byte // the other service of an object behind a tag
	procID   []byte
	msgID    []byte
	sequence []byte // a number in front of the time, as Cisco's devices have it
	node     []byte // a part of the device, in front of the time
	data     []byte // elements of structured data, each in brackets
	msg      []byte
	plain    bool // it has neither the header of RFC 5424 nor that of RFC 3164
}

// maxPriority is local7.debug.
const maxPriority = 23*8 + 7

// parse reads a message without its framing. Nothing is an error: if a part cannot be
// read, it and all behind it are the text of the message.
func (p *parser) parse(b []byte) message {
	b = bytes.TrimPrefix(b, []byte(bom))
	m := message{priority: -1}
	rest := b
	blanks := 0
	for blanks < len(b) && (b[blanks] == ' ' || b[blanks] == '\t') {
		blanks++
	}
	if pri, n := priorityOf(b[blanks:]); n > 0 {
		m.priority, rest = pri, b[blanks+n:]
	}
	if !p.rfc5424(rest, &m) && !p.rfc3164(rest, &m) {
		m = message{priority: m.priority, msg: rest, plain: true}
		// Without a time a word before a colon is more often one of a sentence. A tag is name[number]:
		// or what stands right behind the priority in lower case and is no level.
		if name, pid, n := tagOf(rest); n > 0 && rest[n-1] == ':' &&
			(pid != nil || m.priority >= 0 && name[0]-'A' >= 26 && record.ParseLevel(name) == record.Other) {
			m.app, m.procID, m.msg = name, pid, afterSpace(rest[n:])
		}
	}
	m.msg = bytes.TrimPrefix(m.msg, []byte(bom))
	return m
}

const (
	// mostBadStarts is how many messages at the beginning of a connection may be no syslog.
	mostBadStarts = 3
	badStart      = "XML or bytes that are no text begin the connection, as SocketHandler of Java and of Python sends; " +
		"send syslog, such as by SysLogHandler, or lines of text or JSON"
)

// isBadStart reports whether a message without a header is a line of XML, or no text.
func isBadStart(b []byte) bool {
	control := func(r rune) bool { return r < ' ' && (r < '\a' || r > '\r') && r != '\x1b' }
	text := bytes.TrimSpace(b)
	if bytes.ContainsFunc(b[:min(len(b), 64)], control) || bytes.HasPrefix(text, []byte("<?xml ")) {
		return true
	}
	tag, err := xml.NewDecoder(bytes.NewReader(text)).RawToken()
	_, words := tag.(xml.CharData)
	return err == nil && !words && text[len(text)-1] == '>'
}

const bom = "\xef\xbb\xbf"

// priorityOf reads "<34>"; n is its length, 0 if there is none.
func priorityOf(b []byte) (priority, n int) {
	if len(b) < 3 || b[0] != '<' {
		return 0, 0
	}
	for n = 1; n < len(b) && n < 4 && isDigit(b[n]); n++ {
		priority = priority*10 + int(b[n]-'0')
	}
	if n == 1 || n == len(b) || b[n] != '>' || priority > maxPriority {
		return 0, 0
	}
	return priority, n + 1
}

// rfc5424 reads all behind the priority: the version, five words, structured data and the
// text. Devices that leave out the structured data are understood too.
func (p *parser) rfc5424(b []byte, m *message) bool {
	version, rest, ok := nextWord(b)
	if !ok || len(version) > 2 || version[0] == '0' || !allDigits(version) {
		return false
	}
	rest = bytes.TrimLeft(rest, " ")
	ns, n := p.times.Prefix(rest)
	unread := false
	switch {
	case p.meraki(version, rest, m):
		return true
	case n > 0 && isDigit(rest[0]) && n < len(rest) && rest[n] == ' ':
		m.stamp, rest = rest[:n], rest[n:]
	case m.priority >= 0 && bytes.HasPrefix(rest, []byte("- ")):
		rest = rest[1:]
	default: // a time that cannot be read, or a number and words
		if _, rest, unread = nextWord(rest); m.priority < 0 || !unread || string(version) != "1" {
			return false
		}
	}
	var words [4][]byte
	for i := range words {
		if words[i], rest, ok = nextWord(rest); !ok {
			return false
		}
	}
	if data := dataStart(rest); unread {
		if dataLen(data) == 0 && string(data) != "-" && !bytes.HasPrefix(data, []byte("- ")) {
			return false
		}
		ns = 0
	}
	m.time = ns
	m.host, m.app, m.procID, m.msgID = value(words[0]), value(words[1]), value(words[2]), value(words[3])
	rest = dataStart(rest)
	switch n := dataLen(rest); {
	case n > 0:
		m.data, rest = rest[:n], afterSpace(rest[n:])
	case len(rest) > 0 && rest[0] == '-' && (len(rest) == 1 || rest[1] == ' '):
		rest = afterSpace(rest[1:])
	}
	if m.msg = rest; unread {
		m.msg = b // with the time
	}
	return true
}

// meraki reads the header of Meraki's devices. Its time is a number:
// 1 1795168800.257 MX84 flows text
func (p *parser) meraki(version, rest []byte, m *message) bool {
	if len(rest) < len("1795168800.2 ") || !isDigit(rest[0]) || rest[len("1795168800")] != '.' || string(version) != "1" {
		return false
	}
	stamp, behind, _ := word(rest)
	host, text, ok := nextWord(behind)
	ns, part := p.times.Read(stamp)
	if !ok || part != times.Full {
		return false
	}
	m.time, m.stamp, m.host, m.msg = ns, stamp, value(host), text
	return true
}

// word cuts off the bytes before the next space. ok is false if there are none.
func word(b []byte) (word, rest []byte, ok bool) {
	at := bytes.IndexByte(b, ' ')
	if at < 0 {
		return b, nil, len(b) > 0
	}
	return b[:at], b[at+1:], at > 0
}

// nextWord is word behind any spaces.
func nextWord(b []byte) (next, rest []byte, ok bool) { return word(bytes.TrimLeft(b, " ")) }

// dataStart skips spaces before structured data, if there is some.
func dataStart(b []byte) []byte {
	if s := bytes.TrimLeft(b, " "); len(s) > 0 && (s[0] == '[' || s[0] == '-') {
		return s
	}
	return b
}

// value returns nil for the word "-".
func value(word []byte) []byte {
	if len(word) == 1 && word[0] == '-' {
		return nil
	}
	return word
}

// afterSpace removes one space: further ones are part of a text that is indented.
func afterSpace(b []byte) []byte {
	if len(b) > 0 && b[0] == ' ' {
		return b[1:]
	}
	return b
}

// dataLen is the length of the structured data at the start of b; 0 if there is none, or
// if it is malformed.
func dataLen(b []byte) int {
	at := 0
	for at < len(b) && b[at] == '[' {
		n := elementLen(b[at:])
		if n == 0 {
			return 0
		}
		at += n
	}
	return at
}

// elementLen is the length of the element of structured data that b begins with.
func elementLen(b []byte) int {
	at := 1 + nameLen(b[1:])
	if at == 1 {
		return 0
	}
	for at < len(b) && b[at] == ' ' {
		for at < len(b) && b[at] == ' ' {
			at++
		}
		if at < len(b) && b[at] == ']' {
			break
		}
		name := nameLen(b[at:])
		at += name
		if name == 0 || at+1 >= len(b) || b[at] != '=' || b[at+1] != '"' {
			return 0
		}
		n := quotedLen(b[at+2:])
		if n < 0 {
			return 0
		}
		at += 2 + n + 1
	}
	if at >= len(b) || b[at] != ']' {
		return 0
	}
	return at + 1
}

// nameLen is the length of a name of structured data.
func nameLen(b []byte) int {
	for i, c := range b {
		if c <= ' ' || c == '=' || c == ']' || c == '"' || c == 0x7f {
			return i
		}
	}
	return len(b)
}

// quotedLen is the number of bytes before the quote that ends a value; -1 if none does.
func quotedLen(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return -1
}

// appendValue appends a value of structured data without its escapes. A backslash before
// any other byte stays.
func appendValue(dst, b []byte) []byte {
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && i+1 < len(b) && (b[i+1] == '"' || b[i+1] == '\\' || b[i+1] == ']') {
			i++
		}
		dst = append(dst, b[i])
	}
	return dst
}

func isDigit(c byte) bool { return c-'0' < 10 }

func isLetter(c byte) bool { return (c|0x20)-'a' < 26 }

func allDigits(b []byte) bool {
	for _, c := range b {
		if !isDigit(c) {
			return false
		}
	}
	return len(b) > 0
}
