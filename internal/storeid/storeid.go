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

	"blobtail/storage"
)

// Key is the name of the object.
const Key = "_store"

const (
	format  = 1
	idBytes = 16
	maxBody = 4 << 10 // of any format to come
)

// Read returns the id of a store, 32 lower-case hexadecimal digits. It returns "" and
// no error when the store has none (no process of a version that knows ids has written
// to it), or does not exist. Damage ([storage.ErrDamaged]) or a newer format is an
// error. It is one request.
func Read(ctx context.Context, blobs storage.BlobStore) (string, error) {
	id := ""
	r, err := blobs.Get(ctx, Key, 0, maxBody+1)
	if err == nil {
		var b []byte
		b, err = io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err == nil {
			id, err = parse(b)
		}
	}
	if errors.Is(err, storage.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the id of the store in %s: %w", Key, err)
	}
	return id, nil
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
	random := make([]byte, idBytes)
	rand.Read(random)
	id = hex.EncodeToString(random)
	line := fmt.Appendf(nil, "{\"format\":%d,\"id\":%q}\n", format, id)
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

func parse(b []byte) (string, error) {
	// In another format the id may be no string. Other fields are left alone.
	var v struct {
		Format int64           `json:"format"`
		ID     json.RawMessage `json:"id"`
	}
	line, ok := bytes.CutSuffix(b, []byte("\n"))
	if !ok || len(b) > maxBody || json.Unmarshal(line, &v) != nil || v.Format < 1 {
		return "", damaged("no line of JSON with a format")
	}
	if v.Format > format {
		return "", fmt.Errorf("it is in format %d, and this version reads format %d: use a newer one", v.Format, format)
	}
	var id string
	if json.Unmarshal(v.ID, &id) != nil || !isID(id) {
		return "", damaged("no id of 32 hexadecimal digits")
	}
	return id, nil
}

func isID(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == idBytes && hex.EncodeToString(b) == s
}

func damaged(what string) error { return fmt.Errorf("%w: it has %s", storage.ErrDamaged, what) }
