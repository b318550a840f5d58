package wal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"blobtail/buffer/wal"
	"blobtail/internal/dev/testkit"
	"blobtail/storage/fsys/simdisk"
)

// history is a client's knowledge of the log over many lives of the process.
type history struct {
	rng     *rand.Rand
	disk    *simdisk.Disk
	known   map[wal.Pos]entry // every record that Append returned
	durable map[wal.Pos]bool  // records that must be in the log
	newest  wal.Pos           // the newest position of any record: positions only grow
	removed uint32            // segments up to this one must be missing
	asked   uint32            // segments up to this one may be missing
	closed  bool              // in this life

	// undone: part of an append was written and then truncated. After a power cut a disk
	// may show that part without the truncation, with some later bytes in its place. That
	// looks like rot.
	undone bool

	// The next fields are knowledge of TestEveryCrash only.
	flight *entry // being appended: it may be in the log or not
}

// live runs one process until it is killed. Sometimes it cuts the power too.
func (h *history) live(budget int, faults bool) error {
	stop := h.disk.Ops() + budget
	dead := false
	h.closed = false
	syncs := h.rng.IntN(200)
	h.disk.SetFault(func(op simdisk.Op) error {
		dead = dead || op.N >= stop
		switch {
		case op.Kind == "read":
			return nil // the log treats a failed read as rot, and this test has no rot
		case dead:
			return simdisk.ErrKilled
		case !faults:
			return nil
		case op.Kind == "write" && h.rng.IntN(12) == 0:
			h.undone = true
			return &simdisk.Partial{N: h.rng.IntN(16), Err: syscall.ENOSPC}
		case op.Kind == "sync" || op.Kind == "syncdir":
			if syncs--; syncs == 0 {
				return syscall.EIO
			}
		}
		return nil
	})
	l, err := wal.Open("/var/wal", wal.Options{FS: h.disk, SegmentSize: 2000})
	if err == nil {
		if err := h.examine(l); err != nil {
			return err
		}
		for !dead && !h.closed && l.Err() == nil {
			if err := h.act(l); err != nil {
				return err
			}
		}
		if err := h.checkFailed(l, dead); err != nil {
			return err
		}
	} else if !dead && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EIO) {
		return fmt.Errorf("open: %w", err)
	}
	if h.rng.IntN(2) == 0 {
		h.disk = h.disk.Kill()
	} else {
		h.disk = h.disk.PowerCut()
	}
	return nil
}

func (h *history) act(l *wal.Log) error {
	switch k := h.rng.IntN(20); {
	case k < 12:
		e := entry{typ: byte(1 + h.rng.IntN(9)), payload: random(h.rng, h.rng.IntN(700))}
		do := l.Append
		if h.rng.IntN(4) == 0 {
			do = l.AppendReserved
		}
		pos, err := do(e.typ, e.payload)
		if err != nil {
			return nil
		}
		if pos <= h.newest {
			return fmt.Errorf("append: position %x after %x", pos, h.newest)
		}
		e.pos, h.newest = pos, pos
		h.known[pos] = e
	case k < 18:
		if h.newest.Segment() != l.Active() {
			return nil
		}
		if l.Sync(h.newest) == nil {
			for pos := range h.known {
				h.durable[pos] = true
			}
		}
	case k < 19 && h.rng.IntN(3) == 0:
		front := l.Front()
		if front == l.Active() {
			return nil
		}
		h.asked = max(h.asked, front)
		if l.RemoveFront() == nil {
			h.removed = max(h.removed, front)
		}
	case h.rng.IntN(3) == 0:
		_ = l.Check()
	case h.rng.IntN(30) == 0:
		h.closed = true
		if l.Close() == nil {
			for pos := range h.known {
				h.durable[pos] = true
			}
		}
	}
	return nil
}

// checkFailed checks that a log with a failed fsync, or with held records that found no
// room, does nothing more.
func (h *history) checkFailed(l *wal.Log, dead bool) error {
	if dead || h.closed {
		return nil
	}
	ops := h.disk.Ops()
	_, aerr := l.Append(1, []byte("more"))
	serr := aerr
	if h.newest != 0 { // otherwise there was nothing to sync yet
		serr = l.Sync(h.newest)
	}
	for what, err := range map[string]error{"append": aerr, "sync": serr, "remove": l.RemoveFront()} {
		if !errors.Is(err, wal.ErrFailed) || !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("%s after a failed fsync: %w", what, err)
		}
	}
	if h.disk.Ops() != ops {
		return errors.New("the disk was used after a failed fsync")
	}
	select {
	case <-l.Failed():
		return nil
	default:
		return errors.New("Failed is not closed")
	}
}

// examine compares the log's contents with the known records. A record that was shown
// once must stay for ever.
func (h *history) examine(l *wal.Log) error {
	found := map[wal.Pos]bool{}
	last := wal.Pos(0)
	for r, err := range l.Replay(context.Background()) {
		var c *wal.CorruptError
		switch {
		case errors.Is(err, simdisk.ErrKilled):
			return nil
		case errors.As(err, &c):
			if strings.Contains(c.Reason, "missing") || strings.Contains(c.Reason, "header is") {
				return c
			}
			// The log must distinguish rot at the end from the remains of a crash. This test has
			// no rot.
			if info, ok := l.Segment(segmentOf(c)); ok && c.Offset+c.Length >= info.Size && !h.undone {
				return fmt.Errorf("a crash is taken for damage: %w", c)
			}
			continue
		case err != nil:
			return err
		}
		e, ok := h.known[r.Pos]
		if f := h.flight; !ok && f != nil && r.Pos > h.newest {
			e, ok = *f, true
			h.known[r.Pos] = e
		}
		if !ok || !bytes.Equal(e.payload, r.Payload) || e.typ != r.Type {
			return fmt.Errorf("record at %x was never appended", r.Pos)
		}
		if r.Pos <= last {
			return fmt.Errorf("record at %x comes after %x", r.Pos, last)
		}
		last = r.Pos
		found[r.Pos] = true
	}
	for pos := range h.durable {
		if !found[pos] && pos.Segment() > h.asked {
			return fmt.Errorf("record at %x is lost", pos)
		}
	}
	for pos := range found {
		if pos.Segment() <= h.removed {
			return fmt.Errorf("record at %x is in a segment that was removed", pos)
		}
		h.durable[pos] = true
	}
	// A record that is missing now must not come back.
	for pos := range h.known {
		if !found[pos] {
			delete(h.known, pos)
			delete(h.durable, pos)
		}
	}
	if n := l.Active(); n <= h.newest.Segment() {
		return fmt.Errorf("segment %d is used again", n)
	}
	return nil
}

func segmentOf(c *wal.CorruptError) uint32 {
	n, err := strconv.ParseUint(strings.TrimSuffix(path.Base(c.Path), ".seg"), 10, 32)
	if err != nil {
		panic(err)
	}
	return uint32(n)
}

// Processes are killed and power is cut at any operation. A record that was synced, or
// shown once, is never lost, changed or shown elsewhere.
func TestCrashes(t *testing.T) {
	for _, faults := range []bool{false, true} {
		t.Run(fmt.Sprintf("faults=%t", faults), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(testkit.Share(800, 12)) {
				h := &history{
					rng:  newRand(seed),
					disk: simdisk.New(seed), known: map[wal.Pos]entry{}, durable: map[wal.Pos]bool{},
				}
				if err := h.disk.Mkdir("/var", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := h.disk.SyncDir("/"); err != nil {
					t.Fatal(err)
				}
				for life := range 7 {
					if err := h.live(10+h.rng.IntN(150), faults); err != nil {
						t.Fatalf("seed %d, life %d: %v", seed, life, err)
					}
				}
				l, err := wal.Open("/var/wal", wal.Options{FS: h.disk, SegmentSize: 2000})
				if err == nil {
					err = h.examine(l)
				}
				if err != nil {
					t.Fatalf("seed %d, the end: %v", seed, err)
				}
			}
		})
	}
}
