package record

// A Mark is what has to be around a word of a text for a level, because sentences have such words too.
type Mark uint8

// The marks.
const (
	NoLevel Mark = iota // it is none in a text
	Sure                // it hardly means anything else
	Rare                // a mark of a logger
	Upper               // a mark, and upper case
	Noted               // brackets, as of MySQL
)

// words are the names of levels in lower case: those of syslog, log4j, java.util.logging, slog, pino,
// journald, .NET, PostgreSQL and others, with their shorter forms.
var words = [...]struct {
	level Level
	mark  Mark
	of    []string
}{
	{Trace, Sure, []string{"trace", "trc", "trce", "trac"}},
	{Trace, Rare, []string{"verbose", "vrb", "verb", "verbo"}},
	{Trace, Upper, []string{"finest", "finer", "silly"}},
	{Trace, NoLevel, []string{"t", "v", "10"}},
	{Debug, Sure, []string{"debug", "dbg", "dbug", "debu"}},
	{Debug, Upper, []string{"fine", "config"}},
	{Debug, NoLevel, []string{"d", "7", "20"}},
	{Info, Sure, []string{"info", "inf", "infor"}},
	{Info, Rare, []string{"information", "informational", "notice"}},
	{Info, Upper, []string{"success", "log"}},
	{Info, Noted, []string{"note"}},
	{Info, NoLevel, []string{"i", "n", "5", "6", "30"}},
	{Warn, Sure, []string{"warn", "wrn", "warni", "warning"}},
	{Warn, NoLevel, []string{"w", "4", "40"}},
	{Error, Sure, []string{"error", "err", "erro", "eror", "severe"}},
	{Error, Rare, []string{"fail"}},
	{Error, NoLevel, []string{"e", "3", "50"}},
	{Critical, Sure, []string{"critical", "crit", "fatal", "ftl", "fata", "fatl", "pani"}},
	{Critical, Rare, []string{"panic", "dpanic", "alert", "emerg", "emergency"}},
	{Critical, NoLevel, []string{"c", "f", "0", "1", "2", "60"}},
}

// maxLevelWord is the length of the longest word, "informational".
const maxLevelWord = 13

const wordBits = 9

// A wordSlot has a word with its row.
type wordSlot struct {
	word string
	row  uint8
}

// wordSlots has each word at the first free place from its hash on.
var wordSlots = func() (slots [1 << wordBits]wordSlot) {
	for row, w := range words {
		for _, word := range w.of {
			at := hashKey([]byte(word), firstWord([]byte(word))) >> (64 - wordBits)
			for slots[at].word != "" {
				at = (at + 1) % (1 << wordBits)
			}
			slots[at] = wordSlot{word, uint8(row)}
		}
	}
	return slots
}()

// LookupWord returns the level of a word in any case, and its mark; Other for any other word.
func LookupWord(word []byte) (Level, Mark) {
	if len(word) > maxLevelWord {
		return Other, NoLevel
	}
	for at := hashKey(word, firstWord(word)) >> (64 - wordBits); ; at = (at + 1) % (1 << wordBits) {
		slot := &wordSlots[at]
		if slot.word == "" {
			return Other, NoLevel
		}
		if len(slot.word) == len(word) && isFolded(word, slot.word) {
			w := &words[slot.row]
			return w.level, w.mark
		}
	}
}
