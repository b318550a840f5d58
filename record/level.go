package record

import "bytes"

// Level is the severity of a record, in rising order up to Critical.
type Level uint8

// The levels. Other is every word that is no level and no alias, and a missing word.
const (
	Trace Level = iota
	Debug
	Info
	Warn
	Error
	Critical
	Other
)

// NumLevels is the number of levels, for arrays that count by level.
const NumLevels = 7

// String returns the word of the level in canonical lines; "other" for Other: these
// records keep their own word.
func (l Level) String() string {
	return [...]string{"trace", "debug", "info", "warn", "error", "critical", "other"}[min(l, Other)]
}

// LevelOf returns the level of a word in a canonical line. Only the canonical words
// themselves count; any other word is Other.
func LevelOf(canonicalWord []byte) Level {
	switch string(canonicalWord) {
	case "info":
		return Info
	case "debug":
		return Debug
	case "warn":
		return Warn
	case "error":
		return Error
	case "trace":
		return Trace
	case "critical":
		return Critical
	}
	return Other
}

// ParseLevel returns the level of word in any of the usual vocabularies (syslog, log4j,
// slog, pino, journald, .NET, PostgreSQL). Letter case, surrounding spaces and the codes of
// colours do not matter. Numbers are syslog severities from 0 to 7, pino's levels from 10. A
// number behind a word is a step of it: INFO+2 of slog, ERROR3 of OpenTelemetry, DEBUG5 of
// PostgreSQL. Any other word is Other.
func ParseLevel(word []byte) Level {
	if l := LevelOf(word); l != Other {
		return l
	}
	if l := aliasOf(word); l != Other {
		return l
	}
	return oddLevel(word)
}

// aliasOf returns the level of a word that stands alone.
func aliasOf(word []byte) Level {
	l, _ := LookupWord(bytes.TrimSpace(word))
	return l
}

// longestOdd is the longest text that oddLevel looks at: a word between colours.
const longestOdd = 64

// oddLevel returns the level of a word with colours, marks or a step around it.
func oddLevel(word []byte) Level {
	if len(word) == 0 || len(word) > longestOdd || isWord(word) {
		return Other
	}
	if bytes.IndexByte(word, esc) >= 0 {
		var buf [longestOdd]byte
		word = AppendPlain(buf[:0], word)
	}
	word = bytes.Trim(word, " \t\r\n[]():")
	if whole, zeros, ok := bytes.Cut(word, []byte(".")); ok && len(bytes.Trim(zeros, "0")) == 0 && len(zeros) > 0 && IsDigit(word[0]) {
		return aliasOf(whole) // 30.0, as some languages print a number
	}
	n := len(word)
	for n > 0 && IsDigit(word[n-1]) {
		n--
	}
	switch {
	case n == 0 || n == len(word):
	case n > 1 && (word[n-1] == '+' || word[n-1] == '-') && !IsDigit(word[0]):
		n--
	case len(word)-n > 1 || n < len("warn") && word[0]|0x20 != 'd':
		return Other // W3 is the name of a thing; D1 to D5 are MongoDB's
	}
	if n == 0 {
		n = len(word)
	}
	return aliasOf(word[:n])
}

// isWord reports whether a text has letters alone.
func isWord(s []byte) bool {
	for _, c := range s {
		if (c|0x20)-'a' >= 26 {
			return false
		}
	}
	return true
}

const esc = 0x1b

// AppendPlain appends a text without the codes of colours in it (ECMA-48: ESC, a bracket,
// and all up to a letter).
func AppendPlain(dst, text []byte) []byte {
	for {
		at := bytes.IndexByte(text, esc)
		if at < 0 {
			return append(dst, text...)
		}
		dst = append(dst, text[:at]...)
		text = text[at+1:]
		if len(text) == 0 || text[0] != '[' {
			continue
		}
		n := 1
		for n < len(text) && (text[n] < '@' || text[n] > '~') {
			n++
		}
		text = text[min(n+1, len(text)):]
	}
}
