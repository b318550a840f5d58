package loggers

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Table prints rows as a table of docs/reference/loggers.md for each group.
func Table(rows []Row) string {
	var b strings.Builder
	group := ""
	for _, row := range grouped(rows) {
		if row.Group != group {
			group = row.Group
			fmt.Fprintf(&b, "\n## %s\n\n| logger | version | time | level | message | service | from |\n", group)
			b.WriteString("|---|---|---|---|---|---|---|\n")
		}
		cells := append(row.cells(), row.messages(), row.services(), row.from())
		for i, text := range cells[:4] {
			cells[i] = cell(text)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

// Lines prints rows in lines with tabs between the columns of the table, below a line of their names.
func Lines(rows []Row) string {
	b := "GROUP\tLOGGER\tVERSION\tTIME\tLEVEL\tMESSAGE\tSERVICE\tFROM\n"
	for _, row := range grouped(rows) {
		cells := append([]string{row.Group}, row.cells()...)
		for _, text := range []string{row.messages(), row.services()} {
			cells = append(cells, cmp.Or(strings.ReplaceAll(text, "`", ""), "-"))
		}
		from, url, _ := strings.Cut(row.Source, " ")
		if from == "page" {
			from = url
		}
		b += strings.Join(append(cells, from), "\t") + "\n"
	}
	return b
}

// grouped are rows in the order of the table.
func grouped(rows []Row) []Row {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b Row) int { return strings.Compare(a.Group, b.Group) })
	return rows
}

// cells are a row's first cells: logger, version, time and level.
func (row *Row) cells() []string { return []string{row.Logger, row.Version, row.times(), row.levels()} }

// cell is a text in a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "`", "'").Replace(text)
}

// times says how many of the records have a time.
func (row *Row) times() string {
	n := 0
	for _, r := range row.Records {
		if r.Time != nil || r.InRun {
			n++
		}
	}
	return share(n, len(row.Records))
}

func share(n, all int) string {
	switch n {
	case 0:
		return "none"
	case all:
		return "yes"
	}
	return "some"
}

// levels are those of the records.
func (row *Row) levels() string {
	var all []string
	for _, r := range row.Records {
		if r.Level != nil && !slices.Contains(all, *r.Level) {
			all = append(all, *r.Level)
		}
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

// messages is the place of the messages.
func (row *Row) messages() string {
	if row.Raw != "" {
		return "of the body"
	}
	var all []string
	for _, r := range row.Records {
		place := "the line"
		switch {
		case r.Object() && r.Message == nil:
			place = "none"
		case r.Object():
			place = r.place(*r.Message)
		case r.Lines > 1:
			place = "the lines"
		}
		if !slices.Contains(all, place) {
			all = append(all, place)
		}
	}
	if slices.Contains(all, "the lines") {
		all = slices.DeleteFunc(all, func(p string) bool { return p == "the line" })
	}
	return strings.Join(all, ", ")
}

// services are the services that the logger names.
func (row *Row) services() string {
	var all []string
	for _, r := range row.Records {
		place := ""
		if r.Service != "" && r.Object() {
			place = r.place(r.Service)
		}
		if place != "" && !slices.Contains(all, place) {
			all = append(all, place)
		}
	}
	return strings.Join(all, ", ")
}

// place is the name of the member of an object with a text, in code; with dots between the names of
// nested ones.
func (r Record) place(text string) string {
	if name := memberWith(r.Text, text); name != "" {
		return "`" + cell(name) + "`"
	}
	return "a member"
}

// memberWith is the name of the first member with a text, "" if there is none.
func memberWith(object []byte, text string) string {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return ""
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return ""
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return ""
		}
		var s string
		if json.Unmarshal(value, &s) == nil && s == text {
			return fmt.Sprint(name)
		}
		if value[0] == '{' {
			if inner := memberWith(value, text); inner != "" {
				return fmt.Sprint(name) + "." + inner
			}
		}
	}
	return ""
}

// from says where the bytes come from.
func (row *Row) from() string {
	how, where, _ := strings.Cut(row.Source, " ")
	if how == "page" && strings.HasPrefix(where, "https://") {
		return "[page](" + where + ")"
	}
	return cell(how)
}
