package main

import (
	"fmt"
	"io"
	"slices"

	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/compare/canon"
)

// expected are the records that a store has to have: their hashes in order.
type expected []uint64

// expect reads the first n records of a corpus.
func expect(c canon.Form, file string, n int) (expected, error) {
	e := make(expected, 0, n)
	for line, err := range rig.Lines(file) {
		if err != nil {
			return nil, err
		}
		_, sum, err := c.Sum(line)
		if err != nil {
			return nil, err
		}
		if e = append(e, sum); len(e) == n {
			break
		}
	}
	if len(e) < n {
		return nil, fmt.Errorf("%s has %d records, not %d", file, len(e), n)
	}
	slices.Sort(e)
	return e, nil
}

// A holding compares stored records with the expected ones.
type holding struct {
	want    expected
	seen    []uint32 // how often, at the first of equal hashes
	foreign int
	example string
}

func (e expected) hold() *holding { return &holding{want: e, seen: make([]uint32, len(e))} }

// read takes records.
func (h *holding) read(c canon.Form, r io.Reader) error {
	for line, err := range rig.LinesOf(r) {
		if err != nil {
			return err
		}
		if len(line) == 0 {
			continue
		}
		_, sum, err := c.Sum(line)
		if err != nil {
			return err
		}
		if at, ok := slices.BinarySearch(h.want, sum); ok {
			h.seen[at]++
			continue
		}
		if h.foreign++; h.foreign == 1 {
			h.example = string(line)
		}
	}
	return nil
}

// finish tells how the records differ, after all of them.
func (h *holding) finish() error {
	missing, doubled := 0, 0
	for i := 0; i < len(h.want); {
		n := 1
		for i+n < len(h.want) && h.want[i+n] == h.want[i] {
			n++
		}
		missing += max(0, n-int(h.seen[i]))
		doubled += max(0, int(h.seen[i])-n)
		i += n
	}
	if missing+doubled+h.foreign == 0 {
		return nil
	}
	return fmt.Errorf("of %d records %d are missing, %d are there too often, and %d are not of the corpus (%.1000s)", len(h.want), missing, doubled, h.foreign, h.example)
}
