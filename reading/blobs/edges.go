package blobs

import (
	"bytes"

	"blobtail/blobfmt"
	"blobtail/record"
)

// Edges are places in the order of records between which records are wanted, exact also among many
// of one ns. The zero value has none.
type Edges struct {
	// After and Before are next to the wanted records, which do not have these places; nil: there is no
	// such edge.
	After, Before *record.Key
}

// any reports whether there is an edge.
func (e *Edges) any() bool { return e.After != nil || e.Before != nil }

// Within is the part of a range between the times of the edges.
func (e *Edges) Within(rng Range) Range {
	if e.After != nil {
		rng.From = max(rng.From, e.After.Time)
	}
	if e.Before != nil && e.Before.Time != Newest {
		rng.To = min(rng.To, e.Before.Time+1)
	}
	return rng
}

// Touch reports whether an edge is within a range.
func (e *Edges) Touch(rng Range) bool {
	return e.After != nil && rng.touches(e.After.Time, e.After.Time) || e.Before != nil && rng.touches(e.Before.Time, e.Before.Time)
}

// Inside reports whether a line is surely between the edges, by its time alone.
func (e *Edges) Inside(line []byte) bool {
	if !e.any() {
		return true
	}
	ns, ok := record.LineTime(line)
	return ok && (e.After == nil || ns > e.After.Time) && (e.Before == nil || ns < e.Before.Time)
}

// endsIn reports whether the last wanted record may be within a block, before others.
func (e *Edges) endsIn(b *blobfmt.Block) bool { return e.Before != nil && b.Last >= e.Before.Time }

// cut returns the lines of a chunk between the edges. The chunk is in order.
func (e *Edges) cut(chunk []byte, c *cursor) ([]byte, error) {
	for e.After != nil && len(chunk) > 0 {
		line := chunk[:bytes.IndexByte(chunk, '\n')+1]
		at, err := c.keyOf(line, chunk, e.After.Time)
		if err != nil {
			return nil, err
		}
		if at.Compare(e.After) > 0 {
			break
		}
		chunk = chunk[len(line):]
	}
	for e.Before != nil && len(chunk) > 0 {
		line := lastLine(chunk)
		at, err := c.keyOf(line, line, e.Before.Time)
		if err != nil {
			return nil, err
		}
		if at.Compare(e.Before) < 0 {
			break
		}
		chunk = chunk[:len(chunk)-len(line)]
	}
	return chunk, nil
}

// keyOf is the place of a line of a chunk: exact if it has a time. part is memory of the chunk that
// begins with the line.
func (c *cursor) keyOf(line, part []byte, exact int64) (at record.Key, err error) {
	ns, ok := record.LineTime(line)
	if !ok {
		return at, errLine
	}
	if ns == exact {
		at = c.placeOf(c.number(part)).Key
	}
	at.Time = ns
	return at, nil
}
