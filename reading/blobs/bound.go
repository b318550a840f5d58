package blobs

import (
	"errors"
	"fmt"
	"sync/atomic"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/internal/units"
	"blobtail/storage"
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

// foretold fails if a read that has decoded some bytes before decodes too much for certain, by the metadata
// of its blobs: it reads all of those that neither its range, nor its limit or filter may cut.
func (a *asked) foretold(t *task, decoded int64) error {
	if t.limit > 0 || a.match.levels != allLevels || a.match.sifts() {
		return nil
	}
	for i := range t.blobs {
		if b := &t.blobs[i]; b.State == catalog.Sound && b.Tier != storage.Archive && t.rng.covers(b.Meta.First, b.Meta.Last) {
			decoded += b.Meta.RawBytes
		}
	}
	return a.TooLarge(decoded)
}

// TooLarge is the error of a read that has decoded so many bytes of lines; nil: it may.
func (a *asked) TooLarge(decoded int64) error {
	if most := a.query.MaxRaw; most > 0 && decoded > most {
		return &TooLargeError{Bytes: decoded, Limit: most}
	}
	return nil
}

// tooLarge reports whether an error ends a read because of its size.
func tooLarge(err error) bool {
	_, ok := errors.AsType[*TooLargeError](err)
	return ok
}
