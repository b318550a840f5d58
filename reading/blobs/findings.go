package blobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/erasure"
	"blobtail/record"
	"blobtail/storage/lru"
)

const (
	// findingBytes is the memory of a finding beside its lines: its key, and its places in a map and a
	// list.
	findingBytes = 450
	// fewLines is the part of the lines of a block that a finding may have: one of more is worth less
	// than those of the many blocks that it would push out.
	fewLines = 4
)

// A finding is what a filter has found in a whole block. Neither changes, so it never gets old. Nobody
// may change it.
type finding struct {
	lines []byte   // the wanted lines
	ords  []uint32 // the numbers of their records in the block
	// higher are the times of the lines that fail the filter only by a higher level.
	higher []int64
}

// blobID tells the content of a blob. Its batch alone does not: that of a compacted blob is the one of
// the next from the same blobs, which another program may divide into other blocks.
type blobID struct {
	key, version string
	batch        blobfmt.BatchID
	size         int64
}

func (s *source) blobID() blobID { return blobID{s.Key, s.Version, s.Meta.Batch, s.Size} }

// findingID is the key of what a question has found in a block. The question is known by a hash of its
// text: questions are long at times.
type findingID struct {
	blob  blobID
	block int
	of    [sha256.Size]byte
}

// findings are those that a Reader keeps: a *finding, a *folded, or the blocks that ids leave.
type findings = lru.Cache[findingID, any]

func newFindings(most int64) *findings {
	if most <= 0 {
		return nil
	}
	return lru.New[findingID, any](most)
}

// identity is equal for filters that want the same records, and different for others; ok is false if
// nobody can tell, because a function or the time decides.
func (f *Filter) identity() (id [sha256.Size]byte, ok bool) {
	if f.Accept != nil || f.Where != nil && f.Where.AsksTime() {
		return id, false
	}
	where := ""
	if f.Where != nil {
		where = f.Where.String()
	}
	text := fmt.Appendf(nil, "%d %d %t %t %q %q %q %q %q", f.Levels, f.Barred, f.Invert, f.Fold, f.Texts, f.Words, f.Exprs, f.Without, where)
	return sha256.Sum256(text), true
}

func (s *source) findingID(block int, of [sha256.Size]byte) findingID {
	return findingID{s.blobID(), block, of}
}

// findingOf is the key of what the filter of a pass finds in a block; ok is false if it is not kept.
func (l *loader) findingOf(s *source, block int) (id findingID, ok bool) {
	if l.findings == nil || !l.match.known || s.body != nil || s.State != catalog.Sound {
		return id, false
	}
	return s.findingID(block, l.match.id), true
}

// recallFinding sets what earlier reads have found in a block, and reports whether that leaves anything to be
// read.
func (l *loader) recallFinding(s *source, block int) (wanted bool) {
	id, ok := l.findingOf(s, block)
	if !ok || !l.match.reduces(&s.index.Blocks[block]) {
		return true
	}
	kept, ok := l.findings.Get(id)
	found, _ := kept.(*finding)
	if !ok || found == nil {
		return true
	}
	k, higher, err := found.within(&s.index.Blocks[block], l.task.rng)
	if err != nil { // which cannot be: the lines were read before
		return true
	}
	if len(k.raw) == 0 {
		if l.match.notes() {
			return true // its notes tell of the fields that the other lines have
		}
		atomic.AddInt64(&l.sum.Higher, higher)
		return false
	}
	if l.match.where != nil {
		l.match.where.Found()
	}
	if s.sieve.found == nil {
		s.sieve.found = make([]*finding, len(s.index.Blocks))
	}
	s.sieve.found[block] = found
	return true
}

// ofIDs stands for the block of a finding about the ids of a whole blob.
const ofIDs = -1

// recallIDs returns the blocks that may have each of the keys, if an earlier read has asked the blob.
func (l *loader) recallIDs(s *source) [][]bool {
	id, ok := l.findingOf(s, ofIDs)
	if !ok || l.keepsIDs(s) {
		return nil
	}
	kept, _ := l.findings.Get(id)
	blocks, _ := kept.([][]bool)
	return blocks
}

// keepIDs keeps the blocks that may have each of the keys, unless the ids themselves are kept: asking
// them takes microseconds. Nobody may change the blocks.
func (l *loader) keepIDs(s *source) {
	if id, ok := l.findingOf(s, ofIDs); ok && !l.keepsIDs(s) {
		l.findings.Put(id, s.sieve.have, int64(len(s.sieve.have)*len(s.sieve.have[0]))+findingBytes)
	}
}

// found is what earlier reads have found in a block; nil: nothing is known.
func (s *source) found(block int) *finding {
	if s.sieve.found == nil {
		return nil
	}
	return s.sieve.found[block]
}

// judge has the filter find its lines in a block, and keeps them for later reads if they are few. It
// works in place, and own says that the result does not lie in raw.
func (l *loader) judge(s *source, block int, raw []byte) (k kept, higher int64, own bool, err error) {
	b, m := &s.index.Blocks[block], l.match
	id, ok := l.findingOf(s, block)
	if !ok || !m.reduces(b) || m.where != nil && !l.task.rng.covers(b.First, b.Last) {
		k, higher, err = m.keep(raw, b, l.task.rng)
		return k, higher, false, err
	}
	all, size := kept{raw: raw}, len(raw)
	found := &finding{higher: []int64{}}
	m.filter(&all, &found.higher)
	if found.lines, found.ords = all.raw, all.ords; m.certain(len(all.raw) > 0) && l.ctx.Err() == nil && len(all.raw) <= size/fewLines {
		found.lines, found.ords, found.higher = slices.Clip(bytes.Clone(all.raw)), slices.Clip(found.ords), slices.Clip(found.higher)
		l.findings.Put(id, found, int64(len(found.lines)+4*len(found.ords)+8*len(found.higher)+findingBytes))
		own = true
	}
	k, higher, err = found.within(b, l.task.rng)
	return k, higher, own, err
}

// reduces reports whether the filter may leave lines of a block out.
func (m *Matcher) reduces(b *blobfmt.Block) bool {
	return m.readsLines() || wanted(m.levels, &b.Levels) < int64(b.Records)
}

// certain reports whether the filter has judged all lines so far, and has nothing to tell of them
// that a finding does not have.
func (m *Matcher) certain(any bool) bool {
	if m.budget.Err() != nil {
		return false
	}
	return m.where == nil || (any || !m.notes()) && m.where.Certain()
}

// within are the lines of a finding in a range. higher is how many lines in it fail the filter only
// because their level is above the wanted ones.
func (f *finding) within(b *blobfmt.Block, r Range) (k kept, higher int64, err error) {
	lo, hi := 0, len(f.lines)
	above := f.higher
	if b.First < r.From {
		if lo, err = searchTime(f.lines, r.From); err != nil {
			return kept{}, 0, err
		}
		n, _ := slices.BinarySearch(above, r.From)
		above = above[n:]
	}
	if r.To != Newest && b.Last >= r.To {
		if hi, err = searchTime(f.lines, r.To); err != nil {
			return kept{}, 0, err
		}
		n, _ := slices.BinarySearch(above, r.To)
		above = above[:n]
	}
	if lo >= hi {
		return kept{}, int64(len(above)), nil
	}
	n := bytes.Count(f.lines[:lo], newline)
	k = kept{raw: f.lines[lo:hi:hi], ords: f.ords[n:]}
	var ok1, ok2 bool
	k.first, ok1 = record.LineTime(k.raw)
	k.last, ok2 = record.LineTime(lastLine(k.raw))
	if !ok1 || !ok2 {
		return kept{}, 0, errLine
	}
	return k, int64(len(above)), nil
}

// Forget drops, once a minute until ctx ends, what was found in days with a mark of the last hour: some
// of it was erased. A read that began before may find that again, for minutes.
func (r *Reader) Forget(ctx context.Context) {
	for r.findings != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Minute):
		}
		days, _ := erasure.Marked(ctx, r.store, r.opt.Now().Add(-time.Hour)) // the next minute tries it again
		r.findings.Drop(func(id findingID) bool { return days[path.Dir(path.Dir(id.blob.key))] })
	}
}
