package storage_test

import (
	"errors"
	"testing"

	"blobtail/storage"
)

// Attempts that fail alike are logged once: the temporary file of each has another name.
func TestGistOfTemporaryFiles(t *testing.T) {
	gist := func(key, tmp string) string {
		return storage.Gist(&storage.KeyError{Op: "create", Key: key, Err: errors.New("open /data/.tmp-" + tmp + ": not permitted")})
	}
	if a, b := gist("a/1", "ZEBNLX2NCC7HU3TJ7ELJYVQWNG"), gist("a/2", "NHKJKTG3JWKGCMDN63RTY6GVQT"); a != b {
		t.Errorf("%q and %q", a, b)
	}
}
