package wal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"blobtail/internal/fsys"
)

const (
	suspectsName    = "suspects"
	suspectsTemp    = "suspects.tmp"
	suspectsMagic   = "blobsus\n"
	suspectsVersion = 1
	suspectsHeader  = 16
	suspectEntry    = 16
	maxSuspects     = 4096
)

// suspects counts how often handling a record ended the process.
type suspects struct {
	before map[Pos]int // as Open found them; not changed since

	mu     sync.Mutex
	now    map[Pos]int // as they are in the file
	closed bool
}

// Suspect notes durably that handling the record whose payload is at p is about
// to end the process. The next process finds that in [Record.Suspected], as long
// as the record's segment is there. One process counts once for a record, however
// often it says so.
//
// It is for a deferred function that recovers from a panic, also one in the body
// of a Replay: of the log's locks it takes only some that a panic releases on its
// way. It costs two fsyncs.
func (l *Log) Suspect(p Pos) error {
	if p.Offset() < headerSize+recordHeader {
		return fmt.Errorf("wal: suspect: %d is not a position", p)
	}
	s := &l.suspects
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("wal: suspect: %w", ErrClosed)
	}
	count := min(s.before[p]+1, math.MaxInt32)
	if s.now[p] == count {
		return nil
	}
	next := maps.Clone(s.now)
	if next == nil {
		next = map[Pos]int{}
	}
	next[p] = count
	// The oldest go when there are too many: their segments go first too.
	for _, old := range slices.Sorted(maps.Keys(next))[:max(len(next)-maxSuspects, 0)] {
		delete(next, old)
	}
	if err := l.writeSuspects(next); err != nil {
		return fmt.Errorf("wal: suspect segment %d at %d: %w", p.Segment(), p.Offset(), err)
	}
	s.now = next
	return nil
}

// Quarantine keeps segment n as it is for people to look at, when a record in it
// is not to be handled any more: as another name in the directory "quarantine",
// which outlives the segment. A segment that is there already is left alone.
func (l *Log) Quarantine(n uint32) error {
	err := l.reserved(func() error { return l.keep(n) })
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("wal: keep segment %d in quarantine: %w", n, err)
	}
	return nil
}

// openSuspects reads what earlier processes noted, and forgets what was in
// segments that are gone. That it cannot be read is told, and stops nothing.
func (l *Log) openSuspects() error {
	all, err := l.readSuspects()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		l.log.Warn().Err(err).Str("file", filepath.Join(l.dir, suspectsName)).
			Msg("the log's notes on records that ended the process are unreadable; they are ignored")
		return nil
	}
	there := maps.Clone(all)
	maps.DeleteFunc(there, func(p Pos, _ int) bool {
		_, ok := slices.BinarySearchFunc(l.found, p.Segment(), func(s *segment, n uint32) int { return cmp.Compare(s.Number, n) })
		return !ok
	})
	l.suspects.before, l.suspects.now = there, there
	if len(there) == len(all) {
		return nil
	}
	// They must not be taken for what a log begun anew will hold.
	if err := l.writeSuspects(there); err != nil {
		if l.Err() != nil {
			return l.Err()
		}
		l.log.Warn().Err(err).Msg("the log's notes on records that ended the process cannot be written")
	}
	return nil
}

func (l *Log) readSuspects() (map[Pos]int, error) {
	f, err := l.fs.OpenFile(filepath.Join(l.dir, suspectsName), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, suspectsHeader+maxSuspects*suspectEntry+4+1)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return decodeSuspects(b[:n])
}

// writeSuspects replaces the file; without suspects there is none.
func (l *Log) writeSuspects(all map[Pos]int) error {
	path, temp := filepath.Join(l.dir, suspectsName), filepath.Join(l.dir, suspectsTemp)
	var err error
	if len(all) == 0 {
		err = l.fs.Remove(path)
	} else {
		b := encodeSuspects(all)
		err = l.reserved(func() error {
			f, err := l.fs.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
			if err != nil {
				return err
			}
			return errors.Join(l.fillSuspects(f, b), f.Close())
		})
		if err == nil {
			err = l.fs.Rename(temp, path)
		}
	}
	if err != nil {
		return err
	}
	return l.syncDir(l.dir)
}

func (l *Log) fillSuspects(f fsys.File, b []byte) error {
	if _, err := f.WriteAt(b, 0); err != nil {
		return err
	}
	return l.syncFile(f)
}

func encodeSuspects(all map[Pos]int) []byte {
	b := []byte(suspectsMagic)
	b = binary.LittleEndian.AppendUint32(b, suspectsVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(all)))
	for _, p := range slices.Sorted(maps.Keys(all)) {
		b = binary.LittleEndian.AppendUint64(b, uint64(p))
		b = binary.LittleEndian.AppendUint64(b, uint64(all[p]))
	}
	return binary.LittleEndian.AppendUint32(b, uint32(checksum(0).add(b)))
}

var errSuspects = errors.New("it is damaged")

func decodeSuspects(b []byte) (map[Pos]int, error) {
	body := len(b) - 4
	if body < suspectsHeader || string(b[:8]) != suspectsMagic || binary.LittleEndian.Uint32(b[body:]) != uint32(checksum(0).add(b[:body])) {
		return nil, errSuspects
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != suspectsVersion {
		return nil, fmt.Errorf("format version %d, this program reads version %d", v, suspectsVersion)
	}
	entries := b[suspectsHeader:body]
	if uint64(len(entries)) != uint64(binary.LittleEndian.Uint32(b[12:]))*suspectEntry {
		return nil, errSuspects
	}
	all := map[Pos]int{}
	for e := range slices.Chunk(entries, suspectEntry) {
		count := binary.LittleEndian.Uint64(e[8:])
		if count == 0 || count > math.MaxInt32 {
			return nil, errSuspects
		}
		all[Pos(binary.LittleEndian.Uint64(e))] = int(count)
	}
	return all, nil
}

func (l *Log) closeSuspects() {
	l.suspects.mu.Lock()
	defer l.suspects.mu.Unlock()
	l.suspects.closed = true
}
