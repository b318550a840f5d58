// Package result has the outcome of `make compare`: its form as JSON, the tables of
// docs/COMPARISON.md and the plot docs/compare.svg, which follow from the JSON alone.
package result

import (
	"fmt"
	"io/fs"
	"math"
	"path/filepath"

	"blobtail/internal/dev/bench/report"
)

// Result is the outcome of one run.
type Result struct {
	Date    string         `json:"date"` // of the start, RFC 3339
	Commit  string         `json:"commit"`
	Quick   bool           `json:"quick,omitempty"` // with fewer records and rounds; it is no page's
	Seconds float64        `json:"seconds"`         // that the run took
	Machine report.Machine `json:"machine"`
	Ours    Side           `json:"ours"`
	Theirs  Side           `json:"theirs"`
	Corpora []Corpus       `json:"corpora"`
	Rows    []Row          `json:"rows"`
	Notes   []string       `json:"notes,omitempty"`
}

// Side is one of the two systems.
type Side struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Durability tells where a record is when the sender has its answer.
	Durability string   `json:"durability"`
	Commands   []string `json:"commands"` // of its servers, as they ran
}

// Corpus is a log that both store.
type Corpus struct {
	Name    string `json:"name"`
	Made    string `json:"made"` // how
	Records int    `json:"records"`
	Bytes   int64  `json:"bytes"`
}

// Row is one comparison.
type Row struct {
	ID      string `json:"id"`    // such as read.hour.server.8; unique
	Group   string `json:"group"` // ingest, memory, storage or read
	Title   string `json:"title"`
	Unit    string `json:"unit"` // such as ms, or CPU s a million records
	More    bool   `json:"more,omitempty"`
	Corpus  string `json:"corpus"`
	Clients int    `json:"clients,omitempty"` // at once; 0: not a row of clients
	// Ours and Theirs have a figure for each round, in turn. A row that only one of the two
	// can have leaves the other's empty.
	Ours   []float64 `json:"ours"`
	Theirs []float64 `json:"theirs"`
	// OursCommand and TheirsCommand are what a reader runs to see it again.
	OursCommand   string `json:"ours_command,omitempty"`
	TheirsCommand string `json:"theirs_command,omitempty"`
	Note          string `json:"note,omitempty"`
}

// Ratio is that of the medians: ours to theirs, or theirs to ours if more is better. Below 1
// ours is better. It is NaN for a row of one side.
func (r Row) Ratio() float64 {
	if len(r.Ours) == 0 || len(r.Theirs) == 0 {
		return math.NaN()
	}
	ours, theirs := report.SpreadOf(r.Ours).Median, report.SpreadOf(r.Theirs).Median
	if r.More {
		return theirs / ours
	}
	return ours / theirs
}

// Behind reports whether theirs is better.
func (r Row) Behind() bool { return r.Ratio() > 1 }

// Check reports what a result lacks: figures, or an ID of its own for each row.
func (r Result) Check() error {
	seen := map[string]bool{}
	for _, row := range r.Rows {
		if row.ID == "" || row.Title == "" || row.Unit == "" || row.Group == "" || row.Corpus == "" {
			return fmt.Errorf("row %q: it needs an ID, a group, a title, a unit and a corpus: %+v", row.ID, row)
		}
		if seen[row.ID] {
			return fmt.Errorf("two rows have the ID %s", row.ID)
		}
		seen[row.ID] = true
		if len(row.Ours)+len(row.Theirs) == 0 {
			return fmt.Errorf("row %s has no figures", row.ID)
		}
		for _, v := range append(row.Ours[:len(row.Ours):len(row.Ours)], row.Theirs...) {
			if !(v >= 0) || math.IsInf(v, 0) {
				return fmt.Errorf("row %s has the figure %v", row.ID, v)
			}
		}
	}
	return nil
}

// Read reads a result.
func Read(name string) (Result, error) {
	r, err := report.Read[Result](name)
	if err != nil {
		return r, err
	}
	if err := r.Check(); err != nil {
		return r, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// Write writes a result.
func (r Result) Write(name string) error {
	if err := r.Check(); err != nil {
		return err
	}
	return report.Write(name, r)
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

// most bounds how far the medians of two runs may be apart.
const most = 1.25

// short reports whether figures up to v are too small for that: those of 20 ms, of a MB.
func short(unit string, v float64) bool {
	return unit == "ms" && v <= 20 || unit == "CPU ms" && v <= 20 || unit == "MB" && v <= 1
}

// Agree compares two runs on one machine. It returns the rows whose medians of a side differ by
// more than a quarter, and the rows that one run alone has. Medians of up to 20 ms, or a MB, in both
// runs do not count: [Small] lists them.
func Agree(a, b Result) (differ []string) {
	if a.Machine.Cores != b.Machine.Cores || a.Machine.CPU != b.Machine.CPU {
		differ = append(differ, fmt.Sprintf("the machines differ: %d of %s; %d of %s", a.Machine.Cores, a.Machine.CPU, b.Machine.Cores, b.Machine.CPU))
	}
	if a.Quick != b.Quick {
		differ = append(differ, "one of the runs was -quick")
	}
	others := map[string]Row{}
	for _, row := range b.Rows {
		others[row.ID] = row
	}
	for _, row := range a.Rows {
		other, ok := others[row.ID]
		if !ok {
			differ = append(differ, row.ID+": only the first run has it")
			continue
		}
		delete(others, row.ID)
		differ = append(differ, apart(row, "ours", row.Ours, other.Ours)...)
		differ = append(differ, apart(row, "theirs", row.Theirs, other.Theirs)...)
	}
	for _, row := range b.Rows {
		if _, left := others[row.ID]; left {
			differ = append(differ, row.ID+": only the second run has it")
		}
	}
	return differ
}

// apart tells whether the medians of two runs are too far apart.
func apart(row Row, side string, a, b []float64) []string {
	if (len(a) == 0) != (len(b) == 0) {
		return []string{fmt.Sprintf("%s, %s: only one run has figures", row.ID, side)}
	}
	x, y := report.SpreadOf(a), report.SpreadOf(b)
	low, high := min(x.Median, y.Median), max(x.Median, y.Median)
	if high <= low*most || short(row.Unit, high) {
		return nil
	}
	return []string{fmt.Sprintf("%s, %s: %s and %s %s", row.ID, side, figure(x), figure(y), row.Unit)}
}

// Small lists the figures that are too small to agree in their medians, with the ranges of both
// runs.
func Small(a, b Result) (lines []string) {
	for _, row := range a.Rows {
		for _, other := range b.Rows {
			if row.ID != other.ID {
				continue
			}
			for _, side := range []struct {
				name string
				a, b []float64
			}{{"ours", row.Ours, other.Ours}, {"theirs", row.Theirs, other.Theirs}} {
				x, y := report.SpreadOf(side.a), report.SpreadOf(side.b)
				if len(side.a) > 0 && len(side.b) > 0 && short(row.Unit, max(x.Median, y.Median)) {
					lines = append(lines, fmt.Sprintf("%s, %s: %s and %s %s", row.ID, side.name, figure(x), figure(y), row.Unit))
				}
			}
		}
	}
	return lines
}
