package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"blobtail/internal/cli"
	"blobtail/internal/count"
	"blobtail/retention"
)

// writeMetrics writes the metrics of a run for the textfile collector of node_exporter,
// which reads only files that end in .prom. The counters of an existing file continue.
func writeMetrics(name string, r *retention.Result, code int, now time.Time) error {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	before, err := readMetrics(name)
	if err != nil {
		return err
	}
	const lastSuccess = "blobtail_retention_last_success_timestamp_seconds"
	success := before[lastSuccess]
	if code == cli.OK {
		success = float64(now.Unix())
	}
	p := new(count.Page)
	one := func(name, kind, help string, v float64) {
		p.Family(name, kind, help)
		p.Value(v)
	}
	gauge := func(name, help string, v float64) { one(name, "gauge", help, v) }
	counter := func(name, help string, more int64) { one(name, "counter", help, before[name]+float64(more)) }
	sum := r.Total()
	gauge(lastSuccess, "When retention apply last completed all its work; 0: never.", success)
	gauge("blobtail_retention_last_run_timestamp_seconds", "When retention apply last ran.", float64(now.Unix()))
	gauge("blobtail_retention_last_run_exit_code", "Its exit code: 2 the policy, 3 blobs that stay, 4 rights, 5 the store.", float64(code))
	counter("blobtail_retention_freed_bytes_total", "Bytes of the blobs that all runs deleted.", sum.Bytes)
	counter("blobtail_retention_deleted_blobs_total", "Blobs that all runs deleted.", int64(sum.Blobs))
	gauge("blobtail_retention_failed_deletes", "Blobs that the last run could not delete, by a hold or a right.", float64(sum.Failed))
	if r.Oldest != nil {
		gauge("blobtail_retention_overdue_seconds", "By how much the oldest blob is past its age; below two days where there is a run a day.", r.Overdue.Seconds())
	}
	const closedUntil, findings = "blobtail_retention_closed_until_timestamp_seconds", "blobtail_retention_closing_findings"
	until, found := before[closedUntil], before[findings]
	if c := &r.Closed; c.Root != nil {
		until, found = float64((c.Through + 1).Start().Unix()), float64(len(c.Problems))
	}
	gauge(closedUntil, "End of the newest closed day (UTC) before which all are closed; 0: none.", until)
	gauge(findings, "Missing blobs, lacking numbers, and days that could not be closed, in the last run that closed days.", found)
	if len(r.Oldest) > 0 {
		p.Family("blobtail_retention_oldest_blob_age_seconds", "gauge", "Age of the oldest blob of each service that expires, by the start of its period or day.")
	}
	for _, service := range slices.Sorted(maps.Keys(r.Oldest)) {
		p.Value(now.Sub(r.Oldest[service]).Truncate(time.Second).Seconds(), "service", service)
	}
	return writeWhole(name, p.Bytes())
}

// writeWhole writes a file that other users may read. They see the old text or the new one.
func writeWhole(name string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after an error
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// readMetrics reads the values without labels that an earlier run left.
func readMetrics(name string) (map[string]float64, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > 64<<20:
		return nil, fmt.Errorf("%s is no file of metrics", name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	values := count.Read(text)
	maps.DeleteFunc(values, func(_ string, v float64) bool { return !(v >= 0 && v < 1<<60) }) // they are not from an earlier run
	return values, nil
}
