package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"blobtail/internal/cli"
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
	reg := prometheus.NewRegistry()
	gauge := func(name, help string, v float64) {
		promauto.With(reg).NewGauge(prometheus.GaugeOpts{Name: name, Help: help}).Set(v)
	}
	counter := func(name, help string, more int64) {
		promauto.With(reg).NewCounter(prometheus.CounterOpts{Name: name, Help: help}).Add(before[name] + float64(more))
	}
	sum := r.Total()
	gauge(lastSuccess, "When retention apply last did all that was to do; 0: never.", success)
	gauge("blobtail_retention_last_run_timestamp_seconds", "When retention apply last ran.", float64(now.Unix()))
	gauge("blobtail_retention_last_run_exit_code", "What it exited with.", float64(code))
	counter("blobtail_retention_freed_bytes_total", "Bytes of the blobs that it deleted.", sum.Bytes)
	counter("blobtail_retention_deleted_blobs_total", "Blobs that it deleted.", int64(sum.Blobs))
	gauge("blobtail_retention_failed_deletes", "Blobs that the last run could not delete.", float64(sum.Failed))
	if r.Oldest != nil {
		gauge("blobtail_retention_overdue_seconds", "By how much the oldest blob is past its age; below two days where there is a run a day.", r.Overdue.Seconds())
	}
	ages := promauto.With(reg).NewGaugeVec(prometheus.GaugeOpts{
		Name: "blobtail_retention_oldest_blob_age_seconds", Help: "Age of the oldest blob of each service that expires, by the start of its period or day.",
	}, []string{"service"})
	for service, at := range r.Oldest {
		ages.WithLabelValues(service).Set(now.Sub(at).Truncate(time.Second).Seconds())
	}
	return prometheus.WriteToTextfile(name, reg)
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
	values := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		key, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseFloat(v, 64); err == nil && n >= 0 && n < 1<<60 { // else it is not from an earlier run
			values[key] = n
		}
	}
	return values, nil
}
