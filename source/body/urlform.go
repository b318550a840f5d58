package body

import (
	"bytes"
	"net/url"
	"unicode/utf8"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/text"
)

// URLForm is the type of a form, which curl -d gives to any body.
const URLForm = "application/x-www-form-urlencoded"

// IsURLForm reports whether a text is a form of two pairs or more: name=value&other=a+b
func IsURLForm(s []byte) bool {
	pairs, other := 0, func(r rune) bool { return r < utf8.RuneSelf && !text.IsNameByte(byte(r)) }
	for pair := range bytes.SplitSeq(s, []byte("&")) {
		name, _, ok := bytes.Cut(pair, []byte("="))
		if pairs++; !ok || len(name) == 0 || len(name) > meaning.LongestName || bytes.ContainsFunc(name, other) {
			return false
		}
	}
	return pairs > 1 && !bytes.ContainsAny(s, " \t\r\n{\"")
}

// decodeURLForm passes a form as one object. Any other body is as if it had no type.
func decodeURLForm(body []byte, off int, to Sink) {
	if len(body)-off > record.MaxRecord || !IsURLForm(body[off:]) { // longer ones are no record
		decodeSniffed(body, off, to)
		return
	}
	var object []byte
	for pair := range bytes.SplitSeq(body[off:], []byte("&")) {
		name, value, _ := bytes.Cut(pair, []byte("="))
		object = append(appendFormText(append(object, ','), name), ':')
		if len(value) > 0 && (text.IsDigit(value[0]) || value[0] == '-') && record.ValueLen(value) == len(value) {
			object = append(object, value...) // a number
		} else {
			object = appendFormText(object, value)
		}
	}
	object[0] = '{'
	oneObject(append(object, '}'), len(body), to)
}

// appendFormText appends a text of a form as a string of JSON.
func appendFormText(dst, s []byte) []byte {
	if plain, err := url.QueryUnescape(string(s)); err == nil {
		s = []byte(plain)
	}
	return append(record.AppendEscaped(append(dst, '"'), s), '"')
}
