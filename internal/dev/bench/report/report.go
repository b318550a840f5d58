// Package report has the result of `make bench`: its form as JSON, and the picture
// docs/performance.svg, which is drawn from the JSON alone.
package report

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
)

// Report is the result of one run of the benchmark.
type Report struct {
	Date    string  `json:"date"` // of the start, RFC 3339
	Commit  string  `json:"commit"`
	Version string  `json:"version"`           // as logquery --version prints it
	Against string  `json:"against,omitempty"` // the version of the binaries that ran in turn with it
	Machine Machine `json:"machine"`
	Corpus  Corpus  `json:"corpus"`
	// Yard is the yardstick: CPU seconds of zstd's fastest level for a million records.
	Yard   Spread   `json:"yard"`
	Rows   []Row    `json:"rows"`
	Growth []Point  `json:"growth,omitempty"`
	Notes  []string `json:"notes,omitempty"`
}

// Machine is the computer that ran the benchmark.
type Machine struct {
	Cores    int    `json:"cores"`
	CPU      string `json:"cpu"`
	MemoryMB int    `json:"memory_mb"`
	Kernel   string `json:"kernel"`
	Go       string `json:"go"`
	// Load is the load average over a minute before the first measurement.
	Load float64 `json:"load"`
}

// Corpus is the log that was stored and read.
type Corpus struct {
	Generator string `json:"generator"`
	Records   int    `json:"records"`
	Bytes     int64  `json:"bytes"`
}

// Row is a line of the table.
type Row struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Command string `json:"command,omitempty"`
	Unit    string `json:"unit"` // of the figure
	// Reach is the figure to reach, Aim the one after it; 0: none.
	Reach float64 `json:"reach,omitempty"`
	Aim   float64 `json:"aim,omitempty"`
	// AtLeast means that a larger figure is better.
	AtLeast bool  `json:"at_least,omitempty"`
	Met     *bool `json:"met,omitempty"` // nil: nothing to reach
	// Records is the number of records in the answer, which every run was checked for.
	Records int `json:"records"`
	Measured
	Against *Measured `json:"against,omitempty"`
	// Ratio is that of the figure to Against's, run by run.
	Ratio *Spread `json:"ratio,omitempty"`
	// OtherCores is how many cores other processes used meanwhile. In remote rows the
	// emulator is one of them.
	OtherCores float64 `json:"other_cores"`
	Note       string  `json:"note,omitempty"`
	// Wrong tells how an answer differed. Such a report is not kept.
	Wrong string `json:"wrong,omitempty"`
}

// Measured has the figures of a row for one version of the binaries.
type Measured struct {
	Runs   int     `json:"runs"`
	Figure Spread  `json:"figure"`
	WallMS *Spread `json:"wall_ms,omitempty"`
	CPUs   *Spread `json:"cpu_s,omitempty"`
	RSSMB  *Spread `json:"peak_rss_mb,omitempty"`
	// YardS is the yardstick next to this row, and CPUY the median of CPU seconds divided
	// by it. For ingest CPU seconds are those of a million records.
	YardS  float64 `json:"yard_s,omitempty"`
	CPUY   float64 `json:"cpu_y,omitempty"`
	Remote *Remote `json:"remote,omitempty"`
}

// Remote is the traffic of a read through a proxy.
type Remote struct {
	DelayMS  int    `json:"delay_ms"`
	Requests Spread `json:"requests"`
	Bytes    Spread `json:"bytes"` // of the answers' bodies
	// Chain is the length of the longest sequence of requests in which each began after
	// the one before had ended.
	Chain Spread `json:"chain"`
	// UndelayedMS is the wall time through the same proxy without delay. Most of it is
	// the emulator's.
	UndelayedMS Spread `json:"undelayed_ms"`
}

// Point is a store of the growth measurement.
type Point struct {
	Records  int     `json:"records"`
	Services int     `json:"services"`
	Hours    int     `json:"hours"` // of record time
	Blobs    int     `json:"blobs"`
	YardS    float64 `json:"yard_s"`
	IngestY  float64 `json:"ingest_y"`
	RSSMB    float64 `json:"ingest_peak_rss_mb"`
	Ratio    float64 `json:"ratio"` // raw / stored
	Window   Spread  `json:"i_ms"`
	Newest   Spread  `json:"iv_ms"`
}

// Spread has the median, the least and the most of some runs.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf returns the spread of values, to four digits. The median of an even number is
// the mean of the two in the middle.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return Spread{Median: Round((v[(n-1)/2] + v[n/2]) / 2), Min: Round(v[0]), Max: Round(v[n-1])}
}

// Round rounds to four significant digits, as much as a measurement is worth; integers
// stay.
func Round(v float64) float64 {
	if v == 0 || v == math.Trunc(v) || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	unit := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*unit) / unit
}

// Judge sets Met from the figure.
func (r *Row) Judge() {
	if r.Reach == 0 {
		return
	}
	met := r.Figure.Median <= r.Reach
	if r.AtLeast {
		met = r.Figure.Median >= r.Reach
	}
	r.Met = &met
}

// Compare sets Ratio from the figures of both versions, in the order of their runs.
func (r *Row) Compare(own, against []float64) {
	var ratios []float64
	for i := range min(len(own), len(against)) {
		if against[i] != 0 {
			ratios = append(ratios, own[i]/against[i])
		}
	}
	if len(ratios) > 0 {
		s := SpreadOf(ratios)
		r.Ratio = &s
	}
}

// Read reads the JSON of a report, or of another kind of result.
func Read[T any](name string) (r T, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// Write writes a result as [Read] reads it.
func Write[T any](name string, r T) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}
