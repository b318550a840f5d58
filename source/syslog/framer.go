package syslog

import (
	"bytes"
	"fmt"

	"blobtail/record"
	"blobtail/record/times"
)

const (
	// longest is the length of the longest message in bytes.
	longest = record.MaxRecord
	// mostDigits bounds the length that stands before a message: below 100 MB. A longer
	// number is the beginning of a text.
	mostDigits = 8
	// keptLong is how much of a longer message is kept: less than of other invalid records,
	// because masks do not recognise the half of a secret at the cut.
	keptLong = record.MaxRejected - 4<<10
)

// A framer finds the messages in the bytes of one connection, by RFC 6587:
//
//	17 <13>first message        octet-counted: the length, a space, the message
//	<13>first message\n         a line; NUL may stand for the line feed
//
// Each message may have its own form. A number is a length if "<" follows, or if the
// message before it had a length. If the first line of a connection ends in NUL, then its
// messages may have line feeds: a line feed ends one only if a priority follows.
//
// A line ends too where a whole header begins, because some senders write no line feeds, or after a
// silence. Then, too, messages may have line feeds. Behind a line feed and a priority, a header in a
// line is a quoted one.
type framer struct {
	counted bool // the last message had a length
	begun   bool // a line has ended
	nul     bool // messages end in NUL, or nothing ends them
	skip    int  // bytes of a message with a length that are still to be skipped
	tail    bool // the rest of a line is to be skipped
	looked  int  // bytes of an unfinished line that have no end
	headed  bool // the first line begins with a priority, and none behind it unless joined
	joined  bool // a message had no line feed before the next one, or before a silence
	times   times.Reader
}

// A frame is a message without its framing, or the beginning of one.
type frame struct {
	msg []byte
	bad string // the reason that msg is not a whole message; "" if it is
}

// next returns the message that b begins with, and the bytes that it takes with its
// framing. An n of 0 says that b has no whole message. A frame without bytes is no
// message: there was nothing between two line feeds.
func (f *framer) next(b []byte) (m frame, n int) {
	if f.skip > 0 || f.tail {
		return frame{}, f.pass(b)
	}
	if f.looked == 0 {
		if size, head := f.lengthOf(b); head > 0 {
			return f.octets(b, size, head)
		}
		if f.mayBeLength(b) {
			return frame{}, 0
		}
	}
	return f.line(b)
}

// lengthOf reads a length and its space, head bytes long; 0 if there is none.
func (f *framer) lengthOf(b []byte) (size, head int) {
	for head < len(b) && head <= mostDigits && isDigit(b[head]) {
		size = size*10 + int(b[head]-'0')
		head++
	}
	if head == 0 || head > mostDigits || head == len(b) || b[head] != ' ' || b[0] == '0' {
		return 0, 0
	}
	if head++; !f.counted && (head == len(b) || b[head] != '<') {
		return 0, 0
	}
	return size, head
}

// mayBeLength reports whether more bytes could make a length of b.
func (f *framer) mayBeLength(b []byte) bool {
	n := 0
	for n < len(b) && n <= mostDigits && isDigit(b[n]) {
		n++
	}
	return n > 0 && n <= mostDigits && b[0] != '0' && (n == len(b) || n+1 == len(b) && b[n] == ' ')
}

// octets cuts off a message with a length.
func (f *framer) octets(b []byte, size, head int) (m frame, n int) {
	have := len(b) - head
	switch {
	case size > longest && have >= keptLong:
		f.counted, f.skip = true, size-keptLong
		return frame{msg: b[head : head+keptLong], bad: tooLong(size)}, head + keptLong
	case size > longest || have < size:
		return frame{}, 0
	}
	f.counted = true
	msg := b[head : head+size]
	for len(msg) > 0 && (msg[len(msg)-1] == '\n' || msg[len(msg)-1] == 0 || msg[len(msg)-1] == '\r') {
		msg = msg[:len(msg)-1]
	}
	return frame{msg: msg}, head + size
}

func tooLong(size int) string {
	return fmt.Sprintf("the message has %d bytes, and is longer than 1 MiB; only its beginning is kept", size)
}

// line cuts off a message that a line feed or NUL ends.
func (f *framer) line(b []byte) (m frame, n int) {
	line, from := b, f.looked
	at := f.end(b)
	if at >= 0 {
		line = b[:at]
	}
	if next := f.nextHeader(line, from); next > 0 {
		f.looked, f.counted, f.joined, f.nul = 0, false, true, true
		return frame{msg: b[:next]}, next
	}
	if at < 0 {
		if len(b) < longest {
			return frame{}, 0
		}
		f.tail, f.looked = true, 0
		return frame{msg: b[:longest], bad: "the line is longer than 1 MiB; only its beginning is kept"}, longest
	}
	f.looked = 0
	if at > 0 {
		f.counted = false
		if !f.begun {
			f.begun, f.nul = true, b[at] == 0
		}
	}
	return frame{msg: bytes.TrimSuffix(b[:at], []byte("\r"))}, at + 1
}

// nextHeader finds the header of another message in a line; 0 if it has none. Before from it was
// looked for. Lines of a connection without priorities are no such messages. Only the rest of a message
// with line feeds is split behind one, and not behind a space.
func (f *framer) nextHeader(line []byte, from int) int {
	const most = len("<191>1 2006-01-02T15:04:05.123456789+00:00 ")
	_, n := priorityOf(line)
	f.headed = n > 0 && (f.joined || !f.begun) || n == 0 && f.headed
	for at := max(1, from-most); f.headed && at < len(line); at++ {
		i := bytes.IndexByte(line[at:], '<')
		if i < 0 {
			break
		}
		if at += i; f.isHeader(line[at:]) && (f.joined || !f.begun || line[at-1] != ' ') {
			return at
		}
	}
	return 0
}

// isHeader reports whether b begins with a priority and a whole time: of RFC 5424, behind the version
// 1, or of RFC 3164.
func (f *framer) isHeader(b []byte) bool {
	_, n := priorityOf(b)
	if n == 0 {
		return false
	}
	rest, versioned := bytes.CutPrefix(b[n:], []byte("1 "))
	f.times.Now = 1 << 60 // any, for a time without a year
	_, end := f.times.Prefix(rest)
	switch {
	case end == 0 || end == len(rest) || rest[end] != ' ':
		return false
	case !versioned:
		return isLetter(rest[0])
	}
	return end >= len("2006-01-02T15:04:05Z") && rest[len("2006-01-02")] == 'T' &&
		(rest[end-1] == 'Z' || rest[end-3] == ':' && (rest[end-6] == '+' || rest[end-6] == '-'))
}

// unended reports whether b may be a message of a sender without line feeds, or the rest of one: no
// line has ended in one, or messages had none.
func (f *framer) unended(b []byte) bool {
	return (f.joined || !f.begun) && !f.counted && f.skip == 0 && !f.tail && (f.isHeader(b) || f.joined && len(b) > 0 && b[0] != '<')
}

// end finds the end of a line; -1 if b has none. It does not look at a byte twice.
func (f *framer) end(b []byte) int {
	for at := f.looked; at < len(b); at++ {
		i := f.trailer(b[at:])
		if i < 0 {
			break
		}
		at += i
		if b[at] == 0 || !f.nul {
			return at
		}
		if _, n := priorityOf(b[at+1:]); n > 0 {
			f.nul = false // they are lines after all
			return at
		}
		if rest := b[at+1:]; len(rest) < len("<191>") && bytes.IndexByte(rest, 0) < 0 {
			f.looked = at // a priority may still come
			return -1
		}
	}
	f.looked = len(b)
	return -1
}

// trailer finds the first line feed or NUL; -1 if there is none.
func (f *framer) trailer(b []byte) int {
	at := bytes.IndexByte(b, '\n')
	if at >= 0 {
		b = b[:at]
	}
	if nul := bytes.IndexByte(b, 0); nul >= 0 {
		return nul
	}
	return at
}

// pass returns how many bytes of b are the rest of a message that was too long.
func (f *framer) pass(b []byte) int {
	if f.skip > 0 {
		n := min(f.skip, len(b))
		f.skip -= n
		return n
	}
	if at := f.trailer(b); at >= 0 {
		f.tail = false
		return at + 1
	}
	return len(b)
}

// rest returns the unfinished message at the end of a connection. closed says that the
// sender has closed it: then a line without its line feed is a message.
func (f *framer) rest(b []byte, closed bool, why string) frame {
	if f.skip > 0 || f.tail || len(b) == 0 {
		return frame{}
	}
	size, head := f.lengthOf(b)
	if head == 0 && closed {
		return frame{msg: bytes.TrimRight(b, "\r\n")}
	}
	bad := why + " within a message"
	if head > 0 {
		bad = fmt.Sprintf("%s, after %d of its %d bytes", bad, len(b)-head, size)
	}
	return frame{msg: b[head:], bad: bad}
}
