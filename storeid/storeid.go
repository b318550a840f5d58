package storeid

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"blobtail/storage"
)

// Key is the name of the object.
const Key = "_store"

func valid(id string) bool { return len(id) == 32 && strings.Trim(id, "0123456789abcdef") == "" }

// Read returns the id.
func Read(ctx context.Context, blobs storage.BlobStore) (string, error) {
	r, err := blobs.Get(ctx, Key, 0, -1)
	if errors.Is(err, storage.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, 4096))
	if errors.Is(err, storage.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var v struct {
		Format int    `json:"format"`
		ID     string `json:"id"`
	}
	if err := json.Unmarshal(b, &v); err != nil || v.Format != 1 || !valid(v.ID) {
		return "", fmt.Errorf("object %s: damaged", Key)
	}
	return v.ID, nil
}

// Ensure makes one.
func Ensure(ctx context.Context, blobs storage.BlobStore) (string, error) {
	id, err := Read(ctx, blobs)
	if err != nil || id != "" {
		return id, err
	}
	var b [16]byte
	rand.Read(b[:])
	err = blobs.Create(ctx, Key, fmt.Appendf(nil, "{\"format\":1,\"id\":%q}\n", hex.EncodeToString(b[:])), storage.Attrs{ContentType: "application/json"})
	if err != nil && !errors.Is(err, storage.ErrExist) {
		return "", err
	}
	return Read(ctx, blobs)
}
