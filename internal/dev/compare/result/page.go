package result

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"blobtail/internal/dev/bench/report"
)

// Begin and End are around the tables on the page.
const (
	Begin = "<!-- compare: begin -->\n"
	End   = "<!-- compare: end -->"
)

// groups are the tables, in their order.
func groups() [][2]string {
	return [][2]string{{"ingest", "Ingest until stored"}, {"memory", "Memory"}, {"storage", "Storage"}, {"read", "Reads"}}
}

// Tables are the tables of the page, and the text between them. The rows in which theirs is
// better come first.
func Tables(r Result) string {
	var b strings.Builder
	behind, ahead, compared := 0, 0, 0
	for _, row := range r.Rows {
		switch ratio := row.Ratio(); {
		case math.IsNaN(ratio):
			continue
		case ratio > 1:
			behind++
		case ratio < 1:
			ahead++
		}
		compared++
	}
	them := r.Theirs.Name
	if behind == 0 {
		fmt.Fprintf(&b, "%s is ahead in none of the %d rows.\n\n", them, compared)
	} else {
		fmt.Fprintf(&b, "**%s is ahead in %d of %d rows**, the largest lead first:\n\n", them, behind, compared)
		first := slices.DeleteFunc(slices.Clone(r.Rows), func(row Row) bool { return !row.Behind() })
		slices.SortStableFunc(first, func(a, b Row) int { return cmp.Compare(b.Ratio(), a.Ratio()) })
		table(&b, r, first, true)
	}
	fmt.Fprintf(&b, "%s is ahead in %d rows. The ratio is ours to theirs of the medians (theirs to ours where\n"+
		"more is better): below 1, %s takes less. A figure is a median of rounds in turn (ours, theirs,\n"+
		"theirs, ours), with the least and the most. A row alone:\n"+
		"`make compare COMPARE_FLAGS='-rows ID'`. ![ratios of all rows](compare.svg)\n\n", r.Ours.Name, ahead, r.Ours.Name)
	for _, g := range groups() {
		for _, c := range r.Corpora {
			rows := slices.DeleteFunc(slices.Clone(r.Rows), func(row Row) bool { return row.Group != g[0] || row.Corpus != c.Name })
			if len(rows) == 0 {
				continue
			}
			fmt.Fprintf(&b, "**%s**, %s corpus:\n\n", g[1], c.Name)
			table(&b, r, rows, false)
		}
	}
	b.WriteString("The commands of the rows:\n\n")
	commands(&b, r)
	b.WriteString("The conditions:\n\n")
	conditions(&b, r)
	return b.String()
}

// table writes rows. Those of several corpora name theirs.
func table(b *strings.Builder, r Result, rows []Row, corpus bool) {
	fmt.Fprintf(b, "| row | ID | unit | %s | %s | ratio |\n|---|---|---|---:|---:|---:|\n", r.Ours.Name, r.Theirs.Name)
	for _, row := range rows {
		title := row.Title
		if corpus {
			title += ", " + row.Corpus
		}
		ratio := "none"
		if v := row.Ratio(); !math.IsNaN(v) {
			ratio = strconv.FormatFloat(v, 'f', 2, 64)
			if v > 1 {
				ratio = "**" + ratio + "**"
			}
		}
		fmt.Fprintf(b, "| %s | `%s` | %s | %s | %s | %s |\n", title, row.ID, row.Unit, figures(row.Ours), figures(row.Theirs), ratio)
	}
	b.WriteString("\n")
	for _, row := range rows {
		if row.Note != "" && !corpus {
			fmt.Fprintf(b, "- `%s`: %s\n", row.ID, row.Note)
		}
	}
	if !corpus && slices.ContainsFunc(rows, func(row Row) bool { return row.Note != "" }) {
		b.WriteString("\n")
	}
}

// commands writes the commands, once for all rows that have the same.
func commands(b *strings.Builder, r Result) {
	b.WriteString("| rows | " + r.Ours.Name + " | " + r.Theirs.Name + " |\n|---|---|---|\n")
	type pair struct{ ours, theirs string }
	ids := map[pair][]string{}
	var order []pair
	for _, row := range r.Rows {
		p := pair{row.OursCommand, row.TheirsCommand}
		if ids[p] == nil {
			order = append(order, p)
		}
		ids[p] = append(ids[p], "`"+row.ID+"`")
	}
	for _, p := range order {
		fmt.Fprintf(b, "| %s | %s | %s |\n", strings.Join(ids[p], " "), code(p.ours), code(p.theirs))
	}
	b.WriteString("\n")
}

// code writes a command in a cell of a table.
func code(command string) string {
	if command == "" {
		return ""
	}
	command = strings.ReplaceAll(command, "|", "\\|")
	if strings.Contains(command, "`") {
		return "`` " + command + " ``"
	}
	return "`" + command + "`"
}

// conditions writes versions, durability, machine and corpora.
func conditions(b *strings.Builder, r Result) {
	fmt.Fprintf(b, "| | %s | %s |\n|---|---|---|\n", r.Ours.Name, r.Theirs.Name)
	fmt.Fprintf(b, "| version | %s | %s |\n", r.Ours.Version, r.Theirs.Version)
	fmt.Fprintf(b, "| a record whose sender has the answer | %s | %s |\n", r.Ours.Durability, r.Theirs.Durability)
	for i := range max(len(r.Ours.Commands), len(r.Theirs.Commands)) {
		at := func(c []string) string {
			if i < len(c) {
				return code(c[i])
			}
			return ""
		}
		fmt.Fprintf(b, "| runs as | %s | %s |\n", at(r.Ours.Commands), at(r.Theirs.Commands))
	}
	b.WriteString("\n")
	for _, c := range r.Corpora {
		fmt.Fprintf(b, "- Corpus %s: %s records, %.1f MB as NDJSON. %s\n", c.Name, report.Thousands(c.Records), float64(c.Bytes)/1e6, c.Made)
	}
	m := r.Machine
	fmt.Fprintf(b, "- Machine: %d cores of %s, %.1f GB, Linux %s, %s; load %.1f at the start.\n", m.Cores, m.CPU, float64(m.MemoryMB)/1024, m.Kernel, m.Go, m.Load)
	fmt.Fprintf(b, "- Run: %.10s, commit %s, %.0f minutes.\n", r.Date, r.Commit, math.Ceil(r.Seconds/60))
	for _, n := range r.Notes {
		fmt.Fprintf(b, "- %s\n", n)
	}
}

func figures(v []float64) string {
	if len(v) == 0 {
		return "none"
	}
	return figure(report.SpreadOf(v))
}

// figure writes a median, and the range if there is one.
func figure(s report.Spread) string {
	if report.Number(s.Min) == report.Number(s.Max) {
		return report.Number(s.Median)
	}
	return report.Number(s.Median) + " (" + report.Number(s.Min) + "–" + report.Number(s.Max) + ")"
}

// Draw is the plot: a line for each title, with a mark for each number of clients.
func Draw(r Result) ([]byte, error) {
	d := report.Ratios{
		Title: r.Ours.Name + " beside " + r.Theirs.Name,
		Under: fmt.Sprintf("ours to theirs, medians; left of 1, %s takes less; %s; %d cores; %.10s", r.Ours.Name, r.Theirs.Version, r.Machine.Cores, r.Date),
		Marks: []string{"no clients, or a process", "1 client", "8 clients", "32 clients"},
		Foot:  "make compare; docs/COMPARISON.md has the figures",
	}
	for _, g := range groups() {
		for _, c := range r.Corpora {
			panel := report.RatioPanel{Title: g[1] + ", " + c.Name + " corpus"}
			at := map[string]int{}
			for _, row := range r.Rows {
				if row.Group != g[0] || row.Corpus != c.Name || math.IsNaN(row.Ratio()) {
					continue
				}
				i, ok := at[row.Title]
				if !ok {
					i = len(panel.Lines)
					at[row.Title] = i
					panel.Lines = append(panel.Lines, report.RatioLine{Name: row.Title})
				}
				panel.Lines[i].Points = append(panel.Lines[i].Points, report.RatioPoint{Mark: mark(row.Clients), Ratio: row.Ratio()})
			}
			if len(panel.Lines) > 0 {
				d.Panels = append(d.Panels, panel)
			}
		}
	}
	return report.DrawRatios(d)
}

// mark is the index of the mark for a number of clients.
func mark(clients int) int {
	switch {
	case clients == 0:
		return 0
	case clients == 1:
		return 1
	case clients <= 8:
		return 2
	}
	return 3
}
