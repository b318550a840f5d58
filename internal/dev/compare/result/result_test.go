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

	"blobtail/internal/dev/bench/report"
	"blobtail/internal/dev/compare/result"
)

func sample() result.Result {
	return result.Result{
		Date: "2026-11-27T01:00:00Z", Commit: "abc1234", Seconds: 830, Machine: report.Machine{Cores: 2, CPU: "a CPU", MemoryMB: 8192},
		Ours:    result.Side{Name: "blobtail", Version: "blobtail 9", Durability: "is synced to disk", Commands: []string{"ingest --store dir:S"}},
		Theirs:  result.Side{Name: "Other", Version: "other 7", Durability: "is in memory"},
		Corpora: []result.Corpus{{Name: "reference", Made: "By gen.", Records: 2_000_000, Bytes: 646_800_000}, {Name: "loghub", Made: "Repeated.", Records: 10, Bytes: 100}},
		Rows: []result.Row{
			{ID: "ingest.ndjson", Group: "ingest", Title: "jsonline", Unit: "CPU s a million records", Corpus: "reference", Ours: []float64{5, 4}, Theirs: []float64{15, 16}, OursCommand: "send a|b", TheirsCommand: "send c"},
			{ID: "storage.compacted", Group: "storage", Title: "raw / stored", Unit: "times smaller", More: true, Corpus: "loghub", Ours: []float64{4}, Theirs: []float64{5}, Note: "with filters"},
			{ID: "storage.tails", Group: "storage", Title: "tables", Unit: "MB", Corpus: "loghub", Ours: []float64{1}},
			{ID: "read.hour.server.8", Group: "read", Title: "an hour, 8 at once", Unit: "ms", Corpus: "reference", Clients: 8, Ours: []float64{100, 110, 120}, Theirs: []float64{50, 40, 60}},
			{ID: "read.hour.process", Group: "read", Title: "an hour, the process", Unit: "ms", Corpus: "reference", Ours: []float64{60}, Theirs: []float64{100}, OursCommand: "logquery hour", TheirsCommand: "curl hour"},
			{ID: "read.id.server.1", Group: "read", Title: "an id", Unit: "ms", Corpus: "reference", Clients: 1, Ours: []float64{10}, Theirs: []float64{12}},
		},
	}
}

// A ratio is below 1 if ours is better, whether less or more is.
func TestRatio(t *testing.T) {
	for i, want := range []float64{4.5 / 15.5, 5.0 / 4, math.NaN(), 110.0 / 50, 60.0 / 100, 10.0 / 12} {
		got := sample().Rows[i].Ratio()
		if math.Abs(got-want) > 1e-3 && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("row %d: %v, not %v", i, got, want)
		}
		if behind := sample().Rows[i].Behind(); behind != (want > 1) {
			t.Errorf("row %d: behind is %v", i, behind)
		}
	}
}

// A result is the same after it was written and read, and the newest file of a directory counts.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := result.Latest(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty directory: %v", err)
	}
	older := sample()
	older.Date = "2026-11-26T01:00:00Z"
	for _, r := range []result.Result{older, sample()} {
		if err := r.Write(filepath.Join(dir, r.Date[:10]+".json")); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := result.Latest(dir); err != nil || !reflect.DeepEqual(got, sample()) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A row without figures, with a figure that is none, or with the ID of another is not written.
func TestCheck(t *testing.T) {
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
		if err := r.Write(filepath.Join(t.TempDir(), "r.json")); err == nil {
			t.Errorf("%s: it was written", name)
		}
	}
}

// Two runs agree if medians are within a quarter, or times short; a row of one run does not.
func TestAgree(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*result.Result)
		want   string // of the one difference
	}{
		{"the same", func(*result.Result) {}, ""},
		{"within a quarter", func(r *result.Result) { r.Rows[3].Ours = []float64{137} }, ""},
		{"more than a quarter", func(r *result.Result) { r.Rows[3].Ours = []float64{138} }, "read.hour.server.8, ours: 110 (100–120) and 138 ms"},
		{"less than four fifths", func(r *result.Result) { r.Rows[3].Theirs = []float64{39} }, "read.hour.server.8, theirs"},
		{"one outlier", func(r *result.Result) { r.Rows[3].Ours = []float64{100, 110, 900} }, ""},
		{"a short time", func(r *result.Result) { r.Rows[5].Ours = []float64{19} }, ""},
		{"a time that is no longer short", func(r *result.Result) { r.Rows[5].Ours = []float64{21} }, "read.id.server.1, ours"},
		{"small figures that are no times", func(r *result.Result) { r.Rows[0].Ours = []float64{6} }, "ingest.ndjson, ours"},
		{"a row less", func(r *result.Result) { r.Rows = r.Rows[1:] }, "ingest.ndjson: only the first"},
		{"a row more", func(r *result.Result) {
			r.Rows = append(r.Rows, result.Row{ID: "new", Ours: []float64{1}})
		}, "new: only the second"},
		{"another machine", func(r *result.Result) { r.Machine.CPU = "another" }, "the machines differ"},
		{"quick", func(r *result.Result) { r.Quick = true }, "one of the runs was -quick"},
		{"no figures of one side", func(r *result.Result) { r.Rows[0].Theirs = nil }, "ingest.ndjson, theirs"},
	} {
		b := sample()
		c.change(&b)
		got := result.Agree(sample(), b)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
	if small := result.Small(sample(), sample()); len(small) != 3 || !strings.HasPrefix(small[1], "read.id.server.1, ours: 10 and 10") {
		t.Errorf("short times: %q", small)
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
		"| `read.hour.*` | `logquery hour` | `curl hour` |",
		"| tables, loghub | `storage.tails` | MB | 1 | none | none |",
		"| `ingest.ndjson` | `send a\\|b` | `send c` |",
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

// A whole run fits on its page, which has some 2,800 words of its own and may have 5,000.
func TestWords(t *testing.T) {
	const most = 2100
	three := []float64{12.34, 10.12, 14.56}
	r := sample()
	r.Rows, r.Notes = nil, []string{"VictoriaLogs returned 123,456 decimal fractions with other digits, such as 1.3820000000000001 for 1.382. They count as equal."}
	row := func(id, group, title, unit, corpus, note string) {
		theirs := three
		if len(r.Rows)%2 == 0 {
			theirs = []float64{11.1, 9.9, 13.3} // every second row is behind
		}
		r.Rows = append(r.Rows, result.Row{ID: id, Group: group, Title: title, Unit: unit, Corpus: corpus, Ours: three, Theirs: theirs, Note: note,
			OursCommand:   "curl --data-binary @BODY -H 'Content-Type: " + group + "' http://INGEST/" + unit + "; curl -X POST http://ADMIN/flush",
			TheirsCommand: "curl --data-binary @BODY -H 'Content-Type: " + group + "' http://VICTORIA/" + unit + "; curl http://VICTORIA/internal/force_flush"})
	}
	for _, protocol := range []string{"ndjson.100", "ndjson.1", "loki.1000", "bulk.1000", "otlp.1000"} {
		row("ingest."+protocol, "ingest", protocol+", 1,000 records a request", "CPU s a million", "reference", "200,000 records")
	}
	for _, corpus := range []string{"reference", "loghub"} {
		for _, id := range []string{"flushed", "compacted", "compaction", "tables"} {
			row("storage."+id+"."+corpus, "storage", "raw / stored, as "+id, "times smaller", corpus, id+": ours: blobs with filters and indexes; theirs: all files after force_flush")
		}
		row("memory.ingest."+corpus, "memory", "peak memory of ingest", "MB", corpus, "")
	}
	for _, question := range strings.Fields("window hour word word-again token-text text id newest newest-all minutes services expression expression-again rare rare-again facet") {
		kinds := []string{"process", "server.1", "server.8", "cpu", "server.32"}
		for _, kind := range kinds {
			row("read."+question+"."+kind, "read", "an hour of a service, or some; another hour and service each time, "+kind, "ms", "reference", "")
			last := &r.Rows[len(r.Rows)-1]
			last.OursCommand = "curl -sS 'http://127.0.0.1:8516/api/v1/records?limit=0&service=" + question + "'"
			last.TheirsCommand = "curl -sS --fail-with-body http://127.0.0.1:9428/select/logsql/query --data-urlencode 'query=_time:[2026-11-10T12:00:00Z, 2026-11-10T18:00:00Z) {service=\"" + question + "\"}'"
			if kind == "process" {
				last.OursCommand = "logquery " + question + " --from 2026-11-10T12:00:00Z --to 2026-11-10T18:00:00Z --level error,critical"
			}
		}
	}
	page := result.Tables(r)
	if n := len(strings.Fields(page)); n > most {
		t.Errorf("%d words, and %d is the most:\n%s", n, most, page)
	}
}

// The plot is well-formed XML without references, the same each time, and has each title.
func TestDraw(t *testing.T) {
	r := sample()
	r.Rows[0].Title = `a < b & c`
	picture, err := result.Draw(r)
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
	for _, want := range []string{"a < b & c", "raw / stored", "an hour", "32 clients"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it lacks %q", want)
		}
	}
	if again, _ := result.Draw(r); !bytes.Equal(picture, again) || bytes.Contains(picture, []byte("href")) || bytes.Contains(picture, []byte("NaN")) {
		t.Errorf("another picture each time, a reference, or no number:\n%s", picture)
	}
	if _, err := result.Draw(result.Result{}); err == nil {
		t.Error("a result without rows has a plot")
	}
}
