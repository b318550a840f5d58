package readapi

import (
	"bytes"
	"fmt"
	"os"
)

const (
	// spillFrom is the limit from which on a read of the newest records, oldest first, puts
	// them aside. Fewer of them are held by the read.
	spillFrom = 5000
	// spillMemory is how many bytes it holds in memory, and mostSpilled how many it puts into
	// a file.
	spillMemory = 8 << 20
	mostSpilled = 1 << 30
	// spillChunk is how much of the file it reads back at once.
	spillChunk = 1 << 20
)

// spill takes lines and gives them back in the other order. It holds a few in memory, and the
// others in a file without a name. So the memory of an answer does not grow with its limit.
type spill struct {
	mem  []byte
	file *os.File
	size int64 // of the file
}

// add takes one or more whole lines.
func (s *spill) add(lines []byte) error {
	s.mem = append(s.mem, lines...)
	if len(s.mem) < spillMemory {
		return nil
	}
	if s.size+int64(len(s.mem)) > mostSpilled {
		return badRequest("the records of this limit have more than %d bytes; take a smaller one, or order=desc", mostSpilled)
	}
	if s.file == nil {
		f, err := os.CreateTemp(os.TempDir(), "blobtail-")
		if err != nil {
			return fmt.Errorf("put records aside: %w", err)
		}
		s.file = f
		if err := os.Remove(f.Name()); err != nil { // the file goes with the process, however it ends
			return fmt.Errorf("put records aside: %w", err)
		}
	}
	if _, err := s.file.WriteAt(s.mem, s.size); err != nil {
		return fmt.Errorf("put records aside: %w", err)
	}
	s.size += int64(len(s.mem))
	s.mem = s.mem[:0]
	return nil
}

// close releases everything.
func (s *spill) close() {
	s.mem = nil
	if s.file != nil {
		s.file.Close() // nothing of it is needed any more
	}
}

// backwards emits the lines, the last one first, some in each call.
func (s *spill) backwards(emit func(lines []byte) error) error {
	var out []byte
	if err := reversed(s.mem, &out, emit); err != nil {
		return err
	}
	var rest []byte // the end of a line whose beginning is not read yet
	for end := s.size; end > 0; {
		start := max(0, end-spillChunk)
		chunk := make([]byte, end-start, int(end-start)+len(rest))
		if _, err := s.file.ReadAt(chunk, start); err != nil {
			return fmt.Errorf("read the records that were put aside: %v", err) // an EOF is no end of anything
		}
		chunk = append(chunk, rest...)
		whole := 0
		if start > 0 {
			whole = bytes.IndexByte(chunk, '\n') + 1
		}
		rest = bytes.Clone(chunk[:whole])
		if err := reversed(chunk[whole:], &out, emit); err != nil {
			return err
		}
		end = start
	}
	return nil
}

// reversed emits lines, the last one first. It uses the memory of out.
func reversed(lines []byte, out *[]byte, emit func(lines []byte) error) error {
	*out = (*out)[:0]
	for len(lines) > 0 {
		at := bytes.LastIndexByte(lines[:len(lines)-1], '\n') + 1
		*out = append(*out, lines[at:]...)
		if lines = lines[:at]; len(*out) >= streamBuffer || at == 0 {
			if err := emit(*out); err != nil {
				return err
			}
			*out = (*out)[:0]
		}
	}
	return nil
}
