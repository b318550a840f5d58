package record

import "bytes"

// The layout of a canonical line.
const (
	tsPrefix      = `{"ts":"`
	levelPrefix   = `","level":"`
	servicePrefix = `","service":"`
	msgPrefix     = `","msg":"`

	timeAt  = len(tsPrefix)
	levelAt = timeAt + canonicalLen + len(levelPrefix)
)

// LineTime returns the time of a canonical line.
func LineTime(line []byte) (ns int64, ok bool) {
	if len(line) < levelAt || string(line[:timeAt]) != tsPrefix {
		return 0, false
	}
	return ParseCanonicalTime(line[timeAt : timeAt+canonicalLen])
}

// LineLevel returns the level of a canonical line; Other also for an invalid line.
func LineLevel(line []byte) Level {
	if len(line) < levelAt || string(line[timeAt+canonicalLen:levelAt]) != levelPrefix {
		return Other
	}
	word := line[levelAt:]
	for i, c := range word[:min(len(word), len("critical")+1)] {
		if c == '"' {
			return LevelOf(word[:i])
		}
	}
	return Other
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
