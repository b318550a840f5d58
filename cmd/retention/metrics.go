package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/cli"
	"blobtail/retention"
)

// Names of metrics. The counters of an existing file continue.
const (
	lastSuccess  = "blobtail_retention_last_success_timestamp_seconds"
	lastRun      = "blobtail_retention_last_run_timestamp_seconds"
	lastExit     = "blobtail_retention_last_run_exit_code"
	oldestAge    = "blobtail_retention_oldest_blob_age_seconds"
	overdue      = "blobtail_retention_overdue_seconds"
	freedBytes   = "blobtail_retention_freed_bytes_total"
	deletedBlobs = "blobtail_retention_deleted_blobs_total"
	failed       = "blobtail_retention_failed_deletes"
)

// A file beyond these limits is not from an earlier run.
const (
	maxMetrics = 64 << 20
	maxValue   = 1 << 60
)

// writeMetrics writes the metrics of a run for the textfile collector of node_exporter.
// It renames the file into place, so that no reader sees half of it.
func writeMetrics(name string, r *retention.Result, code int, now time.Time) error {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	before, err := readMetrics(name)
	if err != nil {
		return err
	}
	var sum retention.Deleted
	var oldest map[string]time.Time
	if r != nil {
		sum, oldest = r.Total(), r.Oldest
	}
	success := before[lastSuccess]
	if code == cli.OK {
		success = float64(now.Unix())
	}
	var b bytes.Buffer
	metric := func(name, kind, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	value := func(name, kind, help string, v float64) {
		metric(name, kind, help)
		fmt.Fprintf(&b, "%s %s\n", name, strconv.FormatFloat(v, 'f', -1, 64))
	}
	value(lastSuccess, "gauge", "When retention apply last did all that was to do; 0: never.", success)
	value(lastRun, "gauge", "When retention apply last ran.", float64(now.Unix()))
	value(lastExit, "gauge", "What it exited with.", float64(code))
	value(freedBytes, "counter", "Bytes of the blobs that it deleted.", before[freedBytes]+float64(sum.Bytes))
	value(deletedBlobs, "counter", "Blobs that it deleted.", before[deletedBlobs]+float64(sum.Blobs))
	value(failed, "gauge", "Blobs that the last run could not delete.", float64(sum.Failed))
	if r != nil && oldest != nil {
		value(overdue, "gauge", "By how much the oldest blob is past its age; below two days where there is a run a day.", r.Overdue.Seconds())
	}
	if len(oldest) > 0 {
		metric(oldestAge, "gauge", "Age of the oldest blob of each service that expires, by the start of its period or day.")
	}
	for _, service := range slices.Sorted(maps.Keys(oldest)) {
		fmt.Fprintf(&b, "%s{service=%q} %d\n", oldestAge, service, int64(now.Sub(oldest[service]).Seconds()))
	}
	return replaceFile(name, b.Bytes())
}

// readMetrics reads the values without labels that an earlier run left.
func readMetrics(name string) (map[string]float64, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxMetrics:
		return nil, fmt.Errorf("%s is no file of metrics", name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		key, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseFloat(v, 64); err == nil && n >= 0 && n < maxValue {
			values[key] = n
		}
	}
	return values, nil
}

func replaceFile(name string, text []byte) error {
	// The collector reads only files that end in .prom.
	f, err := os.CreateTemp(filepath.Dir(name), ".retention-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	// The collector runs as another user.
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
