package main

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"blobtail/internal/cli"
	"blobtail/reading"
	"blobtail/record"
)

// barPrinter prints a bucket as a line of text: its time, its total, a bar in the colours of its parts,
// and the count of each part.
type barPrinter struct {
	a       *app
	layout  string // of times
	longest int64  // the greatest total
	width   int    // of the column of totals
	room    int    // for the bar
	parts   []part // in the order of the bar
	columns []column
}

// A part of a bar is a level, or a value of a split.
type part struct {
	head  string // of its column
	mark  string // a letter of a bar without colours
	color string
	count func(b *reading.Slot) int64
}

// column is the column of a part.
type column struct {
	*part
	width int
}

const (
	leastRoom    = 10
	usualColumns = 80
)

// levels are the parts of a bar of levels, the worst first.
func levels() (parts []part) {
	for _, l := range worstFirst() {
		p := part{head: l.String(), mark: "tdiwECo"[l : l+1], color: levelColor(l), count: func(b *reading.Slot) int64 { return b.Levels[l] }}
		if l == record.Critical {
			p.head = "crit" // to leave room for the bar
		}
		parts = append(parts, p)
	}
	return parts
}

// worstFirst are the levels, the worst first.
func worstFirst() []record.Level {
	return []record.Level{record.Critical, record.Error, record.Warn, record.Info, record.Debug, record.Trace, record.Other}
}

// bars prints the header and returns the printer of the buckets.
func (a *app) bars(by time.Duration, all []reading.Slot, parts []part) *barPrinter {
	p := &barPrinter{a: a, layout: timeOf(by), parts: parts}
	most := make([]int64, len(parts))
	for i := range all {
		p.longest = max(p.longest, all[i].Total())
		for j := range parts {
			most[j] = max(most[j], parts[j].count(&all[i]))
		}
	}
	p.width = max(len("total"), len(cli.Thousands(int(p.longest))))
	p.room = a.columns() - len(p.layout) - 2 - p.width - 2
	for j := range parts {
		if most[j] > 0 {
			c := column{&parts[j], max(len(parts[j].head), len(cli.Thousands(int(most[j]))))}
			p.columns = append(p.columns, c)
			p.room -= 2 + c.width
		}
	}
	for p.room < leastRoom && len(p.columns) > 0 { // the last part is in the total, and in the bar
		last := len(p.columns) - 1
		p.room += 2 + p.columns[last].width
		p.columns = p.columns[:last]
	}
	p.room = max(p.room, leastRoom)
	fmt.Fprintf(a.out, "%-*s  %*s  %*s", len(p.layout), "from", p.width, "total", p.room, "")
	for _, c := range p.columns {
		fmt.Fprintf(a.out, "  %*s", c.width, c.head)
	}
	fmt.Fprintln(a.out)
	return p
}

func (p *barPrinter) append(dst []byte, b *reading.Slot) []byte {
	dst = p.a.at(b.Start).AppendFormat(dst, p.layout)
	dst = fmt.Appendf(dst, "  %*s  ", p.width, cli.Thousands(int(b.Total())))
	dst = p.bar(dst, b)
	for _, c := range p.columns {
		text := ""
		if n := c.count(b); n > 0 {
			text = cli.Thousands(int(n))
		}
		dst = fmt.Appendf(dst, "  %*s", c.width, text)
	}
	return bytes.TrimRight(dst, " ")
}

// bar draws a bucket, with the length of its share of the longest. Parts have their colours, or letters
// if there are no colours.
func (p *barPrinter) bar(dst []byte, b *reading.Slot) []byte {
	n := b.Total()
	length := int(math.Round(float64(p.room) * float64(n) / float64(p.longest)))
	if n > 0 {
		length = max(length, 1)
	}
	counts := make([]int64, len(p.parts))
	for i := range p.parts {
		counts[i] = p.parts[i].count(b)
	}
	for i, cells := range share(counts, length) {
		switch of := &p.parts[i]; {
		case cells == 0:
		case !p.a.color: // the letters are in the order of the parts
			dst = append(dst, strings.Repeat(of.mark, cells)...)
		case of.color == "":
			dst = append(dst, strings.Repeat("█", cells)...)
		default:
			dst = append(dst, of.color+strings.Repeat("█", cells)+reset...)
		}
	}
	return append(dst, bytes.Repeat([]byte{' '}, p.room-length)...)
}

// share divides the cells of a bar among its parts. Each part that occurs gets one cell while there
// are any, the first ones first: a few errors among many records matter most.
func share(counts []int64, length int) []int {
	cells, left, n := make([]int, len(counts)), length, int64(0)
	for i, count := range counts {
		n += count
		if count > 0 && left > 0 {
			cells[i], left = 1, left-1
		}
	}
	// Divide the other cells by the counts, rounded such that the sum is right.
	seen, given := int64(0), 0
	for i, count := range counts {
		seen += count
		upTo := int(float64(left) * float64(seen) / float64(max(n, 1)))
		cells[i] += upTo - given
		given = upTo
	}
	return cells
}

// timeOf is the shortest layout that distinguishes the times of buckets.
func timeOf(by time.Duration) string {
	switch {
	case by%time.Second != 0:
		return timeLayout
	case by%time.Minute != 0:
		return time.DateTime
	case by%(24*time.Hour) == 0:
		return time.DateOnly
	}
	return "2006-01-02 15:04"
}

// columns is the width of the terminal, or the usual one.
func (a *app) columns() int { return cmp.Or(a.width(), usualColumns) }
