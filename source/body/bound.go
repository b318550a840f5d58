package body

import "runtime"

// MaxLines is how many bytes the lines of a body may have in the log: four times the bytes of the
// longest body. A record of two bytes has a line of a hundred.
const MaxLines = 4 * MaxDecoded

// Fits decodes a body and keeps nothing of it. g has its arrival, and is used for nothing else. made
// is how many bytes the lines of the body have. Beyond MaxLines the decoding ends, with an [*Error].
func (f Form) Fits(text []byte, g *Gatherer) (made int, err error) {
	const records, bytes = 64, 1 << 20
	last := 0
	count := func() {
		_ = g.AddRejected(nil)
		made += len(g.Req.Data)
		g.Past += g.Places
		g.Clear()
		runtime.Gosched()
	}
	g.After = func(end int) bool {
		last = end
		if g.Places >= records || len(g.Req.Data) >= bytes {
			count()
		}
		return made <= MaxLines
	}
	err = f.Decode(text, g)
	if count(); err == nil && made > MaxLines {
		err = TooManyLines(made, last, len(text), MaxLines)
	}
	return made, err
}

// TooManyLines is the [*Error] for a body of so many bytes with more lines than most bytes: those of
// its first bytes, up to end, have made bytes.
func TooManyLines(made, end, all, most int) error {
	return fail(ErrTooLarge, "the records become more than %d MiB of lines in the log: those in the first %d of %d bytes have %d bytes there already; send them in several, smaller ones",
		most>>20, end, all, made)
}
