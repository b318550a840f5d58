package body

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// A magic is the first bytes of a format that is no text.
type magic struct{ bytes, what string }

// compressions are formats of compressed data that no Content-Encoding has here.
var compressions = [...]magic{
	{"BZh", "bzip2"}, {"\xfd7zXZ\x00", "xz"}, {"\x04\x22\x4d\x18", "lz4"}, {"\x02\x21\x4c\x18", "lz4"}, {"LZIP\x01", "lzip"}, {"\x89LZO\x00\r\n", "lzop"},
	{"\x1f\x9d", "compress"}, {"\x5d\x00\x00", "lzma"}, {"PK\x03\x04", "zip"}, {"PK\x05\x06", "zip"}, {"7z\xbc\xaf\x27\x1c", "7-Zip"}, {"Rar!\x1a\x07", "rar"},
}

// notText is an [Error] for a body that is no text: its lines would be noise. encoded says that the
// body was compressed when it came.
func notText(body []byte, encoded bool) error {
	if !encoded {
		if err := looksCompressed(body); err != nil {
			return err
		}
	}
	if what := nameOf(body); what != "" {
		return fail(ErrUnsupported, "the body is no text: it is %s; nothing of it was taken", what)
	}
	if !suspicious(body) {
		return nil
	}
	n := controls(body, len(body))
	if n > 1 && (n > len(body)/10 || n > len(body)/25 && unreadable(body) > len(body)/10) {
		more := ""
		if zeros := bytes.Count(body, []byte{0}); zeros > len(body)/4 {
			more = " (is it UTF-16? send UTF-8)"
		}
		return fail(ErrUnsupported, "the body is no text: %d of its %d bytes are control characters%s; nothing of it was taken", n, len(body), more)
	}
	return nil
}

// unreadable counts the bytes of a text that are no UTF-8.
func unreadable(text []byte) (n int) {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size == 1 {
			n++
		}
		text = text[size:]
	}
	return n
}

// nameOf names the compression of a body by its first bytes; "" for others.
func nameOf(body []byte) string {
	const tarAt = 257 // in the header of the first file
	for _, m := range compressions {
		if bytes.HasPrefix(body, []byte(m.bytes)) && (m.what != "bzip2" || isBzip2(body)) {
			return fmt.Sprintf("compressed with %s; decompress it, or send it with gzip or zstd and their Content-Encoding", m.what)
		}
	}
	switch {
	case bytes.HasPrefix(body, []byte(gzipMagic)), bytes.HasPrefix(body, []byte(zstdMagic)):
		return "compressed twice; compress it once"
	case len(body) > tarAt+5 && string(body[tarAt:tarAt+5]) == "ustar": // most of it may be text
		return "an archive (tar); send the files in it"
	}
	return ""
}

// isBzip2 tells a file of bzip2 from a line of text that begins with the same letters.
func isBzip2(body []byte) bool {
	return len(body) >= 10 && body[3] >= '1' && body[3] <= '9' &&
		(string(body[4:10]) == "1AY&SY" || string(body[4:10]) == "\x17rE8P\x90")
}

// suspicious looks for control characters in small parts of a body, since counting all of them
// takes long.
func suspicious(body []byte) bool {
	const part = 256
	if len(body) <= 4*part {
		return controls(body, 0) > 0
	}
	for _, at := range [...]int{0, (len(body) - part) / 2, len(body) - part} {
		if controls(body[at:at+part], 0) > 0 {
			return true
		}
	}
	return false
}

// controls counts the control characters of a text; once there are more than most it may stop. White
// space of logs is none of them, nor is the escape of colours.
func controls(text []byte, most int) (n int) {
	const high, blank = 0x80 * 0x0101010101010101, ' ' * 0x0101010101010101
	for len(text) >= 8 && n <= most {
		x := binary.LittleEndian.Uint64(text)
		// The high bit of each byte below the blank, and of DEL.
		low := ^((x | high) - blank) &^ x & high
		del := (^(((x ^ 0x7f*0x0101010101010101) | high) - 0x0101010101010101)) &^ x & high
		for m := low | del; m != 0; m &= m - 1 {
			if isControl(text[bits.TrailingZeros64(m)>>3]) {
				n++
			}
		}
		text = text[8:]
	}
	for _, c := range text {
		if n <= most && isControl(c) {
			n++
		}
	}
	return n
}

func isControl(c byte) bool {
	switch c {
	case '\t', '\n', '\r', 0x1b:
		return false
	}
	return c < ' ' || c == 0x7f
}
