package syslog_test

import (
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/count"
	"blobtail/source/syslog"
)

// Three bad starts end a connection, as of the SocketHandlers of Python and of Java, and a metric
// names it. One that has had a message stays open, whatever lines it has.
func TestBadStarts(t *testing.T) {
	const pickle = "\x00\x00\x01\xfe}q\x00(X\x04\x00\x00\x00nameq\x01X\x07\x00\x00\x00shop.dbq\x02X\x03\x00\x00\x00msgq\x03X\x12"
	const java = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n<!DOCTYPE log SYSTEM \"logger.dtd\">\n<log>\n" +
		"<record>\n  <date>2026-11-20T10:00:06.123456Z</date>\n  <millis>1795168806123</millis>\n"
	const log4j = "<log4j:event logger=\"a\" timestamp=\"1\">\r\n"
	for _, row := range []struct {
		name, text string
		ended      bool
		want       []string
		rejected   int
	}{
		{"Python's SocketHandler", strings.Repeat(pickle, 50), true, nil, 2},
		{"a length of text", "\x00\x00\n\nabcq\x00defq\x00" + pickle, true, nil, 2},
		{"java.util.logging", strings.Repeat(java, 50), true, nil, 3},
		{"log4j", strings.Repeat(log4j, 50), true, nil, 3},
		{"two, and a message", "<log>\n<record>\n<13>a\n" + java, false,
			append([]string{"a"}, strings.Split(strings.TrimSpace(java), "\n")...), 2},
		{"lines of XML later", "a\n<log>\n<b>\n</b>\n<13>c\n", false, []string{"a", "<log>", "<b>", "</b>", "c"}, 0},
		{"WebLogic", "<Nov 20, 2026 10:00> <Error> <a>\n", false, []string{"<Nov 20, 2026 10:00> <Error> <a>"}, 0},
		{"a word in brackets", "<nil> x\n<Error> y\n< z >\n<>\n", false, []string{"<nil> x", "<Error> y", "< z >", "<>"}, 0},
		{"colours and tabs", "\x1b[31mred\x1b[0m\n\ta\n", false, []string{"\x1b[31mred\x1b[0m", "\ta"}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			j, log, reg := &journal{}, new(said), new(count.Registry)
			l := loopback(t)
			stop := run(t, syslog.Options{Accept: j, Log: zerolog.New(log), Metrics: reg}, l)
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			_, _ = io.WriteString(c, row.text) // or the connection has ended
			if !row.ended {
				_ = c.(*net.TCPConn).CloseWrite()
			}
			_, _ = io.ReadAll(c)
			if err := stop(); err != nil {
				t.Error(err)
			}
			got, rejected := j.msgs(t)
			if !slices.Equal(got, row.want) || len(rejected) != row.rejected {
				t.Errorf("stored %q, rejected %q", got, rejected)
			}
			page := string(reg.Page())
			told := strings.Contains(page, `blobtail_syslog_ended_total{reason="noise"} 1`)
			if told != row.ended || row.rejected > 0 != strings.Contains(log.String(), "SysLogHandler") {
				t.Errorf("log %s\n%s", log, page)
			}
		})
	}
}
