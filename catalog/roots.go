package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"blobtail/catalog/closed"
	"blobtail/catalog/horizon"
	"blobtail/storage"
)

// A Getter is a store whose objects are read.
type Getter interface {
	Store
	Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error)
}

// Read reads n bytes of an object from an offset, all the rest if n is less than 0.
func Read(ctx context.Context, store Getter, key string, off, n int64) ([]byte, error) {
	body, err := store.Get(ctx, key, off, n)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(body)
	return b, errors.Join(err, body.Close())
}

// ReadPart reads a part.
func ReadPart(ctx context.Context, store Getter, key string) (*closed.Part, error) {
	b, err := Read(ctx, store, key, 0, -1)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return closed.Parse(key, b)
}

// Roots reads the roots of a store, the first one first: those whose parts are of days from the first
// one to the last one that only accepts; nil: all. An error of one comes with its name and does not end
// it; that of the listing comes alone, and does.
func Roots(ctx context.Context, store Getter, only func(first, last string) bool) iter.Seq2[*closed.Root, error] {
	return func(yield func(*closed.Root, error) bool) {
		for o, err := range store.List(ctx, closed.RootPrefix, "") {
			if err != nil {
				yield(nil, err)
				return
			}
			if last, ok := o.Metadata["last"]; ok && only != nil && !only(o.Metadata["first"], last) {
				continue
			}
			if !closed.IsRoot(o.Key) {
				continue
			}
			if root, err := readRoot(ctx, store, o.Key); !yield(root, err) {
				return
			}
		}
	}
}

// readRoot reads a root. One that is damaged cannot be read by any version.
func readRoot(ctx context.Context, store Getter, key string) (*closed.Root, error) {
	b, err := Read(ctx, store, key, 0, -1)
	if errors.Is(err, storage.ErrDamaged) {
		return &closed.Root{Name: key}, fmt.Errorf("%s: %w: %w", key, closed.ErrUnread, err)
	}
	if err != nil {
		return &closed.Root{Name: key}, fmt.Errorf("read %s: %w", key, err)
	}
	return closed.ParseRoot(key, b)
}

// LastRoot reads the newest root; nil: there is none.
func LastRoot(ctx context.Context, store Getter) (*closed.Root, error) {
	last := ""
	for o, err := range store.List(ctx, closed.RootPrefix, "") {
		if err != nil {
			return nil, err
		}
		if closed.IsRoot(o.Key) {
			last = o.Key
		}
	}
	if last == "" {
		return nil, nil
	}
	return readRoot(ctx, store, last)
}

// DroppedSum is the sum of what has been dropped.
func DroppedSum(marks []horizon.Mark) closed.Sum {
	texts := make([]string, len(marks))
	for i, m := range marks {
		texts[i] = m.Blob.Key
	}
	return closed.SumOf(texts)
}
