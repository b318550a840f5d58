package openstore_test

import (
	"errors"
	"testing"

	"blobtail/internal/openstore"
	"blobtail/storage"
)

// Tables are those of the blobs' store, and opening them makes nothing.
func TestTables(t *testing.T) {
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:9/a;TableEndpoint=http://127.0.0.1:9/a")
	for _, spec := range []string{"dir:" + t.TempDir() + "/store", "azure:logs"} {
		blobs, closeBlobs, err := openstore.Open(t.Context(), spec, spec[0] == 'd')
		if err != nil {
			t.Fatal(err)
		}
		tables, closeTables, err := openstore.Tables(spec, blobs)
		if err != nil {
			t.Fatal(err)
		}
		if spec[0] == 'd' {
			for name, err := range tables.Tables(t.Context(), "") {
				t.Errorf("table %q, %v", name, err)
			}
		}
		if err := errors.Join(closeTables(), closeBlobs()); err != nil {
			t.Error(err)
		}
		_, clock := blobs.(storage.Clock)
		if clock != openstore.Remote(spec) {
			t.Errorf("%s: clock %v", spec, clock)
		}
	}
}

func TestName(t *testing.T) {
	for spec, want := range map[string]string{"dir:./data": "", "dir:azure:x": "", "azure:logs": "logs", "azure:account/logs": "logs"} {
		if got := openstore.Name(spec); got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}
