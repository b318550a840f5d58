package blobs

import (
	"context"

	"blobtail/blobfmt"
	"blobtail/catalog"
)

const (
	// indexShare is the part of a blob that its index takes, about: one 64th. Blobs of many
	// small requests have larger ones, and cost one more request.
	indexShare = 64
	// indexLeast is the least that is read for an index.
	indexLeast = 64 << 10
	// nearIndex is the part of an index that is read from a store near by: all but the origins, and
	// the words of large blobs. There one more request costs less than bytes that nobody needs.
	nearIndex = 8 << 10
	// rawBlock is the length of the lines of a block, unless a line is longer; in a compacted
	// blob it is twice that.
	rawBlock = 512 << 10
)

// A foreseen is a part of a blob that is requested together with the index, because the
// blob's metadata say that a read will need it. If the index shows otherwise, it is in vain.
type foreseen struct {
	off, len int64
	wait     func() error
	data     []byte
}

// guess is how many bytes at the end of the blob are read first.
func (s *source) guess() int64 {
	if s.near {
		return min(s.Size, nearIndex)
	}
	return indexGuess(s.Size)
}

// indexGuess is how many bytes at the end of a blob its index probably takes.
func indexGuess(size int64) int64 { return min(size, max(indexLeast, size/indexShare)) }

// foresee requests the part of a source that holds the wanted blocks, before its index is
// read, if that part has at most size bytes. A part at the end of the blob comes with the
// index.
func (l *loader) foresee(s *source, size int64) {
	if s.body != nil || s.State != catalog.Sound || s.Size <= smallBlob || l.match.readsLines() {
		return
	}
	m, body := &s.Meta, s.Size-indexGuess(s.Size)
	if m.IDs.Buckets > 0 {
		body = min(body, m.IDs.Offset)
	}
	if wanted(l.match.levels, &m.Levels) < 2*(m.RawBytes/rawBlock+1) { // the index rules out many
		return
	}
	stored := func(raw int64) int64 { return min(body, int64(float64(body)*float64(raw)/float64(max(1, m.RawBytes)))) }
	block := stored(blockOf(m))
	at := func(t int64) int64 {
		return int64(float64(body) * (float64(t) - float64(m.First)) / max(1, float64(m.Last)-float64(m.First)))
	}
	lo, hi := int64(0), body
	if l.task.rng.From > m.First {
		lo = max(0, at(l.task.rng.From)-block)
	}
	if last := l.task.rng.last(); last < m.Last {
		hi = min(body, at(last)+block)
	}
	if l.task.limit > 0 && l.task.desc {
		least := hi - 2*block // the last block may be before or behind the guessed place
		if hi == body {
			raw := l.newestBlocks(m)
			least = hi - stored(raw+raw/8+32<<10) // a short block shrinks less
		}
		lo, size = max(lo, least), max(size, hi-least)
	}
	switch {
	case hi-lo > size || lo >= hi:
	case hi == body:
		s.endLen = s.Size - lo
	default:
		f := &foreseen{off: lo, len: hi - lo}
		f.wait = l.background(func() (err error) {
			f.data, err = s.request(l.ctx, nil, f.off, f.len, f.len)
			return err
		})
		s.foreseen.Store(f)
	}
}

// blockOf is the length of the lines of most blocks of a blob.
func blockOf(m *blobfmt.Meta) int64 {
	if m.Compacted > 0 {
		return 2 * rawBlock
	}
	return rawBlock
}

// newestBlocks is the probable length of the lines of the last block of a blob; of the last
// two, if that block probably has fewer wanted records than the limit allows. All blocks but
// the last end where one more line would make them too long.
func (l *loader) newestBlocks(m *blobfmt.Meta) int64 {
	full := max(1, blockOf(m)-m.RawBytes/max(1, m.Records)/2)
	need := int64(float64(l.task.limit) * float64(m.RawBytes) / float64(max(1, wanted(l.match.levels, &m.Levels))))
	last := max(0, m.RawBytes-1)%full + 1
	if need > last {
		last += full
	}
	return min(last, m.RawBytes)
}

// take returns a part of the blob from the foreseen part, which it gives up.
func (s *source) take(ctx context.Context, off, n int64) []byte {
	f := s.foreseen.Load()
	if f == nil || off < f.off || off+n > f.off+f.len || !s.foreseen.CompareAndSwap(f, nil) {
		return nil
	}
	if f.wait() != nil || int64(len(f.data)) < f.len || ctx.Err() != nil {
		return nil // the request for the very part finds the reason
	}
	return f.data[off-f.off:][:n:n]
}
