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

// maxLevelWord is the length of the longest alias, "informational".
const maxLevelWord = 13

// ParseLevel returns the level of word in any of the usual vocabularies (syslog, log4j,
// slog, pino, journald, .NET). Letter case and surrounding spaces do not matter. Numbers are
// syslog severities from 0 to 7, pino's levels from 10. Any other word is Other.
func ParseLevel(word []byte) Level {
	if l := LevelOf(word); l != Other {
		return l
	}
	word = bytes.TrimSpace(word)
	if len(word) > maxLevelWord {
		return Other
	}
	var buf [maxLevelWord]byte
	for i, c := range word {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		buf[i] = c
	}
	switch string(buf[:len(word)]) {
	case "trace", "t", "trc", "trce", "verbose", "v", "vrb", "finest", "finer", "10":
		return Trace
	case "debug", "d", "dbg", "dbug", "fine", "config", "7", "20":
		return Debug
	case "info", "i", "inf", "information", "informational", "notice", "n", "5", "6", "30":
		return Info
	case "warn", "w", "wrn", "warning", "4", "40":
		return Warn
	case "error", "e", "err", "severe", "fail", "3", "50":
		return Error
	case "critical", "c", "crit", "fatal", "f", "ftl", "panic", "dpanic", "alert", "emerg", "emergency",
		"0", "1", "2", "60":
		return Critical
	}
	return Other
}
