package syslog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/source/syslog"
)

// counted frames a message by its length.
func counted(msg string) string { return fmt.Sprintf("%d %s", len(msg), msg) }

// texts sends parts of bytes over one connection, and returns the texts of the records.
func texts(t testing.TB, parts ...string) (accepted, rejected []string) {
	t.Helper()
	j := &journal{}
	l := newPipes()
	stop := run(t, syslog.Options{Accept: j, Now: atArrival, Zone: time.UTC}, l)
	c := l.dial()
	for _, part := range parts {
		send(t, c, part)
	}
	c.Close()
	gone(t, c)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	return j.msgs(t)
}

func TestFraming(t *testing.T) {
	const head = "<134>1 2026-11-20T08:01:42.236Z web1 shop 23328 - - "
	const bsd = "<13>Nov  9 08:01:42 web1 shop[7]: "
	const offset = "<191>1 2026-11-20T08:01:42+01:00 web1 shop - - - "
	const noHeaders = "a <192>1 2026-11-20T08:01:42Z b <1>1 2026-11-20T08:01:42 c <1>2 2026-11-20T08:01:42Z <1>1 - e" +
		" <1>1 2026-11-20T08:01:42Z"
	for _, row := range []struct {
		name, bytes string
		want        []string
	}{
		{"lines", "<13>a\n<13>b\n", []string{"a", "b"}},
		{"lines with carriage returns", "<13>a\r\n<13>b\r\n", []string{"a", "b"}},
		{"empty lines", "\n\n<13>a\n\r\n\n<13>b\n\n", []string{"a", "b"}},
		{"a last line without an end", "<13>a\n<13>b", []string{"a", "b"}},
		{"lengths", counted("<13>a") + counted("<13>b"), []string{"a", "b"}},
		{"lengths, with line feeds inside", counted("<13>a\nb") + counted("<13>c"), []string{"a\nb", "c"}},
		{"lengths, with line feeds at the end", counted("<13>a\n") + counted("<13>b\n"), []string{"a", "b"}},
		{"lengths, with line feeds between", counted("<13>a") + "\n" + counted("<13>b") + "\n", []string{"a", "b"}},
		{"lengths without priorities", counted("<13>a") + counted("hello") + counted("12 b"), []string{"a", "hello", "12 b"}},
		{"mixed", counted("<13>a\nb") + "<13>c\n" + counted("<13>d") + "<13>e\n", []string{"a\nb", "c", "d", "e"}},
		{"NUL", "<13>a\x00<13>b\x00", []string{"a", "b"}},
		{"NUL, with line feeds inside", "<13>a\x00<13>b\nc\n\nd\x00<13>e\x00", []string{"a", "b\nc\n\nd", "e"}},
		{"NUL in the first of many lines", "<13>a\x00b\n<13>c\n<13>d\n", []string{"a", "b", "c", "d"}},
		{"line feeds and NUL", "<13>a\n\x00<13>b\n\x00", []string{"a", "b"}},
		{"lines that begin with numbers", "12 monkeys\n2026-11-20 x\n123456789 <13>b\n7\n", []string{"12 monkeys", "2026-11-20 x", "123456789 <13>b", "7"}},
		{"a number that is no length", "012 <13>a\n0 <13>b\n", []string{"012 <13>a", "0 <13>b"}},
		{"no line feeds", head + `{"n":0}` + head + `a <b> "c" ` + offset + "d" + offset + "e\n" + head + "f",
			[]string{`{"n":0}`, `a <b> "c" `, "d", "e", "f"}},
		{"no line feeds but within", head + "a\n  at b" + head + "c", []string{"a", "  at b", "c"}},
		{"no line feeds, later", head + "a" + head + "b\n  at b" + head + "c\n" + head + "d\n  e\n",
			[]string{"a", "b\n  at b", "c", "d", "  e"}},
		{"lengths, with a header inside", counted(head+"a "+head+"b") + counted(head+"c"), []string{"a " + head + "b", "c"}},
		{"no headers", head + noHeaders, []string{noHeaders}},
		{"a quoted message", "sent " + head + "a\n", []string{"sent " + head + "a"}},
		{"a quoted message, of lines", head + "a\n" + head + "sent: " + head + "b\n" + head + "c: " + bsd + "d\n" + head + "e\n",
			[]string{"a", "sent: " + head + "b", "c: " + bsd + "d", "e"}},
		{"a quoted message behind a quote, of lines", head + "a\n" + head + `b "` + head + "c\n" + head + "d" + head + "e\n",
			[]string{"a", `b "` + head + "c", "d" + head + "e"}},
		{"a quoted message behind a quote, of NUL", head + "a\x00" + head + `b "` + head + "c\nd\x00",
			[]string{"a", `b "` + head + "c\nd"}},
		{"lines, later without line feeds", "a\n" + head + "b" + head + "c\n", []string{"a", "b" + head + "c"}},
		{"no line feeds, later lines", head + "a" + head + "b\n" + head + "c " + head + "d\n", []string{"a", "b", "c ", "d"}},
		{"no line feeds, RFC 3164", bsd + "a" + bsd + "b <13>Nov 2 c <13>Nov 20 08:01:42" + bsd + "d\n  e" + bsd + "f",
			[]string{"a", "b <13>Nov 2 c <13>Nov 20 08:01:42", "d\n  e", "f"}},
		{"a number at the end", "<13>a\n12", []string{"a", "12"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, rejected := texts(t, row.bytes)
			if !slices.Equal(got, row.want) || len(rejected) > 0 {
				t.Errorf("at once: %q, rejected %q; want %q", got, rejected, row.want)
			}
			for at := 1; at < len(row.bytes); at++ {
				if got, rejected := texts(t, row.bytes[:at], row.bytes[at:]); !slices.Equal(got, row.want) || len(rejected) > 0 {
					t.Errorf("cut at %d: %q, rejected %q; want %q", at, got, rejected, row.want)
				}
			}
			if got, _ := texts(t, strings.Split(row.bytes, "")...); !slices.Equal(got, row.want) {
				t.Errorf("byte by byte: %q, want %q", got, row.want)
			}
		})
	}
}

// A message that its sender does not end is kept, and marked.
func TestCutOff(t *testing.T) {
	got, rejected := texts(t, counted("<13>a"), "20 <13>only this")
	if !slices.Equal(got, []string{"a"}) || !slices.Equal(rejected, []string{"<13>only this"}) {
		t.Errorf("accepted %q, rejected %q", got, rejected)
	}
	lines := joined(stored(t, syslog.Options{}, "20 <13>only this"))
	if want := `"reason":"the sender ended the connection within a message, after 13 of its 20 bytes"`; !strings.Contains(lines, want) {
		t.Errorf("got %s, want %s", lines, want)
	}
}

// Of a message that is too long the beginning is kept, and the next one is found.
func TestTooLong(t *testing.T) {
	const mib = 1 << 20
	long := "<13>" + strings.Repeat("x", 3*mib)
	for _, row := range []struct{ name, bytes, reason string }{
		{"a line", long + "\n<13>next\n", "longer than 1 MiB"},
		{"with a length", counted(long) + counted("<13>next"), "the message has 3145732 bytes"},
		{"with the greatest length", "99999999 " + long, "the message has 99999999 bytes"},
		{"a line that just fits no more", "<13>" + strings.Repeat("y", mib-4) + "\n<13>next\n", "longer than 1 MiB"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, parts := range [][]string{{row.bytes}, chunks(row.bytes, 100_000)} {
				lines := stored(t, syslog.Options{}, parts...)
				all := joined(lines)
				if n := strings.Count(all, `"service":"_rejected"`); n != 1 || !strings.Contains(all, row.reason) {
					t.Errorf("%d rejected records: %.300s", n, all)
				}
				if want := strings.HasSuffix(row.bytes, "next\n") || strings.HasSuffix(row.bytes, "next"); want != strings.Contains(all, `"msg":"next"`) {
					t.Errorf("the next message: %v", !want)
				}
			}
		})
	}
	// The longest that fits.
	fits := "<13>" + strings.Repeat("z", mib-300)
	if got, rejected := texts(t, fits+"\n", counted(fits)); len(got) != 2 || len(rejected) > 0 || len(got[1]) != mib-300 {
		t.Errorf("%d accepted, %d rejected", len(got), len(rejected))
	}
}

func chunks(s string, n int) (parts []string) {
	for len(s) > n {
		parts, s = append(parts, s[:n]), s[n:]
	}
	return append(parts, s)
}
