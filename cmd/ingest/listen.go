package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
	"github.com/rs/zerolog"

	"blobtail/internal/config"
	"blobtail/internal/loopback"
)

// listen opens an address. If that is taken, the error names the process that has it, and the flag
// to choose another one.
func listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &takenError{flag, address, listener(address)}
	}
	return l, err
}

// listenAs opens an address, if the configuration lets others than this host reach it.
func listenAs(flag, address string, c config.Config) (net.Listener, error) {
	l, err := listen(flag, address)
	if err != nil {
		return nil, err
	}
	if err := mayListen(c, flag, l); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// takenError says that an address is taken.
type takenError struct {
	flag, address string
	by            process
}

// Error implements error.
func (e *takenError) Error() string {
	return fmt.Sprintf("%s is taken by %s; %s chooses another address", e.address, e.by, e.flag)
}

// process is a process of this host. The zero value is one that this user may not see.
type process struct {
	name string
	pid  int
}

// String names the process.
func (p process) String() string {
	if p.pid == 0 {
		return "another process"
	}
	return fmt.Sprintf("%s, process %d", p.name, p.pid)
}

// listener is the process that listens at an address, as far as this user may see it.
func listener(address string) process {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return process{}
	}
	port, err := strconv.ParseUint(text, 10, 16)
	proc, perr := procfs.NewDefaultFS()
	if err != nil || perr != nil {
		return process{}
	}
	sockets := listening(uint16(port))
	all, err := proc.AllProcs()
	if err != nil {
		return process{}
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
			return process{name, p.PID}
		}
	}
	return process{}
}

// listening returns the sockets that listen at a port, in the form in which a descriptor
// names them. The kernel's documentation of proc_net_tcp has the form of the tables.
func listening(port uint16) (sockets []string) {
	const local, state, inode = 1, 3, 9 // fields of a line
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) > inode && strings.HasSuffix(f[local], fmt.Sprintf(":%04X", port)) && f[state] == "0A" {
				sockets = append(sockets, "socket:["+f[inode]+"]")
			}
		}
	}
	return sockets
}

// openToOthers is the warning about an address that others than this host may reach.
const openToOthers = "every host that reaches this address can send records and read those that are in no blob yet; nobody is authenticated"

// warnOpen warns if others than this host can send records and read them.
func warnOpen(log zerolog.Logger, c config.Config, l net.Listener) {
	if !loopback.Listener(l) && c.Access.Tokens == "" {
		log.Warn().Str("listen", l.Addr().String()).Msg(openToOthers)
	}
}
