package logql

import (
	"errors"
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

// A TextError is an error about a text that stands in a query as a literal, such as a
// template. It is found after the query was parsed, so it has no position; see [Locate].
type TextError struct {
	Text string // without its quotes
	Err  error
}

func (e *TextError) Error() string { return e.Err.Error() }

func (e *TextError) Unwrap() error { return e.Err }

// Locate gives an error with a [*TextError] in it the position of that text in its query, as an
// [*Error]. Other errors stay as they are.
func Locate(query string, err error) error {
	about, ok := errors.AsType[*TextError](err)
	if !ok {
		return err
	}
	for _, t := range lex(query) {
		if t.kind == text && unquote(t.text) == about.Text {
			return errorAt(query, t.pos, about.Error())
		}
	}
	return err
}

// errorAt is an error at an offset of a query.
func errorAt(query string, offset int, msg string) *Error {
	before := query[:offset]
	line := strings.LastIndexByte(before, '\n') + 1
	return &Error{Line: strings.Count(before, "\n") + 1, Col: utf8.RuneCountInString(before[line:]) + 1, Msg: msg}
}
