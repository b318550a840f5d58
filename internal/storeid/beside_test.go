package storeid_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/closed"
	"blobtail/internal/bill"
	"blobtail/internal/storeid"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/retention"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/storage/dir"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

func begin() time.Time { return time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC) }

// fill stores ten small blobs of each of two services, and an object of no service
// below one.
func fill(t *testing.T, s storage.BlobStore) {
	t.Helper()
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	put := func(key string, body []byte, meta map[string]string) {
		t.Helper()
		a := storage.Attrs{ContentType: blobfmt.ContentType, ContentEncoding: blobfmt.ContentEncoding, Metadata: meta}
		storagetest.Put(t, s, key, body, a)
	}
	n := 0
	for _, service := range []string{"web", record.RejectedService} {
		for i := range 10 {
			n++
			at := begin().Add(time.Duration(i) * time.Minute).UnixNano()
			line := string(record.AppendTime([]byte(`{"ts":"`), at)) + fmt.Sprintf(`","level":"info","service":%q,"msg":"m %d"}`, service, i) + "\n"
			var origin record.Origin
			var batch blobfmt.BatchID
			binary.BigEndian.PutUint64(origin[8:], uint64(n))
			binary.BigEndian.PutUint64(batch[8:], uint64(n))
			enc.Reset()
			if err := enc.Add([]byte(line), at, origin, 0); err != nil {
				t.Fatal(err)
			}
			body, meta, err := enc.Finish(batch)
			if err != nil {
				t.Fatal(err)
			}
			put(blobfmt.Name{Service: service, Period: begin(), Number: i + 1}.String(), body, meta.Map())
		}
	}
	put("web/2026/11/20/notes.txt", []byte("x"), nil)
}

// readings is the output of all readers of a store.
func readings(t *testing.T, s storage.BlobStore) string {
	t.Helper()
	var out strings.Builder
	tell := func(what string, v any, err error) {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		fmt.Fprintf(&out, "%s: %+v\n", what, v)
	}
	r := blobs.New(s, blobs.Options{Workers: 1})
	names, err := r.Services(t.Context(), []string{"*", "_*"})
	tell("services", names, err)
	services, sum, err := r.List(t.Context(), blobs.Query{}, time.Time{})
	tell("ls", services, err)
	tell("ls, problems", sum.Problems, nil)
	for _, name := range names {
		days, _, err := r.List(t.Context(), blobs.Query{Services: []string{name}}, time.Time{})
		tell("ls of a service", days, err)
	}
	v, err := r.Verify(t.Context(), blobs.Query{Range: blobs.Always()}, blobs.VerifyOptions{}, func(f blobs.Finding) {
		tell("finding", f, nil)
	})
	if v.Root != nil {
		tell("root", *v.Root, nil)
		v.Root = nil
	}
	tell("verify", v, err)
	plan, err := r.Plan(t.Context(), blobs.Query{Services: []string{"*", "_*"}, Range: blobs.Always()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = plan.Read(t.Context(), func(lines []byte) error { out.Write(lines); return nil })
	tell("read", "", err)
	b, err := bill.Read(t.Context(), s, names, catalog.Range{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tell("bill", *b, nil)
	return out.String()
}

// upkeep closes the days of a store, compacts them, and has all blobs in it expire. It returns a report of its
// steps.
func upkeep(t *testing.T, s *mem.Store, now *time.Time) string {
	t.Helper()
	var out strings.Builder
	clock := func() time.Time { return *now }
	*now = begin().Add(48 * time.Hour)
	done, err := closing.Run(t.Context(), s, closing.Options{After: closed.Soonest, Now: *now, Log: zerolog.Nop()})
	if err != nil || done.Parts != 2 {
		t.Errorf("close: %+v, %v", done, err)
	}
	fmt.Fprintf(&out, "close: %+v\n%s", *done.Root, readings(t, s))
	for _, want := range []struct{ out, deleted int }{{2, 0}, {0, 20}} { // one blob of each service, then its ten old ones are deleted
		c, err := compact.Run(t.Context(), s, compact.Options{Grace: -1, Now: clock, Log: zerolog.Nop()})
		if err != nil || c.Out != want.out || c.Deleted != want.deleted {
			t.Errorf("compact: %+v, %v", c, err)
		}
		fmt.Fprintf(&out, "compact: %+v\n%s", c, readings(t, s))
	}
	*now = begin().Add(100 * 24 * time.Hour)
	for range 3 {
		job := retention.New(s, s, retention.Options{Policy: retention.Policy{Default: 30 * 24 * time.Hour}, Grace: time.Hour, Closing: &closing.Options{}, Clock: clock})
		p, err := job.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r, err := job.Apply(t.Context(), p.Hash)
		if err != nil || len(r.Problems) > 0 {
			t.Fatalf("retention: %v, %v", r.Problems, err)
		}
		for _, d := range p.Days {
			fmt.Fprintln(&out, d.Service, d.Day, d.Step, d.Blobs, d.Records, d.Bytes, d.Failed)
		}
		fmt.Fprintf(&out, "retention: foreign %+v, confirm %q, deleted %+v, oldest %v, overdue %v\n", p.Foreign, p.Confirm, r.Deleted, r.Oldest, r.Overdue)
		*now = now.Add(2 * time.Hour)
	}
	return out.String()
}

// No program that lists a store uses the object: not the readers, nor verify, the bill, closing,
// the compactor and the retention job, which does not delete it.
func TestBesideBlobs(t *testing.T) {
	now := begin()
	var said [2]string
	for i := range said {
		now = begin()
		s := mem.New(mem.Options{Now: func() time.Time { return now }})
		fill(t, s)
		id := ""
		if i == 1 {
			id = ensure(t, s)
		}
		said[i] = readings(t, s) + upkeep(t, s, &now)
		reads(t, s, id)
		left := slices.DeleteFunc(storagetest.KeysOf(t, s, ""), func(key string) bool { return key == storeid.Key })
		said[i] += fmt.Sprint(left)
		for _, key := range left {
			if _, account := closed.ParseName(key); account || strings.HasSuffix(key, ".log") {
				t.Errorf("%s has not expired", key)
			}
		}
	}
	if said[0] != said[1] {
		t.Errorf("without an id:\n%s\nwith one:\n%s", said[0], said[1])
	}
	if strings.Contains(said[1], "Note:false") {
		t.Errorf("verify finds something:\n%s", said[1])
	}
	if !strings.Contains(said[1], "services: [_rejected web]") || !strings.Contains(said[1], "foreign {Count:1 First:[web/2026/11/20/notes.txt]}") || strings.Contains(said[1], storeid.Key) {
		t.Error(said[1])
	}
}

// The same for readers of a directory. There the object is a file next to the
// directories of services.
func TestBesideDirectories(t *testing.T) {
	var said [2]string
	for i := range said {
		s, err := dir.Open(t.TempDir(), dir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		fill(t, s)
		if i == 1 {
			ensure(t, s)
		}
		said[i] = readings(t, s)
	}
	if said[0] != said[1] || said[0] == "" {
		t.Errorf("without an id:\n%s\nwith one:\n%s", said[0], said[1])
	}
}

// A store that has an id and nothing else is an empty one.
func TestAlone(t *testing.T) {
	now := begin()
	s := mem.New(mem.Options{Now: func() time.Time { return now }})
	ensure(t, s)
	r := blobs.New(s, blobs.Options{})
	services, sum, err := r.List(t.Context(), blobs.Query{}, time.Time{})
	if err != nil || len(services) > 0 || len(sum.Problems) > 0 {
		t.Errorf("ls: %v, %v, %v", services, sum.Problems, err)
	}
	v, err := r.Verify(t.Context(), blobs.Query{Range: blobs.Always()}, blobs.VerifyOptions{}, func(f blobs.Finding) { t.Errorf("%+v", f) })
	if err != nil || v != (blobs.Verified{}) {
		t.Errorf("verify: %+v, %v", v, err)
	}
}
