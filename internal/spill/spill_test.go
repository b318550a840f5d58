package spill_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"blobtail/internal/budget"
	"blobtail/internal/spill"
)

func text(i int) []byte { return bytes.Repeat([]byte{byte('a' + i%26)}, 1+i*37%5000) }

// Parts come back as they were put, from memory and from the file, and the directory has no file.
func TestPut(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := spill.Space{Most: 200_000}
	defer s.Close()
	var all []spill.Extent
	for i := range 500 {
		e, err := s.Put(text(i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	empty, err := s.Put(nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := s.Get(&empty, 0, empty.Size()); len(b) > 0 || err != nil {
		t.Errorf("an empty part is %q, %v", b, err)
	}
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("the directory has %v, %v", left, err)
	}
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for i := range all {
				want := text(i)
				from := int64(len(want) / 3)
				got, err := s.Get(&all[i], from, all[i].Size()-from)
				if err != nil || !bytes.Equal(got, want[from:]) {
					t.Errorf("part %d: %d bytes, %v", i, len(got), err)
				}
			}
		})
	}
	for i := range 100 { // somebody goes on to add
		if _, err := s.Put(text(i)); err != nil {
			t.Error(err)
		}
	}
	readers.Wait()
}

// The bytes in memory are taken from a budget, and given back.
func TestBudget(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, b := budget.NewPool(budget.Limits{Query: 3 << 20, Sure: 1}).Begin(t.Context())
	defer b.End()
	s := spill.Space{Budget: b}
	n := 0
	for s.Fits(10_000) {
		n += 10_000
	}
	if n < 500_000 || n > 1<<20 {
		t.Errorf("%d bytes fit into a budget that has %d to spare", n, b.Spare())
	}
	at, err := s.Write([]byte("first"), nil, []byte("second"))
	if err != nil {
		t.Fatal(err)
	}
	s.Moved()
	if got, err := s.Read(make([]byte, 1), at+3, 5); string(got) != "stsec" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if !b.Try(b.Spare()) {
		t.Error("what is in the file is paid for")
	}
	b.Give(b.Spare())
	if !s.Fits(10_000) {
		t.Error("nothing fits after all was moved")
	}
	s.Close()
	if !b.Try(b.Spare()) {
		t.Error("what was closed is paid for")
	}
}

// An error names the directory, and a remedy.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir+"/missing")
	s := spill.Space{Most: 1}
	defer s.Close()
	_, err := s.Put([]byte("text"))
	if want := "no temporary file can be written to " + dir + "/missing: no such file or directory; make it, or set TMPDIR to another directory"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	t.Setenv("TMPDIR", dir)
	e, err := s.Put([]byte("text"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(nil, 2, 3); err == nil || !strings.Contains(err.Error(), "read what was put aside in "+dir+": EOF") {
		t.Errorf("behind the end: %v", err)
	}
	if got, err := s.Get(&e, 0, 4); string(got) != "text" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A process that is killed leaves nothing in the directory.
func TestKilled(t *testing.T) {
	if os.Getenv("SPILL_CHILD") != "" {
		s := spill.Space{Most: 1}
		if _, err := s.Put([]byte("text")); err != nil {
			t.Fatal(err)
		}
		fmt.Println("written")
		self, err := os.FindProcess(os.Getpid())
		if err != nil || self.Kill() != nil {
			t.Fatal("it cannot kill itself")
		}
		select {}
	}
	dir := filepath.Join(t.TempDir(), "tmp")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	child.Env = append(os.Environ(), "SPILL_CHILD=1", "TMPDIR="+dir)
	out, err := child.Output()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || string(out) != "written\n" {
		t.Fatalf("%v: %s", err, out)
	}
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("it left %v, %v", left, err)
	}
}
