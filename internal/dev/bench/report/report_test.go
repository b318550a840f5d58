package report_test

import (
	"path/filepath"
	"reflect"
	"testing"

	"blobtail/internal/dev/bench/report"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want report.Spread
	}{
		{nil, report.Spread{}},
		{[]float64{7}, report.Spread{Median: 7, Min: 7, Max: 7}},
		{[]float64{3, 1, 2}, report.Spread{Median: 2, Min: 1, Max: 3}},
		{[]float64{4, 1, 3, 2}, report.Spread{Median: 2.5, Min: 1, Max: 4}},
		{[]float64{0.0123456, 12345.678}, report.Spread{Median: 6173, Min: 0.01235, Max: 12350}},
		{[]float64{136476943}, report.Spread{Median: 136476943, Min: 136476943, Max: 136476943}},
	} {
		if got := report.SpreadOf(c.of); got != c.want {
			t.Errorf("%v: %v, not %v", c.of, got, c.want)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		row  report.Row
		want any
	}{
		{report.Row{}, nil},
		{report.Row{Reach: 2, Measured: report.Measured{Figure: report.Spread{Median: 2}}}, true},
		{report.Row{Reach: 2, Measured: report.Measured{Figure: report.Spread{Median: 2.1}}}, false},
		{report.Row{Reach: 4.5, AtLeast: true, Measured: report.Measured{Figure: report.Spread{Median: 4.4}}}, false},
		{report.Row{Reach: 4.5, AtLeast: true, Measured: report.Measured{Figure: report.Spread{Median: 4.7}}}, true},
	} {
		c.row.Judge()
		var got any
		if c.row.Met != nil {
			got = *c.row.Met
		}
		if got != c.want {
			t.Errorf("%+v: %v, not %v", c.row, got, c.want)
		}
	}
}

// A report is the same after it was written and read.
func TestFile(t *testing.T) {
	met := true
	r := report.Report{Commit: "abc", Machine: report.Machine{Cores: 2}, Yard: report.Spread{Median: 1.1}, Rows: []report.Row{{
		ID: "ii", Unit: "ms", Reach: 60, Met: &met, Records: 132267,
		Measured: report.Measured{Runs: 9, Figure: report.Spread{Median: 50, Min: 40, Max: 60}, CPUs: &report.Spread{Median: 0.06}},
		Against:  &report.Measured{Runs: 9, Figure: report.Spread{Median: 70}},
	}}}
	name := filepath.Join(t.TempDir(), "r.json")
	if err := report.Write(name, r); err != nil {
		t.Fatal(err)
	}
	if got, err := report.Read[report.Report](name); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%+v, %v, not %+v", got, err, r)
	}
}
