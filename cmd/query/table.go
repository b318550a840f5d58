package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A table is for people. On a terminal too narrow for it, it leaves out columns and says
// so. The last column is as long as it has to be.
type table struct {
	heads []head
	rows  [][]string
}

// A head is the head of a column.
type head struct {
	text string
	left bool // the column is a text, else numbers
	rank int  // columns with the highest rank are left out first, those with 0 never
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// print writes the table. full names a form of output that has all columns.
func (t *table) print(a *app, full string) {
	shown := make([]int, len(t.heads))
	for i := range shown {
		shown[i] = i
	}
	var left []string
	for limit := a.width(); limit > 0 && t.width(shown) > limit; {
		drop := slices.MaxFunc(shown, func(i, j int) int { return cmp.Compare(t.heads[i].rank, t.heads[j].rank) })
		if t.heads[drop].rank == 0 {
			break
		}
		left = append(left, t.heads[drop].text)
		shown = slices.DeleteFunc(shown, func(i int) bool { return i == drop })
	}
	titles := make([]string, len(t.heads))
	for i, h := range t.heads {
		titles[i] = h.text
	}
	for _, row := range slices.Concat([][]string{titles}, t.rows) {
		var line strings.Builder
		for n, i := range shown {
			if n > 0 {
				line.WriteString("  ")
			}
			pad := strings.Repeat(" ", t.columnWidth(i)-utf8.RuneCountInString(row[i]))
			if t.heads[i].left {
				line.WriteString(row[i] + pad)
			} else {
				line.WriteString(pad + row[i])
			}
		}
		// A failed write is kept by the output.
		_, _ = a.out.Write([]byte(strings.TrimRight(line.String(), " ") + "\n"))
	}
	if len(left) > 0 {
		a.Note("the terminal is too narrow for: %s; %s has all", strings.Join(left, ", "), full)
	}
}

// width is the width of some columns without the padding of the last one.
func (t *table) width(columns []int) int {
	n := 2 * (len(columns) - 1)
	for _, i := range columns {
		n += t.columnWidth(i)
	}
	return n
}

func (t *table) columnWidth(i int) int {
	n := utf8.RuneCountInString(t.heads[i].text)
	for _, row := range t.rows {
		n = max(n, utf8.RuneCountInString(row[i]))
	}
	return n
}

// width is the number of columns that output may have: those of the terminal, or COLUMNS,
// or 0 for any.
func (a *app) width() int {
	if a.env.columns > 0 {
		return a.env.columns
	}
	if n, err := strconv.Atoi(a.env.getenv("COLUMNS")); err == nil && n > 0 && n < 10_000 {
		return n
	}
	return 0
}
