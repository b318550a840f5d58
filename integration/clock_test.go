package integration_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"blobtail/buffer"
	"blobtail/internal/dev/testkit/box"
	"blobtail/source/httpsource"
	"blobtail/storage"
	"blobtail/storage/storagetest"
)

// byClock runs the parts of an ingester with a clock that shows now, sends it records
// that carry their times, and returns the blobs.
func byClock(t *testing.T, now time.Time, dedupe httpsource.Dedupe) (bodies map[string][]byte) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(now)) // no clock of the process is left out
		h := box.New(t, 1)
		in := h.Ingester(0)
		in.Buffer = buffer.Options{}
		in.Start()
		source := httpsource.New(httpsource.Options{Accept: in.Process().Buffer, Dedupe: dedupe})
		for i := range 40 {
			var body strings.Builder
			for j := range 5 { // many of one time, so that identities decide the order
				fmt.Fprintf(&body, `{"ts":"2026-11-20T1%d:00:0%dZ","msg":"request %d record %d"}`+"\n", i%3, j/3, i, j)
			}
			req := httptest.NewRequest("POST", fmt.Sprintf("/ingest/s%d", i%2), strings.NewReader(body.String()))
			if i%4 == 0 {
				req.Header.Set("Idempotency-Key", fmt.Sprintf("019aa0b0-0000-7000-8000-%012d", i))
			}
			w := httptest.NewRecorder()
			source.ServeHTTP(w, req)
			if w.Code != 200 || !strings.Contains(w.Body.String(), `"accepted":5`) {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
		}
		in.Flush()
		bodies = blobsOf(t, h.Store)
	})
	return bodies
}

// blobsOf returns the blobs of a store: their bodies, and their metadata without the
// batch ids, which are random.
func blobsOf(t *testing.T, store storage.BlobStore) map[string][]byte {
	t.Helper()
	bodies := map[string][]byte{}
	for _, b := range storagetest.Objects(t, store, "") {
		body := storagetest.Body(t, store, b.Key)
		delete(b.Metadata, "batch")
		bodies[b.Key] = body
		bodies[b.Key+" metadata"] = fmt.Append(nil, b.Metadata)
	}
	return bodies
}

// Names, identities and order of records that carry their times do not depend on the
// ingester's clock. An ingester that is an hour slow or a year fast writes
// byte-identical blobs. Without a key or dedupe, an identity is a place in the log
// and contains the segment's creation time and random bits. The blobs then have the
// same names and lines.
func TestWrongClock(t *testing.T) {
	t.Parallel()
	right := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
	for _, dedupe := range []httpsource.Dedupe{httpsource.DedupeBody, httpsource.DedupeOff} {
		want := byClock(t, right, dedupe)
		if len(want) != 2*2*3 {
			t.Fatalf("blobs %v", slices.Collect(maps.Keys(want)))
		}
		if dedupe == httpsource.DedupeOff {
			onlyLines(t, want)
		}
		for _, shift := range []time.Duration{-time.Hour, -10 * time.Hour, 5 * time.Minute, 365 * 24 * time.Hour} {
			got := byClock(t, right.Add(shift), dedupe)
			if dedupe == httpsource.DedupeOff {
				onlyLines(t, got)
			}
			for key := range maps.Keys(want) {
				if !bytes.Equal(got[key], want[key]) {
					t.Errorf("dedupe %s, clock off by %v: %s differs", dedupe, shift, key)
				}
			}
			if len(got) != len(want) {
				t.Errorf("dedupe %s, clock off by %v: blobs %v", dedupe, shift, slices.Collect(maps.Keys(got)))
			}
		}
	}
}

// onlyLines reduces each blob to its lines, sorted by their text.
func onlyLines(t *testing.T, bodies map[string][]byte) {
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for key, body := range bodies {
		if !strings.HasSuffix(key, ".log") {
			bodies[key] = nil // the CRC covers the lines in their order
			continue
		}
		text, err := d.DecodeAll(body, nil)
		if err != nil {
			t.Fatal(err)
		}
		lines := slices.Collect(bytes.Lines(text))
		slices.SortFunc(lines, bytes.Compare)
		bodies[key] = bytes.Join(lines, nil)
	}
}
