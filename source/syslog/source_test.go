package syslog_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/count"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/source/syslog"
)

// Records that come close together are one request, and each request is made durable.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		l := newPipes()
		stop := run(t, syslog.Options{Accept: j}, l)
		a, b := l.dial(), l.dial()
		for i := range 5 {
			send(t, a, fmt.Sprintf("<13>a%d\n", i))
			send(t, b, fmt.Sprintf("<13>b%d\n", i))
		}
		time.Sleep(50 * time.Millisecond)
		if got := j.counts(); got != [3]int{1, 1, 10} {
			t.Errorf("requests, durable ones and lines: %d", got)
		}
		send(t, a, strings.Repeat("<13>more\n", 2500))
		time.Sleep(50 * time.Millisecond)
		if got := j.counts(); got != [3]int{4, 4, 2510} {
			t.Errorf("requests, durable ones and lines: %d", got)
		}
		a.Close()
		b.Close()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// While the log accepts nothing, nothing is read; afterwards nothing is missing, and the
// messages of a connection have their order.
func TestFullLog(t *testing.T) {
	for _, reason := range []error{record.ErrFull, record.ErrUnheld, errors.New("no idea")} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			j := &journal{refuse: func() error {
				if time.Since(begun) < 5*time.Minute {
					return reason
				}
				return nil
			}}
			l := newPipes()
			reg := new(count.Registry)
			stop := run(t, syslog.Options{Accept: j, Metrics: reg}, l)
			const conns, each = 3, 2000
			var sending sync.WaitGroup
			for n := range conns {
				sending.Go(func() {
					c := l.dial()
					for i := range each {
						send(t, c, fmt.Sprintf("<13>%d %d\n", n, i))
					}
					c.Close()
				})
			}
			time.Sleep(4 * time.Minute)
			if n := len(j.all()); n > 0 {
				t.Errorf("%d lines", n)
			}
			if held := held(reg); held > 1<<20 {
				t.Errorf("%v bytes are held for three senders that wait", held)
			}
			sending.Wait()
			if err := stop(); err != nil {
				t.Error(err)
			}
			if time.Since(begun) < 5*time.Minute {
				t.Error("the senders did not wait")
			}
			inOrder(t, j, conns, each)
		})
	}
}

// inOrder checks that each connection's messages are there once, in their order.
func inOrder(t *testing.T, j *journal, conns, each int) {
	t.Helper()
	got, rejected := j.msgs(t)
	next := make([]int, conns)
	for _, msg := range got {
		var n, i int
		if _, err := fmt.Sscanf(msg, "%d %d", &n, &i); err != nil {
			t.Fatal(msg, err)
		}
		if i != next[n] {
			t.Fatalf("connection %d: message %d instead of %d", n, i, next[n])
		}
		next[n]++
	}
	if len(got) != conns*each || len(rejected) > 0 {
		t.Errorf("%d messages, %d rejected, want %d", len(got), len(rejected), conns*each)
	}
}

// held is how much the buffers of connections have.
func held(reg *count.Registry) float64 { return count.Read(reg.Page())["blobtail_syslog_buffer_bytes"] }

// Messages that were read before the end are appended before Run returns. A log that stays full ends
// that after the grace, and the loss is counted.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		l := newPipes()
		stop := run(t, syslog.Options{Accept: j}, l)
		c := l.dial()
		send(t, c, "<13>a\n<13>b\n<13>not whole")
		if err := stop(); err != nil {
			t.Error(err)
		}
		got, rejected := j.msgs(t)
		if !slices.Equal(got, []string{"a", "b"}) || !slices.Equal(rejected, []string{"<13>not whole"}) {
			t.Errorf("accepted %q, rejected %q", got, rejected)
		}
		if !strings.Contains(joined(j.all()), "the ingester ended within a message") {
			t.Errorf("no reason: %s", j.all())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		j := &journal{refuse: func() error { return record.ErrFull }}
		l := newPipes()
		reg := new(count.Registry)
		stop := run(t, syslog.Options{Accept: j, Metrics: reg, Grace: 2 * time.Second}, l)
		c := l.dial()
		send(t, c, "<13>a\n<13>b\n")
		time.Sleep(time.Second)
		begun := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("the end took %v", took)
		}
		want := `# HELP blobtail_syslog_records_total Records of syslog, by result: accepted; rejected, kept in the service _rejected; lost, because the log accepted nothing until the ingester ended.
# TYPE blobtail_syslog_records_total counter
blobtail_syslog_records_total{result="accepted"} 0
blobtail_syslog_records_total{result="lost"} 2
blobtail_syslog_records_total{result="rejected"} 0
`
		if page := string(reg.Page()); !strings.Contains(page, want) {
			t.Error(page)
		}
	})
}

// Connections that send nothing, or a message too slowly, are closed; a slow sender that
// ends its messages is not.
func TestTimes(t *testing.T) {
	for _, row := range []struct {
		name   string
		parts  []string
		every  time.Duration
		closed time.Duration // after the last part
		want   []string
	}{
		{"nothing at all", nil, 0, 30 * time.Second, nil},
		{"idle after a message", []string{"<13>a\n"}, 0, time.Hour, []string{"a"}},
		{"a message every 50 minutes", []string{"<13>a\n", "<13>b\n", "<13>c\n"}, 50 * time.Minute, time.Hour, []string{"a", "b", "c"}},
		{"a message within 50 s", []string{"<1", "3>", "a", "b", "c\n"}, 10 * time.Second, time.Hour, []string{"abc"}},
		{"a part of a message", []string{"<13>a\n<13>b"}, 0, time.Minute, []string{"a"}},
		{"no line feeds", slices.Repeat([]string{"<13>1 2026-11-20T08:01:42Z h a - - - x"}, 2), 50 * time.Minute, time.Hour,
			[]string{"x", "x"}},
		{"a byte every second", slices.Repeat([]string{"x"}, 59), time.Second, time.Minute - 59*time.Second, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &journal{}
				l := newPipes()
				stop := run(t, syslog.Options{Accept: j, Idle: time.Hour}, l)
				c := l.dial()
				for _, part := range row.parts {
					send(t, c, part)
					time.Sleep(row.every)
				}
				begun := time.Now()
				if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				if took := time.Since(begun) + row.every; (took - row.closed).Abs() > 2*time.Second+row.every {
					t.Errorf("closed after %v, want %v", took, row.closed)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
				if got, _ := j.msgs(t); !slices.Equal(got, row.want) {
					t.Errorf("got %q, want %q", got, row.want)
				}
			})
		})
	}
}

// A sender without line feeds that pauses has each of its messages whole, whatever ends them.
func TestSilence(t *testing.T) {
	const head = "<13>1 2026-11-20T08:01:42Z h a - - - "
	for _, row := range []struct {
		name        string
		parts, want []string
	}{
		{"line feeds within", []string{head + "one", head + "Error: boom\n    at a\n    at b", head + "after"},
			[]string{"one", "Error: boom\n    at a\n    at b", "after"}},
		{"a line feed behind the silence", []string{head + "one", "\n", head + "two", "\n" + head + "three\n"},
			[]string{"one", "two", "three"}},
		{"the rest behind the silence", []string{head + "one", "more\n", head + "two\n", head + "a " + head + "three"},
			[]string{"one", "more", "two", "a ", "three"}},
		{"two without a line feed, and the rest", []string{head + "one" + head + "two", "more", head + "three"},
			[]string{"one", "two", "more", "three"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j, l := &journal{}, newPipes()
				stop := run(t, syslog.Options{Accept: j, Idle: time.Hour}, l)
				c := l.dial()
				for _, part := range row.parts {
					send(t, c, part)
					time.Sleep(68 * time.Second)
				}
				c.Close()
				gone(t, c)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if got, rejected := j.msgs(t); !slices.Equal(got, row.want) || len(rejected) > 0 {
					t.Errorf("got %q, rejected %q, want %q", got, rejected, row.want)
				}
			})
		})
	}
}

// The services of a listener.
func TestServices(t *testing.T) {
	const lines = "<13>Nov 20 15:04:05 h web-1: a\n<13>Nov 20 15:04:05 h sshd[1]: b\n<13>c\n"
	for _, row := range []struct {
		name string
		o    syslog.Options
		want []string
	}{
		{"each has its own", syslog.Options{}, []string{`"service":"web-1","msg":"a"`, `"service":"sshd","msg":"b"`, `"service":"syslog","msg":"c"`}},
		{"one for all", syslog.Options{Service: "net"}, []string{
			`"service":"net","msg":"a","host":"h","facility":"user","service.name":"web-1"}`,
			`"service":"net","msg":"b","host":"h","facility":"user","procid":"1","service.name":"sshd"}`,
			`"service":"net","msg":"c","facility":"user"}`}},
		{"some", syslog.Options{Services: []string{"web-*", "syslog"}}, []string{
			`"service":"web-1","msg":"a"`, `"service":"syslog","msg":"c"`,
			`"service":"_rejected","msg":"<13>Nov 20 15:04:05 h sshd[1]: b","reason":"the service sshd is none of those that syslog.services allows"`}},
		{"some, and not all for now", syslog.Options{Services: []string{"web-*", "syslog"}, AllowService: func(service string) string {
			if service == "syslog" {
				return ""
			}
			return service + " is a new service"
		}}, []string{
			`"service":"syslog","msg":"c"`,
			`"service":"_rejected","msg":"<13>Nov 20 15:04:05 h web-1: a","reason":"web-1 is a new service"`,
			`"service":"_rejected","msg":"<13>Nov 20 15:04:05 h sshd[1]: b","reason":"the service sshd is none of those that syslog.services allows"`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := stored(t, row.o, lines)
			if len(got) != len(row.want) {
				t.Fatalf("got %q", got)
			}
			for _, want := range row.want {
				if !strings.Contains(joined(got), want) {
					t.Errorf("got %s, without %s", joined(got), want)
				}
			}
		})
	}
}

// Nothing is rejected for its time: the clock of a device may be wrong.
func TestFuture(t *testing.T) {
	got := joined(stored(t, syslog.Options{}, "<13>1 2099-01-01T00:00:00Z h a - - - x\n"))
	if !strings.Contains(got, `"ts":"2026-11-20T15:30:00.000000000Z"`) || !strings.Contains(got, `"service":"a"`) || !strings.Contains(got, `"ts.original":"2099-01-01T00:00:00Z"`) {
		t.Error(got)
	}
}

// The networks that may connect.
func TestAllowed(t *testing.T) {
	for _, row := range []struct {
		name    string
		allow   []netip.Prefix
		max     int
		allowed bool
	}{
		{"loopback needs no list", nil, 0, true},
		{"in the list", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8")}, 0, true},
		{"not in the list", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}, 0, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			j := &journal{}
			l := loopback(t)
			stop := run(t, syslog.Options{Accept: j, Allow: row.allow}, l)
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, _ = io.WriteString(c, "<13>a\n") // it may be closed already
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if got, _ := j.msgs(t); len(got) == 1 != row.allowed {
				t.Errorf("got %q", got)
			}
			if row.allowed && !strings.Contains(joined(j.all()), `"host":"127.0.0.1"`) {
				t.Errorf("no host: %s", joined(j.all()))
			}
		})
	}
}

// A listener that others reach needs a list of networks, or client certificates.
func TestOpenToAll(t *testing.T) {
	all := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
	for _, row := range []struct {
		name    string
		o       syslog.Options
		refused bool
	}{
		{"nothing is said", syslog.Options{}, true},
		{"all networks", syslog.Options{Allow: all}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, err := net.Listen("tcp4", "0.0.0.0:0")
			if err != nil {
				t.Fatal(err)
			}
			row.o.Accept = &journal{}
			s := syslog.New(row.o)
			done := make(chan error, 1)
			ctx, cancel := contextOf(t)
			go func() { done <- s.Run(ctx, l) }()
			if !row.refused {
				c, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				c.Close()
				cancel()
			}
			err = <-done
			if (err != nil) != row.refused || row.refused && !strings.Contains(err.Error(), "client certificates") {
				t.Errorf("Run: %v", err)
			}
		})
	}
}

// Two thousand idle connections cost little, do not hold up an honest sender, and one more
// than may be open is closed.
func TestIdleConnections(t *testing.T) {
	const conns = 2000
	j := &journal{}
	l := loopback(t)
	reg := new(count.Registry)
	stop := run(t, syslog.Options{Accept: j, MaxConns: conns + 1, First: time.Hour, Slow: time.Hour, Metrics: reg}, l)
	idle := make([]net.Conn, conns)
	for i := range idle {
		c, err := net.Dial("tcp", l.Addr().String())
		if errors.Is(err, os.ErrPermission) || err != nil && strings.Contains(err.Error(), "too many open files") {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 {
			send(t, c, "<13>a part")
		}
		idle[i] = c
	}
	honest, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer honest.Close()
	send(t, honest, strings.Repeat("<13>Nov 20 15:04:05 h app: honest\n", 5000))
	testkit.Until(t, "the messages next to idle connections are taken", func() bool { return len(j.all()) >= 5000 })
	if got, _ := j.msgs(t); len(got) != 5000 {
		t.Errorf("%d messages next to idle connections", len(got))
	}
	if held := held(reg); held > 1<<20 {
		t.Errorf("%v bytes for idle connections", held)
	}
	more, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	_ = more.SetReadDeadline(time.Now().Add(testkit.Patience))
	if _, err := more.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one connection more than may be open: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, rejected := j.msgs(t); len(rejected) != conns/2 {
		t.Errorf("%d parts of messages are kept, want %d", len(rejected), conns/2)
	}
}

// Senders of long messages that take all the memory do not hold up those of short ones.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		l := newPipes()
		reg := new(count.Registry)
		stop := run(t, syslog.Options{Accept: j, Memory: 4 << 20, Metrics: reg}, l)
		var ended atomic.Int32
		for range 100 {
			c := l.dial()
			go func() {
				_, _ = io.WriteString(c, "<13>"+strings.Repeat("x", 200_000)) // no end
				_, _ = c.Read(make([]byte, 1))
				ended.Add(1)
			}()
		}
		time.Sleep(10 * time.Second)
		if held := held(reg); held > 4<<20 || held < 3<<20 {
			t.Errorf("%v bytes are held", held)
		}
		c := l.dial()
		send(t, c, strings.Repeat("<13>short\n", 1000))
		c.Close()
		time.Sleep(time.Second)
		if got, _ := j.msgs(t); len(got) != 1000 {
			t.Errorf("%d short messages", len(got))
		}
		time.Sleep(5 * time.Minute)
		if n := ended.Load(); n != 100 {
			t.Errorf("%d of 100 senders were disconnected", n)
		}
		if held := held(reg); held != 0 {
			t.Errorf("%v bytes are held at the end", held)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Structured data has parts of the head under names that the operator gives. A service that a
// field names has to be one of those that may be written.
func TestFields(t *testing.T) {
	o := syslog.Options{Services: []string{"shop"}, Fields: meaning.NewMapping([]meaning.Naming{{Names: meaning.Names{
		Time: []string{"x@1.when"}, Level: []string{"x@1.prio", "prio"}, Service: []string{"x@1.team"},
	}}})}
	got := stored(t, o, `<13>1 2026-11-20T15:04:05Z h web - - [x@1 when="2026-11-20T10:00:00Z" prio="error" team="shop"] one`+"\n"+
		`<13>1 2026-11-20T15:04:05Z h shop - - [x@1 team="web"] two`+"\n"+
		`<13>1 2026-11-20T15:04:05Z h shop - - - level=info prio=warn`+"\n")
	for _, want := range []string{
		`{"ts":"2026-11-20T10:00:00.000000000Z","level":"error","service":"shop","msg":"one","ts.original":"2026-11-20T15:04:05.000000000Z","level.original":"info","service.original":"web","host":"h","facility":"user"}`,
		`"reason":"the service web is none of those that syslog.services allows"`,
		`{"ts":"2026-11-20T15:04:05.000000000Z","level":"warn","service":"shop","msg":"level=info prio=warn"`,
	} {
		if !strings.Contains(joined(got), want) {
			t.Errorf("got %s, without %s", joined(got), want)
		}
	}
}
