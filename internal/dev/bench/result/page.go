package result

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
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
		paragraph(&b, "", "%s is ahead in none of the %d rows.", them, compared)
	} else {
		paragraph(&b, "", "**%s is ahead in %d of %d rows**, the largest lead first:", them, behind, compared)
		behindTable(&b, r)
	}
	paragraph(&b, "", "%s is ahead in %d rows. A ratio is that of the medians, ours to theirs, or theirs to ours if more is better: "+
		"below 1, %s is ahead. A figure is the median of rounds in turn (ours, theirs, theirs, ours), "+
		"and in brackets are the least and the most. "+
		"[The JSON](compare/%.10s.json) has all figures, and the commands of each row of both sides. "+
		"`make compare COMPARE_FLAGS='-rows ID'` measures a row alone.", r.Ours.Name, ahead, r.Ours.Name, r.Date)
	b.WriteString("![Ratios of all rows](compare.svg)\n\n")
	for _, g := range groups() {
		rows := slices.DeleteFunc(slices.Clone(r.Rows), func(row Row) bool { return row.Group != g[0] })
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "**%s**:\n\n", g[1])
		if g[0] == "read" {
			matrix(&b, r, rows)
		} else {
			table(&b, r, rows)
		}
		notes(&b, rows)
	}
	b.WriteString("The conditions:\n\n")
	conditions(&b, r)
	return b.String()
}

// behindTable lists the ratios of the rows in which theirs is better, by questions.
func behindTable(b *strings.Builder, r Result) {
	rows := slices.DeleteFunc(slices.Clone(r.Rows), func(row Row) bool { return !(row.Ratio() > 1) })
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(b.Ratio(), a.Ratio()) })
	b.WriteString("| row | ID | ratios |\n|---|---|---|\n")
	for len(rows) > 0 {
		first, rest := stem(rows[0])
		title, id := titled(r, rows[0]), first
		if rest != "" {
			title, id = titleOf(r.Rows, first), first+".*"
		}
		var ratios []string
		rows = slices.DeleteFunc(rows, func(row Row) bool {
			s, kind := stem(row)
			if s == first {
				ratios = append(ratios, strings.TrimPrefix(strings.ReplaceAll(kind, ".", " ")+" "+ratio(row), " "))
			}
			return s == first
		})
		fmt.Fprintf(b, "| %s | `%s` | %s |\n", title, id, strings.Join(ratios, ", "))
	}
	b.WriteString("\n")
}

// table writes rows.
func table(b *strings.Builder, r Result, rows []Row) {
	fmt.Fprintf(b, "| row | ID | unit | %s | %s | ratio |\n|---|---|---|---:|---:|---:|\n", r.Ours.Name, r.Theirs.Name)
	for _, row := range rows {
		ours, theirs := figures(row.Ours), figures(row.Theirs)
		fmt.Fprintf(b, "| %s | `%s` | %s | %s | %s | %s |\n", titled(r, row), row.ID, row.Unit, ours, theirs, ratio(row))
	}
	b.WriteString("\n")
}

// titled is the title of a row, with its corpus if that is not the first.
func titled(r Result, row Row) string {
	if len(r.Corpora) == 0 || row.Corpus == r.Corpora[0].Name {
		return row.Title
	}
	return row.Title + ", " + row.Corpus
}

// ratio writes a ratio. One that is theirs is bold.
func ratio(row Row) string {
	v := row.Ratio()
	switch {
	case math.IsNaN(v):
		return "none"
	case v > 1:
		return "**" + strconv.FormatFloat(v, 'f', 2, 64) + "**"
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// stem is the beginning of the ID that rows of one question share: read.hour of
// read.hour.server.8. Rows that are no reads have none in common.
func stem(row Row) (stem, rest string) {
	if parts := strings.SplitN(row.ID, ".", 3); row.Group == "read" && len(parts) == 3 {
		return parts[0] + "." + parts[1], parts[2]
	}
	return row.ID, ""
}

// matrix writes a line for each question, with a cell for each of its rows.
func matrix(b *strings.Builder, r Result, rows []Row) {
	var stems, kinds []string
	cells, units := map[[2]string]Row{}, map[string]string{}
	for _, row := range rows {
		s, kind := stem(row)
		cells[[2]string{s, kind}], units[kind] = row, row.Unit
		if !slices.Contains(stems, s) {
			stems = append(stems, s)
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	paragraph(b, "", "A cell has the medians of %s / %s, and the ratio. Each request asks for another time, service, word or id; "+
		"those of `-again` ask for the same. `server` and `cpu` are requests to a server, and the number is that of clients at once. "+
		"`process` is a whole command: `logquery` opens the store itself, and `curl` asks the running %[2]s.", r.Ours.Name, r.Theirs.Name)
	b.WriteString("| question | IDs |")
	for _, kind := range kinds {
		fmt.Fprintf(b, " %s, %s |", strings.ReplaceAll(cmp.Or(kind, "all"), ".", " "), units[kind])
	}
	fmt.Fprintf(b, "\n|---|---|%s\n", strings.Repeat("---|", len(kinds)))
	for _, s := range stems {
		fmt.Fprintf(b, "| %s | `%s.*` |", titleOf(rows, s), s)
		for _, kind := range kinds {
			row, ok := cells[[2]string{s, kind}]
			if !ok {
				b.WriteString(" none |")
				continue
			}
			fmt.Fprintf(b, " %s / %s: %s |", median(row.Ours), median(row.Theirs), ratio(row))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

// median writes a median without its range.
func median(v []float64) string {
	if len(v) == 0 {
		return "none"
	}
	return Number(SpreadOf(v).Median)
}

// titleOf is the beginning that the titles of a stem's rows share. Behind a semicolon a title tells how
// requests differ, which the page says once for all.
func titleOf(rows []Row, of string) (title string) {
	for _, row := range rows {
		if s, _ := stem(row); s != of {
			continue
		}
		if title == "" {
			title = row.Title
		}
		for !strings.HasPrefix(row.Title, title) {
			title = title[:len(title)-1]
		}
	}
	title, _, _ = strings.Cut(title, ";")
	return strings.TrimRight(title, ", ")
}

// notes writes the notes of rows, each once.
func notes(b *strings.Builder, rows []Row) {
	ids := map[string][]string{}
	var order []string
	for _, row := range rows {
		if row.Note == "" {
			continue
		}
		id, rest := stem(row)
		if rest != "" {
			id += ".*"
		}
		if ids[row.Note] == nil {
			order = append(order, row.Note)
		}
		if id = "`" + id + "`"; !slices.Contains(ids[row.Note], id) {
			ids[row.Note] = append(ids[row.Note], id)
		}
	}
	for _, note := range order {
		paragraph(b, "- ", "%s: %s.", strings.Join(ids[note], ", "), note)
	}
	if len(order) > 0 {
		b.WriteString("\n")
	}
}

// conditions writes versions, durability, machine and corpora.
func conditions(b *strings.Builder, r Result) {
	fmt.Fprintf(b, "| | %s | %s |\n|---|---|---|\n", r.Ours.Name, r.Theirs.Name)
	fmt.Fprintf(b, "| version | %s | %s |\n", r.Ours.Version, r.Theirs.Version)
	fmt.Fprintf(b, "| a record whose sender has the answer | %s | %s |\n", r.Ours.Durability, r.Theirs.Durability)
	runs := func(of Side) string { return "`" + strings.Join(of.Commands, "`<br>`") + "`" }
	fmt.Fprintf(b, "| runs as | %s | %s |\n", runs(r.Ours), runs(r.Theirs))
	b.WriteString("\n")
	for _, c := range r.Corpora {
		paragraph(b, "- ", "Corpus %s: %s records, %.1f MB as NDJSON. %s", c.Name, Thousands(c.Records), float64(c.Bytes)/1e6, c.Made)
	}
	m := r.Machine
	paragraph(b, "- ", "Machine: %d cores of %s, %.1f GB, Linux %s, %s; load %.1f at the start.",
		m.Cores, m.CPU, float64(m.MemoryMB)/1024, m.Kernel, m.Go, m.Load)
	paragraph(b, "- ", "Run: %.10s, commit %s, %.0f minutes.", r.Date, r.Commit, math.Ceil(r.Seconds/60))
	for _, n := range r.Notes {
		paragraph(b, "- ", "%s", n)
	}
}

// paragraph writes a text in lines of at most 100 characters, and an empty line after it. An item
// of a list, which mark begins, has none.
func paragraph(b *strings.Builder, mark, format string, args ...any) {
	const width = 100
	line := strings.TrimSuffix(mark, " ")
	for _, word := range strings.Fields(fmt.Sprintf(format, args...)) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			b.WriteString(line + "\n")
			line = strings.Repeat(" ", len(mark)) + word
		default:
			line += " " + word
		}
	}
	b.WriteString(line + "\n")
	if mark == "" {
		b.WriteString("\n")
	}
}

func figures(v []float64) string {
	if len(v) == 0 {
		return "none"
	}
	return SpreadOf(v).String()
}

// Draw is the plot: a line for each title, with a mark for each number of clients.
func Draw(r Result) ([]byte, error) {
	var panels []ratioPanel
	for _, g := range groups() {
		for _, c := range r.Corpora {
			panel := ratioPanel{title: g[1] + ", " + c.Name + " corpus"}
			at := map[string]int{}
			for _, row := range r.Rows {
				if row.Group != g[0] || row.Corpus != c.Name || math.IsNaN(row.Ratio()) {
					continue
				}
				line, _ := stem(row)
				i, ok := at[line+row.Unit]
				if !ok {
					i = len(panel.lines)
					at[line+row.Unit] = i
					panel.lines = append(panel.lines, ratioLine{name: nameOf(r.Rows, row)})
				}
				// The marks are of no clients, of 1, 8 and 32.
				n := map[bool]int{true: 2, false: 3}[row.Clients <= 8]
				panel.lines[i].points = append(panel.lines[i].points, ratioPoint{min(n, row.Clients), row.Ratio()})
			}
			if len(panel.lines) > 0 {
				panels = append(panels, panel)
			}
		}
	}
	return drawRatios(r.Ours.Name+" beside "+r.Theirs.Name,
		fmt.Sprintf("ours to theirs, medians; left of 1, %s takes less; %s; %d cores; %.10s",
			r.Ours.Name, r.Theirs.Version, r.Machine.Cores, r.Date), "make compare; docs/measured/comparison.md has the figures",
		[]string{"no clients, or a process", "1 client", "8 clients", "32 clients"}, panels)
}

// nameOf is the name of a row in the plot, where a line has room for about 60 characters.
func nameOf(rows []Row, row Row) string {
	line, rest := stem(row)
	if rest == "" {
		return strings.ReplaceAll(row.Title, "`", "")
	}
	name := titleOf(rows, line)
	_, question, _ := strings.Cut(line, ".")
	if name += " (" + question + ")"; row.Unit != "ms" {
		name += ", CPU"
	}
	return name
}

// Place puts the tables of a result between the marks of a page.
func Place(page string, r Result) (string, error) {
	before, rest, ok := strings.Cut(page, Begin)
	_, after, closed := strings.Cut(rest, End)
	if !ok || !closed {
		return "", fmt.Errorf("the page has no lines %s and %s", strings.TrimSpace(Begin), strings.TrimSpace(End))
	}
	return before + Begin + Tables(r) + End + after, nil
}
