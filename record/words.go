package record

import "encoding/binary"

// words are the names of levels in lower case: those of syslog, log4j, java.util.logging, slog, pino,
// journald, .NET, PostgreSQL and others, with their shorter forms.
var words = [...]struct {
	level Level
	mark  byte // as of LookupWord
	of    []string
}{
	{Trace, 's', []string{"trace", "trc", "trce", "trac"}},
	{Trace, 'r', []string{"verbose", "vrb", "verb", "verbo"}},
	{Trace, 'u', []string{"finest", "finer", "silly"}},
	{Trace, 0, []string{"t", "v", "10"}},
	{Debug, 's', []string{"debug", "dbg", "dbug", "debu"}},
	{Debug, 'u', []string{"fine", "config"}},
	{Debug, 0, []string{"d", "7", "20"}},
	{Info, 's', []string{"info", "inf", "infor"}},
	{Info, 'r', []string{"information", "informational", "notice"}},
	{Info, 'u', []string{"success", "log"}},
	{Info, 'n', []string{"note"}},
	{Info, 0, []string{"i", "n", "5", "6", "30"}},
	{Warn, 's', []string{"warn", "wrn", "warni", "warning"}},
	{Warn, 0, []string{"w", "4", "40"}},
	{Error, 's', []string{"error", "err", "erro", "eror", "severe"}},
	{Error, 'r', []string{"fail"}},
	{Error, 0, []string{"e", "3", "50"}},
	{Critical, 's', []string{"critical", "crit", "fatal", "ftl", "fata", "fatl", "pani"}},
	{Critical, 'r', []string{"panic", "dpanic", "alert", "emerg", "emergency"}},
	{Critical, 0, []string{"c", "f", "0", "1", "2", "60"}},
}

// maxLevelWord is the length of the longest word, "informational".
const maxLevelWord = 13

const wordBits = 9

// wordLetters has a bit for the low five bits of the first letter of each word, and of the digits. It spares
// most words the search.
const wordLetters = 1<<('a'&31) | 1<<('c'&31) | 1<<('d'&31) | 1<<('e'&31) | 1<<('f'&31) | 1<<('i'&31) | 1<<('l'&31) | 1<<('n'&31) |
	1<<('s'&31) | 1<<('t'&31) | 1<<('v'&31) | 1<<('w'&31) | 0xff<<('0'&31)

// A wordSlot has a word with its row.
type wordSlot struct {
	word string
	row  uint8
}

// wordSlots has each word at the first free place from its hash on.
var wordSlots = func() (slots [1 << wordBits]wordSlot) {
	for row, w := range words {
		for _, word := range w.of {
			at := Hash([]byte(word)) >> (64 - wordBits)
			for slots[at].word != "" {
				at = (at + 1) % (1 << wordBits)
			}
			slots[at] = wordSlot{word, uint8(row)}
		}
	}
	return slots
}()

// Hash is a hash of a key or a word, the same in any case.
func Hash(key []byte) uint64 { return hashKey(key, firstWord(key)) }

// hashKey is [Hash]. word has its first eight bytes.
func hashKey(key []byte, word uint64) uint64 {
	const lower = 0x2020202020202020
	h := word | lower
	if n := len(key); n > 8 {
		h ^= (binary.LittleEndian.Uint64(key[n-8:]) | lower) * 3
	}
	return h * 0x9e3779b97f4a7c15
}

// LookupWord returns the level of a word in any case, Other for any other word, and a mark: what has to be
// around it in a text for a level, because sentences have such words too. It is 's' for nothing, since the
// word hardly means anything else, 'r' for a mark of a logger, 'u' for that and upper case, 'n' for brackets,
// as of MySQL, and 0 if no text has it for a level.
func LookupWord(word []byte) (l Level, mark byte) {
	if len(word) == 0 || len(word) > maxLevelWord || wordLetters>>(word[0]&31)&1 == 0 {
		return Other, 0
	}
	for at := hashKey(word, firstWord(word)) >> (64 - wordBits); ; at = (at + 1) % (1 << wordBits) {
		slot := &wordSlots[at]
		if slot.word == "" {
			return Other, 0
		}
		if len(slot.word) == len(word) && IsFolded(word, slot.word) {
			w := &words[slot.row]
			return w.level, w.mark
		}
	}
}

// IsFolded reports whether a key, in any case, is a name in lower case.
func IsFolded(key []byte, name string) bool {
	for i, c := range key {
		if c-'A' < 26 {
			c |= 0x20
		}
		if c != name[i] {
			return false
		}
	}
	return true
}
