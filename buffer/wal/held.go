package wal

import (
	"sync"

	"blobtail/storage/fsys"
)

const (
	// short is the length up to which the header and the payload of a record are copied
	// together. Only short records are held.
	short = 64 << 10
	// maxHeld is the most bytes that are held. One write of all is much cheaper than one
	// for each record: the page cache handles larger pieces at once.
	maxHeld = 512 << 10
)

// held is the end of the log that is not in its file yet: short records that no fsync covers. The
// next fsync writes them, and so does any other call that needs them in the file.
//
// Their callers have their positions already, so that write must not find a full disk.
// Therefore records are held only if the disk has roomy bytes free. If other programs take
// these within moments, the ballast is given up for the held records.
type held struct {
	mu    sync.Mutex
	file  *file
	off   int64 // of the first byte, in the file
	bytes []byte
}

// roomy is how much free room lets records be held.
const roomy = 256 << 20

// holds reports whether a record of a length, with its header, may be held.
// l.held.mu is held.
func (l *Log) holds(length int64) bool {
	n := int64(len(l.held.bytes))
	if length > short || n+length > maxHeld {
		return false
	}
	if n > 0 {
		return true
	}
	m, ok := l.fs.(fsys.Measurer)
	if !ok {
		return false
	}
	free, err := m.Free(l.dir)
	return err == nil && free >= roomy
}

// hold adds a record at w.off. l.held.mu is held.
func (w *writer) hold(h *held, typ byte, payload []byte, sum checksum) {
	if len(h.bytes) == 0 {
		h.file, h.off = w.file, w.off
	}
	for h.off+int64(len(h.bytes)) < w.off {
		h.bytes = append(h.bytes, 0) // they align this record
	}
	n := len(h.bytes)
	h.bytes = append(h.bytes, make([]byte, recordHeader)...)
	w.seal.put(h.bytes[n:], w.off, typ, len(payload), sum)
	h.bytes = append(h.bytes, payload...)
}

// writeHeld writes the held records to their file. An error is final. l.held.mu is held.
func (l *Log) writeHeld() error {
	h := &l.held
	if len(h.bytes) == 0 {
		return nil
	}
	if err := l.Err(); err != nil {
		return err
	}
	err := l.reserved(func() error {
		_, err := h.file.WriteAt(h.bytes, h.off)
		return err
	})
	if err != nil {
		return l.fail(err)
	}
	h.bytes = h.bytes[:0]
	l.mu.Lock()
	l.written = l.end
	l.mu.Unlock()
	return nil
}

// settle brings all records of the log into their files.
func (l *Log) settle() error {
	l.held.mu.Lock()
	defer l.held.mu.Unlock()
	return l.writeHeld()
}
