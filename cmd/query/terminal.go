//go:build unix

package main

import (
	"context"
	"os"
	"syscall"

	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"
)

func isTerminal(f *os.File) bool { return isatty.IsTerminal(f.Fd()) }

// watchReader ends a follow once its reader has gone, as in `tail -f web | head`. Without it only
// the next record would end the follow. It watches in the background until ctx ends; the caller may
// close pipe meanwhile.
func watchReader(ctx context.Context, pipe *os.File, gone context.CancelCauseFunc) {
	const pace = 200 // ms
	fds := []unix.PollFd{{Fd: int32(pipe.Fd())}}
	go func() {
		for ctx.Err() == nil {
			if n, err := unix.Poll(fds, pace); err == nil && n > 0 && fds[0].Revents&unix.POLLERR != 0 {
				gone(syscall.EPIPE)
			} else if n > 0 || err != nil && err != unix.EINTR {
				return // f does not report its reader
			}
		}
	}()
}
