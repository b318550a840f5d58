// Package storeid distinguishes stores by an id. A store gets its id from the first
// process that writes to it and knows ids. A process may keep data that belongs to one
// store, such as a log of unflushed records. With the id it can detect whether its
// store is the same one again. Paths, containers and accounts change their names, and a
// disk that is not mounted leaves an empty store behind.
package storeid

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"blobtail/storage"
	"blobtail/storage/fsys"
)

// Key is the name of the object.
const Key = "_store"

const (
	format  = 2 // of a copy; that of other stores is 1
	idBytes = 16
	maxBody = 4 << 10 // of any format to come
)

// Read returns the id of a store, 32 lower-case hexadecimal digits. It returns "" and
// no error when the store has none (no process of a version that knows ids has written
// to it), or does not exist. Damage ([storage.ErrDamaged]) or a newer format is an
// error. The id of a copy that is not promoted comes with a [*CopyError]. It is one request, and
// some more for a copy.
func Read(ctx context.Context, blobs storage.BlobStore) (string, error) {
	var v identity
	b, err := get(ctx, blobs, Key)
	if err == nil {
		v, err = parse(b)
	}
	if err == nil && v.Copy {
		err = v.copied(ctx, blobs)
		if errors.As(err, new(*CopyError)) {
			return v.id, err
		}
	}
	if errors.Is(err, storage.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the id of the store in %s: %w", Key, err)
	}
	return v.id, nil
}

func get(ctx context.Context, blobs storage.BlobStore, key string) ([]byte, error) {
	r, err := blobs.Get(ctx, key, 0, maxBody+1)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

// Ensure returns the id of a store and makes one if it is missing. Concurrent callers
// all get the same id. It never replaces an object. Its errors are those of [Read], and
// those of a write. After a failed write the store may have an id or not. It is always
// right to call it again.
func Ensure(ctx context.Context, blobs storage.BlobStore) (string, error) {
	id, err := Read(ctx, blobs)
	if id != "" || err != nil {
		return id, err
	}
	id = newID()
	line := fmt.Appendf(nil, "{\"format\":1,\"id\":%q}\n", id)
	err = blobs.Create(ctx, Key, line, storage.Attrs{ContentType: "application/json"})
	if errors.Is(err, storage.ErrExist) {
		// Another process was quicker, or the id is ours and the answer was lost.
		if id, err = Read(ctx, blobs); id == "" && err == nil {
			err = fmt.Errorf("make an id of the store: %s is there, and is not when it is read", Key)
		}
		return id, err
	}
	if err != nil {
		return "", fmt.Errorf("make an id of the store: %w", err)
	}
	return id, nil
}

func newID() string {
	random := make([]byte, idBytes)
	rand.Read(random)
	return hex.EncodeToString(random)
}

// identity is the object. The id in it may be no string in another format. Other fields are left
// alone.
type identity struct {
	Format   int64           `json:"format"`
	ID       json.RawMessage `json:"id"`
	Copy     bool            `json:"copy,omitempty"`
	Source   string          `json:"source,omitempty"`
	Services []string        `json:"services,omitempty"`
	id       string
}

func parse(b []byte) (v identity, err error) {
	line, ok := bytes.CutSuffix(b, []byte("\n"))
	if !ok || len(b) > maxBody || json.Unmarshal(line, &v) != nil || v.Format < 1 {
		return v, damaged("no line of JSON with a format")
	}
	if v.Format > format || v.Format == format && !v.Copy {
		return v, fmt.Errorf("it is in format %d, and this version reads format %d: use a newer one", v.Format, format)
	}
	if json.Unmarshal(v.ID, &v.id) != nil || !isID(v.id) {
		return v, damaged("no id of 32 hexadecimal digits")
	}
	return v, nil
}

func isID(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == idBytes && hex.EncodeToString(b) == s
}

func damaged(what string) error { return fmt.Errorf("%w: it has %s", storage.ErrDamaged, what) }

// BindingFile is the name of the file in the directory of a log that says which
// store the log belongs to.
const BindingFile = "store"

// Binding says which store a log belongs to: its records must go to no other. The zero
// value is none.
type Binding struct {
	ID   string
	Spec string // as the operator wrote it, for messages
}

// LoadBinding reads the binding of the log in dir; zero when it has none. A file
// that cannot be read is an error: without it the log could go to any store.
func LoadBinding(fsy fsys.FS, dir string) (Binding, error) {
	path := filepath.Join(dir, BindingFile)
	text, err := fsys.ReadFile(fsy, path)
	if errors.Is(err, fs.ErrNotExist) {
		return Binding{}, nil
	}
	if err != nil {
		return Binding{}, fmt.Errorf("read which store the log belongs to: %w", err)
	}
	id, spec, ok := strings.Cut(strings.TrimSuffix(string(text), "\n"), " ")
	if !ok || !isID(id) {
		return Binding{}, fmt.Errorf("read which store the log belongs to: %s holds something else; put the id of the store and its name into it (the id is in the store's object %s)", path, Key)
	}
	return Binding{ID: id, Spec: spec}, nil
}

// Save writes the binding of the log in dir, durably.
func (b Binding) Save(fsy fsys.FS, dir string) error {
	spec := strings.ToValidUTF8(strings.ReplaceAll(b.Spec, "\n", " "), "?")
	if err := fsys.Replace(fsy, filepath.Join(dir, BindingFile), fmt.Appendf(nil, "%s %s\n", b.ID, spec)); err != nil {
		return fmt.Errorf("keep which store the log belongs to: %w", err)
	}
	return nil
}
