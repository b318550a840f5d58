package body

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"blobtail/record/text"
)

// A Sort is the kind of bytes that a body has, by their beginning.
type Sort int

// The sorts that [SortOf] knows.
const (
	Unknown Sort = iota // bytes of no known form, such as protobuf
	Lines               // text
	Object              // JSON: it begins with an object or an array
	Encoded             // compressed with gzip, zstd or deflate, which the words name as a header does
	Foreign             // another compression, or text in UTF-16: the words say what to send
)

// SortOf tells the sort of a body that was to be something else, and names it in words. Bytes that
// no format is known for are Unknown, without words.
func SortOf(b []byte) (s Sort, words string) {
	switch {
	case bytes.HasPrefix(b, []byte(gzipMagic)):
		return Encoded, "gzip"
	case bytes.HasPrefix(b, []byte(zstdMagic)):
		return Encoded, "zstd"
	case isZlib(bytes.NewReader(b)) && !isLines(b):
		return Encoded, "deflate"
	case bytes.HasPrefix(b, []byte("\xff\xfe")), bytes.HasPrefix(b, []byte("\xfe\xff")):
		return Foreign, "text in UTF-16: send UTF-8"
	}
	if what := nameOf(b); what != "" {
		return Foreign, what
	}
	rest := b[bom(b):]
	rest = rest[text.SkipSpace(rest, 0):]
	switch {
	case len(rest) == 0:
		return Unknown, ""
	case text.LooksLikeObject(rest), looksLikeArray(rest):
		return Object, "JSON"
	case isLines(b):
		return Lines, "text"
	}
	return Unknown, ""
}

// instead says what a body is that is not of the encoding that its header names, and which header to
// send; "" if that is not known.
func instead(enc Encoding, wire []byte, err error) string {
	sort, words := SortOf(wire)
	switch {
	case sort == Encoded && words == string(enc):
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return "; its end is missing: send the whole body"
		}
		return ""
	case sort == Encoded:
		return "; the body is " + words + ": send it with Content-Encoding: " + words
	case sort == Foreign:
		return "; the body is " + words
	case sort == Unknown:
		return "; if the body is not compressed, leave the header Content-Encoding out"
	}
	return "; the body is " + words + ", not compressed: leave the header Content-Encoding out"
}

// isLines reports whether the beginning of a body is text.
func isLines(b []byte) bool {
	const most = 4 << 10
	cut := b[:min(len(b), most)]
	return utf8.Valid(cut[:len(cut)-min(len(cut), utf8.UTFMax)]) && controls(cut, 0) == 0
}
