package blobs

import (
	"errors"
	"fmt"
	"sync/atomic"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/internal/units"
)

// TooLargeError says that a read had to decode more than [Query.MaxRaw].
type TooLargeError struct {
	// Bytes of lines are decoded by the read, at least.
	Bytes, Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the read would decode %s of records or more, and %s is the limit; ask for a shorter range, or for fewer services",
		units.Size(e.Bytes), units.Size(e.Limit))
}

// charge counts the lines of a block before they are decoded. It fails if the read has
// decoded enough.
func (l *loader) charge(b *blobfmt.Block) error {
	atomic.AddInt64(&l.sum.Decoded, b.Raw)
	if spent := l.spent.Add(b.Raw); l.most > 0 && spent > l.most {
		return &TooLargeError{Bytes: spent, Limit: l.most}
	}
	return nil
}

// foretold fails if a pass decodes too much for certain, by the metadata of its blobs: it
// reads all of those that neither its range, nor its limit or filter may cut.
func (p *pass) foretold() error {
	if l := p.loader; l.most == 0 || p.limit > 0 || l.match.levels != allLevels || l.match.sifts() {
		return nil
	}
	all := p.loader.spent.Load()
	for _, c := range p.heap {
		if m := &c.src.Meta; c.src.State == catalog.Sound && p.rng.covers(m.First, m.Last) {
			all += m.RawBytes
		}
	}
	if all > p.loader.most {
		return &TooLargeError{Bytes: all, Limit: p.loader.most}
	}
	return nil
}

// tooLarge reports whether an error ends a read because of its size.
func tooLarge(err error) bool {
	_, ok := errors.AsType[*TooLargeError](err)
	return ok
}
