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
// docs/reference/format.md has all of it byte by byte. A change of the rules is another [Version].
package filter

import (
	"encoding/binary"
	"hash/crc32"
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

// hash is the key of an id of four bytes or more, in any case.
func hash(id []byte) uint32 {
	h, rest := uint64(len(id)), len(id)
	for ; rest > gram; rest -= gram {
		h = mix(h ^ (binary.LittleEndian.Uint64(id[len(id)-rest:]) | lowerCase))
	}
	last := uint64(lowerCase) >> (8 * (gram - rest))
	if len(id) >= gram {
		last |= binary.LittleEndian.Uint64(id[len(id)-gram:]) >> (8 * (gram - rest))
	} else { // both halves have the bytes in the middle
		last |= uint64(binary.LittleEndian.Uint32(id)) | uint64(binary.LittleEndian.Uint32(id[rest-4:]))<<(8*(rest-4))
	}
	return uint32(mix(mix(h^last)) >> 32)
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
	other := byte(0)
	for i := range digits { // without branches
		other |= (token[i] ^ '0') + 0x80 - 10
	}
	return other < 0x80
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

// A span is 64 bytes of text.
type span [spanLen]byte

const spanLen = 64

// marks has a bit for each byte of a span, from the lowest on. Tokens are letters and digits.
type marks struct{ letters, tokens uint64 }

const (
	ones = 0x0101010101010101
	high = 0x80 * ones
)

// classify tells the classes of bytes. Bytes that are not ASCII are in none.
func classify(s *span) marks {
	var l, t, all uint64
	for i := 0; i < spanLen; i += 32 {
		x0 := binary.LittleEndian.Uint64(s[i:])
		x1 := binary.LittleEndian.Uint64(s[i+8:])
		x2 := binary.LittleEndian.Uint64(s[i+16:])
		x3 := binary.LittleEndian.Uint64(s[i+24:])
		all |= x0 | x1 | x2 | x3
		l0, t0 := classes(x0)
		l1, t1 := classes(x1)
		l2, t2 := classes(x2)
		l3, t3 := classes(x3)
		l = l>>4 | l0>>3 | l1>>2 | l2>>1 | l3
		t = t>>4 | t0>>3 | t1>>2 | t2>>1 | t3
	}
	if all&high != 0 {
		return classify(ascii(s))
	}
	return marks{transposed(l), transposed(t)}
}

// classes sets the highest bit of each letter, and of each letter or digit, of eight ASCII bytes.
func classes(x uint64) (letters, tokens uint64) {
	// Of each pair of sums the second has the bit only if the first has.
	low := x | lowerCase
	letters = (low + (0x80-'a')*ones) ^ (low + (0x80-'z'-1)*ones)
	digits := (x + (0x80-'0')*ones) ^ (x + (0x80-'9'-1)*ones)
	return letters & high, (letters | digits) & high
}

// ascii returns a span with zeros for the bytes that are not ASCII.
func ascii(s *span) *span {
	clean := *s
	for i := 0; i < spanLen; i += 8 {
		x := binary.LittleEndian.Uint64(clean[i:])
		binary.LittleEndian.PutUint64(clean[i:], x&^(x&high>>7*0xff))
	}
	return &clean
}

// transposed exchanges the rows and the columns of eight bytes.
func transposed(x uint64) uint64 {
	y := (x ^ x>>7) & 0x00aa00aa00aa00aa
	x ^= y ^ y<<7
	y = (x ^ x>>14) & 0x0000cccc0000cccc
	x ^= y ^ y<<14
	y = (x ^ x>>28) & 0x00000000f0f0f0f0
	return x ^ y ^ y<<28
}

// beyondF reports whether one of eight letters in lower case is none of a to f. Zeros are not.
func beyondF(letters uint64) bool { return (letters+(0x80-'g')*ones)&high != 0 }

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
