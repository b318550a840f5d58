package blobs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/internal/spill"
	"blobtail/record"
	"blobtail/storage/mem"
)

const (
	// inMemory is how many bytes of memory the lines and rows of an [Unflushed] take, unless
	// it is told otherwise.
	inMemory = 48 << 20
	// bodyBlock is the approximate number of bytes of lines in a block of a body.
	bodyBlock = 1 << 20
	// From manyBodies on a new body has a day instead of an hour, and maxBodies is the
	// most: each takes 1 to 2 KiB of memory, however few its records are.
	manyBodies = 1 << 14
	maxBodies  = 1 << 18
	// maxSame bounds how many records may share time and identity. Copies do not count.
	maxSame = 1000
)

// Unflushed are records from ingesters, or from the tail. Some may be in blobs by now. A
// read merges them with blobs; it shows one of copies, which have the same time,
// identity and bytes.
//
// Add the records of each service in their order, name it in [Query.Unflushed], and
// Close it after the last read. It holds up to 48 MiB in memory, and the rest in an
// unnamed temporary file. Only one goroutine may add, and none may read meanwhile. Then
// several goroutines may read.
type Unflushed struct {
	name   string
	heads  map[string]*body // by service: the first body of its latest period
	last   *body            // the head of the record that was added last
	bodies []*body
	aside  spill.Space
	grown  int64     // bytes in memory that aside does not know yet
	spare  sync.Pool // *contents of large blocks in the file; the next ones take their memory
	err    error     // no more can be added
}

// A body is the records of one service and UTC hour, or day, in the form of an opened
// blob, so that a read treats both alike. Its key is no blob's name.
type body struct {
	catalog.Entry
	of     *Unflushed
	index  blobfmt.Index
	blocks []contents
	until  int64 // the last ns of the period

	key  record.Key // of the last record
	line int        // length of its line
	// next is a body of the same period. It has records with the time and identity of a
	// record in this body, and other bytes.
	next *body
}

// contents are the lines of a block and the origins of its records: in memory, or in the
// file if raw is nil.
type contents struct {
	raw  []byte
	rows []row
	at   int64 // in the file: first the lines, then the rows
	num  int   // rows in the file
}

// A row is a row of records in a block with one origin and consecutive indexes.
type row struct {
	origin record.Origin
	index  uint32 // of the first of them
	ord    uint32 // its number in the block
}

// rowSize is the bytes of a row in the file.
const rowSize = 16 + 4 + 4

// NewUnflushed returns an empty Unflushed. Problems are reported with its name.
func NewUnflushed(name string) *Unflushed {
	return &Unflushed{name: name, aside: spill.Space{Most: inMemory}, heads: make(map[string]*body)}
}

// Within has it hold up to so many bytes in memory, for a process with many of them. It is
// called before the first Add.
func (u *Unflushed) Within(most int64) { u.aside.Most = most }

// Add adds a copy of e. It refuses a line that is not canonical, has a service that
// blobs cannot have, or has another time than e; the other records are unharmed. After
// another error nothing more can be added.
func (u *Unflushed) Add(e *record.Entry) error {
	if u.err != nil {
		return u.err
	}
	service, err := entryService(e)
	if err != nil {
		return fmt.Errorf("%s: %w", u.name, err)
	}
	if u.last == nil || u.last.Name.Service != string(service) {
		u.last = u.heads[string(service)]
	}
	if u.last == nil && !catalog.IsService(string(service)) {
		return fmt.Errorf("%s: an entry is of no service: %.80q", u.name, service)
	}
	if u.last == nil || e.Time > u.last.until {
		if u.last, err = u.body(string(service), e); err == nil {
			u.heads[u.last.Name.Service] = u.last
		}
	}
	if err == nil {
		err = u.last.add(e)
	}
	if err == nil && u.grown > 0 {
		if !u.aside.Fits(u.grown) {
			err = u.spill()
		}
		u.grown = 0
	}
	if err != nil {
		u.err = fmt.Errorf("%s: %w", u.name, err)
	}
	return u.err
}

// entryService checks the line of an entry, which may come from any sender, and returns
// its service.
func entryService(e *record.Entry) ([]byte, error) {
	t, ok := record.LineTime(e.Line)
	service, whole := record.LineService(e.Line)
	if !ok || !whole || t != e.Time || bytes.IndexByte(e.Line, '\n') != len(e.Line)-1 {
		return nil, errors.New("an entry is no canonical line of its time")
	}
	return service, nil
}

// body makes an empty body for the period of a record.
func (u *Unflushed) body(service string, e *record.Entry) (*body, error) {
	period := time.Hour
	switch n := len(u.bodies); {
	case n == maxBodies:
		return nil, errors.New("too many days and services; read fewer of them at once")
	case n >= manyBodies:
		period = 24 * time.Hour
	}
	b := &body{of: u, Entry: catalog.Entry{Key: u.name}}
	b.Name = blobfmt.Name{Service: service, Period: time.Unix(0, e.Time).UTC().Truncate(period)}
	b.Meta.First, b.until = e.Time, record.ClampTime(b.Name.Period.Add(period-1))
	u.bodies = append(u.bodies, b)
	return b, nil
}

// add adds a copy of a record to the body or a next one, unless one of them has it.
func (b *body) add(e *record.Entry) error {
	key := record.Key{Time: e.Time, Origin: e.ID.Origin, Index: e.ID.Index}
	for n := 1; ; n++ {
		order := key.Compare(&b.key)
		if order > 0 || b.Meta.Records == 0 {
			b.append(e, &key)
			return nil
		}
		if order < 0 {
			return errors.New("records are not in their order")
		}
		if last, err := b.lastLine(); err != nil || bytes.Equal(last, e.Line) {
			return err
		}
		if n == maxSame {
			return errors.New("too many records of one time and identity")
		}
		if b.next == nil {
			next, err := b.of.body(b.Name.Service, e)
			if err != nil {
				return err
			}
			b.next = next
		}
		b = b.next
	}
}

func (b *body) append(e *record.Entry, key *record.Key) {
	n := len(b.blocks) - 1
	if n < 0 || b.blocks[n].raw == nil || len(b.blocks[n].raw)+len(e.Line) > bodyBlock {
		var c contents
		if n >= 0 && b.index.Blocks[n].Raw > bodyBlock/2 {
			c = b.of.large()
			b.of.grown += int64(cap(c.raw) + rowSize*cap(c.rows))
		}
		b.blocks = append(b.blocks, c)
		b.index.Blocks = append(b.index.Blocks, blobfmt.Block{First: e.Time})
		n++
	}
	c, d, m := &b.blocks[n], &b.index.Blocks[n], &b.Meta
	ord := uint32(d.Records)
	if last := len(c.rows) - 1; last < 0 || key.Origin != b.key.Origin || key.Index != c.rows[last].index+ord-c.rows[last].ord {
		b.of.grown -= int64(rowSize * cap(c.rows))
		c.rows = append(c.rows, row{key.Origin, key.Index, ord})
		b.of.grown += int64(rowSize * cap(c.rows))
	}
	b.of.grown -= int64(cap(c.raw))
	c.raw = append(c.raw, e.Line...)
	b.of.grown += int64(cap(c.raw))
	b.key, b.line = *key, len(e.Line)
	level := record.LineLevel(e.Line)
	d.Last, d.Raw = e.Time, int64(len(c.raw))
	d.Records++
	d.Levels[level]++
	m.Last = e.Time
	m.RawBytes += int64(len(e.Line))
	m.Records++
	m.Levels[level]++
}

// large are the empty contents of a large block.
func (u *Unflushed) large() contents {
	if c, ok := u.spare.Get().(*contents); ok {
		return contents{raw: c.raw[:0], rows: c.rows[:0]}
	}
	return contents{raw: make([]byte, 0, bodyBlock)}
}

func (b *body) lastLine() ([]byte, error) {
	n := len(b.blocks) - 1
	c, end := &b.blocks[n], int(b.index.Blocks[n].Raw)
	if c.raw != nil {
		return c.raw[end-b.line:], nil
	}
	return b.of.aside.Read(nil, c.at+int64(end-b.line), int64(b.line))
}

// spill moves all blocks to the file.
func (u *Unflushed) spill() error {
	var rows []byte
	for _, b := range u.bodies {
		for i := range b.blocks {
			c := &b.blocks[i]
			if c.raw == nil {
				continue
			}
			rows = rows[:0]
			for _, r := range c.rows {
				rows = append(rows, r.origin[:]...)
				rows = binary.LittleEndian.AppendUint32(rows, r.index)
				rows = binary.LittleEndian.AppendUint32(rows, r.ord)
			}
			at, err := u.aside.Write(c.raw, rows)
			if err != nil {
				return fmt.Errorf("put records aside: %w", err)
			}
			if cap(c.raw) == bodyBlock {
				u.spare.Put(&contents{raw: c.raw, rows: c.rows})
			}
			*c = contents{at: at, num: len(c.rows)}
		}
	}
	u.aside.Moved()
	return nil
}

// lines returns a copy of the lines of block n, in buf if it is large enough.
func (b *body) lines(n int, buf []byte) ([]byte, error) {
	c := &b.blocks[n]
	if c.raw == nil {
		return b.of.aside.Read(buf, c.at, b.index.Blocks[n].Raw)
	}
	return append(buf[:0], c.raw...), nil
}

// rows returns the rows of block n.
func (b *body) rows(n int) ([]row, error) {
	c := &b.blocks[n]
	if c.raw != nil {
		return c.rows, nil
	}
	all, err := b.of.aside.Read(nil, c.at+b.index.Blocks[n].Raw, int64(c.num)*rowSize)
	if err != nil {
		return nil, err
	}
	rows := make([]row, c.num)
	for i := range rows {
		from := all[i*rowSize:]
		copy(rows[i].origin[:], from)
		rows[i].index = binary.LittleEndian.Uint32(from[16:])
		rows[i].ord = binary.LittleEndian.Uint32(from[20:])
	}
	return rows, nil
}

// Close releases everything. No read may be under way, and none may follow.
func (u *Unflushed) Close() {
	u.heads, u.last, u.bodies, u.err = nil, nil, nil, fmt.Errorf("%s: closed", u.name)
	u.aside.Close()
}

// Services are the services of the records, in order.
func (u *Unflushed) Services() []string { return slices.Sorted(maps.Keys(u.heads)) }

// Without returns a reader of no blobs, for unflushed records alone.
func Without(o Options) *Reader {
	r := New(mem.New(mem.Options{}), o)
	r.acquitted = nil
	return r
}
