package syslog_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"
	"time"

	"blobtail/record"
	"blobtail/source/syslog"
)

// discard is a log without any cost.
type discard struct{}

func (discard) Accept(context.Context, *record.Request) (record.Receipt, error) {
	return record.Receipt{Wait: durable}, nil
}

func durable(context.Context, bool) error { return nil }

// feed is a connection that brings a text several times, as fast as it is read.
type feed struct {
	net.Conn
	text  []byte
	off   int
	times int
	read  chan struct{} // closed at the end
}

func (f *feed) Read(p []byte) (int, error) {
	if f.times == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.text[f.off:])
	if f.off += n; f.off == len(f.text) {
		f.off = 0
		f.times--
	}
	return n, nil
}

func (f *feed) Close() error {
	close(f.read)
	return nil
}

func (*feed) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*feed) SetReadDeadline(time.Time) error  { return nil }
func (*feed) SetWriteDeadline(time.Time) error { return nil }

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const perText = 1000

// corpus makes a text of 1000 messages of about 200 bytes, in a form.
func corpus(form func(b *bytes.Buffer, t time.Time, msg string, r *rand.Rand)) []byte {
	r := rand.New(rand.NewPCG(42, 1))
	var b bytes.Buffer
	t := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for range perText {
		t = t.Add(time.Duration(r.IntN(20_000_000)))
		form(&b, t, fmt.Sprintf("outbound request GET http://node-%d.internal:8080/api/v1/orders/%d attempt=%d timeout=%dms user=%d status=%d bytes=%d",
			r.IntN(40), r.IntN(1e6), r.IntN(5), r.IntN(5000), r.IntN(1e4), 200+r.IntN(300), r.IntN(1e6)), r)
	}
	return b.Bytes()
}

// BenchmarkMessages measures bytes of a connection to canonical lines.
func BenchmarkMessages(b *testing.B) {
	apps := []string{"api-gateway", "checkout", "sshd", "payments", "postfix", "inventory"}
	for _, row := range []struct {
		name string
		form func(b *bytes.Buffer, t time.Time, msg string, r *rand.Rand)
	}{
		{"RFC 3164 lines", func(b *bytes.Buffer, t time.Time, msg string, r *rand.Rand) {
			fmt.Fprintf(b, "<13>%s node-%02d %s[%d]: %s\n", t.Format(time.Stamp), r.IntN(40), apps[r.IntN(6)], r.IntN(30000), msg)
		}},
		{"RFC 5424 lines", func(b *bytes.Buffer, t time.Time, msg string, r *rand.Rand) {
			fmt.Fprintf(b, "<13>1 %s node-%02d %s %d - - %s\n", t.Format("2006-01-02T15:04:05.000000Z07:00"), r.IntN(40), apps[r.IntN(6)], r.IntN(30000), msg)
		}},
		{"RFC 5424 counted with data", func(b *bytes.Buffer, t time.Time, msg string, r *rand.Rand) {
			m := fmt.Sprintf(`<13>1 %s node-%02d %s %d - [timeQuality tzKnown="1" isSynced="1" syncAccuracy="%d"][ctx@1 user="%d" trace="%x"] %s`,
				t.Format("2006-01-02T15:04:05.000000Z07:00"), r.IntN(40), apps[r.IntN(6)], r.IntN(30000), r.IntN(1e6), r.IntN(1e4), r.Uint64(), msg)
			fmt.Fprintf(b, "%d %s", len(m), m)
		}},
		{"plain lines", func(b *bytes.Buffer, t time.Time, msg string, r *rand.Rand) { fmt.Fprintf(b, "<13>%s\n", msg) }},
	} {
		b.Run(row.name, func(b *testing.B) {
			text := corpus(row.form)
			l := newPipes()
			stop := run(b, syslog.Options{Accept: discard{}, Now: atArrival, Zone: time.UTC}, l)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			b.ResetTimer()
			begun := cpu()
			read := make(chan struct{})
			l.Offer(&feed{text: text, times: b.N, read: read})
			<-read
			if err := stop(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric((cpu()-begun).Seconds()/(float64(b.N)*perText)*1e6, "cpu-s/Mrec")
		})
	}
}
