package azure_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"blobtail/internal/dev/testenv"
	"blobtail/storage"
	"blobtail/storage/azure"
	"blobtail/storage/storagetest"
	"blobtail/storage/traffic"
)

// Each request that goes out is counted once under its kind, retries too, and so are the
// bytes of its answer.
func TestTraffic(t *testing.T) {
	a := env.Azurite(t)
	var out, tables, lists atomic.Int64
	seen := roundTripper(func(r *http.Request) (*http.Response, error) {
		out.Add(1)
		if strings.HasSuffix(r.URL.Path, "/$batch") || strings.HasSuffix(r.URL.Path, "/Tables") {
			tables.Add(1)
		} else if r.URL.Query().Get("comp") == "list" {
			lists.Add(1)
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	sent := new(traffic.Counter)
	s, err := azure.Open(testenv.Name("c"), azure.Options{Getenv: a.Getenv, Traffic: sent,
		Client: azcore.ClientOptions{Transport: &http.Client{Transport: seen}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	body := strings.Repeat("x", 5000)
	if err := s.EnsureContainer(ctx); err != nil { // counts as a list
		t.Fatal(err)
	}
	lists.Add(1)
	for _, key := range []string{"web/1.log", "web/2.log"} {
		storagetest.Put(t, s, key, []byte(body))
	}
	if err := s.Create(ctx, "web/1.log", []byte(body), storage.Attrs{}); err == nil {
		t.Fatal("created twice")
	}
	for _, n := range []int64{-1, 100} {
		r, err := s.Get(ctx, "web/1.log", 0, n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
	}
	storagetest.Objects(t, s, "web/")
	if _, err := s.Stat(ctx, "web/1.log"); err != nil {
		t.Fatal(err)
	}
	if err := s.Upsert(ctx, testenv.Name("t"), "p", []storage.Row{{Key: "r", Props: map[string]any{"a": int64(1)}}}); err != nil {
		t.Fatal(err)
	}
	requests := func(k traffic.Kind) int64 { n, _ := sent.Of(k); return n }
	total := int64(0)
	for k := range traffic.Kinds {
		total += requests(k)
	}
	if total != out.Load() || requests(traffic.List) != lists.Load() || requests(traffic.Get) != 2 || requests(traffic.Put) != 3 ||
		requests(traffic.Other) != 1 || requests(traffic.Table) != tables.Load() || tables.Load() == 0 {
		t.Errorf("%d requests, of them %d to tables, %d lists; counted %+v", out.Load(), tables.Load(), lists.Load(), sent)
	}
	if _, n := sent.Of(traffic.Get); n != 5100 {
		t.Errorf("%d bytes of blobs", n)
	}
}
