package blobs

import (
	"sync"
	"sync/atomic"
)

// shared has the slots and the memory of all reads of a Reader, so that many of them at once take
// little more memory than a few, and later ones find the memory of earlier ones.
type shared struct {
	slots  chan struct{} // one for each block that may be decoded at once
	passes atomic.Int64  // that are at work
	blocks sync.Pool     // *[]byte: memory of decoded blocks
	groups sync.Pool     // *[]byte: memory of fetched groups
}

func newShared(workers int) *shared { return &shared{slots: make(chan struct{}, workers)} }

// take returns memory that a pass has to spare, or else an earlier one; nil: there is none.
func take(own chan []byte, others *sync.Pool) []byte {
	select {
	case b := <-own:
		return b
	default:
	}
	if b, ok := others.Get().(*[]byte); ok {
		return *b
	}
	return nil
}

// give leaves the memory of a pass that has ended to others.
func give(own chan []byte, others *sync.Pool) {
	for {
		select {
		case b := <-own:
			others.Put(&b)
		default:
			return
		}
	}
}

// room returns how many bytes of stored blocks a pass may hold, and the least that it should
// fetch at once. With many passes at work each has less.
func (s *shared) room() (live, least int64) {
	n := s.passes.Load()
	if n <= 2 {
		return groupsLive, groupLeast
	}
	return max(groupsLive*2/n, 4<<20), groupLeast / 4
}
