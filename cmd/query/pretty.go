package main

import (
	"bytes"
	"iter"
	"time"
	"unicode/utf8"

	"blobtail/internal/cli"
	"blobtail/record"
)

// prettyPrinter writes a record for people: its time in their zone, level, service,
// message, then the other fields as k=v. No record can make the terminal do anything but
// show text, and none can pass for another record: further lines of a message are
// indented.
type prettyPrinter struct {
	zone  *time.Location
	color bool
	text  []byte // of one value, unescaped
}

const (
	timeLayout = "2006-01-02 15:04:05.000"
	dim        = "\x1b[2m"
	cyan       = "\x1b[36m"
	reset      = "\x1b[0m"
)

func (p *prettyPrinter) append(dst, line []byte) []byte {
	ns, ok := record.LineTime(line)
	if !ok {
		return append(cli.AppendSafe(dst, bytes.TrimSuffix(line, []byte("\n")), "\n    "), '\n')
	}
	dst = p.paint(dst, dim, func(dst []byte) []byte {
		return time.Unix(0, ns).In(p.zone).AppendFormat(dst, timeLayout)
	})
	for key, value := range fields(line) {
		switch string(key) {
		case "ts":
		case "level":
			dst = p.level(append(dst, ' '), value, record.LineLevel(line))
		case "service":
			dst = p.paint(append(dst, ' '), cyan, func(dst []byte) []byte { return p.value(dst, value, "\\n") })
		case "msg":
			dst = p.value(append(dst, ' '), value, "\n    ")
		default:
			dst = p.field(append(dst, ' '), key, value)
		}
	}
	return append(dst, '\n')
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
	return cli.AppendSafe(dst, p.text, newline)
}

// field writes k=v. A string stays in its quotes, escaped, if it would be ambiguous
// without.
func (p *prettyPrinter) field(dst, key, value []byte) []byte {
	dst = p.paint(dst, dim, func(dst []byte) []byte {
		return append(cli.AppendSafe(dst, record.AppendUnescaped(nil, key), "\\n"), '=')
	})
	if len(value) > 2 && value[0] == '"' && !bytes.ContainsAny(value[1:len(value)-1], " =\"\\") {
		value = value[1 : len(value)-1]
	}
	return cli.AppendSafe(dst, value, "\\n")
}

// fields iterates over the keys and values at the top level of a canonical line, which is
// compact JSON known to be valid. On any other text it stops early. A key is the text
// between its quotes; a value is unchanged.
func fields(line []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for rest := line; len(rest) > 1 && (rest[0] == '{' || rest[0] == ',') && rest[1] == '"'; {
			k := 1 + record.ValueLen(rest[1:])
			if k == 1 || k >= len(rest) || rest[k] != ':' {
				return
			}
			key := rest[2 : k-1]
			rest = rest[k+1:]
			n := record.ValueLen(rest)
			if n == 0 || !yield(key, rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}
