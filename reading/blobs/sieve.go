package blobs

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"blobtail/blobfmt"
	"blobtail/blobfmt/filter"
	"blobtail/storage"
)

// needs are the words and ids of a record that a filter accepts: for each element, those of
// one of its alternatives.
type needs [][]filter.Needs

// needs returns the needs of the filter; nil if it has none.
func (m *Matcher) needs() (all needs) {
	if m.invert {
		return nil
	}
	for _, p := range m.patterns {
		if n := p.Needs(); n != nil {
			all = append(all, n)
		}
	}
	if m.where != nil {
		all = append(all, m.where.Needs()...)
	}
	return all
}

// sifts reports whether the filter may rule out blocks.
func (m *Matcher) sifts() bool { return len(m.needs()) > 0 }

// keys are the keys of the ids that can rule out blocks.
func (n needs) keys() (keys []uint32) {
	for _, one := range n {
		for _, alternative := range one {
			keys = append(keys, alternative.Keys...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// blocks returns the blocks that may have all needs. rule sets the blocks to false that do
// not have one alternative.
func (n needs) blocks(count int, rule func(may []bool, of *filter.Needs)) []bool {
	all := make([]bool, count)
	for i := range all {
		all[i] = true
	}
	may, any := make([]bool, count), make([]bool, count)
	for _, one := range n {
		clear(any)
		for i := range one {
			for j := range may {
				may[j] = true
			}
			rule(may, &one[i])
			for j := range may {
				any[j] = any[j] || may[j]
			}
		}
		for j := range all {
			all[j] = all[j] && any[j]
		}
	}
	return all
}

// A sieve rules out blocks of one blob by its filters. The zero value rules out none.
type sieve struct {
	have  [][]bool   // by key: the blocks that may have it; nil: all
	ids   []bool     // the blocks that ids leave; nil: all
	words []bool     // the blocks that words leave, with ids beside them; nil: all
	found []*finding // by block: what earlier reads have found; nil: nothing
	parts []*folded  // by block: what a fold has made of it earlier; nil: nothing
}

// asksIDs reports whether the ids of a blob may rule out blocks of it.
func (l *loader) asksIDs(s *source) bool {
	return s.body == nil && s.Meta.IDs.Buckets > 0 && len(l.keys) > 0
}

// readIDs asks the ids of a blob. It returns true if they rule out all blocks. Filters that
// cannot be read rule out none.
func (l *loader) readIDs(s *source) (none bool, err error) {
	if !l.asksIDs(s) {
		return false, nil
	}
	if s.sieve.have == nil {
		s.sieve.have = l.recallIDs(s)
	}
	if s.sieve.have == nil {
		have, err := l.find(s, s.Meta.IDs)
		switch {
		case fatal(l.ctx, err) != nil, errors.Is(err, storage.ErrNotExist):
			return false, err
		case err != nil:
			s.unfiltered = err
			return false, nil
		}
		s.sieve.have = have
		l.keepIDs(s)
	}
	s.sieve.ids = l.leave(s.sieve.have)
	return l.ruledOut(s), nil
}

// passes reports whether the kept ids of a blob rule out all of its blocks. It makes no request, and
// takes less time than a goroutine that would: a search for an id passes most blobs so.
func (l *loader) passes(s *source) bool {
	if s.Size <= idsFirst || !l.asksIDs(s) || !l.keepsIDs(s) {
		return false
	}
	have := make([][]bool, len(l.keys))
	for i, key := range l.keys {
		if have[i] = l.recallBucket(s, s.Meta.IDs, key); have[i] == nil || len(have[i]) != len(have[0]) {
			return false
		}
	}
	s.sieve.have, s.sieve.ids = have, l.leave(have)
	return l.ruledOut(s)
}

// leave returns the blocks that ids leave, by those that may have each of the keys.
func (l *loader) leave(have [][]bool) []bool {
	return l.needs.blocks(len(have[0]), func(may []bool, of *filter.Needs) { l.rule(have, may, of) })
}

// rule sets the blocks to false that lack a key.
func (l *loader) rule(have [][]bool, may []bool, of *filter.Needs) {
	for _, key := range of.Keys {
		if at, asked := slices.BinarySearch(l.keys, key); asked && have != nil {
			for i := range may {
				may[i] = may[i] && have[at][i]
			}
		}
	}
}

// ruledOut reports whether ids rule out all blocks of a blob, and counts them then.
func (l *loader) ruledOut(s *source) bool {
	if slices.Contains(s.sieve.ids, true) || l.surveys() {
		return false
	}
	blocks := int64(len(s.sieve.ids))
	atomic.AddInt64(&l.sum.BlocksSkipped, blocks)
	atomic.AddInt64(&l.sum.RuledOutByIDs, blocks)
	return true
}

// find returns the blocks that may have each of the keys. It fetches the buckets that are not
// kept, at once.
func (l *loader) find(s *source, ids blobfmt.IDs) ([][]bool, error) {
	if ids.Length > s.Size-ids.Offset {
		return nil, errors.New("its ids lie outside of it")
	}
	have := make([][]bool, len(l.keys))
	waits := make([]func() error, len(l.keys))
	for i, key := range l.keys {
		if have[i] = l.recallBucket(s, ids, key); have[i] != nil {
			waits[i] = done
			continue
		}
		waits[i] = l.background(func() (err error) {
			have[i], err = l.bucket(s, ids, key)
			return err
		})
	}
	var failed error
	for i := range l.keys {
		if err := waits[i](); err != nil && failed == nil {
			failed = err
		}
		if failed == nil && len(have[i]) != len(have[0]) {
			failed = filter.ErrBucket
		}
	}
	return have, failed
}

// readWords asks the words of a blob, after its index has been read.
func (l *loader) readWords(s *source) {
	if len(s.sieve.ids) != len(s.index.Blocks) {
		s.sieve.have, s.sieve.ids = nil, nil // of another blob that had the name
	}
	if s.body != nil || !s.index.HasFilters() || !l.needs.haveWords() {
		return
	}
	f, err := s.index.Filters()
	if err != nil {
		s.unfiltered = err
		return
	}
	if f == nil || f.Words == nil {
		return
	}
	s.sieve.words = l.needs.blocks(len(s.index.Blocks), func(may []bool, of *filter.Needs) {
		l.rule(s.sieve.have, may, of) // one element may lack a key, and another one a word
		for _, word := range of.Words {
			f.Words.Rule(may, word)
		}
	})
}

func (n needs) haveWords() bool {
	return slices.ContainsFunc(n, func(one []filter.Needs) bool {
		return slices.ContainsFunc(one, func(a filter.Needs) bool { return len(a.Words) > 0 })
	})
}

// rulesOut reports whether filters rule out a block, and counts it.
func (l *loader) rulesOut(s *source, block int) bool {
	var by *int64
	switch {
	case s.sieve.ids != nil && !s.sieve.ids[block]:
		by = &l.sum.RuledOutByIDs
	case s.sieve.words != nil && !s.sieve.words[block]:
		by = &l.sum.RuledOutByWords
	}
	if by == nil || l.surveys() && l.surveyed.CompareAndSwap(false, true) {
		return false
	}
	atomic.AddInt64(by, 1)
	return true
}

// surveys reports that a block is still to be read although it is ruled out. A condition on
// fields learns there which fields records have, for its notes.
func (l *loader) surveys() bool { return l.match.notes() && !l.surveyed.Load() }

// notes reports whether lines that do not match have something to tell: the fields that they have.
func (m *Matcher) notes() bool { return m.where != nil && m.where.AsksFields() }

// unindexed is the warning for a blob that is read without its index.
func unindexed(s *source) error { return fmt.Errorf("read without its index: %w", s.warn) }

// notFiltered is the warning for a blob with filters that could not be used.
func notFiltered(s *source) error {
	return fmt.Errorf("%s: searched without its filters: %w", s.Key, s.unfiltered)
}
