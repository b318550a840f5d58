package docs

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"blobtail/internal/bill"
	"blobtail/internal/dev/bench/result"
	"blobtail/internal/units"
)

// variants are the plans that docs/measured/cost.md compares: three ingesters, which a terabyte a day
// needs, and the 20 of the built-in plan. Storage, requests and
// tables take less than most, if that is not 0.
func variants(t *testing.T) (names []string, sheets []*bill.Sheet) {
	t.Helper()
	prices, err := bill.Load("")
	if err != nil {
		t.Fatal(err)
	}
	measured, err := bill.Latest()
	if err != nil {
		t.Fatal(err)
	}
	const day = units.Duration(24 * time.Hour)
	partitions := func(p *bill.Plan) { p.IngestersPerService, p.Flush.Min = 1, 16<<20 } // as docs/operate/partitions.md has it
	for _, v := range []struct {
		name      string
		ingesters float64
		most      float64
		change    func(*bill.Plan)
	}{
		{"3 ingesters", 3, 10, func(*bill.Plan) {}},
		{"3, partitions", 3, 6, partitions},
		{"3, partitions, flush.min 2MiB", 3, 0, func(p *bill.Plan) { p.IngestersPerService = 1 }},
		{"3, cool from 10 days, compacted", 3, 0, func(p *bill.Plan) {
			p.Tiers, p.Compaction, p.Keep, p.ReadsOfCool = map[string]units.Duration{"cool": 10 * day}, "on", 90*day, 50
		}},
		{"20 ingesters", 20, 14, func(*bill.Plan) {}},
		{"20, partitions", 20, 10, partitions},
	} {
		p, err := bill.LoadPlan("")
		if err != nil {
			t.Fatal(err)
		}
		p.Ingesters, p.IngestersPerService = v.ingesters, v.ingesters
		v.change(&p)
		s, err := p.Cost(&prices, measured)
		if err != nil {
			t.Fatalf("%s: %v", v.name, err)
		}
		if got := s.PerDay["storage_requests_tables"]; v.most > 0 && got >= v.most {
			t.Errorf("%s: storage, requests and tables take %.2f a day, and should take less than %.0f", v.name, got, v.most)
		}
		names, sheets = append(names, v.name), append(sheets, s)
	}
	return names, sheets
}

// dollars writes a sum of money.
func dollars(x float64) string {
	if x != 0 && x < 0.005 {
		return "<0.01"
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// costTables are the tables of the page, by the names of their marks.
func costTables(names []string, sheets []*bill.Sheet) map[string]string {
	var sums, others strings.Builder
	fmt.Fprintf(&sums, "| USD a day | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("---:|", len(names)))
	for _, row := range [][2]string{{"storage", "storage"}, {"requests", "requests"}, {"tables", "tables"}, {"storage_requests_tables", "**storage, requests and tables**"}, {"machines", "machines and disks"}, {"total", "total"}} {
		fmt.Fprintf(&sums, "| %s |", row[1])
		for _, s := range sheets {
			fmt.Fprintf(&sums, " %s |", dollars(s.PerDay[row[0]]))
		}
		sums.WriteString("\n")
	}
	others.WriteString("| | USD a day | of that | for |\n|---|---:|---:|---|\n")
	for _, i := range []int{0, 1, 4} {
		fmt.Fprintf(&others, "| blobtail, %s | %s | %s | storage, requests and tables |\n", names[i], dollars(sheets[i].PerDay["total"]), dollars(sheets[i].PerDay["storage_requests_tables"]))
	}
	for _, o := range sheets[0].Elsewhere {
		fmt.Fprintf(&others, "| %s | %s | %s | %s |\n", o.Name, dollars(sheets[0].PerDay[o.Name]), dollars(o.PerDay), o.What)
	}
	return map[string]string{"sums": sums.String(), "elsewhere": others.String()}
}

// costPicture is docs/measured/cost.svg.
func costPicture(t *testing.T, names []string, sheets []*bill.Sheet) []byte {
	t.Helper()
	here := result.Panel{Title: "USD a day for a terabyte a day, 30 days kept (the last: 90 days)"}
	for i, s := range sheets {
		here.Bars = append(here.Bars, result.Bar{Name: names[i], Parts: []float64{s.PerDay["storage"], s.PerDay["requests"], s.PerDay["tables"], s.PerDay["machines"]}})
	}
	there := result.Panel{Title: "The same load elsewhere"}
	for i, o := range sheets[0].Elsewhere {
		if i == 0 || sheets[0].Elsewhere[i-1].Name != o.Name {
			there.Bars = append(there.Bars, result.Bar{Name: o.Name, Parts: []float64{0, 0, 0, sheets[0].PerDay[o.Name]}})
		}
	}
	picture, err := result.DrawBars(result.Bars{
		Title: "A terabyte of logs a day", Under: "200 services, 3 or 20 ingesters, list prices of one region, " + sheets[0].Dates,
		Parts: []string{"storage", "requests", "tables", "machines"}, Panels: []result.Panel{here, there},
		Foot: "logquery cost; counts of the scale test of " + sheets[0].Measured + ". Elsewhere: input, queries, machines and disks in one.",
	})
	if err != nil {
		t.Fatal(err)
	}
	return picture
}

// TestCostPage ensures that the tables of docs/measured/cost.md, and docs/measured/cost.svg, are those of logquery
// cost. make cost writes them.
func TestCostPage(t *testing.T) {
	names, sheets := variants(t)
	old, err := os.ReadFile("measured/cost.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(old)
	for name, table := range costTables(names, sheets) {
		begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->"
		before, rest, ok := strings.Cut(page, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("docs/measured/cost.md has no marks of %s", name)
		}
		page = before + begin + table + end + after
	}
	first, _, _ := strings.Cut(page, "<!-- sums")
	for _, i := range []int{0, 1, 2, 4} {
		if want := dollars(sheets[i].PerDay["total"]); !strings.Contains(first, want) {
			t.Errorf("docs/measured/cost.md does not begin with %s USD a day of %s", want, names[i])
		}
	}
	picture := costPicture(t, names, sheets)
	if *update {
		if err := os.WriteFile("measured/cost.md", []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("measured/cost.svg", picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if page != string(old) && !*update {
		t.Error("the tables of docs/measured/cost.md are not those of logquery cost: make cost")
	}
	if drawn, err := os.ReadFile("measured/cost.svg"); err != nil || !bytes.Equal(drawn, picture) {
		t.Errorf("docs/measured/cost.svg is not that of logquery cost: make cost (%v)", err)
	}
}
