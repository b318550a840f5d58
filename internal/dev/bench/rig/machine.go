// Package rig has the parts that measurements of servers and commands share: the corpus, the processes
// and their cost, the protocols of senders, the machine.
package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"blobtail/internal/dev/bench/result"
)

// Machine describes this computer. Properties that cannot be read are left empty.
func Machine() result.Machine {
	m := result.Machine{Cores: runtime.NumCPU(), Go: runtime.Version(), CPU: field("/proc/cpuinfo", "model name"), Kernel: first("/proc/sys/kernel/osrelease")}
	var kb int
	if _, err := fmt.Sscan(field("/proc/meminfo", "MemTotal"), &kb); err == nil {
		m.MemoryMB = kb / 1024
	}
	_, _ = fmt.Sscan(first("/proc/loadavg"), &m.Load)
	return m
}

// Busy has the CPU seconds used since the start of the machine, and those of this process
// and of its children that have ended.
type Busy struct {
	At       time.Time
	All, Own float64
}

// BusyNow reads them. On a machine without /proc/stat they are 0.
func BusyNow() Busy {
	b := Busy{At: time.Now()}
	for i, f := range strings.Fields(first("/proc/stat")) {
		// cpu user nice system idle iowait irq softirq steal guest; user has guest in it.
		if i == 0 || i == 4 || i == 5 || i > 8 {
			continue
		}
		ticks, _ := strconv.ParseFloat(f, 64)
		b.All += ticks / 100
	}
	b.Own = ownCPU(syscall.RUSAGE_SELF) + ownCPU(syscall.RUSAGE_CHILDREN)
	return b
}

// ownCPU returns the CPU seconds of this process, or of its children that have ended.
func ownCPU(of int) float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(of, &u) // it cannot fail for these
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// Others returns how many cores other processes used between two readings.
func (b Busy) Others(before Busy) float64 {
	return max(0, result.Round((b.All-before.All-(b.Own-before.Own))/b.At.Sub(before.At).Seconds()))
}

// field returns the first value of a "key : value" file of /proc.
func field(file, key string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func first(file string) string {
	text, _ := os.ReadFile(file)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// Commit returns the commit of the working directory, with "-dirty" if it was changed.
func Commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--abbrev=7", "--match=NoTag", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
