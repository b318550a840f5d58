package blobs

import (
	"bytes"
	"encoding/binary"

	"blobtail/blobfmt"
	"blobtail/internal/grep"
	"blobtail/record"
)

// kept are the wanted lines of one decoded block: whole, in order, and moved together.
type kept struct {
	raw         []byte
	first, last int64 // times of the first and the last line; unset when raw is empty
	// Line i of raw is record ords[i] of the block, or base+i when ords is nil.
	base uint32
	ords []uint32
}

func (k *kept) ord(line uint32) uint32 {
	if k.ords != nil {
		return k.ords[line]
	}
	return k.base + line
}

// keep reduces the lines of a block to those that are in the range and match. It
// works in place: the result lies in raw. higher is how many lines fail the filter
// only because their level is above the wanted ones.
func (m *Matcher) keep(raw []byte, b *blobfmt.Block, r Range) (k kept, higher int64, err error) {
	lo, hi := 0, len(raw)
	if b.First < r.From {
		if lo, err = searchTime(raw, r.From); err != nil {
			return kept{}, 0, err
		}
	}
	if r.To != Newest && b.Last >= r.To {
		if hi, err = searchTime(raw, r.To); err != nil {
			return kept{}, 0, err
		}
	}
	if lo >= hi {
		return kept{}, 0, nil
	}
	k.base = uint32(bytes.Count(raw[:lo], newline))
	k.raw = raw[lo:hi]
	if m.reduces(b) {
		higher = m.filter(&k, nil)
	}
	if len(k.raw) == 0 {
		return kept{}, higher, nil
	}
	var ok1, ok2 bool
	k.first, ok1 = record.LineTime(k.raw)
	k.last, ok2 = record.LineTime(lastLine(k.raw))
	if !ok1 || !ok2 {
		return kept{}, 0, errLine
	}
	return k, higher, nil
}

// filter moves the matching lines of k to its front and numbers them. above gets the times of the
// lines that fail the filter only by a higher level, unless it is nil.
func (m *Matcher) filter(k *kept, above *[]int64) (higher int64) {
	low := m.folded(k.raw)
	// If a text is required, only the lines that have a spelling of it are examined.
	var finder *grep.Finder
	if len(m.patterns) > 0 && !m.invert && m.patterns[0].Weight() > 0 {
		searched := k.raw // also by a pattern beside one that folds
		if m.patterns[0].Folds() {
			searched = low
		}
		finder = m.patterns[0].Finder(searched)
	}
	k.ords = []uint32{}
	var scratch grep.Line
	out, pos, ord := 0, 0, k.base
	for pos < len(k.raw) {
		if finder != nil {
			at := finder.From(pos)
			if at == len(low) {
				break
			}
			start := pos + bytes.LastIndexByte(low[pos:at], '\n') + 1
			ord += uint32(bytes.Count(k.raw[pos:start], newline))
			pos = start
		}
		end := pos + bytes.IndexByte(k.raw[pos:], '\n') + 1
		if end == pos {
			end = len(k.raw)
		}
		line := k.raw[pos:end]
		if m.budget.Err() != nil {
			break // the read ends with its context
		}
		if want, high := m.line(line, low[pos:end], &scratch); want {
			// The finder may search raw itself: the moved lines lie before the part that is
			// still to be searched.
			out += copy(k.raw[out:], line)
			k.ords = append(k.ords, ord)
		} else if high {
			higher++
			if above != nil {
				t, _ := record.LineTime(line)
				*above = append(*above, t)
			}
		}
		pos = end
		ord++
	}
	k.raw = k.raw[:out]
	return higher
}

// searchTime finds the offset of the first line of raw that is not before t.
func searchTime(raw []byte, t int64) (int, error) {
	lo, hi := 0, len(raw) // both at starts of lines
	for lo < hi {
		start := lo + bytes.LastIndexByte(raw[lo:lo+(hi-lo)/2], '\n') + 1
		ns, ok := record.LineTime(raw[start:hi])
		if !ok {
			return 0, errLine
		}
		if ns >= t {
			hi = start
			continue
		}
		n := bytes.IndexByte(raw[start:hi], '\n')
		if n < 0 {
			return hi, nil
		}
		lo = start + n + 1
	}
	return lo, nil
}

// lastLine returns the last line of raw, which ends in a newline. It passes over eight
// bytes at a time, because [bytes.LastIndexByte] looks at each, and a read backwards spends
// half of its time in there.
func lastLine(raw []byte) []byte {
	const ones = 0x0101010101010101
	end := len(raw) - 1
	for ; end >= 8; end -= 8 {
		if w := binary.LittleEndian.Uint64(raw[end-8:]) ^ '\n'*ones; (w-ones)&^w&(0x80*ones) != 0 {
			break
		}
	}
	return raw[bytes.LastIndexByte(raw[:end], '\n')+1:]
}
