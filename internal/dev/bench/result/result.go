// Package result has the outcome of a measurement: its form as JSON, and the tables and pictures of
// docs, which follow from the JSON alone.
package result

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// Result is the outcome of one run.
type Result struct {
	Date    string   `json:"date"` // of the start, RFC 3339
	Commit  string   `json:"commit"`
	Quick   bool     `json:"quick,omitempty"`   // with fewer records, rounds or rows; it is no page's
	Seconds float64  `json:"seconds,omitempty"` // that the run took
	Machine Machine  `json:"machine"`
	Ours    Side     `json:"ours"`
	Theirs  Side     `json:"theirs"` // VictoriaLogs, or the other version that ran in turn with ours
	Corpora []Corpus `json:"corpora"`
	Rows    []Row    `json:"rows"`
	Notes   []string `json:"notes,omitempty"`
	// Yard is the yardstick: CPU seconds of zstd's fastest level for a million records.
	Yard   Spread  `json:"yard,omitzero"`
	Growth []Point `json:"growth,omitempty"`
}

// Machine is the computer of a run.
type Machine struct {
	Cores    int    `json:"cores"`
	CPU      string `json:"cpu"`
	MemoryMB int    `json:"memory_mb"`
	Kernel   string `json:"kernel"`
	Go       string `json:"go"`
	// Load is the load average over a minute before the first measurement.
	Load float64 `json:"load"`
}

// Side is one of the two systems, or versions.
type Side struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Durability tells where a record is when the sender has its answer.
	Durability string   `json:"durability,omitempty"`
	Commands   []string `json:"commands,omitempty"` // of its servers, as they ran
}

// Corpus is a log that was stored and read.
type Corpus struct {
	Name    string `json:"name"`
	Made    string `json:"made"` // how
	Records int    `json:"records"`
	Bytes   int64  `json:"bytes"`
}

// Row is one figure of each side.
type Row struct {
	ID      string `json:"id"`    // such as read.hour.server.8; unique
	Group   string `json:"group"` // ingest, memory, storage or read; table for rows of make bench
	Title   string `json:"title"`
	Unit    string `json:"unit"` // such as ms, or CPU s a million records
	More    bool   `json:"more,omitempty"`
	Corpus  string `json:"corpus"`
	Clients int    `json:"clients,omitempty"` // at once; 0: not a row of clients
	// Ours and Theirs have a figure for each round, in turn. A row that only one of the two
	// can have leaves the other's empty.
	Ours   []float64 `json:"ours"`
	Theirs []float64 `json:"theirs"`
	// With OursCommand and TheirsCommand a reader sees it again.
	OursCommand   string `json:"ours_command,omitempty"`
	TheirsCommand string `json:"theirs_command,omitempty"`
	Note          string `json:"note,omitempty"`
	// Reach is the figure to reach; 0: none.
	Reach float64 `json:"reach,omitempty"`
	// Records is the number of records in the answer, which every run was checked for.
	Records int `json:"records,omitempty"`
	// Also has further figures of the runs by name, such as cpu_s, peak_rss_mb or other_cores: the
	// cores that other processes used. Those of the other version begin with "against ".
	Also map[string]Spread `json:"also,omitempty"`
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

// SpreadOf returns the spread of values, to four digits. The median of an even number is the mean of
// the two in the middle.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return Spread{Median: Round((v[(n-1)/2] + v[n/2]) / 2), Min: Round(v[0]), Max: Round(v[n-1])}
}

// Round rounds to four significant digits, as much as a measurement is worth; integers stay.
func Round(v float64) float64 {
	if v == 0 || v == math.Trunc(v) || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	unit := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*unit) / unit
}

// String writes a median, and the range if there is one.
func (s Spread) String() string {
	if Number(s.Min) == Number(s.Max) {
		return Number(s.Median)
	}
	return Number(s.Median) + " (" + Number(s.Min) + "–" + Number(s.Max) + ")"
}

// Ratio is that of the medians: ours to theirs, or theirs to ours if more is better. Below 1
// ours is better. It is NaN for a row of one side.
func (r Row) Ratio() float64 {
	if len(r.Ours) == 0 || len(r.Theirs) == 0 {
		return math.NaN()
	}
	ours, theirs := SpreadOf(r.Ours).Median, SpreadOf(r.Theirs).Median
	if r.More {
		return theirs / ours
	}
	return ours / theirs
}

// Pairs has the ratios of ours to theirs, round by round.
func (r Row) Pairs() Spread {
	var ratios []float64
	for i := range min(len(r.Ours), len(r.Theirs)) {
		if r.Theirs[i] != 0 {
			ratios = append(ratios, r.Ours[i]/r.Theirs[i])
		}
	}
	return SpreadOf(ratios)
}

// Met reports whether the median of ours reaches the figure to reach.
func (r Row) Met() bool {
	median := SpreadOf(r.Ours).Median
	return r.Reach == 0 || r.More && median >= r.Reach || !r.More && median <= r.Reach
}

// Check reports that a row lacks figures, or an ID of its own.
func (r Result) Check() error {
	seen := map[string]bool{}
	for _, row := range r.Rows {
		switch {
		case row.ID == "" || row.Title == "" || row.Unit == "" || row.Group == "" || row.Corpus == "":
			return fmt.Errorf("row %q: it needs an ID, a group, a title, a unit and a corpus: %+v", row.ID, row)
		case seen[row.ID]:
			return fmt.Errorf("two rows have the ID %s", row.ID)
		case len(row.Ours)+len(row.Theirs) == 0:
			return fmt.Errorf("row %s has no figures", row.ID)
		}
		seen[row.ID] = true
		for _, v := range slices.Concat(row.Ours, row.Theirs) {
			if !(v >= 0) || math.IsInf(v, 0) {
				return fmt.Errorf("row %s has the figure %v", row.ID, v)
			}
		}
	}
	return nil
}

// Read reads a result. One of `make bench` of before 2026-11-28 has rows of another form, and only
// its growth is read.
func Read(name string) (r Result, err error) {
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// Write writes a result that lacks nothing.
func (r Result) Write(name string) error {
	if err := r.Check(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}

// Latest reads the newest result of a directory, which has a file for each date. Without any,
// its error is [fs.ErrNotExist].
func Latest(dir string) (Result, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err == nil && len(files) == 0 {
		err = &fs.PathError{Op: "find a result", Path: dir, Err: fs.ErrNotExist}
	}
	if err != nil {
		return Result{}, err
	}
	return Read(files[len(files)-1])
}

// Agree compares two runs on one machine. It returns the rows with medians of a side that differ by
// more than a quarter, and the rows that one run alone has. Medians of up to 20 ms, or a MB, in both runs
// are too small to agree in this sense: short lists them with their ranges.
func Agree(a, b Result) (differ, short []string) {
	if a.Machine.Cores != b.Machine.Cores || a.Machine.CPU != b.Machine.CPU || a.Quick != b.Quick {
		differ = append(differ, fmt.Sprintf("the conditions differ: %d of %s, quick %v; %d of %s, quick %v",
			a.Machine.Cores, a.Machine.CPU, a.Quick, b.Machine.Cores, b.Machine.CPU, b.Quick))
	}
	others := map[string]Row{}
	for _, row := range b.Rows {
		others[row.ID] = row
	}
	for _, row := range a.Rows {
		other, both := others[row.ID]
		delete(others, row.ID)
		for _, side := range []struct {
			name string
			a, b []float64
		}{{"ours", row.Ours, other.Ours}, {"theirs", row.Theirs, other.Theirs}} {
			x, y := SpreadOf(side.a), SpreadOf(side.b)
			low, high := min(x.Median, y.Median), max(x.Median, y.Median)
			line := fmt.Sprintf("%s, %s: %v and %v %s", row.ID, side.name, x, y, row.Unit)
			small := row.Unit == "ms" && high <= 20 || row.Unit == "CPU ms" && high <= 20 || row.Unit == "MB" && high <= 1
			switch {
			case !both || (len(side.a) == 0) != (len(side.b) == 0):
				differ = append(differ, fmt.Sprintf("%s, %s: only one run has figures", row.ID, side.name))
			case len(side.a) > 0 && small:
				short = append(short, line)
			case high > low*1.25:
				differ = append(differ, line)
			}
		}
	}
	for id := range others {
		differ = append(differ, id+": only the second run has it")
	}
	return differ, short
}
