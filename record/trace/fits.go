package trace

import (
	"bytes"
	"cmp"
	"math/bits"
	"strings"

	"blobtail/record/text"
)

// fits reports whether a line that ends at end has a form, from its first byte on. The signs of a form
// are:
//
//	& digits                                    * any text up to the words behind the sign
//	~ a name: letters, digits and . : _ $       ^ all up to a blank or these words, with a dot in it
//	% a place without blanks, as app/x.js:5     *% a place behind the last blank or bracket
//	_ blanks, perhaps none                      ! an exception, with its message
//	$ the end of the line                       \ the next byte stands for itself
//
// A line feed is the next line that is not empty. All other bytes stand for themselves.
func (j *Joiner) fits(form string, s []byte, end int) bool {
	for i := 0; i < len(form); i++ {
		c, n := form[i], 0
		if c == '\\' {
			i++
			c = form[i]
		} else if signs[c] {
			switch c {
			case '$':
				return len(s) == 0
			case '!':
				return isThrown(s)
			case '\n':
				if len(s) > 0 {
					return false
				}
				s, end = j.behind(end)
				continue
			}
			if n = span(form[i:], s); n < 0 {
				return false
			}
			s = s[n:]
			continue
		}
		if len(s) == 0 || s[0] != c {
			return false
		}
		s = s[1:]
	}
	return true
}

// span returns how many bytes of s the sign that a form begins with takes, -1 if it takes none.
func span(form string, s []byte) (n int) {
	switch form[0] {
	case '*':
		return upTo(form[1:], s)
	case '_':
		return text.SkipBlanks(s, 0)
	case '&':
		n = digits(s)
	case '%':
		n = placeOf(s)
	case '~':
		for n < len(s) && (isNamed(s[n]) || s[n] == ':') {
			n++
		}
	case '^':
		if n = bytes.IndexAny(s, " \t"); n < 0 {
			n = len(s)
		}
		if bytes.IndexByte(s[:n], '.') < 1 {
			return -1
		}
		if at := upTo(form[1:], s[:n]); at > 0 {
			n = at
		}
	}
	if n == 0 {
		return -1
	}
	return n
}

// upTo returns the place in s of the words that a form begins with: the last one if they end the line.
// It is -1 if they are not there.
func upTo(form string, s []byte) int {
	n := 0
	for n < len(form) && !signs[form[n]] {
		n++
	}
	words, sign := form[:n], byte(0)
	if n < len(form) {
		sign = form[n]
	}
	switch {
	case n == 0 && sign == '%':
		return bytes.LastIndexAny(s, " (") + 1
	case n == 0:
		return len(s)
	case sign != '$' && sign != '\n':
		return bytes.Index(s, []byte(words))
	case !bytes.HasSuffix(s, []byte(words)):
		return -1
	}
	return len(s) - n
}

// signs are the bytes of a form that do not stand for themselves.
var signs = [256]bool{'&': true, '~': true, '^': true, '%': true, '_': true, '!': true, '$': true, '\n': true, '*': true, '\\': true}

// any reports whether a line that ends at end has one of the forms.
func (j *Joiner) any(forms []string, s []byte, end int) bool {
	for _, form := range forms {
		if len(s) > 0 && (form[0] == s[0] || signs[form[0]]) && j.fits(form, s, end) {
			return true
		}
	}
	return false
}

// A set has languages, by their bits.
type set uint32

// A row has the languages that a byte may show.
type row struct {
	first, call set    // as the first of a line
	third       string // the third bytes of these first lines; empty: any
	last, end   set    // as the last of a first line, of a call
	next        set    // as the first of the line behind
}

// at returns the row of the index for a byte; that of the sign & for a digit.
func at(c byte) *row {
	if text.IsDigit(c) {
		c = '&'
	}
	return &index[c]
}

// first returns the language of the trace that a line begins, none if it begins none. The line ends at
// end.
func (j *Joiner) first(s []byte, end int) tongue {
	if len(s) == 0 {
		return none
	}
	r, may := at(s[0]), set(0)
	if r.third == "" || len(s) < 3 || strings.IndexByte(r.third, s[2]) >= 0 {
		may = r.first
	}
	for ; may != 0; may &= may - 1 {
		if l := tongue(bits.TrailingZeros32(uint32(may))); j.any(languages[l].first, s, end) {
			return cmp.Or(languages[l].as, l)
		}
	}
	last := s[len(s)-1]
	may = at(last).last
	if end+2 < len(j.body) {
		may |= at(j.body[end+1]).next
	}
	for ; may != 0; may &= may - 1 {
		if l := tongue(bits.TrailingZeros32(uint32(may))); j.any(languages[l].hinted, s, end) {
			return cmp.Or(languages[l].as, l)
		}
	}
	switch {
	case isQualified(s):
		return thrown
	case text.IsDigit(last) && j.isSource(s, end):
		return node
	}
	return none
}

// isFrame reports whether a line, without its indentation, has the whole form of a call in a stack
// trace of any language.
func (j *Joiner) isFrame(s []byte) bool {
	if len(s) < 5 {
		return false
	}
	if s[0] == 'a' && bytes.HasPrefix(s, []byte("at ")) {
		return isCall(bytes.TrimLeft(s[len("at "):], " "))
	}
	if n := placeOf(s); n > 0 {
		for l := range languages {
			if j.any(languages[l].placed, s[n:], 0) {
				return true
			}
		}
	}
	for may := at(s[0]).call | at(s[len(s)-1]).end; may != 0; may &= may - 1 {
		if j.any(languages[bits.TrailingZeros32(uint32(may))].call, s, 0) {
			return true
		}
	}
	return false
}
