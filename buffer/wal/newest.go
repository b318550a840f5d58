package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"blobtail/storage/fsys"
)

const (
	newestName    = "newest"
	newestTemp    = "newest.tmp"
	newestMagic   = "blobnew\n"
	newestVersion = 1
	newestSize    = 20
)

// newest is the directory's note on the newest segment. The note makes the loss of that
// segment noticeable, since no other file names it.
type newest struct {
	mu    sync.Mutex
	noted uint32 // number of a complete segment; 0 for none
	told  bool   // the failure to write it was logged
}

// hole is the range of the missing segments. Some of its numbers may never have been
// used. last is 0 if none is missing.
type hole struct{ first, last uint32 }

// openNewest reads the note of earlier processes.
func (l *Log) openNewest() {
	path := filepath.Join(l.dir, newestName)
	b, err := fsys.ReadFile(l.fs, path)
	if err == nil {
		l.newest.noted, err = decodeNewest(b)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.log.Warn().Err(err).Str("file", path).
			Msg("the log's note on its newest segment is unreadable; whether that is there is not known")
	}
}

func decodeNewest(b []byte) (uint32, error) {
	if len(b) != newestSize || string(b[:8]) != newestMagic || binary.LittleEndian.Uint32(b[16:]) != uint32(checksum(0).add(b[:16])) {
		return 0, errors.New("it is damaged")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != newestVersion {
		return 0, fmt.Errorf("format version %d, this program reads version %d", v, newestVersion)
	}
	return binary.LittleEndian.Uint32(b[12:]), nil
}

func encodeNewest(n uint32) []byte {
	b := []byte(newestMagic)
	b = binary.LittleEndian.AppendUint32(b, newestVersion)
	b = binary.LittleEndian.AppendUint32(b, n)
	return binary.LittleEndian.AppendUint32(b, uint32(checksum(0).add(b)))
}

// noteNewest notes durably that the active segment was made. Without room the note lags
// until Check finds some. It does not use the ballast's room, which is for records that
// allow others to be deleted.
func (l *Log) noteNewest() {
	n := l.Active()
	s := &l.newest
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noted >= n {
		return
	}
	err := l.writeNewest(n)
	if err == nil {
		s.noted, s.told = n, false
		return
	}
	if !s.told && l.Err() == nil {
		s.told = true
		l.log.Warn().Err(err).Uint32("segment", n).
			Msg("the log cannot note its newest segment; until it can, nobody would notice that the file is lost")
	}
}

func (l *Log) writeNewest(n uint32) error {
	temp := filepath.Join(l.dir, newestTemp)
	if err := l.copyTo(temp, bytes.NewReader(encodeNewest(n)), 0, newestSize); err != nil {
		return err
	}
	return l.rename(temp, filepath.Join(l.dir, newestName))
}
