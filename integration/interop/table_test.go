package interop_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A row is the outcome of one client under one fault.
type row struct {
	client  *client
	version string
	fault   fault
	report  report
	met     string
}

func (r *run) row(rep report) row {
	return row{client: r.c, version: r.c.version(r.t), fault: r.fault, report: rep, met: r.met()}
}

func (s *suite) note(r row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = append(s.rows, r)
}

// verdict is the last word of a row: yes, or the difference, with the reason if it is known.
func (r row) verdict() string {
	rep, c := r.report, r.client
	var parts []string
	add := func(n int, what, why string) {
		if n == 0 {
			return
		}
		text := fmt.Sprint(n, " ", what)
		if why != "" && r.fault != plain {
			text += " (" + why + ")"
		}
		parts = append(parts, text)
	}
	add(len(rep.broken), "believed delivered and missing", "")
	add(len(rep.missing)-len(rep.broken), "missing", c.lossy)
	add(len(rep.twice), "twice", c.twice)
	add(len(rep.unequal), "unequal", "")
	add(rep.strangers, "that nobody sent", "")
	add(rep.rejected, "rejected", "")
	if len(parts) == 0 {
		return "yes"
	}
	return strings.Join(parts, ", ")
}

// print writes the tables in Markdown: one of all clients, and one of the faults.
func (s *suite) print() error {
	order := []fault{plain, restart, full, lost}
	slices.SortStableFunc(s.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.fault), slices.Index(order, b.fault)), strings.Compare(a.client.name, b.client.name))
	})
	var b strings.Builder
	b.WriteString("\n| client | version | protocol | sent | stored | equal |\n|---|---|---|---|---|---|\n")
	for _, r := range s.rows {
		if r.fault == plain {
			fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %s |\n", r.client.title(), r.version, r.client.wire, r.report.sent, r.report.stored, r.verdict())
		}
	}
	if slices.ContainsFunc(s.rows, func(r row) bool { return r.fault != plain }) {
		b.WriteString("\n| client | fault | sent | believed delivered | stored | equal | met |\n|---|---|---|---|---|---|---|\n")
	}
	for _, r := range s.rows {
		if r.fault != plain {
			believed := fmt.Sprint(r.report.believed)
			if r.client.raw {
				believed = "no answers"
			}
			fmt.Fprintf(&b, "| %s | %s | %d | %s | %d | %s | %s |\n", r.client.title(), r.fault, r.report.sent, believed, r.report.stored, r.verdict(), r.met)
		}
	}
	slices.Sort(s.skipped)
	for _, what := range slices.Compact(s.skipped) {
		fmt.Fprintf(&b, "\nNot run: %s.\n", what)
	}
	fmt.Print(b.String())
	if err := os.MkdirAll(s.tools, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.tools, "table.md"), []byte(b.String()), 0o644)
}

func (c *client) title() string {
	if c.replayed {
		return c.name + " (replayed)"
	}
	return c.name
}
