package main

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"syscall"

	"github.com/prometheus/procfs"
	"github.com/rs/zerolog"
)

// listen opens an address. If that is taken, the error names who has it, and the flag to
// choose another one.
func listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken by %s; %s chooses another address", address, listener(address), flag)
	}
	return l, err
}

// listener names the process that listens at an address, as far as this user may see it.
func listener(address string) string {
	const another = "another process"
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return another
	}
	port, err := strconv.ParseUint(text, 10, 16)
	proc, perr := procfs.NewDefaultFS()
	if err != nil || perr != nil {
		return another
	}
	const listening = 10 // its state in /proc/net/tcp
	var sockets []string
	//lint:ignore SA1019 netlink would be a dependency for the sake of one message
	for _, table := range []func() (procfs.NetTCP, error){proc.NetTCP, proc.NetTCP6} {
		lines, err := table()
		if err != nil {
			continue
		}
		for _, line := range lines {
			if line.LocalPort == port && line.St == listening {
				sockets = append(sockets, fmt.Sprintf("socket:[%d]", line.Inode))
			}
		}
	}
	all, err := proc.AllProcs()
	if err != nil {
		return another
	}
	for _, p := range all {
		open, err := p.FileDescriptorTargets()
		if err != nil {
			continue // it is another user's, or has ended
		}
		if slices.ContainsFunc(open, func(to string) bool { return slices.Contains(sockets, to) }) {
			name, err := p.Comm()
			if err != nil {
				name = "a process"
			}
			return fmt.Sprintf("%s, process %d", name, p.PID)
		}
	}
	return another
}

// warnOpen warns if others than this host can send records and read them.
func warnOpen(log zerolog.Logger, l net.Listener) {
	at, ok := l.Addr().(*net.TCPAddr)
	if !ok || at.IP.IsLoopback() {
		return
	}
	log.Warn().Str("listen", at.String()).Msg("every host that reaches this address can send records and read those that are in no blob yet; nobody is authenticated")
}
