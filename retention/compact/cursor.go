package compact

import (
	"bytes"
	"errors"
	"fmt"

	"blobtail/blobfmt"
	"blobtail/record"
)

// A cursor goes through the records of a sound blob, with one block decoded.
type cursor struct {
	body    []byte
	index   *blobfmt.Index
	origins *blobfmt.Origins

	block int // the next
	lines []byte
	rest  []byte // of lines
	spans []blobfmt.Span
	taken uint32 // of the first span

	// The current record, after next.
	line []byte // valid until next
	key  record.Key
}

func newCursor(key string, body []byte) (*cursor, error) {
	x, err := blobfmt.ReadIndex(key, int64(len(body)), func(off, n int64) ([]byte, error) { return body[off : off+n], nil })
	if err != nil {
		return nil, err
	}
	o, err := x.Origins()
	if err != nil {
		return nil, err
	}
	return &cursor{body: body, index: x, origins: o}, nil
}

// next goes to the next record; false is the end.
func (c *cursor) next(d *blobfmt.Decoder) (bool, error) {
	if len(c.rest) == 0 {
		if c.block == len(c.index.Blocks) {
			*c = cursor{} // release the body
			return false, nil
		}
		b := c.index.Blocks[c.block]
		lines, err := d.Block(c.lines[:0], c.body[b.Offset:b.Offset+b.Stored], b)
		if err != nil {
			return false, err
		}
		c.lines, c.rest, c.spans, c.taken = lines, lines, c.origins.Blocks[c.block], 0
		c.block++
	}
	n := bytes.IndexByte(c.rest, '\n') + 1
	t, ok := record.LineTime(c.rest[:n])
	if !ok || len(c.spans) == 0 {
		return false, errors.New("a line without a time or an origin")
	}
	s := c.spans[0]
	c.line, c.rest = c.rest[:n], c.rest[n:]
	c.key = record.Key{Time: t, Origin: c.origins.Dict[s.Origin], Index: s.First + c.taken}
	if c.taken++; c.taken == s.Count {
		c.spans, c.taken = c.spans[1:], 0
	}
	return true, nil
}

// merge calls add for the records of all cursors, in order and each once, and counts
// the copies. Different records of one identity and time are an error, since a blob
// can hold only one of them.
func merge(d *blobfmt.Decoder, cursors []*cursor, add func(line []byte, t int64, origin record.Origin, index uint32) error) (copies int64, err error) {
	h := heap{}
	for _, c := range cursors {
		if err := h.push(d, c); err != nil {
			return 0, err
		}
	}
	var last record.Key // of the previously added record
	var line []byte
	for len(h) > 0 {
		c := h[0]
		switch {
		case line == nil || c.key.Compare(&last) != 0:
			if err := add(c.line, c.key.Time, c.key.Origin, c.key.Index); err != nil {
				return 0, err
			}
			last = c.key
			line = append(line[:0], c.line...)
		case !bytes.Equal(line, c.line):
			return 0, fmt.Errorf("two different records of %s are number %d of origin %s", record.AppendTime(nil, c.key.Time), c.key.Index, c.key.Origin)
		default:
			copies++
		}
		if err := h.step(d); err != nil {
			return 0, err
		}
	}
	return copies, nil
}

// heap has the cursor with the least record first.
type heap []*cursor

func (h *heap) push(d *blobfmt.Decoder, c *cursor) error {
	ok, err := c.next(d)
	if !ok || err != nil {
		return err
	}
	*h = append(*h, c)
	for i := len(*h) - 1; i > 0; {
		parent := (i - 1) / 2
		if (*h)[parent].key.Compare(&(*h)[i].key) <= 0 {
			break
		}
		(*h)[parent], (*h)[i] = (*h)[i], (*h)[parent]
		i = parent
	}
	return nil
}

// step moves the first cursor to its next record.
func (h *heap) step(d *blobfmt.Decoder) error {
	s := *h
	more, err := s[0].next(d)
	if err != nil {
		return err
	}
	if !more {
		end := len(s) - 1
		s[0], s[end] = s[end], nil
		s = s[:end]
		*h = s
	}
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(s) {
			return nil
		}
		if child+1 < len(s) && s[child+1].key.Compare(&s[child].key) < 0 {
			child++
		}
		if s[i].key.Compare(&s[child].key) <= 0 {
			return nil
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}
