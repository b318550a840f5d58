package text

import (
	"bytes"

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

// cisco returns the number in the mark of a message of Cisco's devices, %FAC-n-MNEMONIC.
func cisco(word []byte) []byte {
	if len(word) == 0 || word[0] != '%' {
		return nil
	}
	for i := 1; i+2 < len(word); i++ {
		if word[i] == '-' && word[i+1]-'0' < 8 && word[i+2] == '-' {
			return word[i+1 : i+2]
		}
	}
	return nil
}

// dressed returns the level between two asterisks in upper case, *ERROR* of Sling and of the kernel's
// graphics, and that behind a facility of syslog, daemon.err of OpenWrt and BusyBox.
func (s *levelScan) dressed(word []byte, from int, after byte) []byte {
	if len(word) < 6 || s.rest[from] != '*' && (s.names < 0 || after != ' ') {
		return nil
	}
	return undressed(word)
}

// undressed is dressed for a word of six bytes or more.
func undressed(word []byte) []byte {
	if n := len(word) - 1; word[0] == '*' {
		if word[n] != '*' || !allUpper(word[1:n]) || levelMark(word[1:n]) == noLevel {
			return nil
		}
		return word[1:n]
	}
	name, level, _ := bytes.Cut(word, []byte("."))
	switch string(name) {
	case "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp", "ntp", "security",
		"local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7":
		if levelMark(level) != noLevel {
			return level
		}
	}
	return nil
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

// isAt reports whether a word begins the line and a clock is behind it: at 15:04 ERROR
func (s *levelScan) isAt(word []byte) bool {
	rest := s.rest[s.at:]
	return string(word) == "at" && s.at == len(word) && len(rest) > 6 && AllDigits(rest[1:3]) && rest[3] == ':' && IsDigit(rest[4])
}
