// Package bounds holds the checks that every driver makes in the same words. They
// refuse keys, attributes and rows that one of the stores could not keep faithfully.
// With one set of rules, data can move from one driver to another. And data that passes
// the tests on mem is not refused by Azure later.
package bounds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"blobtail/storage"
)

const (
	maxKey      = 1024 // Azure's limit for a blob name
	maxElement  = 240  // a file name has 255 bytes at most
	maxMetadata = 1 << 10
	maxHeader   = 256
)

// Key checks the key of a blob before its creation.
func Key(key string) error {
	if key == "" || len(key) > maxKey {
		return fmt.Errorf("bad key: %d bytes, 1 to %d are allowed", len(key), maxKey)
	}
	if !utf8.ValidString(key) {
		return errors.New("bad key: not UTF-8")
	}
	for _, r := range key {
		// Azurite turns a backslash into a slash; control characters make a
		// container unlistable.
		if r == '\\' || !unicode.IsPrint(r) {
			return fmt.Errorf("bad key: character %q", r)
		}
	}
	for elem := range strings.SplitSeq(key, "/") {
		switch {
		case elem == "":
			return errors.New("bad key: empty path element")
		case elem[0] == '.':
			return fmt.Errorf("bad key: path element %q begins with a dot", elem)
		case len(elem) > maxElement:
			return fmt.Errorf("bad key: path element of %d bytes, %d are allowed", len(elem), maxElement)
		}
	}
	return nil
}

// Attrs checks the attributes of a blob before its creation.
func Attrs(a storage.Attrs) error {
	for _, h := range []string{a.ContentType, a.ContentEncoding} {
		if len(h) > maxHeader || !ascii(h, ' ') {
			return fmt.Errorf("bad content type or encoding %.40q", h)
		}
	}
	total := 0
	for k, v := range a.Metadata {
		if k == "" || strings.Trim(k, "abcdefghijklmnopqrstuvwxyz") != "" {
			return fmt.Errorf("bad metadata key %.40q: lower-case letters only", k)
		}
		// A leading or trailing space breaks Azure's signature. Other bytes are refused
		// in ways that look like a wrong password. An empty value looks the same as
		// none.
		if v == "" || !ascii(v, '!') {
			return fmt.Errorf("bad metadata value of %s: %.40q", k, v)
		}
		total += len(k) + len(v)
	}
	if total >= maxMetadata {
		return fmt.Errorf("metadata of %d bytes, less than %d are allowed", total, maxMetadata)
	}
	return nil
}

func ascii(s string, lowest byte) bool {
	for i := range len(s) {
		if s[i] < lowest || s[i] > '~' {
			return false
		}
	}
	return true
}

// Known turns errors of the file system into the sentinels of storage, and keeps their
// text.
func Known(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return storage.ErrNotExist
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", storage.ErrUnauthorized, err)
	}
	return err
}

// At adds the operation and the key to the error of a method that defers it.
func At(op, key string, err *error) { *err = storage.AtKey(op, key, *err) }

// Seq makes the sequence that a method of a store returns. It calls walk with a function
// that yields one item, and returns false if walk must end. An error of walk or ctx is
// yielded last, with the operation and the key.
func Seq[T any](ctx context.Context, op, key string, walk func(give func(T) bool) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		more, err := true, ctx.Err()
		if err == nil {
			err = walk(func(item T) bool {
				more = yield(item, nil)
				return more && ctx.Err() == nil
			})
		}
		if err = cmp.Or(err, ctx.Err()); err != nil && more {
			var none T
			yield(none, storage.AtKey(op, key, err))
		}
	}
}

// Names makes the sequence of names that list returns: each once, in byte order. It
// yields the names that list returns with an error too.
func Names(ctx context.Context, op, prefix string, list func() ([]string, error)) iter.Seq2[string, error] {
	return Seq(ctx, op, prefix, func(give func(string) bool) error {
		names, err := list()
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if !give(name) {
				return nil
			}
		}
		return err
	})
}
