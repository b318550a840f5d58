// Package storeid tells stores apart. A store has an id from the first process
// that writes to it and knows ids: whoever keeps something that belongs to one
// store, such as a log of records that are in no blob yet, can find out whether
// it stands before the same one again. Paths, containers and accounts change
// their names; and a disk that is not mounted leaves an empty store behind.
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

// NewerError says that a store has an id in a format that this version does not
// know.
type NewerError struct{ Format int64 }

func (e *NewerError) Error() string {
	return fmt.Sprintf("it is in format %d, and this version reads format %d: use a newer one", e.Format, format)
}

// body is the object. Fields that it has besides are left alone.
type body struct {
	Format int64  `json:"format"`
	ID     string `json:"id"`
}

// Read returns the id of a store, 32 lower-case hexadecimal digits; "" and no
// error when the store has none (nobody of a version that knows ids has written
// to it), or is not there. Damage ([storage.ErrDamaged]) or a newer format (a
// [*NewerError]) is an error. It is one request.
func Read(ctx context.Context, blobs storage.BlobStore) (string, error) {
	b, err := get(ctx, blobs)
	if errors.Is(err, storage.ErrNotExist) {
		return "", nil
	}
	id := ""
	if err == nil {
		id, err = parse(b)
	}
	if err != nil {
		return "", fmt.Errorf("read the id of the store in %s: %w", Key, err)
	}
	return id, nil
}

// Ensure returns the id of a store and makes one when there is none; of several
// who do so at once all get the same. It never replaces what is there: its errors
// are those of [Read], and those of a write, after which the store may have an id
// or not. Asking again is always right.
func Ensure(ctx context.Context, blobs storage.BlobStore) (string, error) {
	id, err := Read(ctx, blobs)
	if id != "" || err != nil {
		return id, err
	}
	random := make([]byte, idBytes)
	rand.Read(random) // never fails
	id = hex.EncodeToString(random)
	line, err := json.Marshal(body{format, id})
	if err == nil {
		err = blobs.Create(ctx, Key, append(line, '\n'), storage.Attrs{ContentType: "application/json"})
	}
	if errors.Is(err, storage.ErrExist) {
		// Another was quicker, or it is ours and the answer to it was lost.
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

func get(ctx context.Context, blobs storage.BlobStore) ([]byte, error) {
	r, err := blobs.Get(ctx, Key, 0, maxBody+1)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

func parse(b []byte) (string, error) {
	// The format first: in another one the id may be no string.
	var f struct {
		Format *int64 `json:"format"`
	}
	line, ok := bytes.CutSuffix(b, []byte("\n"))
	if !ok || len(b) > maxBody || json.Unmarshal(line, &f) != nil || f.Format == nil || *f.Format < 1 {
		return "", damaged("no line of JSON with a format")
	}
	if *f.Format > format {
		return "", &NewerError{*f.Format}
	}
	var v body
	if json.Unmarshal(line, &v) != nil || !isID(v.ID) {
		return "", damaged("no id of 32 hexadecimal digits")
	}
	return v.ID, nil
}

func isID(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == idBytes && hex.EncodeToString(b) == s
}

func damaged(what string) error { return fmt.Errorf("%w: it has %s", storage.ErrDamaged, what) }
