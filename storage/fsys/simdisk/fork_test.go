package simdisk_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"blobtail/storage/fsys/simdisk"
)

// sketch is the contents of a disk, as text.
func sketch(t *testing.T, d *simdisk.Disk) string {
	t.Helper()
	entries, err := d.ReadDir("/")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		text, _ := read(t, d, "/"+e.Name())
		out = append(out, e.Name()+"="+text)
	}
	return strings.Join(out, " ")
}

// Each way to crash gives the disks that its comment states, and no others. The forked
// disk goes on unchanged.
func TestFork(t *testing.T) {
	d := simdisk.New(1)
	write(t, d, "/a", "old", true)
	if err := d.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	write(t, d, "/b", "b", false)
	write(t, d, "/a", "new", false)
	if err := d.Rename("/b", "/c"); err != nil {
		t.Fatal(err)
	}
	if n := d.Unsynced(); n != 4 {
		t.Errorf("%d operations unsynced", n)
	}
	for crash, want := range map[simdisk.Crash][]string{
		simdisk.None:   {"a=old"},
		simdisk.All:    {"a=new c=b"},
		simdisk.Killed: {"a=new c=b"},
		simdisk.Prefix: {"a=old", "a=old b=", "a=old b=b", "a=new b=b", "a=new c=b"},
		simdisk.Torn: {
			"a=old", "a=new", "a=old b=", "a=old b=b", "a=new b=", "a=new b=b",
			"a=old c=", "a=old c=b", "a=new c=", "a=new c=b",
		},
		simdisk.Any: {
			"a=old", "a=new", "a=old b=", "a=old b=b", "a=new b=", "a=new b=b",
			"a=old c=", "a=old c=b", "a=new c=", "a=new c=b",
		},
	} {
		seen := map[string]bool{}
		for seed := range uint64(400) {
			got := sketch(t, d.Fork(crash, seed))
			if again := sketch(t, d.Fork(crash, seed)); again != got {
				t.Fatalf("%v, seed %d: %q, then %q", crash, seed, got, again)
			}
			seen[got] = true
		}
		for _, w := range want {
			if !seen[w] {
				t.Errorf("%v: never %q", crash, w)
			}
		}
		if len(seen) != len(want) {
			t.Errorf("%v: %v, want %q", crash, seen, want)
		}
	}
	if got := sketch(t, d); got != "a=new c=b" || d.Unsynced() != 4 {
		t.Errorf("afterwards: %q, %d unsynced", got, d.Unsynced())
	}
}

// A torn file is made of sectors from before and after.
func TestForkTears(t *testing.T) {
	d := simdisk.New(1)
	write(t, d, "/f", strings.Repeat("a", 4*512), true)
	if err := d.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	write(t, d, "/f", strings.Repeat("b", 4*512), false)
	seen := map[string]bool{}
	for seed := range uint64(400) {
		f, err := d.Fork(simdisk.Torn, seed).OpenFile("/f", os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 4*512)
		if _, err := f.ReadAt(b, 0); err != nil {
			t.Fatal(err)
		}
		for i := range b {
			if b[i] != b[i/512*512] {
				t.Fatalf("seed %d: a sector is torn", seed)
			}
		}
		seen[fmt.Sprintf("%c%c%c%c", b[0], b[512], b[1024], b[1536])] = true
	}
	if len(seen) != 16 {
		t.Errorf("%d outcomes: %v", len(seen), seen)
	}
}

// A hook forks the disk before the operation. Changes that survived a process's death can
// still be lost with the power, on the fork too.
func TestForkInHook(t *testing.T) {
	d := simdisk.New(1)
	var states []string
	var killed *simdisk.Disk
	d.SetFault(func(op simdisk.Op) error {
		states = append(states, op.Kind+": "+sketch(t, op.Fork(simdisk.All, 1)))
		killed = op.Fork(simdisk.Killed, 1)
		return nil
	})
	write(t, d, "/a", "a", false)
	if err := d.Mkdir("/d", fs.ModePerm); err != nil {
		t.Fatal(err)
	}
	if err := d.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(states, "; "), "open: ; write: a=; mkdir: a=a; syncdir: a=a d="; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	// The last fork is from before the sync of the names.
	if got := sketch(t, killed); got != "a=a d=" {
		t.Errorf("after a kill: %q", got)
	}
	if got := sketch(t, killed.Fork(simdisk.None, 1)); got != "" {
		t.Errorf("after a kill and a power cut: %q", got)
	}
	if got := sketch(t, d.Fork(simdisk.None, 1)); got != "a= d=" {
		t.Errorf("after the sync: %q", got)
	}
}
