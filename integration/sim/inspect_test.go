package sim_test

import (
	"bytes"
	"fmt"
	"path"

	"blobtail/blobfmt"
	"blobtail/internal/check"
	"blobtail/record"
	"blobtail/storage"
)

// inspector looks at the blobs of a store as they are, copies and all, which the
// reader does not show. No batch may have two names, and a run that was taken once
// stands once: one whose request has no origin is known by its place in the log,
// of which there is one. Requests that were taken more often, here or elsewhere,
// may stand as often.
type inspector struct {
	taken  map[record.Origin]int // how often requests with an origin were taken
	ids    map[string]bool       // records that are stored
	names  map[blobfmt.BatchID]string
	copies map[held][]string // blobs in which a run stands
	dec    *blobfmt.Decoder
}

// held is what one request has for one service and period.
type held struct {
	prefix string
	origin record.Origin
}

func newInspector(taken map[record.Origin]int) *inspector {
	return &inspector{taken: taken, ids: map[string]bool{}, names: map[blobfmt.BatchID]string{}, copies: map[held][]string{}}
}

// blob takes a blob up and says what is wrong with it.
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

// compactable is blob for a store whose blobs are compacted: then a name is free
// again, and one batch may well get two. A reader knows what is replaced.
func (x *inspector) compactable(key string, body []byte, _ storage.Attrs) []error {
	index, err := blobfmt.ReadIndex(key, int64(len(body)), func(off, n int64) ([]byte, error) { return body[off : off+n], nil })
	if err != nil {
		return []error{err}
	}
	return x.lines(body, index)
}

// lines notes which records a blob holds.
func (x *inspector) lines(body []byte, index *blobfmt.Index) (bad []error) {
	if x.dec == nil {
		var err error
		if x.dec, err = blobfmt.NewDecoder(); err != nil {
			return []error{err}
		}
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
