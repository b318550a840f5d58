package asblobs

import (
	"bytes"
	"fmt"
	"os"
	"sync"
)

// inMemory is how many bytes of blobs are kept in memory.
const inMemory = 64 << 20

// An arena keeps bytes for the life of the process: some in memory, the rest in an unnamed
// file.
type arena struct {
	mu   sync.Mutex
	used int64
	file *os.File
	end  int64 // of the file
}

// extent is bytes in an arena: in memory, or in its file if mem is nil.
type extent struct {
	mem      []byte
	at, size int64
}

// put keeps a copy of b, which is not empty.
func (a *arena) put(b []byte) (extent, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	size := int64(len(b))
	if a.used+size <= inMemory {
		a.used += size
		return extent{mem: bytes.Clone(b), size: size}, nil
	}
	if a.file == nil {
		f, err := os.CreateTemp(os.TempDir(), "blobtail-")
		if err != nil {
			return extent{}, fmt.Errorf("put blobs aside: %w", err)
		}
		a.file = f
		// The file goes with the process, however it ends.
		if err := os.Remove(f.Name()); err != nil {
			return extent{}, fmt.Errorf("put blobs aside: %w", err)
		}
	}
	at := a.end
	if _, err := a.file.WriteAt(b, at); err != nil {
		return extent{}, fmt.Errorf("put blobs aside: %w", err)
	}
	a.end += size
	return extent{at: at, size: size}, nil
}

// read returns n bytes of an extent from off, which nobody may change.
func (a *arena) read(e extent, off, n int64) ([]byte, error) {
	if e.mem != nil {
		return e.mem[off : off+n : off+n], nil
	}
	b := make([]byte, n)
	if _, err := a.file.ReadAt(b, e.at+off); err != nil {
		return nil, fmt.Errorf("read what was put aside: %v", err) // an EOF is no end of anything
	}
	return b, nil
}

func (a *arena) close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}
