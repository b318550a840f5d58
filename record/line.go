package record

import (
	"bytes"
	"encoding/binary"
)

// The layout of a canonical line.
const (
	tsPrefix      = `{"ts":"`
	levelPrefix   = `","level":"`
	servicePrefix = `","service":"`
	msgPrefix     = `","msg":"`

	timeAt  = len(tsPrefix)
	levelAt = timeAt + canonicalLen + len(levelPrefix)
)

// Stamp describes an appended line.
type Stamp struct {
	Time    int64
	OwnTime bool // the record has its own time
	Guessed bool // the time is a guess that was believed
	Level   Level
	Service string
	// TimeUnread says that a field for the time, or a part of the protocol for it, is no time or
	// is too far ahead, whether another has the time or not. LevelUnread says that the record has
	// a field for the level, and none of the six levels.
	TimeUnread, LevelUnread bool
	// TimeFar says that a guessed time was too far off. There may be another one.
	TimeFar bool
}

// AppendService appends the service behind the level of a line, up to the text of the message.
func AppendService(dst []byte, service string) []byte {
	return append(append(append(dst, servicePrefix...), service...), msgPrefix...)
}

// A Clock appends the heads of canonical lines. It keeps the last one, because all records of a body
// without a time get the same one, and most others are of its day.
type Clock struct {
	ns   int64  // the time appended last
	day  int64  // the beginning of its day, if that is not before 1970
	head []byte // with it; nil: none so far
}

// AppendHead appends the beginning of a canonical line, up to the word of the level. text is the
// canonical form of ns, if that is known.
func (c *Clock) AppendHead(dst []byte, ns int64, text []byte) []byte {
	const day = daySec * second
	switch since := ns - c.day; {
	case c.head == nil:
		c.head = append(AppendTime([]byte(tsPrefix), ns), levelPrefix...)
		c.day = ns - ns%day
	case ns == c.ns:
	case text != nil:
		copy(c.head[timeAt:], text)
		c.day = ns - ns%day
	case ns >= 0 && c.ns >= 0 && since >= 0 && since < day:
		putClock(c.head[timeAt:], uint(since/second), uint(since%second))
	default:
		AppendTime(c.head[:timeAt], ns)
		c.day = ns - ns%day
	}
	c.ns = ns
	return append(dst, c.head...)
}

// LineTime returns the time of a canonical line.
func LineTime(line []byte) (ns int64, ok bool) {
	if len(line) < levelAt || string(line[:timeAt]) != tsPrefix {
		return 0, false
	}
	return ParseCanonicalTime(line[timeAt : timeAt+canonicalLen])
}

// levelWord is the word of a level with the quote behind it, as a little-endian number: its
// first eight bytes, and the mask that selects them.
type levelWord struct {
	text, mask uint64
	level      Level
}

// levelWords has the words at the places of the low five bits of their first letters.
var levelWords = [32]levelWord{
	't' & 31: {'t' | 'r'<<8 | 'a'<<16 | 'c'<<24 | 'e'<<32 | '"'<<40, 1<<48 - 1, Trace},
	'd' & 31: {'d' | 'e'<<8 | 'b'<<16 | 'u'<<24 | 'g'<<32 | '"'<<40, 1<<48 - 1, Debug},
	'i' & 31: {'i' | 'n'<<8 | 'f'<<16 | 'o'<<24 | '"'<<32, 1<<40 - 1, Info},
	'w' & 31: {'w' | 'a'<<8 | 'r'<<16 | 'n'<<24 | '"'<<32, 1<<40 - 1, Warn},
	'e' & 31: {'e' | 'r'<<8 | 'r'<<16 | 'o'<<24 | 'r'<<32 | '"'<<40, 1<<48 - 1, Error},
	'c' & 31: {'c' | 'r'<<8 | 'i'<<16 | 't'<<24 | 'i'<<32 | 'c'<<40 | 'a'<<48 | 'l'<<56, 1<<64 - 1, Critical},
}

// LineLevel returns the level of a canonical line; Other also for an invalid line. It is
// called for each record that an ingester accepts, so it compares a word at once.
func LineLevel(line []byte) Level {
	const longest = levelAt + len(`critical"`)
	if len(line) < longest || string(line[timeAt+canonicalLen:levelAt]) != levelPrefix {
		return Other
	}
	x := binary.LittleEndian.Uint64(line[levelAt:])
	w := &levelWords[x&31]
	if w.mask == 0 || x&w.mask != w.text || w.level == Critical && line[longest-1] != '"' {
		return Other
	}
	return w.level
}

// LineMsg returns the offset in a canonical line of the first byte of msg's value,
// inside its quotes.
func LineMsg(line []byte) (off int, ok bool) {
	if len(line) < levelAt {
		return 0, false
	}
	off = levelAt
	for off < len(line) && line[off] != '"' {
		if line[off] == '\\' {
			off++
		}
		off++
	}
	if off, ok = skipPrefix(line, off, servicePrefix); !ok {
		return 0, false
	}
	for off < len(line) && line[off] != '"' {
		off++
	}
	return skipPrefix(line, off, msgPrefix)
}

// LineService returns the service of a canonical line. It is right before msg and has
// no quotes in it.
func LineService(line []byte) (service []byte, ok bool) {
	msg, ok := LineMsg(line)
	if !ok {
		return nil, false
	}
	head := line[:msg-len(msgPrefix)]
	return head[bytes.LastIndexByte(head, '"')+1:], true
}

func skipPrefix(line []byte, off int, prefix string) (int, bool) {
	end := off + len(prefix)
	if end > len(line) || string(line[off:end]) != prefix {
		return 0, false
	}
	return end, true
}
