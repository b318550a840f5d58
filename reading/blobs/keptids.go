package blobs

import (
	"blobtail/blobfmt"
	"blobtail/blobfmt/filter"
	"blobtail/catalog"
	"blobtail/storage/lru"
)

const (
	// mostIDs is how many bytes of ids a Reader keeps that keeps findings. It keeps none of a read
	// whose blobs have more: each would push out another before a later read asks it.
	mostIDs = 16 << 20
	// rowOfIDs is about how many bytes of ids are read at once where a request takes no longer
	// than that, so that later reads of other ids find them.
	rowOfIDs = 128 << 10
)

// A rowID is the key of a row of buckets of a blob, by the number of its first one.
type rowID struct {
	blob  blobID
	first int
}

// keptIDs are the ids of blobs that a Reader keeps, in rows of buckets. Nobody may change one.
type keptIDs = lru.Cache[rowID, *filter.Row]

func newKeptIDs(kept bool) *keptIDs {
	if !kept {
		return nil
	}
	return lru.New[rowID, *filter.Row](mostIDs)
}

// idsOf returns the place for the ids of a task's blobs; nil: they are not kept.
func (r *Reader) idsOf(t *task) *keptIDs {
	if r.ids == nil {
		return nil
	}
	all := int64(0)
	for i := range t.blobs {
		length := t.blobs[i].Meta.IDs.Length
		all += length + length/8 + findingBytes // as much as [filter.Row.Bytes], about
	}
	if all > mostIDs {
		return nil
	}
	return r.ids
}

// keepsIDs reports whether the ids of a blob are kept.
func (l *loader) keepsIDs(s *source) bool { return l.ids != nil && s.State == catalog.Sound }

// row returns the number of the first bucket that is fetched and kept with the one of a key, and the
// place of the row in the blob.
func (l *loader) row(ids blobfmt.IDs, key uint32) (first int, off, length int64) {
	size, n := ids.Length/int64(ids.Buckets), 1
	if !l.distant {
		n = max(1, int(rowOfIDs/size))
	}
	first = filter.BucketOf(key, ids.Buckets)
	first -= first % n
	return first, ids.Offset + int64(first)*size, int64(min(n, ids.Buckets-first)) * size
}

// recallBucket returns the blocks that may have a key, if its bucket is kept.
func (l *loader) recallBucket(s *source, ids blobfmt.IDs, key uint32) []bool {
	if !l.keepsIDs(s) {
		return nil
	}
	first, _, _ := l.row(ids, key)
	row, ok := l.ids.Get(rowID{s.blobID(), first})
	if !ok {
		return nil
	}
	found, err := row.Find(key)
	if err != nil {
		return nil // it is read again, and then told
	}
	return found
}

// bucket fetches the bucket of a key, and finds the blocks that may have it. If the ids of the blob
// are kept, it fetches and keeps a row of them.
func (l *loader) bucket(s *source, ids blobfmt.IDs, key uint32) ([]bool, error) {
	if !l.keepsIDs(s) {
		at, n := ids.Bucket(key)
		b, err := s.fetch(l.ctx, at, n)
		if err != nil {
			return nil, err
		}
		return filter.Find(b, key, ids.Buckets)
	}
	first, off, length := l.row(ids, key)
	stored, own, err := s.fetchInto(l.ctx, nil, off, length)
	if err != nil {
		return nil, err
	}
	row := filter.NewRow(stored, first, int(ids.Length)/ids.Buckets, ids.Buckets)
	found, err := row.Find(key)
	if err == nil && own {
		l.ids.Put(rowID{s.blobID(), first}, row, row.Bytes()+findingBytes)
	}
	return found, err
}
