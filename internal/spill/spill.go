// Package spill keeps bytes that wait: so many in memory, and the others in an unnamed
// temporary file.
//
// A [Space] is one place for bytes of one kind. A caller with parts that never change uses
// [Space.Put] and [Space.Get]. A caller with a form of its own in memory asks [Space.Fits]
// for each growth. If there is no room it writes all to the file ([Space.Write]), says so
// ([Space.Moved]), and reads it back with [Space.Read].
//
// The file has no name, so it ends with the process, however that ends.
package spill

import (
	"fmt"
	"os"
	"slices"

	"blobtail/internal/budget"
	"blobtail/storage/fsys"
)

// step is how much a Space takes from its budget at once.
const step = 64 << 10

// A Space holds bytes that wait. The zero value has no limit of memory. One goroutine may add at
// a time. Several goroutines may read bytes that were added before.
type Space struct {
	// Most is how many bytes are in memory at most; 0: as many as Budget has.
	Most int64
	// Budget pays for the bytes in memory. nil: they cost nothing.
	Budget *budget.Budget

	used int64 // in memory
	paid int64 // taken from the budget
	file *os.File
	dir  string // of the file
	end  int64  // of the file
}

// Fits takes room for n more bytes in memory. It returns false, and takes none, if there is too
// little.
func (s *Space) Fits(n int64) bool {
	used := s.used + n
	if s.Most > 0 && used > s.Most {
		return false
	}
	if s.Budget != nil && used > s.paid {
		more := used - s.paid + step
		if !s.Budget.Try(more) {
			return false
		}
		s.paid += more
	}
	s.used = used
	return true
}

// Moved says that nothing is in memory any more.
func (s *Space) Moved() {
	s.Budget.Give(s.paid)
	s.used, s.paid = 0, 0
}

// Write appends parts to the file, and returns the place of the first. An error names the directory
// of the file, and a remedy.
func (s *Space) Write(parts ...[]byte) (at int64, err error) {
	if s.file == nil {
		dir := os.TempDir()
		f, err := unnamed(dir)
		if err != nil {
			return 0, fsys.TempError(dir, err)
		}
		s.file, s.dir = f, dir
	}
	at = s.end
	for _, part := range parts {
		if _, err := s.file.WriteAt(part, s.end); err != nil {
			s.end = at
			return 0, fsys.TempError(s.dir, err)
		}
		s.end += int64(len(part))
	}
	return at, nil
}

// Read reads n bytes of the file, into buf if it is large enough.
func (s *Space) Read(buf []byte, at, n int64) ([]byte, error) {
	buf = slices.Grow(buf[:0], int(n))[:n]
	if _, err := s.file.ReadAt(buf, at); err != nil {
		// An EOF is no end of anything.
		return nil, fmt.Errorf("read what was put aside in %s: %v; try again, or set TMPDIR to a directory of another disk", s.dir, err)
	}
	return buf, nil
}

// An Extent is bytes that a [Space] keeps.
type Extent struct {
	mem      []byte // nil: they are in the file
	at, size int64
}

// Size is the number of its bytes.
func (e *Extent) Size() int64 { return e.size }

// Put keeps a copy of b.
func (s *Space) Put(b []byte) (Extent, error) {
	size := int64(len(b))
	if size == 0 || s.Fits(size) {
		return Extent{mem: append([]byte{}, b...), size: size}, nil
	}
	at, err := s.Write(b)
	return Extent{at: at, size: size}, err
}

// Get returns n bytes of an extent from off. Nobody may change them.
func (s *Space) Get(e *Extent, off, n int64) ([]byte, error) {
	if e.mem != nil {
		return e.mem[off : off+n : off+n], nil
	}
	return s.Read(nil, e.at+off, n)
}

// Close releases everything. Nothing of it may be in use.
func (s *Space) Close() {
	s.Moved()
	if s.file != nil {
		_ = s.file.Close() // nothing of it is needed any more
		s.file, s.end = nil, 0
	}
}

// removed makes a file and removes its name, for systems that cannot make one without a name.
func removed(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "blobtail-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
