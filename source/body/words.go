package body

import (
	"bytes"

	"blobtail/record"
)

// The kinds of words for levels: those that hardly mean anything else, those that need a
// mark, those that need upper case too, and the one that needs brackets.
const (
	none = iota
	sure
	rare
	upper
	note
)

func levelKind(word []byte) int {
	if len(word) < 3 || len(word) > longestLevel || !beginsLevel(word) || !allLetters(word) || record.ParseLevel(word) == record.Other {
		return none
	}
	var buf [longestLevel]byte
	lower := buf[:copy(buf[:], word)]
	for i := range lower {
		lower[i] |= 0x20
	}
	switch string(lower) {
	case "fine", "finer", "finest", "config", "log", "success", "silly":
		return upper
	case "note":
		return note // of MySQL, in brackets
	case "verbose", "vrb", "verb", "verbo", "information", "informational", "notice", "panic", "dpanic", "alert", "emerg", "emergency", "fail":
		return rare
	}
	return sure
}

// beginsLevel reports whether a word of three letters or more begins as a level does, in any
// case. It spares most words the search in all levels.
func beginsLevel(word []byte) bool {
	switch uint32(word[0]|0x20)<<16 | uint32(word[1]|0x20)<<8 | uint32(word[2]|0x20) {
	case 't'<<16 | 'r'<<8 | 'a', 't'<<16 | 'r'<<8 | 'c', 'v'<<16 | 'e'<<8 | 'r', 'v'<<16 | 'r'<<8 | 'b',
		'd'<<16 | 'e'<<8 | 'b', 'd'<<16 | 'b'<<8 | 'g', 'd'<<16 | 'b'<<8 | 'u', 'f'<<16 | 'i'<<8 | 'n', 'c'<<16 | 'o'<<8 | 'n',
		'i'<<16 | 'n'<<8 | 'f', 's'<<16 | 'i'<<8 | 'l', 'n'<<16 | 'o'<<8 | 't', 's'<<16 | 'u'<<8 | 'c', 'l'<<16 | 'o'<<8 | 'g',
		'w'<<16 | 'a'<<8 | 'r', 'w'<<16 | 'r'<<8 | 'n', 'e'<<16 | 'r'<<8 | 'r', 'e'<<16 | 'r'<<8 | 'o', 's'<<16 | 'e'<<8 | 'v', 'f'<<16 | 'a'<<8 | 'i',
		'c'<<16 | 'r'<<8 | 'i', 'f'<<16 | 'a'<<8 | 't', 'f'<<16 | 't'<<8 | 'l', 'p'<<16 | 'a'<<8 | 'n', 'd'<<16 | 'p'<<8 | 'a',
		'a'<<16 | 'l'<<8 | 'e', 'e'<<16 | 'm'<<8 | 'e':
		return true
	}
	return false
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
func dressed(word []byte) []byte {
	if n := len(word) - 1; word[0] == '*' {
		if n < 4 || word[n] != '*' || !allUpper(word[1:n]) || levelKind(word[1:n]) == none {
			return nil
		}
		return word[1:n]
	}
	name, level, _ := bytes.Cut(word, []byte("."))
	switch string(name) {
	case "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp", "ntp", "security",
		"local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7":
		if levelKind(level) != none {
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
	return string(word) == "at" && s.at == len(word) && len(rest) > 6 && allDigits(rest[1:3]) && rest[3] == ':' && isDigit(rest[4])
}
