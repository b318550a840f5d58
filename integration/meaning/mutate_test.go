package meaning_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A mutator makes inputs of known names and words, and of frozen texts, by a seed.
type mutator struct {
	*rand.Rand
	names []string // that readers know
	lines []string // frozen
	block []string // frozen texts of several lines
}

func pick[T any](m *mutator, all []T) T { return all[m.IntN(len(all))] }

// core are the names that most loggers have.
func core() []string {
	return []string{
		"time", "ts", "@timestamp", "timestamp", "date", "t", "level", "severity", "lvl", "log.level", "levelname", "status", "priority",
		"msg", "message", "event",
		"log", "text", "service", "app", "logger", "service.name", "host", "name", "asctime", "eventTime", "stream", "kubernetes", "@m",
		"@l", "@t", "@mt", "error", "err", "code",
		"fields", "data", "attributes", "labels", "v", "pid", "hostname", "type", "kind", "level_name", "TimeGenerated", "category",
		"properties", "SourceSystem", "channel",
		"message_key", "detail", "info", "caller", "stack", "exception", "errorMessage", "req", "res", "duration", "clock", "zone", "tz",
		"datetime", "@version",
	}
}

// levels are words and numbers for levels, of all scales, and some that are none.
func levels() []string {
	return []string{
		"info", "INFO", "Info", "inf", "I", "warn", "WARNING", "wrn", "W", "error", "ERR", "err", "E", "eror", "fatal", "F", "FTL",
		"critical", "crit", "CRT", "C", "panic", "dpanic",
		"debug", "DBG", "D", "trace", "TRC", "T", "verbose", "V", "fine", "FINEST", "config", "severe", "notice", "NOTE", "N", "alert",
		"A", "emerg", "emergency", "EMERG", "failure",
		"success", "audit", "AuditFailure", "none", "off", "all", "unknown", "log", "LOG", "STATEMENT", "HINT", "ok", "warning:x",
		"Error ", " error", "level:error", "SEVERITY_ERROR",
		"information", "informational", "Informational", "low", "medium", "high", "silly", "http", "spam", "success", "Default", "EVENT",
		"stderr", "stdout", "FAILED", "0", "1", "2", "3",
		"4", "5", "6", "7", "8", "9", "10", "20", "30", "35", "40", "50", "60", "100", "200", "250", "300", "400", "500", "550", "600",
		"800", "900", "1000", "10000", "20000", "30000",
		"40000", "50000", "-1", "-4", "-8", "12", "13", "17", "21", "24", "25", "3.0", "30.5", "1e1", "007", "404", "999",
	}
}

// layouts are forms of times. Those of Unix begin with u.
func layouts() []string {
	return []string{
		time.RFC3339, time.RFC3339Nano, "2006-01-02T15:04:05.000Z", "2006-01-02T15:04:05.000-0700", "2006-01-02 15:04:05",
		"2006-01-02 15:04:05,000", "2006-01-02 15:04:05.000000",
		"2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05.000 MST", "2006-01-02 15:04:05 UTC", "2006/01/02 15:04:05",
		"2006/01/02 15:04:05.000000", "02/Jan/2006:15:04:05 -0700",
		"Jan _2 15:04:05", "Jan 02 15:04:05.000", "Jan _2 2006 15:04:05", "Mon Jan _2 15:04:05 2006", "Mon Jan _2 15:04:05.000000 2006",
		"Mon, 02 Jan 2006 15:04:05 MST", time.RFC1123Z,
		time.RFC850, "02 Jan 2006 15:04:05,000", "02-Jan-2006 15:04:05.000", "01/02/2006 15:04:05", "01/02/2006 03:04:05 PM",
		"1/2/2006 3:04:05 PM", "02.01.2006 15:04:05", "2.1.2006 15:04:05",
		"2006.01.02 15:04:05.000000", "20060102 15:04:05", "20060102150405", "20060102T150405Z", "20060102T150405.000Z",
		"060102 15:04:05", "060102 150405", "01-02 15:04:05.000",
		"0102 15:04:05.000000", "15:04:05", "15:04:05.000", "15:04", "2006-01-02", "Jan 2, 2006 3:04:05 PM", "Jan 2, 2006, 3:04:05 PM",
		"January 2, 2006 15:04", "2006-01-02T15:04", "2006-002T15:04:05Z",
		"2006-01-02T15:04:05.000000000+01:00", "2006-01-02T15:04:05+0100", "2006-01-02T15:04:05 ", "2006-01-02_15:04:05",
		"2006-01-02-15:04:05", "2006-01-02 15.04.05.000000", "2006-01-02T15:04:05,000Z",
		"02/01/2006 15:04:05", "2006-1-2 3:4:5", "Mon Jan 2 15:04:05 CET 2006", "2006 Jan _2 15:04:05",
		"Monday, January 2, 2006 3:04:05 PM", "Jan/02/2006 15:04:05", "2006/01/02T15:04:05Z",
		"us", "us.", "ums", "uus", "uns", "ux", "ul", "uticks", "ufile", "uweb", "uhours", "/Date", "tai",
	}
}

// moment is a time in any form. It is mostly near the arrival.
func (m *mutator) moment() (s string, number bool) {
	at := arrived().Add(-time.Duration(m.Int64N(int64(40 * time.Hour))))
	switch m.IntN(12) {
	case 0:
		at = time.Unix(m.Int64N(4e9), m.Int64N(1e9)).UTC()
	case 1:
		at = arrived().Add(time.Duration(m.Int64N(int64(60 * time.Hour))))
	case 2:
		at = at.Truncate(time.Second)
	case 3:
		at = at.In(time.FixedZone("CET", 3600))
	}
	switch form := pick(m, layouts()); form {
	case "us":
		return fmt.Sprint(at.Unix()), true
	case "us.":
		return strconv.FormatFloat(float64(at.UnixMicro())/1e6, 'f', m.IntN(7), 64), true
	case "ums":
		return fmt.Sprint(at.UnixMilli()), true
	case "uus":
		return fmt.Sprint(at.UnixMicro()), true
	case "uns":
		return fmt.Sprint(at.UnixNano()), true
	case "ux":
		return fmt.Sprintf("0x%x", at.Unix()), false
	case "ul":
		return fmt.Sprintf("%d.%09d", at.Unix(), at.Nanosecond()), true
	case "uticks":
		return fmt.Sprint(at.Unix()*1e7 + 621355968e9), true
	case "ufile":
		return fmt.Sprint(at.Unix()*1e7 + 116444736e9), true
	case "uweb":
		return fmt.Sprintf("%.6f", float64(at.UnixMicro())/1e3), true
	case "uhours":
		return fmt.Sprintf("%d.%02d", m.IntN(9000), m.IntN(99)), true
	case "/Date":
		return fmt.Sprintf("/Date(%d)/", at.UnixMilli()), false
	case "tai":
		return fmt.Sprintf("@4000000%x%08x", at.Unix()+10, at.Nanosecond()), false
	default:
		return at.Format(form), false
	}
}

// value is a value for a name: mostly one that fits it.
func (m *mutator) value(name string, depth int) []byte {
	name, kind := strings.ToLower(name), m.IntN(14)
	if m.IntN(10) < 7 {
		switch {
		case strings.Contains(name, "time"), strings.Contains(name, "date"), strings.HasSuffix(name, "ts"), name == "t", name == "@t",
			strings.HasSuffix(name, "at"):
			kind = 0
		case strings.Contains(name, "lev"), strings.Contains(name, "sev"), strings.Contains(name, "lvl"), strings.Contains(name, "prio"),
			name == "status", name == "type", name == "@l":
			kind = 1
		case strings.Contains(name, "m"), strings.Contains(name, "log"), strings.Contains(name, "text"), strings.Contains(name, "event"):
			kind = 2
		}
	}
	switch kind {
	case 0, 3:
		s, number := m.moment()
		if number && m.IntN(3) > 0 {
			return []byte(s)
		}
		return encoded(s)
	case 1, 4, 5:
		word := m.word()
		if _, err := strconv.ParseFloat(word, 64); err == nil && m.IntN(2) == 0 && json.Valid([]byte(word)) {
			return []byte(word)
		}
		return encoded(word)
	case 2, 6, 7:
		switch m.IntN(6) {
		case 0:
			return encoded(m.line())
		case 1:
			return encoded(pick(m, m.block))
		case 2:
			return encoded(string(m.object(depth + 1)))
		}
		return encoded(pick(m, m.lines))
	case 8, 9:
		if depth < 3 {
			return m.object(depth + 1)
		}
	case 10:
		return pick(m, [][]byte{[]byte("null"), []byte("true"), []byte("false"), []byte(`""`), []byte("{}"), []byte("[]"), []byte("0"),
			[]byte(`"0"`), []byte(`" "`), []byte("-0.0"), []byte("1e400")})
	case 11:
		if depth < 3 {
			return fmt.Appendf(nil, "[%s,%s]", m.value(name, depth+1), m.value(name, depth+1))
		}
	}
	return encoded(pick(m, []string{"cart", "shop/Cart", "com.shop.Cart", "web-6d5f7c-x2x9z", "nginx:1.27", "Ünï", "/var/log/cart.log",
		"x", "h1", "a b", "10.0.0.7"}))
}

// word is a word for a level, in any case.
func (m *mutator) word() string { return m.cased(pick(m, levels())) }

func (m *mutator) cased(s string) string {
	switch m.IntN(8) {
	case 0:
		return strings.ToUpper(s)
	case 1:
		return strings.ToLower(s)
	case 2:
		if s != "" {
			return strings.ToUpper(s[:1]) + s[1:]
		}
	}
	return s
}

// name is the name of a member.
func (m *mutator) name() string {
	s := pick(m, core())
	switch m.IntN(10) {
	case 0, 1, 2:
		s = pick(m, m.names)
	case 3:
		s += "." + pick(m, core())
	case 4:
		s = pick(m, m.names) + pick(m, []string{".", "_", ""}) + pick(m, core())
	case 5:
		s = "_" + s
	}
	return m.cased(s)
}

// object is an object of known and other names.
func (m *mutator) object(depth int) []byte {
	var members []member
	for range 1 + m.IntN(6) {
		name := m.name()
		members = append(members, member{name, m.value(name, depth)})
	}
	if m.IntN(30) == 0 {
		members = append(members, members[0])
	}
	b := object(members)
	if m.IntN(20) == 0 {
		b = bytes.ReplaceAll(b, []byte(`":`), []byte(`" : `))
	}
	return b
}

// wrapped has a word in one of the usual frames.
func (m *mutator) wrapped(s string) string {
	return fmt.Sprintf(pick(m, []string{
		"%s", "%s", "%s", "[%s]", "<%s>", "(%s)", "%s:", "%s -", "- %s -", "|%s|", "%s |", "[%s]:", "%-5s", "\x1b[31m%s\x1b[0m", `"%s"`,
		"level=%s", "%s,", "%s;", "*%s*", "{%s}", "[ %s ]",
		"lvl=%q", "severity: %s", "[%s  ]", "%s]", "--%s--", "'%s'", "#%s", "%s>", "%s.", "[%s/7]", "[7:%s]", "%s/cart(7)", "%s\t",
	}), s)
}

// line is a line of text, of the parts that loggers put in their lines.
func (m *mutator) line() string {
	at, _ := m.moment()
	message := pick(m, m.lines)
	switch m.IntN(8) {
	case 0:
		message = string(m.object(2))
	case 1:
		message = fmt.Sprintf("%s=%s %s=%q", m.name(), m.word(), m.name(), pick(m, m.lines))
	case 2:
		message = pick(m, []string{"x", "", "Cart added", "failed: " + m.word(), m.word() + " " + message, "an error occurred",
			"no errors", "level " + m.word()})
	}
	parts := []string{at, m.wrapped(m.word()), m.wrapped(pick(m, []string{"main", "7", "cart", "com.shop.Cart", "pid 7", "a.go:12",
		"thread-1", "0x7f"})), message}
	switch m.IntN(6) {
	case 0:
		parts[0] = m.wrapped(at)
	case 1:
		parts = parts[1:]
	case 2:
		parts = slices.Delete(parts, 1, 2)
	case 3:
		parts = slices.Delete(parts, 2, 3)
	case 4:
		m.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	}
	return strings.Join(parts, pick(m, []string{" ", " ", " ", "\t", "  ", " - ", "|", ",", ", ", ";", " : "}))
}

// bent is a frozen text with some of it changed.
func (m *mutator) bent(s string) string {
	for range 1 + m.IntN(3) {
		if s == "" {
			return s
		}
		at := m.IntN(len(s))
		switch m.IntN(9) {
		case 0:
			s = s[:at]
		case 1:
			s = s[at:]
		case 2:
			s = s[:at] + string(pick(m, []byte(" \t\n\r:=[]{}\"'<>|,;.-+/\\0159TZaEe\x00\x1b\xff"))) + s[at:]
		case 3:
			s = s[:at] + string(pick(m, []byte("0123456789 :TZ"))) + s[at+1:]
		case 4:
			s = s[:at] + m.wrapped(m.word()) + s[at:]
		case 5:
			other := pick(m, m.lines)
			s = s[:at] + other[m.IntN(len(other)):]
		case 6:
			s = m.cased(s)
		case 7:
			when, _ := m.moment()
			s = s[:at] + when + s[at:]
		case 8:
			fields := strings.SplitAfter(s, " ")
			i, j := m.IntN(len(fields)), m.IntN(len(fields))
			fields[i], fields[j] = fields[j], fields[i]
			s = strings.Join(fields, "")
		}
	}
	return s
}

// blocks are several lines: those of a frozen text, in other frames, without some, and mixed with others.
func (m *mutator) blocks() string {
	lines := strings.Split(pick(m, m.block), "\n")
	at, _ := m.moment()
	frame := pick(m, []string{"", "", at + " ", "    ", "\t", "[cart] ", "> ", m.wrapped(m.word()) + " ",
		"2026-11-24T10:00:06.257000000Z stdout F "})
	only := m.IntN(2) == 0
	var out []string
	for i, line := range lines {
		switch m.IntN(12) {
		case 0:
			continue
		case 1:
			out = append(out, pick(m, []string{"", "  ", "\t", m.line(), "Caused by: x.Error: y", "\tat com.shop.Cart.add(Cart.java:7)",
				"  File \"x.py\", line 3, in f", "    raise x", "... 7 more"}))
		case 2:
			line = m.bent(line)
		}
		if i == 0 || !only {
			line = frame + line
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
