package azure_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"blobtail/internal/dev/testenv"
	"blobtail/storage"
	"blobtail/storage/azure"
	"blobtail/storage/storagetest"
)

// Listed blobs are deleted with one request for 256, each with its own condition. A
// name that belongs to another object by now keeps it: the emulator respects If-Match
// within batches as the service does.
func TestDeleteConditionsInBatches(t *testing.T) {
	var batches, singles, conditions atomic.Int32
	s := through(t, testenv.Name("c"), func(r *http.Request) (*http.Response, error) {
		switch {
		case r.URL.Query().Get("comp") == "batch":
			batches.Add(1)
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			conditions.Add(int32(strings.Count(strings.ToLower(string(body)), "if-match: \"")))
			r.Body = io.NopCloser(bytes.NewReader(body))
		case r.Method == http.MethodDelete:
			singles.Add(1)
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	for i := range 10 {
		createAt(t, s, fmt.Sprintf("web/%d", i))
	}
	listed := storagetest.Objects(t, s, "")
	if err := s.Delete(t.Context(), storage.Blob{Key: "web/3"}); err != nil {
		t.Fatal(err)
	}
	createAt(t, s, "web/3")
	singles.Store(0)
	if err := s.Delete(t.Context(), listed...); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if left := storagetest.Objects(t, s, ""); len(left) != 1 || left[0].Key != "web/3" {
		t.Errorf("%+v are left", left)
	}
	if batches.Load() != 1 || singles.Load() != 0 || conditions.Load() != 10 {
		t.Errorf("%d batches with %d conditions, and %d single requests", batches.Load(), conditions.Load(), singles.Load())
	}
}

// Any other failed condition, such as a lease, is an error: the object stays.
func TestDeleteRefused(t *testing.T) {
	for name, code := range map[string]string{"a lease": "LeaseIdMissing", "no code": ""} {
		s := through(t, testenv.Name("c"), func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodDelete {
				return http.DefaultTransport.RoundTrip(r)
			}
			return &http.Response{StatusCode: http.StatusPreconditionFailed, Header: http.Header{"X-Ms-Error-Code": {code}}, Body: http.NoBody, Request: r}, nil
		})
		createAt(t, s, "web/1")
		if err := s.Delete(t.Context(), storagetest.Objects(t, s, "")...); err == nil {
			t.Errorf("%s: Delete succeeds", name)
		}
	}
}

func createAt(t *testing.T, s *azure.Store, key string) {
	t.Helper()
	storagetest.Put(t, s, key, []byte("x"))
}
