package fan

import (
	"bytes"
	"errors"
	"hash/crc32"

	"blobtail/reading"
	"blobtail/reading/blobs"
	"blobtail/record"
)

// mostAhead is how many bytes of the lines of a part wait in memory. Who reads it waits then.
const mostAhead = 8 << 20

// A part is one of a question, and what came of it. One goroutine reads it, by one try after another.
type part struct {
	blobs.Part
	number      int
	back        bool // the newest comes first
	limit       int  // how many lines of it may be wanted; 0: all
	taken, done bool
	err         error // ends the whole read
	answer      reading.Answer
	elsewhere   bool // it is that of a worker

	// buf[:safe] may be shown. A worker may send more of the time of its last line, so the lines of that
	// time wait behind: if the answer breaks off, another read has them anew.
	buf   []byte
	safe  int
	last  int64 // the time of the last line in buf or before it
	some  bool  // there is one
	shown tally // of lines that may be shown, with those that were
	whole int64 // the time of the last of these
	kept  tally // of lines of tries that broke off, which end at the edge
	edge  int64
}

// A tally is of lines in their order.
type tally struct {
	lines int64
	sum   uint32
}

var (
	errLine    = errors.New("it sends a line that is no record")
	errCrowded = errors.New("it sends too many records of one time for an answer that may break off")
)

// put takes lines of a part. Those of a worker may break off.
func (s *share) put(p *part, lines []byte, breaks bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(p.buf) > mostAhead && p.safe > 0 && s.ctx.Err() == nil {
		s.changed.Wait()
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	to := len(p.buf) + len(lines)
	if breaks {
		at := lastLine(lines)
		last, ok := record.LineTime(lines[at:])
		if !ok {
			return errLine
		}
		for at > 0 {
			before := lastLine(lines[:at])
			if ns, _ := record.LineTime(lines[before:]); ns != last {
				break
			}
			at = before
		}
		switch to = len(p.buf) + at; {
		case at > 0 || !p.some || last != p.last:
		case len(p.buf)-p.safe > mostAhead:
			return errCrowded
		default:
			to = p.safe
		}
		p.last, p.some = last, true
	}
	p.buf = append(p.buf, lines...)
	p.release(to)
	s.changed.Broadcast()
	return nil
}

// lastLine is where the last of some lines begins.
func lastLine(lines []byte) int { return bytes.LastIndexByte(lines[:len(lines)-1], '\n') + 1 }

// sumOf adds lines to a sum of those before them.
func sumOf(sum uint32, lines []byte) uint32 {
	return crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), lines)
}

// release lets the lines of buf up to an offset be shown.
func (p *part) release(to int) {
	if fresh := p.buf[p.safe:to]; len(fresh) > 0 {
		p.shown.lines += int64(bytes.Count(fresh, []byte("\n")))
		p.whole, _ = record.LineTime(fresh[lastLine(fresh):])
		p.shown.sum, p.safe = sumOf(p.shown.sum, fresh), to
	}
}

// broken notes that a try broke off. Its lines stay that may be shown.
func (p *part) broken() {
	p.buf = p.buf[:p.safe]
	p.kept, p.last, p.some = p.shown, p.whole, p.shown.lines > 0
	if p.edge = p.whole; !p.back {
		p.edge++
	}
}

// came is the range of the lines of tries that broke off.
func (p *part) came() reading.Range {
	if p.back {
		return reading.Range{From: p.edge, To: p.To}
	}
	return reading.Range{From: p.From, To: p.edge}
}

// left is the range that the next try has to read, and its limit; false: nothing is left.
func (p *part) left() (reading.Range, int, bool) {
	rng, limit := p.Range, p.limit
	if limit > 0 {
		limit -= int(p.kept.lines)
	}
	if p.kept.lines > 0 && p.back {
		rng.To = p.edge
	} else if p.kept.lines > 0 {
		rng.From = p.edge
	}
	return rng, limit, rng.From < rng.To && (limit > 0 || p.limit == 0)
}

// span is a range in words.
func span(rng reading.Range) (text string) {
	if rng.From != reading.Oldest {
		text = "from " + string(record.AppendTime(nil, rng.From)) + " "
	}
	if rng.To == reading.Newest {
		return text + "on"
	}
	return text + "to " + string(record.AppendTime(nil, rng.To))
}
