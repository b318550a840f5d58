package main

import (
	"bytes"
	"hash/fnv"
	"time"
	"unicode/utf8"

	"blobtail/internal/cli"
	"blobtail/reading"
	"blobtail/record"
)

// prettyPrinter writes a record for people: its time in their zone, level, service,
// message, then the other fields as k=v. No record can make the terminal do anything but
// show text, and none can pass for another record: further lines of a message are
// indented.
type prettyPrinter struct {
	zone  *time.Location
	color bool
	of    chosen           // the fields to print
	match *reading.Matcher // its matches are highlighted; nil: none are
	once  bool             // a time and a level that a message repeats are left out of it
	text  []byte           // of one value, unescaped
}

const (
	timeLayout = "2006-01-02 15:04:05.000"
	dim        = "\x1b[2m"
	reverse    = "\x1b[7m"
	forward    = "\x1b[27m"
	reset      = "\x1b[0m"
)

func (p *prettyPrinter) append(dst, line []byte) []byte {
	if _, ok := record.LineTime(line); !ok {
		return append(cli.AppendSafe(dst, bytes.TrimSuffix(line, []byte("\n")), "\n    "), '\n')
	}
	start := len(dst)
	p.of.each(line, func(name, value []byte) {
		if value == nil {
			return
		}
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		dst = p.part(dst, line, name, value)
	})
	return append(dst, '\n')
}

// part writes one field of a line.
func (p *prettyPrinter) part(dst, line, name, value []byte) []byte {
	switch string(name) {
	case "ts":
		ns, _ := record.LineTime(line)
		return p.paint(dst, dim, func(dst []byte) []byte {
			return time.Unix(0, ns).In(p.zone).AppendFormat(dst, timeLayout)
		})
	case "level":
		return p.level(dst, value, record.LineLevel(line))
	case "service":
		return p.paint(dst, p.serviceColor(value), func(dst []byte) []byte { return p.value(dst, value, "\\n") })
	case "msg":
		return p.message(dst, line, value)
	}
	return p.field(dst, name, value)
}

// serviceColors tell services apart. Red, yellow and green are those of levels.
var serviceColors = [...]string{"\x1b[36m", "\x1b[35m", "\x1b[34m", "\x1b[96m", "\x1b[95m", "\x1b[94m", "\x1b[38;5;208m", "\x1b[38;5;141m", "\x1b[38;5;37m", "\x1b[38;5;175m"}

// serviceColor is the same for a service in each run.
func (p *prettyPrinter) serviceColor(value []byte) string {
	h := fnv.New32a()
	h.Write(value)
	return serviceColors[h.Sum32()%uint32(len(serviceColors))]
}

// paint wraps the output of body in a colour.
func (p *prettyPrinter) paint(dst []byte, color string, body func([]byte) []byte) []byte {
	if !p.color || color == "" {
		return body(dst)
	}
	return append(body(append(dst, color...)), reset...)
}

func (p *prettyPrinter) level(dst, value []byte, l record.Level) []byte {
	return p.paint(dst, levelColor(l), func(dst []byte) []byte {
		start := len(dst)
		dst = p.value(dst, value, "\\n")
		for width := utf8.RuneCount(dst[start:]); width < len("error"); width++ {
			dst = append(dst, ' ')
		}
		return dst
	})
}

// levelColor begins the colour of a level; "" is for unknown levels.
func levelColor(l record.Level) string {
	return [record.NumLevels]string{
		record.Trace: dim, record.Debug: "\x1b[34m", record.Info: "\x1b[32m", record.Warn: "\x1b[33m",
		record.Error: "\x1b[31m", record.Critical: "\x1b[1;31m",
	}[l]
}

// value writes a string value as text, and any other value unchanged.
func (p *prettyPrinter) value(dst, value []byte, newline string) []byte {
	if len(value) < 2 || value[0] != '"' {
		return cli.AppendSafe(dst, value, newline)
	}
	p.text = record.AppendUnescaped(p.text[:0], value[1:len(value)-1])
	return p.highlit(dst, p.text, newline)
}

// message writes the message, without the time and the level at its beginning if these are the texts of
// the columns in front of it.
func (p *prettyPrinter) message(dst, line, value []byte) []byte {
	const newline = "\n    "
	if !p.once || len(value) < 2 || value[0] != '"' {
		return p.value(dst, value, newline)
	}
	p.text = record.AppendUnescaped(p.text[:0], value[1:len(value)-1])
	cut := 0
	if p.of.has("ts") {
		ns, _ := record.LineTime(line)
		cut = repeatedTime(p.text, time.Unix(0, ns).In(p.zone))
	}
	if level, ok := record.Lookup(line, "level"); ok && cut > 0 && p.of.has("level") {
		cut += repeatedLevel(p.text[cut:], level)
	}
	if spans := p.spans(p.text); len(spans) > 0 && spans[0][0] < cut {
		cut = 0 // the user looks for it
	}
	return p.highlit(dst, p.text[cut:], newline)
}

// repeatedTime is the length of the beginning of a text that shows just this time as the column does,
// with the blanks behind it; 0 if it begins in any other way. A fraction may have other digits only if
// they are zeros, and a Z stands for UTC.
func repeatedTime(text []byte, at time.Time) int {
	const seconds = len(time.DateTime)
	if len(text) <= seconds || text[10] != ' ' && text[10] != 'T' {
		return 0
	}
	var shown [64]byte
	want := at.AppendFormat(shown[:0], time.DateTime)
	if !bytes.Equal(text[:10], want[:10]) || !bytes.Equal(text[11:seconds], want[11:]) {
		return 0
	}
	n, ns, unit := seconds, 0, int(time.Second)
	if text[n] == '.' || text[n] == ',' {
		for n++; n < len(text) && text[n] >= '0' && text[n] <= '9'; n++ {
			unit /= 10
			ns += int(text[n]-'0') * unit
		}
		if n == seconds+1 {
			return 0
		}
	}
	if ns != at.Nanosecond() || ns%int(time.Millisecond) != 0 || unit == 0 {
		return 0
	}
	if _, offset := at.Zone(); n < len(text) && text[n] == 'Z' && offset == 0 {
		n++
	}
	return blanksBehind(text, n)
}

// repeatedLevel is the length of a word at the beginning of a text that is the stored level, in small
// letters or capital ones, with the blanks behind it; 0 if there is none.
func repeatedLevel(text, level []byte) int {
	if len(level) < 3 || len(text) < len(level)-2 {
		return 0
	}
	word := level[1 : len(level)-1]
	if !bytes.EqualFold(text[:len(word)], word) {
		return 0
	}
	return blanksBehind(text, len(word))
}

// blanksBehind is the end of the blanks that begin at n; 0 if there are none, or nothing behind them in
// the line.
func blanksBehind(text []byte, n int) int {
	end := n
	for end < len(text) && text[end] == ' ' {
		end++
	}
	if end == n || end == len(text) || text[end] == '\n' {
		return 0
	}
	return end
}

// field writes k=v. A string stays in its quotes, escaped, if it would be ambiguous
// without.
func (p *prettyPrinter) field(dst, name, value []byte) []byte {
	bare := record.Bare(value)
	pair := append(append(append(p.text[:0], name...), '='), bare...)
	p.text = pair
	if len(p.spans(pair)) > 0 {
		return p.highlit(dst, pair, "\\n")
	}
	dst = p.paint(dst, dim, func(dst []byte) []byte {
		return append(cli.AppendSafe(dst, name, "\\n"), '=')
	})
	return cli.AppendSafe(dst, bare, "\\n")
}

// spans are the matches in a text that are to be highlighted.
func (p *prettyPrinter) spans(text []byte) [][2]int {
	if !p.color || p.match == nil {
		return nil
	}
	return p.match.Spans(text)
}

// highlit writes a text with its matches in reversed colours.
func (p *prettyPrinter) highlit(dst, text []byte, newline string) []byte {
	at := 0
	for _, span := range p.spans(text) {
		dst = cli.AppendSafe(dst, text[at:span[0]], newline)
		dst = append(cli.AppendSafe(append(dst, reverse...), text[span[0]:span[1]], newline), forward...)
		at = span[1]
	}
	return cli.AppendSafe(dst, text[at:], newline)
}
