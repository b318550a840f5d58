package rig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a server that is measured.
type Process struct{ cmd *exec.Cmd }

// PID is that of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Usage returns the CPU seconds, with those of children that have ended, and the peak memory in
// MB so far.
func (p *Process) Usage() (cpu, peak float64, err error) { return UsageOf(p.PID()) }

// Kill ends it. If it has ended already, Kill does nothing.
func (p *Process) Kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

// UsageOf is [Process.Usage] of any process.
func UsageOf(pid int) (cpu, peak float64, err error) {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return 0, 0, err
	}
	// The clock of a process counts nanoseconds, as a request that takes less than a tick needs.
	var own unix.Timespec
	if err := unix.ClockGettime(^int32(pid)<<3|2, &own); err != nil {
		return 0, 0, fmt.Errorf("the CPU clock of process %d: %w", pid, err)
	}
	cpu = time.Duration(own.Nano()).Seconds()
	// Fields 16 and 17 of stat are the ticks of its children, of the user and the system. The name
	// of the process may have spaces and ends with the last parenthesis.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	for _, f := range fields[13:15] {
		ticks, err := strconv.Atoi(string(f))
		if err != nil {
			return 0, 0, err
		}
		cpu += float64(ticks) / 100 // USER_HZ, the same on every Linux that Go runs on
	}
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	if err != nil {
		return 0, 0, err
	}
	_, hwm, found := strings.Cut(string(status), "VmHWM:")
	if !found {
		return 0, 0, errors.New("/proc has no VmHWM")
	}
	_, err = fmt.Sscan(hwm, &peak)
	return cpu, peak / 1024, err
}
