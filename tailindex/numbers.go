package tailindex

import (
	"errors"
	"strconv"
)

// Lines have numbers and ids that no other line has. As text they cost 5 bits a digit, and
// each ends a match of zstd. So a row has them apart, as bits: a mark takes the place of each
// in the text. docs/reference/format-tail.md has the rule.
const (
	minDigits = 3 // of a decimal number that is kept apart
	maxDigits = 18
	minHex    = 8 // digits of a hexadecimal one
	maxHex    = 64
	// decimalMark and the number of digits, less minDigits, is the mark of a decimal number.
	decimalMark = 0x0b
	// hexMark is followed by hexLength and the number of digits.
	hexMark   = 0x01
	hexLength = 0x20
	// zeros at the end of a decimal number stay in the text: times often have them.
	zeros = "000"
)

// widths are the bits of a decimal number by its digits.
func widths() [maxDigits + 1]int {
	return [...]int{0, 4, 7, 10, 14, 17, 20, 24, 27, 30, 34, 37, 40, 44, 47, 50, 54, 57, 60}
}

// separable reports whether lines have no bytes that are marks.
func separable(lines []byte) bool {
	for _, c := range lines {
		if c < ' ' && c != '\n' {
			return false
		}
	}
	return true
}

// separate splits lines into a text with marks, and the bits of the marked numbers.
func separate(lines []byte) (text, packed []byte) {
	// A number that comes twice is a match, and stays. Two different ones with the same
	// hash stay too.
	var counts [1 << 12]uint8
	at := func(number []byte) *uint8 {
		h := uint32(len(number))
		for _, c := range number {
			h = (h ^ uint32(c)) * 0x9e3779b1
		}
		return &counts[h>>20]
	}
	eachNumber(lines, func(from, to int, _ bool) {
		if n := at(lines[from:to]); *n < 2 {
			*n++
		}
	})
	width := widths()
	text = make([]byte, 0, len(lines))
	var w bitWriter
	done := 0
	eachNumber(lines, func(from, to int, hex bool) {
		if *at(lines[from:to]) > 1 {
			return
		}
		text = append(text, lines[done:from]...)
		done = to
		n := to - from
		if !hex {
			text = append(text, byte(decimalMark+n-minDigits))
			v, _ := strconv.ParseUint(string(lines[from:to]), 10, 64)
			w.put(v, width[n])
			return
		}
		text = append(text, hexMark, byte(hexLength+n))
		for _, c := range lines[from:to] {
			w.put(uint64(hexValue(c)), 4)
		}
	})
	return append(text, lines[done:]...), w.bytes
}

// eachNumber calls f for the numbers that may be kept apart, in order.
func eachNumber(lines []byte, f func(from, to int, hex bool)) {
	for i := 0; i < len(lines); {
		if hexValue(lines[i]) < 0 {
			i++
			continue
		}
		end, letters, digits := i, 0, 0
		for ; end < len(lines) && hexValue(lines[end]) >= 0; end++ {
			if lines[end] >= 'a' {
				letters++
			} else {
				digits++
			}
		}
		if n := end - i; letters > 0 && digits > 0 && n >= minHex && n <= maxHex {
			f(i, end, true)
			i = end
			continue
		}
		for i < end {
			from := i
			for i < end && lines[i] < 'a' {
				i++
			}
			to := i
			for to-from >= 2*len(zeros) && string(lines[to-len(zeros):to]) == zeros {
				to -= len(zeros)
			}
			if to-from >= minDigits && to-from <= maxDigits {
				f(from, to, false)
			}
			for i < end && lines[i] >= 'a' {
				i++
			}
		}
	}
}

// hexValue is the value of a digit, lower-case; -1: it is none.
func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

var errNumbers = errors.New("its numbers do not fit its lines")

// together is the inverse of separate. The lines have most bytes at most.
func together(text, packed []byte, most int) ([]byte, error) {
	width := widths()
	lines := make([]byte, 0, min(most, len(text)+4*len(packed)))
	r := bitReader{bytes: packed}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c >= ' ' || c == '\n':
			lines = append(lines, c)
		case c == hexMark:
			if i++; i == len(text) || text[i] < hexLength+minHex || text[i] > hexLength+maxHex {
				return nil, errNumbers
			}
			for range int(text[i]) - hexLength {
				v, ok := r.take(4)
				if !ok {
					return nil, errNumbers
				}
				lines = append(lines, "0123456789abcdef"[v])
			}
		case c >= decimalMark && c <= decimalMark+maxDigits-minDigits:
			n := int(c) - decimalMark + minDigits
			v, ok := r.take(width[n])
			digits := strconv.AppendUint(nil, v, 10)
			if !ok || len(digits) > n {
				return nil, errNumbers
			}
			for range n - len(digits) {
				lines = append(lines, '0')
			}
			lines = append(lines, digits...)
		default:
			return nil, errNumbers
		}
		if len(lines) > most {
			return nil, errors.New("its lines are too long")
		}
	}
	if !r.done() {
		return nil, errNumbers
	}
	return lines, nil
}

// bitWriter collects values, the most significant bit first.
type bitWriter struct {
	bytes []byte
	free  int // bits of the last byte
}

func (w *bitWriter) put(v uint64, n int) {
	for n > 0 {
		if w.free == 0 {
			w.bytes, w.free = append(w.bytes, 0), 8
		}
		take := min(w.free, n)
		part := byte(v >> (n - take) & (1<<take - 1))
		w.free -= take
		n -= take
		w.bytes[len(w.bytes)-1] |= part << w.free
	}
}

// bitReader reads what a bitWriter has written.
type bitReader struct {
	bytes []byte
	at    int // bits taken
}

func (r *bitReader) take(n int) (v uint64, ok bool) {
	if r.at+n > 8*len(r.bytes) {
		return 0, false
	}
	for n > 0 {
		left := 8 - r.at%8
		take := min(left, n)
		v = v<<take | uint64(r.bytes[r.at/8]>>(left-take))&(1<<take-1)
		r.at += take
		n -= take
	}
	return v, true
}

// done reports whether all bytes were taken.
func (r *bitReader) done() bool { return (r.at+7)/8 == len(r.bytes) }
