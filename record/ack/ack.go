// Package ack names where the records of a request have to be before it is answered.
package ack

import (
	"errors"
	"fmt"
	"strings"
)

// A Level is such a place. A greater one promises more.
type Level uint8

// The levels.
const (
	Disk    Level = iota // synced to the disk of the ingester
	Shipped              // the same, and in the store as a part of the ingester's log
	Stored               // in blobs
)

// ErrDisk says that records are on the disk of the ingester alone, since the store does not answer. An
// operator has chosen that over a refusal.
var ErrDisk = errors.New("the records are on the ingester's disk, and not in the store")

// String returns disk, shipped or stored.
func (l Level) String() string {
	switch l {
	case Stored:
		return "stored"
	case Shipped:
		return "shipped"
	}
	return "disk"
}

// MarshalText returns the text of String.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText is [Parse].
func (l *Level) UnmarshalText(text []byte) (err error) {
	*l, err = Parse(string(text))
	return err
}

// Parse reads what String returns, in letters of any case.
func Parse(text string) (Level, error) {
	for l := Disk; l <= Stored; l++ {
		if strings.EqualFold(text, l.String()) {
			return l, nil
		}
	}
	return Disk, fmt.Errorf("%q: want disk, shipped or stored", text)
}
