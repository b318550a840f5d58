package main

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// style is the look of a cell; the zero value is plain text.
type style struct {
	color     int // 1 to 16: the ANSI colours; 0: the default
	bold, dim bool
}

type cell struct {
	r rune
	style
}

// screen is a terminal of some width and any height.
type screen struct {
	columns int
	lines   [][]cell
	at      int // in the last line
	now     style
	pending []byte // of a sequence or rune that is not complete
}

func newScreen(columns int) *screen {
	return &screen{columns: max(columns, 1), lines: make([][]cell, 1)}
}

// Write implements io.Writer. It never fails.
func (s *screen) Write(b []byte) (int, error) {
	s.pending = append(s.pending, b...)
	for len(s.pending) > 0 {
		n := s.step(s.pending)
		if n == 0 {
			break
		}
		s.pending = s.pending[n:]
	}
	return len(b), nil
}

// step processes the next rune or sequence and returns its length; 0: it is not
// complete.
func (s *screen) step(b []byte) int {
	switch b[0] {
	case 0x1b:
		return s.escape(b)
	case '\n':
		s.lines, s.at = append(s.lines, nil), 0
		return 1
	case '\r':
		s.at = 0
		return 1
	case '\t':
		for s.put(' '); s.at%8 != 0; {
			s.put(' ')
		}
		return 1
	}
	if b[0] < 0x20 || b[0] == 0x7f {
		return 1
	}
	if !utf8.FullRune(b) {
		return 0
	}
	r, n := utf8.DecodeRune(b)
	s.put(r)
	return n
}

func (s *screen) put(r rune) {
	if s.at == s.columns {
		s.lines, s.at = append(s.lines, nil), 0
	}
	last := &s.lines[len(s.lines)-1]
	for len(*last) <= s.at {
		*last = append(*last, cell{r: ' '})
	}
	(*last)[s.at] = cell{r, s.now}
	s.at++
}

// escape processes a control sequence: ESC [ parameters letter, or ESC and a letter.
func (s *screen) escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if b[1] != '[' {
		return 2
	}
	end := bytes.IndexFunc(b[2:], func(r rune) bool { return r >= 0x40 && r <= 0x7e })
	if end < 0 {
		return 0
	}
	if b[2+end] == 'm' {
		for p := range strings.SplitSeq(string(b[2:2+end]), ";") {
			n, _ := strconv.Atoi(p) // an empty one is 0
			s.attribute(n)
		}
	}
	return 2 + end + 1
}

func (s *screen) attribute(n int) {
	switch {
	case n == 0:
		s.now = style{}
	case n == 1:
		s.now.bold = true
	case n == 2:
		s.now.dim = true
	case n == 22:
		s.now.bold, s.now.dim = false, false
	case n >= 30 && n <= 37:
		s.now.color = n - 30 + 1
	case n == 39:
		s.now.color = 0
	case n >= 90 && n <= 97:
		s.now.color = n - 90 + 9
	}
}
