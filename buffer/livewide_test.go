package buffer_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/buffer"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/storage/fsys"
)

// countingDisk counts the bytes that are read, and may change them.
type countingDisk struct {
	fsys.FS
	read   atomic.Int64
	change func(p []byte) // nil: not at all
}

type countedFile struct {
	fsys.File
	disk *countingDisk
}

func (d *countingDisk) OpenFile(name string, flag int, perm fs.FileMode) (fsys.File, error) {
	f, err := d.FS.OpenFile(name, flag, perm)
	return countedFile{f, d}, err
}

func (f countedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.disk.read.Add(int64(n))
	if f.disk.change != nil {
		f.disk.change(p[:n])
	}
	return n, err
}

// A read of the log needs little memory, so it reads some parts more than once: few of
// them, if the requests span much time or have many services.
func TestLiveReadsLittleTwice(t *testing.T) {
	testkit.FullOnly(t, "it counts bytes of a log of 65 MB")
	const requests, lines, length = 24, 1000, 900
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name    string
		service func(n int) string
		time    func(request, n int) int64
		most    float64 // times the size of the log
	}{
		{"in order", func(int) string { return "web" },
			func(request, n int) int64 { return at(0) + int64(request*lines+n)*1e6 }, 2.5},
		{"spanning the hour", func(int) string { return "web" },
			func(int, int) int64 { return at(0) + r.Int64N(int64(time.Hour)) }, 4},
		{"of many services", func(n int) string { return fmt.Sprint("s", n%100) },
			func(request, n int) int64 { return at(0) + int64(request)*1e9 + int64(n)*1e5 }, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			disk, sink := &countingDisk{FS: fsys.OS()}, &memSink{}
			p := startOn(t, disk, t.TempDir(), sink, buffer.Options{Size: 1 << 30, Age: time.Hour, MaxAge: time.Hour}, true)
			size := 0
			for i := range requests {
				var all []line
				for n := range lines {
					text := fmt.Sprintf("%d/%d %s", i, n, strings.Repeat("x", length))
					all = append(all, line{c.service(n), c.time(i, n), text})
				}
				req := request(byte(i+1), all...)
				size += len(req.Data)
				p.accept(req)
			}
			l, err := p.buf.Live(t.Context(), everything())
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			before := disk.read.Load()
			got := each(t, l)
			factor := float64(disk.read.Load()-before) / float64(size)
			t.Logf("%.1f times the size of the log", factor)
			inOrder(t, got)
			if len(got) != requests*lines || factor > c.most {
				t.Errorf("%d lines of %d; read %.1f times the size of the log, at most %.1f", len(got), requests*lines, factor, c.most)
			}
			for _, newest := range []int{1, 3000, 20_000} {
				q := everything()
				q.Newest = newest
				some, _ := snapshot(t, p.buf, q)
				same(t, fmt.Sprint("newest ", newest), some, got[len(got)-newest:])
			}

			// A disk that reads other bytes the second time costs runs and changes no line.
			after := disk.read.Load() + int64(size)*9/8
			changed := 0
			disk.change = func(p []byte) {
				if disk.read.Load() > after && len(p) > 1000 && changed < 3 {
					p[len(p)/2] ^= 1
					changed++
				}
			}
			fine := map[string]bool{}
			for _, s := range got {
				fine[s.text] = true
			}
			wrong, n := 0, 0
			err = l.Each(t.Context(), func(e *record.Entry) error {
				n++
				if !fine[string(e.Line)] {
					wrong++
				}
				return nil
			})
			var missing *buffer.MissingError
			if changed == 0 || wrong > 0 || !errors.As(err, &missing) || missing.Runs == 0 || n == len(got) {
				t.Errorf("%d changed bytes: %d wrong lines, %d of %d, %v", changed, wrong, n, len(got), err)
			}
		})
	}
}
