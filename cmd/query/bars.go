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

// barPrinter prints a bucket as a line of text: its time, its total, a bar in the
// colours of the levels, the worst first, and the count of each level.
type barPrinter struct {
	a       *app
	layout  string // of times
	longest int64  // the greatest total
	width   int    // of the column of totals
	room    int    // for the bar
	columns []levelColumn
}

type levelColumn struct {
	level record.Level
	name  string
	width int
}

const (
	leastRoom    = 10
	usualColumns = 80
)

// bars prints the header and returns the printer of the buckets.
func (a *app) bars(by time.Duration, all []reading.Bucket) *barPrinter {
	p := &barPrinter{a: a, layout: timeOf(by)}
	var most [record.NumLevels]int64
	for i := range all {
		p.longest = max(p.longest, total(&all[i]))
		for l, n := range all[i].Levels {
			most[l] = max(most[l], n)
		}
	}
	p.width = max(len("total"), len(cli.Thousands(int(p.longest))))
	p.room = a.columns() - len(p.layout) - 2 - p.width - 2
	for _, l := range worstFirst() {
		if most[l] > 0 {
			c := levelColumn{level: l, name: l.String()}
			if l == record.Critical {
				c.name = "crit" // to leave room for the bar
			}
			c.width = max(len(c.name), len(cli.Thousands(int(most[l]))))
			p.columns = append(p.columns, c)
			p.room -= 2 + c.width
		}
	}
	for p.room < leastRoom && len(p.columns) > 0 { // the mildest level is in the total, and in the bar
		last := len(p.columns) - 1
		p.room += 2 + p.columns[last].width
		p.columns = p.columns[:last]
	}
	p.room = max(p.room, leastRoom)
	fmt.Fprintf(a.out, "%-*s  %*s  %*s", len(p.layout), "from", p.width, "total", p.room, "")
	for _, c := range p.columns {
		fmt.Fprintf(a.out, "  %*s", c.width, c.name)
	}
	fmt.Fprintln(a.out)
	return p
}

func (p *barPrinter) append(dst []byte, b *reading.Bucket) []byte {
	dst = p.a.at(b.Start).AppendFormat(dst, p.layout)
	dst = fmt.Appendf(dst, "  %*s  ", p.width, cli.Thousands(int(total(b))))
	dst = p.bar(dst, b)
	for _, c := range p.columns {
		text := ""
		if n := b.Levels[c.level]; n > 0 {
			text = cli.Thousands(int(n))
		}
		dst = fmt.Appendf(dst, "  %*s", c.width, text)
	}
	return bytes.TrimRight(dst, " ")
}

// bar draws a bucket, with the length of its share of the longest. Levels have their
// colours, or letters if there are no colours.
func (p *barPrinter) bar(dst []byte, b *reading.Bucket) []byte {
	n := total(b)
	length := int(math.Round(float64(p.room) * float64(n) / float64(p.longest)))
	if n > 0 {
		length = max(length, 1)
	}
	cells := share(b, n, length)
	for _, l := range worstFirst() {
		switch color := levelColor(l); {
		case cells[l] == 0:
		case !p.a.color: // the letters are in the order of the levels
			dst = append(dst, strings.Repeat("tdiwECo"[l:l+1], cells[l])...)
		case color == "":
			dst = append(dst, strings.Repeat("█", cells[l])...)
		default:
			dst = append(dst, color+strings.Repeat("█", cells[l])+reset...)
		}
	}
	return append(dst, bytes.Repeat([]byte{' '}, p.room-length)...)
}

// share divides the cells of a bar among the levels. Each level that occurs gets one cell
// while there are any: a few errors among many records matter most.
func share(b *reading.Bucket, n int64, length int) (cells [record.NumLevels]int) {
	left := length
	for _, l := range worstFirst() {
		if b.Levels[l] > 0 && left > 0 {
			cells[l], left = 1, left-1
		}
	}
	// Divide the other cells by the counts, rounded such that the sum is right.
	seen, given := int64(0), 0
	for _, l := range worstFirst() {
		seen += b.Levels[l]
		upTo := int(float64(left) * float64(seen) / float64(max(n, 1)))
		cells[l] += upTo - given
		given = upTo
	}
	return cells
}

func worstFirst() []record.Level {
	return []record.Level{record.Critical, record.Error, record.Warn, record.Info, record.Debug, record.Trace, record.Other}
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
