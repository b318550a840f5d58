package buffer_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/buffer"
	"blobtail/internal/dev/testkit"
)

// A read asks for the names of services, which may be many, without holding up requests. Services
// that come meanwhile are in the snapshot, up to its position.
func TestMatchHoldsNothingUp(t *testing.T) {
	p := start(t, t.TempDir(), &memSink{}, buffer.Options{}, true)
	for i := range 3 { // services come and go, and are forgotten
		var lines []line
		for k := range 1500 {
			lines = append(lines, line{fmt.Sprint("old", k), at(1), fmt.Sprint(i)})
		}
		p.accept(request(0, lines...))
		p.audit()
		p.flush()
		p.audit()
	}
	p.accept(request(0, line{"old1", at(1), "x"}, line{"old2", at(1), "x"}))
	q := everything()
	var once sync.Once
	q.Match = func(service string) bool {
		once.Do(func() {
			p.accept(request(0, line{"new-web", at(1), "came meanwhile"}, line{"old1", at(2), "this too"}, line{"new-db", at(1), "x"}))
		})
		return service == "new-web" || service == "old1"
	}
	got, position := snapshot(t, p.buf, q)
	if len(got) != 3 {
		t.Errorf("%d records: %+v", len(got), got)
	}
	q.Follow, q.After = true, position
	if later, _ := snapshot(t, p.buf, q); len(later) != 0 {
		t.Errorf("%d records come again behind the position", len(later))
	}
	p.audit()
}

// After an outage that many services waited through, each batch is stored soon and once.
func TestManyServicesAfterAnOutage(t *testing.T) {
	testkit.FullOnly(t, "thousands of batches")
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{refuse: refuses("")}
		p := start(t, dir, sink, buffer.Options{MaxAge: time.Second}, true)
		defer p.stop()
		const services = 3000
		var lines []line
		for i := range services {
			lines = append(lines, line{fmt.Sprint("s", i), at(1), "x"})
		}
		p.accept(request(1, lines...))
		time.Sleep(10 * time.Minute)
		p.audit()
		sink.setRefuse(refuses("s99"))
		time.Sleep(20 * time.Second)
		p.audit()
		if n := len(sink.all()); n != services-11 {
			t.Errorf("%d batches are stored", n)
		}
		sink.setRefuse(nil)
		time.Sleep(20 * time.Second)
		if n := len(sink.all()); n != services {
			t.Errorf("%d batches are stored", n)
		}
	})
}

// BenchmarkLiveBeside takes a snapshot of one service, and of all, beside 100,000 open batches.
func BenchmarkLiveBeside(b *testing.B) {
	log := openLog(b, b.TempDir())
	buf := buffer.New(log, &memSink{}, buffer.Options{MaxAge: time.Hour})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- buf.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		<-done
		log.Close()
	})
	for i := range 200 {
		var lines []line
		for k := range 500 {
			lines = append(lines, line{fmt.Sprintf("s%06d", 500*i+k), at(1), "x"})
		}
		if _, err := buf.Accept(ctx, request(0, lines...)); err != nil {
			b.Fatal(err)
		}
	}
	for name, match := range map[string]func(string) bool{
		"one": func(s string) bool { return s == "s000777" }, "glob": func(s string) bool { return strings.HasPrefix(s, "s0000") }, "all": nil,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				l, err := buf.Live(ctx, buffer.LiveQuery{Match: match, From: math.MinInt64, To: math.MaxInt64})
				if err != nil {
					b.Fatal(err)
				}
				l.Close()
			}
		})
	}
}

// An outage costs CPU for each batch that is tried, however many others wait.
func TestOutageCost(t *testing.T) {
	testkit.FullOnly(t, "it measures CPU")
	outage := func(services int) func() {
		return func() {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				p := start(t, dir, &memSink{refuse: refuses("")}, buffer.Options{MaxAge: time.Second}, true)
				defer p.stop()
				var lines []line
				for i := range services {
					lines = append(lines, line{fmt.Sprint("s", i), at(1), "x"})
				}
				p.accept(request(1, lines...))
				time.Sleep(time.Minute)
			})
		}
	}
	short, long := testkit.LeastCPU(outage(500), outage(4000), func(short, long time.Duration) bool { return long < 20*short })
	t.Logf("%v for 500 services, %v for 4,000", short, long)
	if long > 20*short {
		t.Errorf("8 times the services cost %.0f times the CPU", float64(long)/float64(short))
	}
}
