package filter

import (
	"slices"
	"strings"
)

// Needs are words and ids that a block must have to hold a text: all of them.
type Needs struct {
	Words []Word
	Keys  []uint32 // of ids
}

// A Word is a need of a word with this text. Left and Right say that the word begins, and
// ends, with the text; otherwise more letters may stand there.
type Word struct {
	Text        string
	Left, Right bool
}

// maxKeys is the number of keys that are worth a look-up.
const maxKeys = 3

// NeedsOf returns the needs of a text, with any case of its ASCII letters. left and right say
// that no letter, digit or underscore stands before and behind it. A text may have no needs;
// then no block is ruled out.
func NeedsOf(text string, left, right bool) (n Needs) {
	if strings.Contains(text, "\uFFFD") {
		return n // it may stand for bytes that are no UTF-8
	}
	for at := 0; at < len(text); {
		if !isToken(text[at]) {
			at++
			continue
		}
		end := at
		for end < len(text) && isToken(text[end]) {
			end++
		}
		bounded := (at > 0 || left) && (end < len(text) || right)
		n.addID(text[at:end], bounded)
		n.addWords(text, at, end, left, right)
		at = end
	}
	return n
}

// addID adds the keys of a token with a digit. A token that may be a part of another counts
// only if it is long.
func (n *Needs) addID(token string, bounded bool) {
	if len(token) < minID || isTime(token) || !strings.ContainsAny(token, digits) || !bounded && len(token) < longID {
		return
	}
	for _, key := range appendKeys(nil, appendLower(nil, []byte(token))) {
		if len(n.Keys) < maxKeys && !slices.Contains(n.Keys, key) {
			n.Keys = append(n.Keys, key)
		}
	}
}

// addWords adds the words of a token, which lies from at to end.
func (n *Needs) addWords(text string, at, end int, left, right bool) {
	for ; at < end; at++ {
		if !isLetter(text[at]) {
			continue
		}
		from := at
		for at < end && isLetter(text[at]) {
			at++
		}
		if isWord(text[from:at]) {
			n.Words = append(n.Words, Word{strings.ToLower(text[from:at]), from > 0 || left, at < len(text) || right})
		}
	}
}
