// Package portable writes the state of a computation as bytes, with which another process of the same
// version goes on.
//
// A [State] names its fields once, in one order, for both directions:
//
//	func (p *point) Code(c *portable.Coder) { c.Fields(&p.x, &p.name) }
//
// The bytes have a checksum and no names. Who sends them says their version.
package portable

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"math/bits"
	"reflect"
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

// bytes codes some bytes.
func (c *Coder) bytes(v []byte) []byte {
	n := c.word(uint64(len(v)))
	if !c.reads {
		c.buf = append(c.buf, v...)
	} else if v = nil; c.Check(n <= uint64(len(c.buf))) {
		v, c.buf = append(v, c.buf[:n]...), c.buf[n:]
	}
	return v
}

// Fields codes whole numbers, other numbers, truths, texts and bytes, by pointers to them.
func (c *Coder) Fields(all ...any) {
	for _, p := range all {
		switch v := reflect.ValueOf(p).Elem(); v.Kind() {
		case reflect.String:
			v.SetString(string(c.bytes([]byte(v.String()))))
		case reflect.Slice:
			v.SetBytes(c.bytes(v.Bytes()))
		case reflect.Bool:
			v.SetBool(c.word(map[bool]uint64{true: 1}[v.Bool()]) != 0)
		case reflect.Float64:
			v.SetFloat(math.Float64frombits(bits.ReverseBytes64(c.word(bits.ReverseBytes64(math.Float64bits(v.Float()))))))
		case reflect.Uint8, reflect.Uint32:
			n := c.word(v.Uint())
			c.Check(!v.OverflowUint(n))
			v.SetUint(n)
		default:
			n := c.word(uint64(v.Int()<<1 ^ v.Int()>>63))
			v.SetInt(int64(n>>1) ^ -int64(n&1))
		}
	}
}

// List codes a list; each codes one of it, by a byte at least.
func List[T any](c *Coder, all *[]T, each func(of *T)) {
	n := c.word(uint64(len(*all)))
	if c.reads {
		*all = nil
		c.Check(n <= uint64(len(c.buf)))
	}
	for i := uint64(0); i < n && c.err == nil; i++ {
		if c.reads {
			*all = append(*all, *new(T))
		}
		each(&(*all)[i])
	}
}

// Pointers is List of pointers.
func Pointers[T any](c *Coder, all *[]*T, each func(of *T)) {
	List(c, all, func(of **T) {
		if *of == nil {
			*of = new(T)
		}
		each(*of)
	})
}
