// Package filter tells which blocks of a blob may hold a text, so that a search decodes
// few of them. Its answers never lose a record: a block that it rules out does not have the
// text.
//
// A writer passes the lines of each block to a [Builder], and stores two parts with the blob.
// A list of words ([Builder.AppendWords]) is exact. Hashes of ids ([Builder.AppendIDs]) lie in
// buckets, so that a reader fetches one bucket of a blob for an id. A reader turns a text into
// its [Needs] and looks those up in [Words] and in buckets ([Find]).
//
// # Rules, version 1
//
// Letters count in lower case, ASCII only. A word is a run of three letters or more that
// does not consist of a to f alone. An id is a run of six letters and digits or more, with
// a digit. It is not the end of a record's time: nine digits and a Z. A shorter id than 32
// bytes has one key, its own hash. A longer one has a key for each row of 25 of its substrings
// of eight bytes: the hash of the substring that comes first in [order]. So a part of 32 bytes
// of it can be looked up too.
//
// People search for text as it is stored and as it is decoded. Both have the same words and
// ids but for those right behind a backslash. There the letters of the escape are a part of
// the one, and not of the other, and the words and ids of both count.
//
// docs/FORMAT.md has all of it byte by byte. A change of the rules is another [Version].
package filter

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// Version is that of the rules and of both forms. A reader ignores filters of another one.
const Version = 1

// digits make an id of a token.
const digits = "0123456789"

const (
	minWord = 3
	minID   = 6
	longID  = 32 // from this length on an id has keys of its parts
	gram    = 8  // length of a part
	row     = longID - gram + 1
)

// lowerCase makes lower case of eight letters or digits.
const lowerCase = 0x2020202020202020

// multiplier spreads the bits of a number over the higher ones.
const multiplier = 0x9E3779B97F4A7C15

// order is the order of the parts of a long id, which spreads them evenly.
func order(part []byte) uint64 { return binary.LittleEndian.Uint64(part) * multiplier }

// least is the order of the first of a row of parts, which begins a long id.
func least(id *[longID]byte) uint64 {
	// Four at a time, because each waits for the one before.
	a, b, c, d := order(id[0:]), order(id[1:]), order(id[2:]), order(id[3:])
	for i := 4; i < row-1; i += 4 {
		a, b = min(a, order(id[i:i+gram])), min(b, order(id[i+1:i+1+gram]))
		c, d = min(c, order(id[i+2:i+2+gram])), min(d, order(id[i+3:i+3+gram]))
	}
	return min(a, b, c, d, order(id[row-1:]))
}

// hash is the key of an id, or of a part of one, in lower case by [lowerCase].
func hash(id []byte) uint32 {
	h := uint64(len(id))
	for ; len(id) > gram; id = id[gram:] {
		h = mix(h ^ binary.LittleEndian.Uint64(id))
	}
	var last [gram]byte
	copy(last[:], id)
	return uint32(mix(mix(h^binary.LittleEndian.Uint64(last[:]))) >> 32)
}

func mix(h uint64) uint64 {
	h *= multiplier
	return h ^ h>>32
}

// isTime reports whether a token in any case is the end of a record's time.
func isTime[T string | []byte](token T) bool {
	const digits = len("123456789")
	if len(token) != digits+1 || token[digits]|0x20 != 'z' {
		return false
	}
	for i := range digits {
		if token[i]-'0' >= 10 {
			return false
		}
	}
	return true
}

// appendKeys appends the keys of an id in lower case by [lowerCase].
func appendKeys(dst []uint32, id []byte) []uint32 {
	if len(id) < longID {
		return append(dst, hash(id))
	}
	first, stays := least((*[longID]byte)(id)), 0 // for so many rows more, or longer
	dst = append(dst, keyOf(first))
	for id = id[1:]; len(id) >= longID; id = id[1:] {
		was := first
		switch last := order(id[row-1:]); {
		case last < first:
			first, stays = last, row-1
		case stays > 0:
			stays--
		default:
			first = least((*[longID]byte)(id))
			for i := range row {
				if order(id[i:]) == first {
					stays = i
				}
			}
		}
		if first != was {
			dst = append(dst, keyOf(first))
		}
	}
	return dst
}

// keyOf is the key of a part by its order.
func keyOf(order uint64) uint32 { return uint32(mix(order) >> 32) }

// isLetter and isToken classify a byte.
func isLetter(c byte) bool { return (c|0x20)-'a' < 26 }
func isToken(c byte) bool  { return isLetter(c) || c-'0' < 10 }

// isWord reports whether letters are a word.
func isWord[T string | []byte](letters T) bool {
	for i := range len(letters) {
		if len(letters) >= minWord && letters[i]|0x20 > 'f' {
			return true
		}
	}
	return false
}

// A span is 64 bytes of text and some more, so that 16 bytes can be loaded from each of the
// 64.
type span [spanLen + 16]byte

const spanLen = 64

// marks has a bit for each byte of a span, from the lowest on. Tokens are letters and digits.
type marks struct{ letters, tokens uint64 }

const (
	ones = 0x0101010101010101
	high = 0x80 * ones
)

// classify looks at eight bytes at a time, and at n bytes at least. Bytes that are not ASCII
// are in no class.
func classify(s *span, n int) (m marks) {
	for i := 0; i < n; i += 8 {
		x := binary.LittleEndian.Uint64(s[i&(spanLen-8):])
		if x&high != 0 {
			x &^= x & high >> 7 * 0xff
		}
		low := x | lowerCase
		letters := (low + (0x80-'a')*ones) &^ (low + (0x80-'z'-1)*ones) & high
		digits := (x + (0x80-'0')*ones) &^ (x + (0x80-'9'-1)*ones) & high
		m.letters |= mask(letters) << (i & 63)
		m.tokens |= mask(letters|digits) << (i & 63)
	}
	return m
}

// mask moves the highest bit of each byte to the lowest eight bits.
func mask(x uint64) uint64 { return x * 0x0002040810204081 >> 56 }

// beyondF reports whether one of eight letters in lower case is none of a to f. Zeros are not.
func beyondF(letters uint64) bool { return (letters+(0x80-'g')*ones)&high != 0 }

// runOf is the length of the run of ones that begins at a bit.
func runOf(ones uint64, at int) int { return bits.TrailingZeros64(^(ones >> (at & 63))) }

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
