package blobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"sync/atomic"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/record"
	"blobtail/storage"
)

// smallBlob is the largest size of a blob that is fetched whole with its index: one
// more request takes longer than the bytes.
const smallBlob = 256 << 10

// idsFirst is the size of a blob from which its ids are asked before anything else. A smaller
// one is fetched whole, with its ids.
const idsFirst = 32 << 10

// source is one blob of a plan, as one pass reads it. Its index is read when it is first
// needed. Only the goroutine that reads it may write to the source; others use it
// afterwards.
type source struct {
	*catalog.Entry
	store   storage.BlobStore
	decoder *blobfmt.Decoder
	objects *objects // of its pass; nil: the object is opened for each request
	sum     *Summary // only for atomic additions
	body    *body    // the blob, if it is in memory
	near    bool     // a request to the store takes as long as some KiB
	// unflushed says that the records are in no blob.
	unflushed bool
	indexes   Indexes // nil: there is no cache

	index    *blobfmt.Index
	err      error
	recalled bool // the index was kept from an earlier read

	// The loader's findings at the opening.
	blocks []int    // the wanted ones, in the order of reading
	groups []*group // the first of them
	early  *future  // of blocks[0], if it is already being decoded
	warn   error    // why it is read without its index
	sieve  sieve
	// unfiltered says why the blob's filters cannot be used.
	unfiltered error
	lost       []error

	// end is the end of the blob from offset endAt on, read with the index. It often
	// holds blocks too. It has endLen bytes or more.
	end    []byte
	endAt  int64
	endLen int64
	// foreseen is requested with the index, and not used yet.
	foreseen atomic.Pointer[foreseen]

	from       *blobfmt.Origins
	originsErr error
	rows       []row // of block rowsOf
	rowsOf     int
}

// readIndex reads the index once; later calls return the same result. whole fetches a
// small blob together with it, for a caller that wants its lines too.
func (s *source) readIndex(ctx context.Context, whole bool) (*blobfmt.Index, error) {
	switch {
	case s.index != nil || s.err != nil:
	case s.body != nil:
		s.index = &s.body.index
	default:
		if s.recall(ctx) {
			break
		}
		atomic.AddInt64(&s.sum.BlobsOpened, 1)
		s.index, s.err = s.decoder.ReadIndex(s.Key, s.Size, func(off, n int64) ([]byte, error) {
			return s.readEnd(ctx, off, n, whole)
		})
		if s.err == nil && s.State == catalog.Sound && s.index.CRC != s.Meta.CRC {
			s.index, s.err = nil, errElsewhere
		}
		s.remember(nil)
	}
	return s.index, s.err
}

func (s *source) readEnd(ctx context.Context, off, n int64, whole bool) ([]byte, error) {
	at, length := off, n
	if s.end == nil {
		at = min(off, s.Size-max(s.endLen, s.guess()))
		if whole && s.Size <= smallBlob {
			at = 0
		}
		length = s.Size - at
	}
	b, err := s.fetch(ctx, at, length)
	if err != nil {
		return nil, err
	}
	if s.end == nil {
		s.end, s.endAt = b, at
	}
	return b[off-at:][:n:n], nil
}

// fetch reads exactly n bytes from off.
func (s *source) fetch(ctx context.Context, off, n int64) ([]byte, error) {
	b, _, err := s.fetchInto(ctx, nil, off, n)
	return b, err
}

// fetchInto is fetch into the memory of spare, if that is enough. own says that nobody else
// has the memory of the result.
func (s *source) fetchInto(ctx context.Context, spare []byte, off, n int64) (b []byte, own bool, err error) {
	if n == 0 {
		return nil, false, nil
	}
	if b = s.held(ctx, off, n); b != nil {
		return b, false, nil
	}
	b, err = s.request(ctx, spare, off, n, n)
	got := int64(len(b))
	if err == nil && got < n || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, false, &blobfmt.CorruptError{Blob: s.Key, Offset: off + got, Length: n - got, Reason: "the blob ends before"}
	}
	return b, true, err
}

// maxWhole bounds a read into memory. Blobs are a hundredth of it, but another program
// may have stored anything under the name of a blob.
const maxWhole = 1 << 30

// withIndex reports whether a block came with the index.
func (s *source) withIndex(b *blobfmt.Block) bool { return s.end != nil && b.Offset >= s.endAt }

// stored is the size of the wanted blocks.
func (s *source) stored() (n int64) {
	for _, i := range s.blocks {
		n += s.index.Blocks[i].Stored
	}
	return n
}

// whole reads all of the blob. If the store knows it to be damaged,
// storage.ErrDamaged comes with the rest of it.
func (s *source) whole(ctx context.Context) ([]byte, error) {
	if s.Size > maxWhole {
		return nil, fmt.Errorf("too large to be read without its index: %d bytes", s.Size)
	}
	if b := s.held(ctx, 0, s.Size); b != nil {
		return b, nil
	}
	return s.request(ctx, nil, 0, -1, s.Size)
}

// held returns a part of the blob that was read, or is being read, with another one.
func (s *source) held(ctx context.Context, off, n int64) []byte {
	if at := off - s.endAt; s.end != nil && at >= 0 && at+n <= int64(len(s.end)) {
		return s.end[at:][:n:n]
	}
	return s.take(ctx, off, n)
}

// request reads a range of the store; n is -1 for the rest of the blob. size is its length.
// With an error it returns the bytes before it.
func (s *source) request(ctx context.Context, spare []byte, off, n, size int64) ([]byte, error) {
	atomic.AddInt64(&s.sum.Requests, 1)
	r, err := s.objects.get(ctx, s, off, n)
	if err != nil {
		return nil, err
	}
	// With room for the last read, which finds the end.
	if int64(cap(spare)) < size+bytes.MinRead {
		spare = make([]byte, 0, size+bytes.MinRead)
	}
	b := bytes.NewBuffer(spare[:0])
	got, err := b.ReadFrom(r)
	atomic.AddInt64(&s.sum.Fetched, got)
	s.objects.fetched(s, got)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return b.Bytes(), err
}

// place is the place of a record in the order of records. Only a record with a known
// place is a copy of another.
type place struct {
	record.Key
	known bool
}

// place returns the place of record number ord of a block, without its time. The
// place is unknown if the blob cannot tell. Only the goroutine that merges may call
// it.
func (s *source) place(block int, ord uint32) (place, error) {
	if s.rows == nil || s.rowsOf != block {
		rows, err := s.readRows(block)
		if err != nil {
			return place{}, err
		}
		s.rows, s.rowsOf = rows, block
	}
	if len(s.rows) == 0 {
		return place{}, nil // read without an index; merge.blind respects it
	}
	i := sort.Search(len(s.rows), func(i int) bool { return ord < s.rows[i].ord }) - 1
	r := &s.rows[i]
	return place{known: true, Key: record.Key{Origin: r.origin, Index: r.index + ord - r.ord}}, nil
}

// readRows reads the origins of a block.
func (s *source) readRows(block int) ([]row, error) {
	if s.body != nil {
		return s.body.rows(block)
	}
	if s.from == nil && s.originsErr == nil {
		s.from, s.originsErr = s.index.Origins()
	}
	if s.originsErr != nil {
		return nil, s.originsErr
	}
	rows, ord := s.rows[:0], uint32(0)
	for _, span := range s.from.Blocks[block] {
		rows = append(rows, row{s.from.Dict[span.Origin], span.First, ord})
		ord += span.Count
	}
	return rows, nil
}

// origins returns the origins of all records, ascending, each once.
func (s *source) origins(ctx context.Context) (out []record.Origin, err error) {
	index, err := s.readIndex(ctx, false)
	if err != nil {
		return nil, err
	}
	if s.body == nil {
		dict, err := index.Dict()
		if err == nil && !index.HasDict() {
			s.remember(dict)
		}
		return dict, err
	}
	for n := range index.Blocks {
		rows, err := s.readRows(n)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if i == 0 || rows[i].origin != rows[i-1].origin {
				out = append(out, rows[i].origin)
			}
		}
	}
	slices.SortFunc(out, func(a, b record.Origin) int { return a.Compare(&b) })
	return slices.Compact(out), nil
}

// problem wraps an error with a part of the blob.
func (s *source) problem(off, n int64, err error) *Problem {
	if c := (*blobfmt.CorruptError)(nil); errors.As(err, &c) {
		off, n = c.Offset, c.Length
	}
	return &Problem{Blob: s.Key, Offset: off, Length: n, Err: err}
}
