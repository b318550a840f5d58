package text

import (
	"testing"

	"blobtail/record"
	"blobtail/record/times"
)

// Lines as servers and loggers write them have their own times.
func TestTextTime(t *testing.T) {
	at, _ := times.Parse([]byte("2026-11-20T12:00:00Z"))
	const want, milli = "2026-11-20T10:00:06.000000000Z", "2026-11-20T10:00:06.257000000Z"
	for _, row := range []struct{ line, want string }{
		{`192.0.2.1 - - [20/Nov/2026:11:00:06 +0100] "GET / HTTP/1.1" 200 612 "-" "curl"`, want}, // nginx, Apache
		{`shop.example:443 2001:db8::1 - ann lee [20/Nov/2026:10:00:06 +0000] "GET / HTTP/1.1" 200 1`, want},
		{`2026/11/20 10:00:06 [error] 812#812: *1 open() failed`, want},
		{`[Fri Nov 20 10:00:06.257000 2026] [core:error] [pid 812] x`, milli},
		{`[Fri Nov 20 10:00:06 2026] [notice] x`, want},
		{`I1120 10:00:06.257000     812 main.go:9] x`, milli},
		{`20-Nov-2026 10:00:06.257 INFO [main] org.apache.catalina.x started`, milli},
		{`Nov 20, 2026 10:00:06 AM org.example.Main run`, want},
		{`Nov 20 10:00:06 web1 sshd[812]: x`, want},
		{`<34>Nov 20 10:00:06 web1 sshd[812]: x`, want},
		{`<34>1 2026-11-20T10:00:06Z web1 sshd 812 - - x`, want},
		{`[20-Nov-2026 10:00:06] NOTICE: fpm is running`, want},
		{`[20/Nov/2026 10:00:06] "GET / HTTP/1.1" 200 1`, want},
		{`I, [2026-11-20T10:00:06.257000 #812]  INFO -- : x`, milli},
		{`INFO  [main] 2026-11-20 10:00:06,257 Main.java:9 - x`, milli},
		{`WARN 2026-11-20 10:00:06,257 x`, milli},
		{`ERROR [2026-11-20 10:00:06,257] x`, milli},
		{`812:M 20 Nov 2026 10:00:06.257 * Ready`, milli},
		{`1795168806.257    12 192.0.2.1 TCP_MISS/200 1 GET http://x`, milli}, // Squid
		{`type=SYSCALL msg=audit(1795168806.257:812): arch=c000003e`, milli},
		{`ts=1795168806.257 level=info msg=x`, milli},
		{`time=1795168806 level=info`, want},
		{"1.795168806257e+09\tinfo\tmain.go:9\tx", milli},
		{`time="2026-11-20T10:00:06Z" level=info`, want},
		{`date=2026-11-20 time=10:00:06 devname="fg1"`, want},
		{`date=2026-11-20 time=11:00:06 devname="fg1" tz="+0100"`, want},
		{"\x1b[2m2026-11-20T10:00:06.257Z\x1b[0m \x1b[32m INFO\x1b[0m x", milli},
		{"2026-11-20\t10:00:06\tFRA2\t512", want},
		{`<Nov 20, 2026 10:00:06,257 AM UTC> <Info> x`, milli},
		{"2026-11-20T11:00:06.257+0100\tINFO\tx", milli},
		{`[E 261120 10:00:06 web:2239] 500 GET /`, want}, {`[I 2026-11-20 10:00:06.257 ServerApp] x`, milli}, {`[W 10:00:06.257 NotebookApp] x`, ""}, {`[C 3 po] x`, ""},
		{`11-20 10:00:06.257  1234  5678 E Shop: x`, milli}, {`INFO [11-20|10:00:06.257] x`, milli}, {`11-20 10:00:06 x`, ""}, {`20-11 10:00:06.257 x`, ""}, {`11-20 10:00:06.2571 x`, ""},
		{`20.11.2026 10:00:06,257 ERROR x`, milli}, {`[2026.11.20 10:00:06] x`, want}, {`2026-11-20_10:00:06.25700 x`, milli}, {`20.11.2026 was a Friday`, ""}, {`10.20.30.40 x`, ""},
		{`1985-04-12T23:20:50Z x`, "1985-04-12T23:20:50.000000000Z"},
		{`2026-11-20 11:00:06+010000 x`, ""}, {`1795168806 users`, ""}, {`2027-11-20 10:00:06 x`, ""}, {`took 12 [20/30] x`, ""}, {`IN 2026`, ""}, {``, ""}, {`[`, ""}, {`<34>`, ""},
		{`a text with [20/Nov/2026:10:00:06`, "2026-11-20T10:00:06.000000000Z"}, {`"GET" [20/Nov/2026:10:00:06 +0000]`, ""},
	} {
		r, got := times.Reader{Now: at}, ""
		if at := (Stamp{}); at.ReadPast(&r, []byte(row.line)) {
			got = string(record.AppendTime(nil, at.NS))
		}
		if got != row.want {
			t.Errorf("%q is %q, want %q", row.line, got, row.want)
		}
	}
}
