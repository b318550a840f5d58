package simdisk_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"

	"blobtail/storage/fsys"
	"blobtail/storage/fsys/simdisk"
)

var (
	_ fsys.FS       = (*simdisk.Disk)(nil)
	_ fsys.Measurer = (*simdisk.Disk)(nil)
)

func write(t *testing.T, d *simdisk.Disk, name, text string, sync bool) {
	t.Helper()
	f, err := d.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		t.Fatal(err)
	}
	if sync {
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, d *simdisk.Disk, name string) (string, bool) {
	t.Helper()
	f, err := d.OpenFile(name, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	n, _ := f.ReadAt(b, 0)
	return string(b[:n]), true
}

// Synced files with synced names always survive; others sometimes do.
func TestPowerCut(t *testing.T) {
	outcomes := map[string]int{}
	for seed := range uint64(200) {
		d := simdisk.New(seed)
		write(t, d, "/kept", "kept", true)
		if err := d.SyncDir("/"); err != nil {
			t.Fatal(err)
		}
		write(t, d, "/unnamed", "unnamed", true)
		write(t, d, "/loose", "loose", false)
		d = d.PowerCut()
		if got, _ := read(t, d, "/kept"); got != "kept" {
			t.Fatalf("seed %d: kept is %q", seed, got)
		}
		if got, ok := read(t, d, "/unnamed"); ok {
			outcomes["unnamed there"]++
			if got != "unnamed" {
				t.Fatalf("seed %d: unnamed is %q", seed, got)
			}
		}
		if got, ok := read(t, d, "/loose"); ok {
			outcomes["loose "+got]++
		}
	}
	for _, o := range []string{"unnamed there", "loose ", "loose loose"} {
		if outcomes[o] == 0 {
			t.Errorf("never: %s; seen %v", o, outcomes)
		}
	}
}

// Bytes dropped by a failed sync can be read until the power goes. No later sync brings
// them back.
func TestFailedSync(t *testing.T) {
	lost := 0
	for seed := range uint64(100) {
		d := simdisk.New(seed)
		write(t, d, "/f", "....", true)
		if err := d.SyncDir("/"); err != nil {
			t.Fatal(err)
		}
		broken := true
		d.SetFault(func(op simdisk.Op) error {
			if op.Kind == "sync" && broken {
				broken = false
				return errors.New("bad disk")
			}
			return nil
		})
		write(t, d, "/f", "data", false)
		f, err := d.OpenFile("/f", os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if f.Sync() == nil {
			t.Fatal("sync did not fail")
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		d = d.Kill()
		if got, _ := read(t, d, "/f"); got != "data" {
			t.Fatalf("after a kill: %q", got)
		}
		d = d.PowerCut()
		if got, _ := read(t, d, "/f"); got != "data" {
			lost++
		}
	}
	if lost == 0 || lost == 100 {
		t.Errorf("lost %d times of 100", lost)
	}
}

func TestNames(t *testing.T) {
	d := simdisk.New(1)
	if err := d.Mkdir("/dir", 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, d, "/dir/a", "a", false)
	write(t, d, "/dir/b", "b", false)
	for _, c := range []struct {
		what string
		err  error
		want error
	}{
		{"mkdir twice", d.Mkdir("/dir", 0o700), fs.ErrExist},
		{"link over", d.Link("/dir/a", "/dir/b"), fs.ErrExist},
		{"link", d.Link("/dir/a", "/c"), nil},
		{"rename over", d.Rename("/dir/a", "/dir/b"), nil},
		{"rename absent", d.Rename("/dir/a", "/dir/x"), fs.ErrNotExist},
		{"remove absent", d.Remove("/dir/a"), fs.ErrNotExist},
		{"parent absent", d.Mkdir("/no/dir", 0o700), fs.ErrNotExist},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, c.err, c.want)
		}
	}
	entries, err := d.ReadDir("/dir")
	if err != nil || len(entries) != 1 || entries[0].Name() != "b" {
		t.Errorf("entries %v, %v", entries, err)
	}
	for _, name := range []string{"/dir/b", "/c"} {
		if got, _ := read(t, d, name); got != "a" {
			t.Errorf("%s holds %q", name, got)
		}
	}
	f, err := d.OpenFile("/c", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(3); err != nil {
		t.Fatal(err)
	}
	if got, _ := read(t, d, "/dir/b"); !bytes.Equal([]byte(got), []byte("a\x00\x00")) {
		t.Errorf("after growing: %q", got)
	}
}

// A disk with bounds accepts the bytes that fit, also after a crash, and reports free
// space.
func TestRoom(t *testing.T) {
	d := simdisk.New(1)
	if free, err := d.Free("/"); free != math.MaxInt64 || err != nil {
		t.Errorf("without bounds %d are free: %v", free, err)
	}
	d.SetRoom(10)
	write(t, d, "/a", "1234567", false)
	for range 2 {
		f, err := d.OpenFile("/b", os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := f.WriteAt([]byte("12345"), 0); n != 3 || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%d bytes are written: %v", n, err)
		}
		if free, err := d.Free("/"); free != 0 || err != nil {
			t.Errorf("%d are free: %v", free, err)
		}
		if err := d.Remove("/b"); err != nil {
			t.Fatal(err)
		}
		d = d.Fork(simdisk.All, 1)
	}
	write(t, d, "/a", "7654321", false) // in place
	if free, err := d.Free("/"); free != 3 || err != nil {
		t.Errorf("%d are free: %v", free, err)
	}
}

// A lock belongs to one caller, until it is closed or its process dies.
func TestLock(t *testing.T) {
	d := simdisk.New(1)
	l, err := d.Lock("/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Lock("/"); !errors.Is(err, fsys.ErrLocked) {
		t.Errorf("second Lock: %v", err)
	}
	if _, err := d.Fork(simdisk.Killed, 1).Lock("/"); err != nil {
		t.Errorf("Lock on the disk that a crash left: %v", err)
	}
	d = d.Kill()
	next, err := d.Lock("/")
	if err != nil {
		t.Errorf("Lock after a kill: %v", err)
	}
	l.Close() // a dead process has no lock to release
	if _, err := d.Lock("/"); !errors.Is(err, fsys.ErrLocked) {
		t.Errorf("Lock of the next process: %v", err)
	}
	next.Close()
	if _, err := d.Lock("/"); err != nil {
		t.Errorf("Lock after Close: %v", err)
	}
}

// A sector is written whole. After a power cut it has its contents of some moment. So a
// later write to it never survives without an earlier one.
func TestSectorsAreWrittenWhole(t *testing.T) {
	found := map[string]int{}
	for seed := range uint64(400) {
		d := simdisk.New(seed)
		f, err := d.OpenFile("/f", os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil {
			err = d.SyncDir("/")
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range []string{"a", "b", "c"} {
			if _, err := f.WriteAt([]byte(text), int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.WriteAt([]byte("next"), 512); err != nil {
			t.Fatal(err)
		}
		text, _ := read(t, d.PowerCut(), "/f")
		found[strings.TrimRight(text, "\x00")]++
	}
	for _, want := range []string{"", "a", "ab", "abc"} {
		if found[want] == 0 {
			t.Errorf("never found: %q", want)
		}
		delete(found, want)
	}
	if len(found) > 0 {
		t.Errorf("also found: %v", found)
	}
}
