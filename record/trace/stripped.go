package trace

import (
	"bytes"
	"slices"

	"blobtail/record/text"
)

// A Stripped is the text of lines with one prefix, without it.
type Stripped struct {
	text         []byte
	off, end, at []int // of its lines in the body, and in the text
	full         bool  // it has reached its bounds
}

// line returns the line of the body that begins at off. It takes the prefixes off from there on, if
// that was not done, or if the text was full and more than half of it is used. So a record is not cut
// at its end.
func (p *Stripped) line(body []byte, off, prefix int) (i int, fresh bool) {
	i, ok := slices.BinarySearch(p.off, off)
	if ok && !(p.full && (i > len(p.off)/2 || p.at[i] > len(p.text)/2)) {
		return i, false
	}
	*p = Stripped{}
	head := constant(body[off : off+prefix])
	for off < len(body) && !p.full {
		end := text.LineEnd(body, off)
		line := body[off:end]
		n := prefixOf(line)
		if n == 0 || !bytes.Equal(constant(line[:n]), head) {
			break
		}
		p.off, p.end, p.at = append(p.off, off), append(p.end, end), append(p.at, len(p.text))
		p.text = append(append(p.text, line[n:]...), '\n')
		p.full = len(p.text) > 2*MaxBytes || len(p.off) == 4*MaxLines
		off = end + 1
	}
	return 0, true
}

// prefixOf is the length of the prefix of a line, whose blank may lack at its end.
func prefixOf(line []byte) int { return text.SkipPrefix(bytes.TrimSuffix(line, []byte("\r")), 0) }

// constant is the part of a prefix that is the same in all lines: without a clock and the last blank.
func constant(prefix []byte) []byte {
	if len(prefix) > len("10:00:06 ") && prefix[2] == ':' {
		prefix = prefix[len("10:00:06 "):]
	}
	return bytes.TrimRight(prefix, " ")
}

// Join is [Joiner.Join] for a line of a body with a prefix, which the lines that belong to it have
// too.
func (p *Stripped) Join(j *Joiner, body []byte, off, prefix int, head, level []byte) (next, places int) {
	i, fresh := p.line(body, off, prefix)
	if !j.Cut {
		*j = New(nil, j.times)
	} else if fresh {
		j.off, j.end, j.until = 0, 0, 0 // of the text before
	}
	j.body = p.text
	at := p.at[i]
	to, _ := j.Join(at, text.LineEnd(p.text, at), head, level)
	last := i
	for last+1 < len(p.at) && p.at[last+1] < to {
		last++
	}
	return p.end[last], last - i + 1
}

// BehindPrefixes returns a text without the prefix that its lines have; the text itself if it has
// none.
func BehindPrefixes(msg []byte) []byte {
	end := text.LineEnd(msg, 0)
	n := prefixOf(msg[:end])
	if n == 0 || end == len(msg) {
		return msg[n:]
	}
	var p Stripped
	p.line(msg, 0, n)
	return bytes.TrimSuffix(p.text, []byte("\n"))
}
