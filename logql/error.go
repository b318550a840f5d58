package logql

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// An Error is a mistake in a query and its place.
type Error struct {
	Line, Col int // from 1, Col in runes; 0: it is about the whole text
	Msg       string
}

// Error is the text as Loki has it, which its clients look for.
func (e *Error) Error() string {
	if e.Line == 0 {
		return "parse error : " + e.Msg
	}
	return fmt.Sprintf("parse error at line %d, col %d: %s", e.Line, e.Col, e.Msg)
}

// errorAt is an error at an offset of text.
func errorAt(text string, offset int, msg string) *Error {
	before := text[:offset]
	line := strings.LastIndexByte(before, '\n') + 1
	return &Error{Line: strings.Count(before, "\n") + 1, Col: utf8.RuneCountInString(before[line:]) + 1, Msg: msg}
}
