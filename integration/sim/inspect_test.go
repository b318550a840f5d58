package sim_test

import (
	"bytes"
	"fmt"
	"path"

	"blobtail/blobfmt"
	"blobtail/internal/dev/check"
	"blobtail/record"
	"blobtail/storage"
)

// inspector checks the blobs of a store as they are, with the copies that the reader
// does not show. No batch may have two names, and a run that was accepted once is
// stored once. A run from a request without an origin is known by its place in the log,
// and there is only one such place. Requests that were accepted several times, here or
// elsewhere, may be stored as often.
type inspector struct {
	taken  map[record.Origin]int // number of times a request with an origin was accepted
	ids    map[string]bool       // records that are stored
	names  map[blobfmt.BatchID]string
	copies map[held][]string // blobs that hold a run
	dec    *blobfmt.Decoder
}

// held is the records of one request for one service and period.
type held struct {
	prefix string
	origin record.Origin
}

func newInspector(taken map[record.Origin]int) *inspector {
	return &inspector{taken: taken, ids: map[string]bool{}, names: map[blobfmt.BatchID]string{}, copies: map[held][]string{}}
}

// blob adds a blob and returns its faults.
func (x *inspector) blob(key string, body []byte, attrs storage.Attrs) []error {
	meta, err := blobfmt.ParseMeta(attrs.Metadata)
	if err != nil {
		return []error{fmt.Errorf("%s: %w", key, err)}
	}
	index, err := blobfmt.ReadIndex(key, int64(len(body)), func(off, n int64) ([]byte, error) { return body[off : off+n], nil })
	if err != nil {
		return []error{err}
	}
	origins, err := index.Origins()
	if err != nil {
		return []error{err}
	}
	var bad []error
	if other, ok := x.names[meta.Batch]; ok {
		bad = append(bad, fmt.Errorf("one batch under two names: %s and %s", other, key))
	}
	x.names[meta.Batch] = key
	for _, o := range origins.Dict {
		h := held{path.Dir(key), o}
		x.copies[h] = append(x.copies[h], path.Base(key))
		allowed, known := x.taken[o]
		if !known {
			allowed = 1
		}
		if n := len(x.copies[h]); n > allowed {
			bad = append(bad, fmt.Errorf("stored %d times, but taken %d times: what request %s (a place in the log: %t) has for %s: %v",
				n, allowed, o, !known, h.prefix, x.copies[h]))
		}
	}
	return append(bad, x.lines(body, index)...)
}

// compactable is blob for a store with compaction. A name is free again after a
// compaction, so one batch may get two names. A reader knows the replaced blobs.
func (x *inspector) compactable(key string, body []byte, _ storage.Attrs) []error {
	index, err := blobfmt.ReadIndex(key, int64(len(body)), func(off, n int64) ([]byte, error) { return body[off : off+n], nil })
	if err != nil {
		return []error{err}
	}
	return x.lines(body, index)
}

// lines notes the records in a blob.
func (x *inspector) lines(body []byte, index *blobfmt.Index) (bad []error) {
	if x.dec == nil {
		x.dec = blobfmt.NewDecoder(1)
	}
	for _, b := range index.Blocks {
		lines, err := x.dec.Block(nil, body[b.Offset:b.Offset+b.Stored], b)
		if err != nil {
			bad = append(bad, err)
		}
		for line := range bytes.Lines(lines) {
			x.ids[check.ID(line)] = true
		}
	}
	return bad
}
