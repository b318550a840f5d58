package result_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"blobtail/internal/dev/bench/result"
)

func sample() result.Result {
	row := func(id, title, unit, corpus string, clients int, ours, theirs []float64) result.Row {
		group, _, _ := strings.Cut(id, ".")
		return result.Row{ID: id, Group: group, Title: title, Unit: unit, Corpus: corpus, Clients: clients, Ours: ours, Theirs: theirs}
	}
	r := result.Result{
		Date: "2026-11-27T01:00:00Z", Commit: "abc1234", Seconds: 830, Machine: result.Machine{Cores: 2, CPU: "a CPU", MemoryMB: 8192},
		Ours:   result.Side{Name: "blobtail", Version: "blobtail 9", Durability: "is synced to disk", Commands: []string{"ingest"}},
		Theirs: result.Side{Name: "Other", Version: "other 7", Durability: "is in memory"},
		Corpora: []result.Corpus{{Name: "reference", Made: "By gen.", Records: 2_000_000, Bytes: 646_800_000},
			{Name: "loghub", Made: "Repeated.", Records: 10, Bytes: 100}},
		Rows: []result.Row{
			row("ingest.ndjson", "jsonline", "CPU s a million records", "reference", 0, []float64{5, 4}, []float64{15, 16}),
			row("storage.compacted", "raw / stored", "times smaller", "loghub", 0, []float64{4}, []float64{5}),
			row("storage.tails", "tables", "MB", "loghub", 0, []float64{1}, nil),
			row("read.hour.server.8", "an hour, 8 at once", "ms", "reference", 8, []float64{100, 110, 120}, []float64{50, 40, 60}),
			row("read.hour.process", "an hour, the process", "ms", "reference", 0, []float64{60}, []float64{100}),
			row("read.id.server.1", "an id", "ms", "reference", 1, []float64{10}, []float64{12}),
		},
	}
	r.Rows[1].More, r.Rows[1].Note = true, "with filters"
	return r
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want result.Spread
	}{
		{nil, result.Spread{}},
		{[]float64{3, 1, 2}, result.Spread{Median: 2, Min: 1, Max: 3}},
		{[]float64{4, 1, 3, 2}, result.Spread{Median: 2.5, Min: 1, Max: 4}},
		{[]float64{0.0123456, 12345.678}, result.Spread{Median: 6173, Min: 0.01235, Max: 12350}},
		{[]float64{136476943}, result.Spread{Median: 136476943, Min: 136476943, Max: 136476943}},
	} {
		if got := result.SpreadOf(c.of); got != c.want {
			t.Errorf("%v: %+v, not %+v", c.of, got, c.want)
		}
	}
}

// A ratio is below 1 if ours is better, whether less or more is. A row is met by its median.
func TestRatio(t *testing.T) {
	for i, want := range []float64{4.5 / 15.5, 5.0 / 4, math.NaN(), 110.0 / 50, 60.0 / 100, 10.0 / 12} {
		row := sample().Rows[i]
		if got := row.Ratio(); math.Abs(got-want) > 1e-3 && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("row %d: %v, not %v", i, got, want)
		}
	}
	row := result.Row{Ours: []float64{2, 3, 4}, Theirs: []float64{4, 2, 4}}
	if got := row.Pairs(); got != (result.Spread{Median: 1, Min: 0.5, Max: 1.5}) {
		t.Errorf("ratios of %v", got)
	}
	for reach, want := range map[float64][2]bool{0: {true, true}, 2.9: {false, true}, 3: {true, true}, 3.1: {true, false}} {
		row.Reach = reach
		row.More = false
		less := row.Met()
		row.More = true
		if more := row.Met(); less != want[0] || more != want[1] {
			t.Errorf("3 reaches %v: %v, and if more is better, %v", reach, less, more)
		}
	}
}

// A result is the same after it was written and read, and the newest file of a directory counts. A
// row without figures, with a figure that is none, or with the ID of another is not written.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := result.Latest(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty directory: %v", err)
	}
	for _, date := range []string{"2026-11-26", "2026-11-27"} {
		r := sample()
		r.Date = date + r.Date[len(date):]
		if err := r.Write(filepath.Join(dir, date+".json")); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := result.Latest(dir); err != nil || !reflect.DeepEqual(got, sample()) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, change := range map[string]func(*result.Row){
		"no figures": func(r *result.Row) { r.Ours, r.Theirs = nil, nil },
		"NaN":        func(r *result.Row) { r.Ours[0] = math.NaN() },
		"infinite":   func(r *result.Row) { r.Theirs[0] = math.Inf(1) },
		"negative":   func(r *result.Row) { r.Theirs[0] = -1 },
		"twice":      func(r *result.Row) { r.ID = "storage.tails" },
		"no unit":    func(r *result.Row) { r.Unit = "" },
	} {
		r := sample()
		change(&r.Rows[0])
		if err := r.Write(filepath.Join(dir, "r.json")); err == nil {
			t.Errorf("%s: it was written", name)
		}
	}
}

// Two runs agree if medians are within a quarter, or times short; a row of one run does not.
func TestAgree(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*result.Result)
		want   string // of the first difference
	}{
		{"the same", func(*result.Result) {}, ""},
		{"within a quarter", func(r *result.Result) { r.Rows[3].Ours = []float64{137} }, ""},
		{"more than a quarter", func(r *result.Result) { r.Rows[3].Ours = []float64{138} }, "read.hour.server.8, ours: 110 (100–120) and"},
		{"less than four fifths", func(r *result.Result) { r.Rows[3].Theirs = []float64{39} }, "read.hour.server.8, theirs"},
		{"one outlier", func(r *result.Result) { r.Rows[3].Ours = []float64{100, 110, 900} }, ""},
		{"a short time", func(r *result.Result) { r.Rows[5].Ours = []float64{19} }, ""},
		{"a time that is no longer short", func(r *result.Result) { r.Rows[5].Ours = []float64{21} }, "read.id.server.1, ours"},
		{"a row less", func(r *result.Result) { r.Rows = r.Rows[1:] }, "ingest.ndjson, ours: only one run"},
		{"a row more", func(r *result.Result) { r.Rows = append(r.Rows, result.Row{ID: "new", Ours: []float64{1}}) }, "new: only the"},
		{"another machine", func(r *result.Result) { r.Machine.CPU = "another" }, "the conditions differ"},
		{"quick", func(r *result.Result) { r.Quick = true }, "the conditions differ"},
		{"no figures of one side", func(r *result.Result) { r.Rows[0].Theirs = nil }, "ingest.ndjson, theirs"},
	} {
		b := sample()
		c.change(&b)
		got, _ := result.Agree(sample(), b)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) == 0 || !strings.HasPrefix(got[0], c.want)) {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
	if _, short := result.Agree(sample(), sample()); len(short) != 3 || !strings.HasPrefix(short[1], "read.id.server.1, ours: 10 and 10") {
		t.Errorf("short times: %q", short)
	}
}

// The rows in which theirs is better come first, the worst of them at the top.
func TestTables(t *testing.T) {
	page := result.Tables(sample())
	if !strings.HasPrefix(page, "**Other is ahead in 2 of 5 rows**") {
		t.Errorf("it begins otherwise: %.200s", page)
	}
	worst, next := strings.Index(page, "`read.hour.*`"), strings.Index(page, "`storage.compacted`")
	if ours := strings.Index(page, "`ingest.ndjson`"); worst < 0 || worst > next || next > ours {
		t.Errorf("the rows have the order %d, %d, %d:\n%s", worst, next, ours, page)
	}
	for _, want := range []string{
		"| an hour | `read.hour.*` | server 8 **2.20** |",
		"| question | IDs | server 8, ms | process, ms | server 1, ms |",
		"| an hour | `read.hour.*` | 110 / 50: **2.20** | 60 / 100: 0.60 | none |",
		"| tables, loghub | `storage.tails` | MB | 1 | none | none |",
		"is synced to disk | is in memory", "2,000,000 records, 646.8 MB", "14 minutes", "- `storage.compacted`: with filters.",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("it lacks %s:\n%s", want, page)
		}
	}
	better := sample()
	better.Rows = better.Rows[:1]
	if page := result.Tables(better); !strings.HasPrefix(page, "Other is ahead in none of the 1 rows.") {
		t.Errorf("it begins otherwise: %.200s", page)
	}
}

// The pictures are well-formed, have their texts and refer to nothing else. Without figures there are
// none.
func TestDraw(t *testing.T) {
	r := sample()
	r.Rows[0].Title = "a < b & c"
	once := func(v float64) result.Spread { return result.Spread{Median: v, Min: v, Max: v} }
	r.Growth = []result.Point{{Records: 2e6, Services: 8, IngestY: 2.25, RSSMB: 187, Window: once(12.8), Newest: once(8.8)},
		{Records: 2.1e6, Services: 1, Blobs: 10_012, IngestY: 3.5, RSSMB: 90, Window: once(31), Newest: once(14)}}
	for want, draw := range map[string]func(result.Result) ([]byte, error){
		"a < b & c,raw / stored,an hour,32 clients":                        result.Draw,
		"2.25,3.5,187,90,12.8,31,8.8,14,2.1 million records, 10,012 blobs": result.DrawGrowth,
	} {
		picture, err := draw(r)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for d := xml.NewDecoder(bytes.NewReader(picture)); ; {
			token, err := d.Token()
			if err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if data, ok := token.(xml.CharData); ok {
				text.Write(data)
			}
		}
		for want := range strings.SplitSeq(want, ",") {
			if !strings.Contains(text.String(), want) {
				t.Errorf("it lacks %q", want)
			}
		}
		again, _ := draw(r)
		if !bytes.Equal(picture, again) || bytes.Contains(picture, []byte("href")) || bytes.Contains(picture, []byte("NaN")) {
			t.Errorf("another picture each time, a reference, or no number:\n%s", picture)
		}
		if _, err := draw(result.Result{}); err == nil {
			t.Error("nothing was drawn")
		}
	}
}
