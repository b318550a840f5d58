package compact

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"blobtail/blobfmt"
	"blobtail/internal/units"
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
	keys  blobfmt.KeyReader

	// The current record, after next.
	line []byte // valid until next
	key  record.Key
}

// cursor reads a blob whole and verifies it.
func (r *run) cursor(ctx context.Context, b *blob) (*cursor, error) {
	body, err := r.read(ctx, b, 0, b.Size)
	if err != nil {
		return nil, err
	}
	if found := blobfmt.Verify(b.Key, body, b.Meta); len(found) > 0 {
		return nil, r.damaged(ctx, b, fmt.Errorf("it is not sound (%s): %w", units.Count(len(found), "finding"), found[0]))
	}
	x, err := blobfmt.ReadIndex(b.Key, int64(len(body)), func(off, n int64) ([]byte, error) { return body[off : off+n], nil })
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
		c.lines, c.rest, c.keys = lines, lines, c.origins.Keys(c.block)
		c.block++
	}
	n := bytes.IndexByte(c.rest, '\n') + 1
	c.line, c.rest, c.key = c.rest[:n], c.rest[n:], c.keys.Next()
	c.key.Time, _ = record.LineTime(c.line) // Verify has seen a time in each line
	return true, nil
}

// merge calls add for the records of all cursors, in order and each once, and counts
// the copies. Different records of one identity and time are an error, since a blob
// can hold only one of them.
func merge(d *blobfmt.Decoder, cursors []*cursor, add func(line []byte, t int64, origin record.Origin, index uint32) error) (copies int64, err error) {
	var live []*cursor // ascending by their records
	for _, c := range cursors {
		ok, err := c.next(d)
		if err != nil {
			return 0, err
		}
		if ok {
			live = append(live, c)
		}
	}
	inOrder := func(a, b *cursor) int { return a.key.Compare(&b.key) }
	slices.SortFunc(live, inOrder)
	var last record.Key // of the previously added record
	var line []byte
	for len(live) > 0 {
		c := live[0]
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
		more, err := c.next(d)
		if err != nil {
			return 0, err
		}
		if !more {
			live = live[1:]
			continue
		}
		// Neighbours in a blob are often neighbours of the group, so c moves little or not.
		n, _ := slices.BinarySearchFunc(live[1:], c, inOrder)
		copy(live, live[1:1+n])
		live[n] = c
	}
	return copies, nil
}
