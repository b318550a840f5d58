package main

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/rs/zerolog"

	"blobtail/internal/config"
	"blobtail/source/syslog"
)

// limitMemory sets the memory limit of the collector: twice the memory that requests and
// connections of syslog may hold, and room for batches and their blobs. In a container it is
// at most four fifths of the container's memory.
func limitMemory(c config.Config, log zerolog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := 2*int64(c.Limits.InFlight) + 512<<20
	if c.Syslog.Listen != "" {
		limit += 2 * syslog.DefaultMemory
	}
	if most := groupMemory("/proc/self/cgroup", "/sys/fs/cgroup"); most/5*4 < limit {
		limit = most / 5 * 4
		log.Info().Int64("bytes", most).Msg("the container bounds the memory")
		if least := int64(c.Limits.InFlight) + 192<<20; most < least {
			log.Warn().Int64("bytes", most).Int64("want", least).
				Msg("the container has less memory than requests and batches may take; lower limits.in-flight or give it more")
		}
	}
	debug.SetMemoryLimit(limit)
}

// groupMemory is the least memory limit of the control groups (version 2) that the
// process is in, as far as it can see them.
func groupMemory(membership, root string) int64 {
	least := int64(math.MaxInt64)
	text, err := os.ReadFile(membership)
	if err != nil {
		return least
	}
	path, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "0::/")
	if !ok {
		return least
	}
	for dir := filepath.Join(root, path); strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "memory.max"))
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			least = min(least, n)
		}
	}
	return least
}
