package door

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Listen opens an address of TCP for the flag that chooses it. An error has the fix. If the address
// is taken, the error is a [*TakenError].
func Listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		name, pid := listener(address)
		return nil, &TakenError{flag, address, name, pid}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		err = fmt.Errorf("%w; %s", err, ownAddresses(address))
	case errors.Is(err, syscall.EACCES):
		err = fmt.Errorf("%w; %s", err, lowPort(address))
	}
	return nil, fmt.Errorf("%w; %s chooses another address", err, flag)
}

// TakenError says that another process listens at an address.
type TakenError struct {
	Flag, Address string
	// Process and PID are the other process, "" and 0 if this user may not see it.
	Process string
	PID     int
}

// Error implements error.
func (e *TakenError) Error() string {
	by := "another process"
	if e.PID != 0 {
		by = fmt.Sprintf("%s, process %d", e.Process, e.PID)
	}
	return fmt.Sprintf("%s is taken by %s; %s chooses another address", e.Address, by, e.Flag)
}

// ownAddresses says which addresses this host has.
func ownAddresses(address string) string {
	host, port, err := net.SplitHostPort(address)
	all, ierr := net.InterfaceAddrs()
	if err != nil || ierr != nil {
		return "no interface of this host has that address"
	}
	var has []string
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() {
			has = append(has, n.IP.String())
		}
	}
	const most = 6
	more := ""
	if len(has) > most {
		has, more = has[:most], " and others"
	}
	every := "0.0.0.0"
	if strings.Contains(host, ":") {
		every = "::"
	}
	return fmt.Sprintf("no interface of this host has %s: it has %s%s; %s is for all of them",
		host, strings.Join(has, ", "), more, net.JoinHostPort(every, port))
}

// lowPort says how to get at a port that only a privileged process may open.
func lowPort(address string) string {
	_, port, err := net.SplitHostPort(address)
	if n, aerr := strconv.Atoi(port); err != nil || aerr != nil || n >= firstPort() {
		return "perhaps a security module or the unit of a service forbids it"
	}
	name := strconv.Itoa(os.Geteuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	return fmt.Sprintf("user %s may not open port %s: those below %d are for root; take one from %d on, or run as root: setcap cap_net_bind_service=+ep %s, or in a unit of systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE (docs/start/systemd.md)",
		name, port, firstPort(), firstPort(), path)
}

// firstPort is the lowest port that each user may open.
func firstPort() int {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	n, aerr := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || aerr != nil {
		return 1024
	}
	return n
}

// listener is the process that listens at an address; none on another system than Linux, and if
// this user may not see it.
func listener(address string) (name string, pid int) {
	_, text, err := net.SplitHostPort(address)
	port, perr := strconv.ParseUint(text, 10, 16)
	if err != nil || perr != nil || runtime.GOOS != "linux" {
		return "", 0
	}
	sockets := listening(uint16(port))
	open, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return "", 0
	}
	for _, fd := range open {
		// Some are other users', or have ended.
		if to, err := os.Readlink(fd); err != nil || !slices.Contains(sockets, to) {
			continue
		}
		process := filepath.Dir(filepath.Dir(fd))
		pid, err := strconv.Atoi(filepath.Base(process))
		if err != nil {
			continue
		}
		comm, err := os.ReadFile(filepath.Join(process, "comm"))
		if err != nil {
			comm = nil
		}
		return cmp.Or(strings.TrimSpace(string(comm)), "a process"), pid
	}
	return "", 0
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
