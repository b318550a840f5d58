// Package portable writes the state of a computation as bytes, with which another process of the same
// version goes on.
//
// A [State] names its fields once, in one order, for both directions:
//
//	func (p *point) Code(c *portable.Coder) { portable.Int(c, &p.x); c.Text(&p.name) }
//
// The bytes have a checksum and no names. Who sends them says their version.
package portable

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"math/bits"
)

// A State can be written and read.
type State interface{ Code(c *Coder) }

// A Coder writes the fields of a state, or sets them by bytes. After an error it does nothing.
type Coder struct {
	buf   []byte // written, or to be read
	reads bool
	err   error
}

// Encode are the bytes of a state.
func Encode(s State) []byte {
	c := &Coder{}
	s.Code(c)
	return binary.LittleEndian.AppendUint32(c.buf, sumOf(c.buf))
}

// Decode sets an empty state by bytes. After an error the state is of no use.
func Decode(data []byte, s State) error {
	n := len(data) - crc32.Size
	if n < 0 || binary.LittleEndian.Uint32(data[n:]) != sumOf(data[:n]) {
		return errors.New("the bytes of a state are damaged: their checksum is another one")
	}
	c := &Coder{buf: data[:n], reads: true}
	s.Code(c)
	if c.err == nil && len(c.buf) > 0 {
		return errBad()
	}
	return c.err
}

func sumOf(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

func errBad() error { return errors.New("the bytes are not those of such a state") }

// Reads reports whether the fields are set.
func (c *Coder) Reads() bool { return c.reads }

// Check ends the reading of a state that cannot be.
func (c *Coder) Check(can bool) bool {
	if !can {
		c.Fail(errBad())
	}
	return c.err == nil
}

// Fail ends the reading with an error; nil: it goes on.
func (c *Coder) Fail(err error) {
	if c.err == nil && err != nil {
		c.err, c.buf = err, nil
	}
}

// word codes a number of few bytes if it is small.
func (c *Coder) word(v uint64) uint64 {
	if !c.reads {
		c.buf = binary.AppendUvarint(c.buf, v)
		return v
	}
	v, n := binary.Uvarint(c.buf)
	if c.Check(n > 0) {
		c.buf = c.buf[n:]
	}
	return v
}

// Int codes a whole number.
func Int[T ~int | ~int64 | ~uint32 | ~uint8](c *Coder, v *T) {
	n := c.word(uint64(int64(*v)<<1 ^ int64(*v)>>63))
	if c.err == nil {
		signed := int64(n>>1) ^ -int64(n&1)
		*v = T(signed)
		c.Check(int64(*v) == signed)
	}
}

// Bool codes a truth.
func (c *Coder) Bool(v *bool) {
	n := uint8(0)
	if *v {
		n = 1
	}
	Int(c, &n)
	*v = n == 1
}

// Float codes any number.
func (c *Coder) Float(v *float64) {
	*v = math.Float64frombits(bits.ReverseBytes64(c.word(bits.ReverseBytes64(math.Float64bits(*v)))))
}

// Text codes any bytes.
func Text[T ~string | ~[]byte](c *Coder, v *T) {
	n := len(*v)
	switch Int(c, &n); {
	case !c.reads:
		c.buf = append(c.buf, *v...)
	case c.Check(n >= 0 && n <= len(c.buf)):
		*v, c.buf = T(append([]byte(nil), c.buf[:n]...)), c.buf[n:]
	}
}

// List codes a list; each codes one of it, by a byte at least.
func List[T any](c *Coder, all *[]T, each func(of *T)) {
	n := len(*all)
	if Int(c, &n); c.reads {
		*all = nil
		c.Check(n >= 0 && n <= len(c.buf))
	}
	for i := 0; i < n && c.err == nil; i++ {
		if c.reads {
			*all = append(*all, *new(T))
		}
		each(&(*all)[i])
	}
}
