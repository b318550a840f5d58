package unflushed_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/lease"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/record"
	"blobtail/storage/mem"
	"blobtail/tailindex"
)

// Rows beyond the memory limit go to a file, although they come in the order of arrival,
// and the records of two ingesters have times apart.
func TestManyRows(t *testing.T) {
	testkit.FullOnly(t, "more than memory is for")
	synctest.Test(t, func(t *testing.T) {
		store := mem.New(mem.Options{})
		begun := time.Now()
		const seconds = 24
		want := 0
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var writers []*tailindex.Writer
		for _, process := range []string{"aaaaaaaa", "bbbbbbbb"} {
			w := tailindex.NewWriter(store, tailindex.Options{Process: process})
			writers = append(writers, w)
			go w.Run(ctx)
		}
		for range seconds {
			for i, w := range writers {
				run := bigRun(byte(i+1), time.Now().Add(-time.Duration(i)*30*time.Second))
				want += run.Len()
				w.Accepted(1, run)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Second)
		r := unflushed.New(unflushed.Options{
			Blobs: blobs.New(store, blobs.Options{}), Tail: tailindex.NewReader(store, tailindex.Options{}),
			Store: func(context.Context) (string, error) { return "", nil },
			Ingesters: func(context.Context) ([]lease.Ingester, time.Time, error) {
				return []lease.Ingester{{ID: "00000001", State: lease.Holding, At: time.Now(), Oldest: begun}}, time.Now(), nil
			},
		})
		g, err := r.Gather(ctx, always("web"), unflushed.Auto)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		plan, err := blobs.Without(blobs.Options{}).Plan(ctx, g.Query)
		if err != nil {
			t.Fatal(err)
		}
		n, _, err := plan.Count(ctx)
		if err != nil || n != int64(want) {
			t.Errorf("%d records of %d, %v", n, want, err)
		}
	})
}

// bigRun has the maximum of lines and bytes of a row.
func bigRun(origin byte, at time.Time) *record.Run {
	r := &record.Request{Services: []string{"web"}}
	run := &record.Run{Service: "web", Origin: record.Origin{origin}, Request: r}
	pad := strings.Repeat("x", tailindex.MaxLine-200)
	for i := range tailindex.MaxLines {
		off := len(r.Data)
		ns := at.UnixNano() + int64(i)
		r.Data = record.AppendTime(append(r.Data, `{"ts":"`...), ns)
		r.Data = fmt.Appendf(r.Data, `","level":"info","service":"web","msg":"%s"}`+"\n", pad)
		r.Lines = append(r.Lines, record.Line{Time: ns, Off: uint32(off), Len: uint32(len(r.Data) - off)})
		run.Order = append(run.Order, uint32(i))
	}
	return run
}
