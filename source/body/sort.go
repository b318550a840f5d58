package body

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/klauspost/compress/s2"
)

// A Sort is the kind of bytes that a body has, by their beginning.
type Sort int

// The sorts that [SortOf] knows.
const (
	Unknown  Sort = iota // bytes of no known form
	Lines                // text
	Object               // JSON that begins with an object
	Array                // JSON that begins with an array
	Markup               // XML or HTML
	Journal              // the export format of journald
	Gzipped              // compressed with gzip
	Zstded               // compressed with zstd
	Deflated             // compressed with deflate
	Wide                 // text in UTF-16
	Protobuf             // a message of protobuf that has its records in its first field
	Snapped              // such a message as a block of snappy
	Foreign              // another file or compression, which the words name
)

// SortOf tells the sort of a body that was to be something else, and names it in words. Bytes that
// no format is known for are Unknown, without words.
func SortOf(b []byte) (s Sort, words string) {
	switch {
	case bytes.HasPrefix(b, []byte(gzipMagic)):
		return Gzipped, "gzip"
	case bytes.HasPrefix(b, []byte(zstdMagic)):
		return Zstded, "zstd"
	case isZlib(bytes.NewReader(b)) && !isLines(b):
		return Deflated, "deflate"
	case bytes.HasPrefix(b, []byte("\xff\xfe")), bytes.HasPrefix(b, []byte("\xfe\xff")):
		return Wide, "text in UTF-16"
	}
	if what := nameOf(b); what != "" {
		return Foreign, what
	}
	text := b[bom(b):]
	text = text[skipSpace(text, 0):]
	switch {
	case len(text) == 0:
		return Unknown, ""
	case looksLikeObject(text):
		return Object, "JSON"
	case looksLikeArray(text):
		return Array, "JSON"
	case bytes.HasPrefix(text, []byte("__CURSOR=")), bytes.HasPrefix(text, []byte("__REALTIME_TIMESTAMP=")):
		return Journal, "entries of journald"
	case text[0] == '<' && len(text) > 1 && (text[1] == '?' || text[1] == '!' || isLetter(text[1])):
		return Markup, "XML or HTML"
	case isMessage(b):
		return Protobuf, "protobuf"
	case isSnapped(b):
		return Snapped, "a snappy block of protobuf"
	case isLines(b):
		return Lines, "text"
	}
	return Unknown, ""
}

// Encoded reports whether the sort is that of an encoding, which the words name as a header does.
func (s Sort) Encoded() bool { return s == Gzipped || s == Zstded || s == Deflated }

// instead says what a body is that is not of the encoding that its header names, and which header to
// send; "" if that is not known.
func instead(enc Encoding, wire []byte, err error) string {
	sort, words := SortOf(wire)
	switch {
	case sort.Encoded() && words == string(enc):
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return "; its end is missing: send the whole body"
		}
		return ""
	case sort.Encoded():
		return "; the body is " + words + ": send it with Content-Encoding: " + words
	case sort == Foreign:
		return "; the body is " + words
	case sort == Unknown, sort == Snapped:
		return ""
	}
	return "; the body is " + words + ", not compressed: leave the header Content-Encoding out"
}

// isLetter reports whether a byte is a letter of ASCII.
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// isMessage reports whether bytes are a message of protobuf with nothing but its first field, one
// or more times, as those of OTLP, of Loki and of Prometheus are.
func isMessage(b []byte) bool {
	const field = 1<<3 | 2 // of a length
	any := false
	for len(b) > 0 {
		if b[0] != field {
			return false
		}
		n, size := binary.Uvarint(b[1:])
		if size <= 0 || n == 0 || n > uint64(len(b)-1-size) {
			return false
		}
		b, any = b[1+size+int(n):], true
	}
	return any
}

// isSnapped reports whether bytes are a block of snappy with such a message. A long one is not
// looked into.
func isSnapped(b []byte) bool {
	const most = 1 << 20
	n, err := s2.DecodedLen(b)
	if err != nil || n == 0 || n > most || n > len(b)*MaxRatio {
		return false
	}
	text, err := s2.Decode(make([]byte, n), b)
	return err == nil && isMessage(text)
}

// isLines reports whether the beginning of a body is text.
func isLines(b []byte) bool {
	const most = 4 << 10
	cut := b[:min(len(b), most)]
	return utf8.Valid(cut[:len(cut)-min(len(cut), utf8.UTFMax)]) && controls(cut, 0) == 0
}
