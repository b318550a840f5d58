//go:build unix

package door

import (
	"math"
	"syscall"
)

// descriptors returns how many files and connections the process may have open.
func descriptors() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxInt
	}
	return uint64(limit.Cur)
}
