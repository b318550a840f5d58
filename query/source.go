package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"sync"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/record"
	"blobtail/storage"
)

// smallBlob is the largest size of a blob that is fetched whole with its index: one
// more request takes longer than the bytes.
const smallBlob = 256 << 10

// source is one blob of a plan, or the unflushed records of one service. Its index is
// read when it is first needed.
type source struct {
	*catalog.Entry
	store  storage.BlobStore
	count  *counters
	stream *stream // unflushed records with their identities; nil: a blob

	open  sync.Once
	index *blobfmt.Index
	err   error

	// end is the end of the blob from offset endAt on, read with the index. It often
	// holds blocks too. It is dropped by forget.
	mu    sync.Mutex
	end   []byte
	endAt int64

	origins    sync.Once
	from       *blobfmt.Origins
	originsErr error
	ends       []uint32 // of block endsOf: records up to the end of each span
	endsOf     int
}

// readIndex reads the index once; later calls return the same result. whole fetches a
// small blob together with it, for a caller that wants its lines too.
func (s *source) readIndex(ctx context.Context, whole bool) (*blobfmt.Index, error) {
	if s.stream != nil {
		return s.index, nil
	}
	s.open.Do(func() {
		s.count.opened.Add(1)
		s.index, s.err = blobfmt.ReadIndex(s.Key, s.Size, func(off, n int64) ([]byte, error) {
			return s.readEnd(ctx, off, n, whole)
		})
	})
	return s.index, s.err
}

func (s *source) readEnd(ctx context.Context, off, n int64, whole bool) ([]byte, error) {
	if b := s.kept(off, n); b != nil {
		return b, nil
	}
	at, length := off, n
	if whole && s.Size <= smallBlob {
		at, length = 0, s.Size
	}
	b, err := s.fetch(ctx, at, length)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		s.end, s.endAt = b, at
	}
	return b[off-at:][:n:n], nil
}

// kept returns a range of the blob if it is in memory, else nil.
func (s *source) kept(off, n int64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil || off < s.endAt || off+n > s.endAt+int64(len(s.end)) {
		return nil
	}
	return s.end[off-s.endAt:][:n:n]
}

// forget releases the memory. No other method may be called afterwards.
func (s *source) forget() {
	s.mu.Lock()
	s.end, s.index, s.from, s.ends = nil, nil, nil, nil
	s.mu.Unlock()
}

// fetch reads exactly n bytes from off.
func (s *source) fetch(ctx context.Context, off, n int64) ([]byte, error) {
	if b := s.kept(off, n); b != nil {
		return b, nil
	}
	s.count.requests.Add(1)
	r, err := s.store.Get(ctx, s.Key, off, n)
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	got, err := io.ReadFull(r, b)
	s.count.fetched.Add(int64(got))
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, &blobfmt.CorruptError{Blob: s.Key, Offset: off + int64(got), Length: n - int64(got), Reason: "the blob ends before"}
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// maxWhole bounds a read into memory. Blobs are a hundredth of it, but another program
// may have stored anything under the name of a blob.
const maxWhole = 1 << 30

// whole reads all of the blob. If the store knows it to be damaged,
// storage.ErrDamaged comes with the rest of it.
func (s *source) whole(ctx context.Context) ([]byte, error) {
	if s.Size > maxWhole {
		return nil, fmt.Errorf("too large to be read without its index: %d bytes", s.Size)
	}
	if b := s.kept(0, s.Size); b != nil {
		return b, nil
	}
	s.count.requests.Add(1)
	r, err := s.store.Get(ctx, s.Key, 0, -1)
	if err != nil {
		return nil, err
	}
	// With room for the last read, which finds the end.
	body := bytes.NewBuffer(make([]byte, 0, s.Size+bytes.MinRead))
	n, err := body.ReadFrom(r)
	s.count.fetched.Add(n)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return body.Bytes(), err
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
	s.origins.Do(func() {
		if s.index == nil {
			s.from = &blobfmt.Origins{}
			return
		}
		s.from, s.originsErr = s.index.Origins()
	})
	if s.originsErr != nil {
		return place{}, s.originsErr
	}
	if s.index == nil {
		return place{}, nil // merge.blind respects it
	}
	if block >= len(s.from.Blocks) {
		return place{}, fmt.Errorf("origins of block %d are missing", block)
	}
	spans := s.from.Blocks[block]
	if s.ends == nil || s.endsOf != block {
		s.ends, s.endsOf = make([]uint32, 0, len(spans)), block
		sum := uint32(0)
		for _, span := range spans {
			sum += span.Count
			s.ends = append(s.ends, sum)
		}
	}
	i := sort.Search(len(s.ends), func(i int) bool { return ord < s.ends[i] })
	if i == len(spans) || spans[i].Origin >= len(s.from.Dict) {
		return place{}, fmt.Errorf("origins of block %d do not cover its records", block)
	}
	index := spans[i].First + ord - (s.ends[i] - spans[i].Count)
	return place{known: true, Key: record.Key{Origin: s.from.Dict[spans[i].Origin], Index: index}}, nil
}

// problem wraps an error with a part of the blob.
func (s *source) problem(off, n int64, err error) *Problem {
	if c := (*blobfmt.CorruptError)(nil); errors.As(err, &c) {
		off, n = c.Offset, c.Length
	}
	return &Problem{Blob: s.Key, Offset: off, Length: n, Err: err}
}
