package blobs_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/blobfmt"
	"blobtail/internal/where"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/retention/erase"
	"blobtail/storage"
	"blobtail/storage/mem"
)

// A server keeps what its filters find in blocks. Two minutes after a blob is gone, of which records
// were erased, nothing of its day is kept, and what was found in other days is.
func TestForget(t *testing.T) { synctest.Test(t, testForget) }

func testForget(t *testing.T) {
	s := mem.New(mem.Options{Now: time.Now})
	at := time.Now().UTC().Add(-72 * time.Hour).Truncate(time.Hour)
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, user := range []string{"jane", "joe"} {
		at := at.AddDate(0, 0, i)
		enc.Reset()
		for n := range 100 {
			who := "nobody"
			if n == 50 {
				who = user
			}
			ns := at.Add(time.Duration(n) * time.Second).UnixNano()
			line := `{"ts":"` + string(record.AppendTime(nil, ns)) + `","level":"info","service":"web","msg":"login of ` + who + `"}` + "\n"
			if err := enc.Add([]byte(line), ns, record.Origin{byte(i)}, uint32(n)); err != nil {
				t.Fatal(err)
			}
		}
		body, meta, err := enc.Finish(blobfmt.BatchID{byte(i + 1)})
		if err != nil {
			t.Fatal(err)
		}
		name := blobfmt.Name{Service: "web", Period: at, Number: 1}
		if err := s.Create(t.Context(), name.String(), bytes.Clone(body), storage.Attrs{Metadata: meta.Map()}); err != nil {
			t.Fatal(err)
		}
	}
	r := blobs.New(s, blobs.Options{Findings: 1 << 20})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go r.Forget(ctx)
	read := func() (lines int, read int64) {
		t.Helper()
		q := blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Filter: blobs.Filter{Texts: []string{"login of j"}}}
		p, err := r.Plan(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := p.Read(t.Context(), func(text []byte) error { lines += strings.Count(string(text), "\n"); return nil })
		if err != nil || !sum.Complete() {
			t.Fatal(sum.Problems, err)
		}
		return lines, sum.BlocksRead
	}
	read()
	if lines, blocks := read(); lines != 2 || blocks != 0 || r.Kept() != 2 {
		t.Fatalf("%d lines of %d blocks, with findings in %d", lines, blocks, r.Kept())
	}
	expr, err := where.Parse(nil, `msg contains "jane"`, false)
	if err != nil {
		t.Fatal(err)
	}
	plan, _ := erase.Run(t.Context(), s, s, erase.Options{Where: expr, Log: zerolog.Nop()})
	got, err := erase.Run(t.Context(), s, s, erase.Options{Where: expr, Confirm: plan.Hash, Log: zerolog.Nop()})
	if err != nil || got.Deleted != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if n := r.Kept(); n != 1 {
		t.Errorf("findings in %d blocks are kept, want those of the other day", n)
	}
	if lines, blocks := read(); lines != 1 || blocks != 1 {
		t.Errorf("afterwards: %d lines of %d blocks", lines, blocks)
	}
}
