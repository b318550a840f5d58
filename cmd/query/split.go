package main

import (
	"encoding/csv"
	"fmt"
	"strconv"

	"blobtail/internal/cli"
	"blobtail/reading"
	"blobtail/reading/survey"
	"blobtail/record"
)

// othersMark is the letter of records with other values.
const othersMark = "."

// divided returns a function that appends a bucket of a histogram by fields in a form.
func (a *app) divided(form string, h *reading.Histogram) func(dst []byte, b *reading.Slot) []byte {
	keys := h.Keys()
	switch form {
	case "pretty":
		return a.bars(h.By, h.Buckets, a.legend(h, keys)).append
	case "csv":
		w := csv.NewWriter(a.out)
		_ = w.Write(append(append([]string{"ts", "total"}, keys...), "others"))
		w.Flush() // a writer of the command keeps its error
		return func(dst []byte, b *reading.Slot) []byte {
			dst = fmt.Appendf(dst, "%s,%d", rfc3339(b.Start), b.Total())
			for i := range keys {
				dst = fmt.Appendf(dst, ",%d", partOf(b, i))
			}
			return fmt.Appendf(dst, ",%d", b.Others)
		}
	}
	return func(dst []byte, b *reading.Slot) []byte {
		dst = fmt.Appendf(dst, `{"ts":"%s","total":%d,"counts":{`, rfc3339(b.Start), b.Total())
		comma := ""
		for i, key := range keys {
			if n := partOf(b, i); n > 0 {
				dst = append(record.AppendEscaped(append(append(dst, comma...), '"'), []byte(key)), `":`...)
				dst = strconv.AppendInt(dst, n, 10)
				comma = ","
			}
		}
		if dst = append(dst, '}'); b.Others > 0 {
			dst = fmt.Appendf(dst, `,"others":%d`, b.Others)
		}
		return append(dst, '}')
	}
}

// partOf is a part of a bucket; 0: the bucket is empty.
func partOf(b *reading.Slot, i int) int64 {
	if len(b.Parts) == 0 {
		return 0
	}
	return b.Parts[i]
}

// legend prints the values with their letters, and returns the parts of the bars.
func (a *app) legend(h *reading.Histogram, keys []string) (parts []part) {
	others, width := int64(0), len("records")
	for i := range h.Buckets {
		others += h.Buckets[i].Others
	}
	for i := range h.Values {
		width = max(width, len(cli.Thousands(int(h.Values[i].Count))))
	}
	width = max(width, len(cli.Thousands(int(others))))
	row := func(p *part, n int64, name string) {
		mark := p.mark
		if a.color && p.color != "" {
			mark = p.color + mark + reset
		}
		text, room := []rune(cli.SafeLine(name)), a.columns()-width-len("a    ")
		if len(text) > room && room > 1 {
			text = append(text[:room-1], '…')
		}
		fmt.Fprintf(a.out, "%s  %*s  %s\n", mark, width, cli.Thousands(int(n)), string(text))
	}
	fmt.Fprintf(a.out, "   %*s  value\n", width, "records")
	for i := range h.Values {
		p := part{mark: letter(i), color: partColor(i), count: func(b *reading.Slot) int64 { return partOf(b, i) }}
		p.head = p.mark
		row(&p, h.Values[i].Count, keys[i])
		parts = append(parts, p)
	}
	rest := part{head: othersMark, mark: othersMark, count: func(b *reading.Slot) int64 { return b.Others }}
	if others > 0 {
		row(&rest, others, "others")
	}
	fmt.Fprintln(a.out)
	return append(parts, rest)
}

// letter is the letter of a part.
func letter(i int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return letters[i%len(letters):][:1]
}

// partColor begins the colour of a part.
func partColor(i int) string {
	codes := []int{36, 33, 35, 34, 32, 31, 96, 93, 95, 94, 92, 91}
	return "\x1b[" + strconv.Itoa(codes[i%len(codes)]) + "m"
}

// splitFlags divide the buckets of a histogram by fields.
type splitFlags struct {
	ByField string  `help:"Divide buckets by the values of a field, such as status, or of two, as level,status." placeholder:"FIELD[,FIELD]"`
	Top     *number `help:"With --by-field, tell the N most frequent values apart (7)." placeholder:"N"`
}

// set reads the flags.
func (f *splitFlags) set(s *reading.Slices) error {
	switch {
	case f.ByField == "" && f.Top != nil:
		return cli.Usagef("--top is the number of values of --by-field; add that, as --by-field status, or leave --top out")
	case f.ByField == "":
		return nil
	case f.Top != nil && (*f.Top < 1 || *f.Top > survey.MostShares):
		return cli.Usagef("--top %d: it must be from 1 to %d", *f.Top, survey.MostShares)
	case f.Top != nil:
		s.Top = int(*f.Top)
	}
	if err := s.ReadSplit(f.ByField); err != nil {
		return cli.Usagef("--by-field: %w", err)
	}
	return nil
}
