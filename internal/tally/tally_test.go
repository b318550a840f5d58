package tally_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/internal/count"
	"blobtail/internal/tally"
	"blobtail/record"
)

// next answers every request alike.
type next struct {
	receipt record.Receipt
	err     error
}

func (n *next) Accept(context.Context, *record.Request) (record.Receipt, error) {
	return n.receipt, n.err
}

// request is one of lines with a level and some more, each for a service: "web error".
func request(records ...string) *record.Request {
	r := &record.Request{}
	number := map[string]uint32{}
	for _, text := range records {
		service, level, _ := strings.Cut(text, " ")
		level, fields, _ := strings.Cut(level, " ")
		n, ok := number[service]
		if !ok {
			n = uint32(len(r.Services))
			number[service] = n
			r.Services = append(r.Services, service)
		}
		line := `{"ts":"2026-11-20T15:04:05.000000000Z","level":"` + level + `","service":"` + service + `","msg":"m"` + fields + "}\n"
		r.Lines = append(r.Lines, record.Line{Off: uint32(len(r.Data)), Len: uint32(len(line)), Service: n})
		r.Data = append(r.Data, line...)
	}
	return r
}

// many is a request of n records of each service.
func many(n int, services ...string) *record.Request {
	var records []string
	for _, s := range services {
		for range n {
			records = append(records, s+" info")
		}
	}
	return request(records...)
}

// counts returns the samples of a registry that are not 0, as service/level or name.
func counts(t testing.TB, reg *count.Registry) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for series, v := range count.Read(reg.Page()) {
		labels := strings.Split(series, `"`) // of the level and the service, or one
		key := labels[1]
		if len(labels) > 3 {
			key = labels[3] + "/" + key
		}
		if v != 0 {
			found[key] = v
		}
	}
	return found
}

func want(t *testing.T, reg *count.Registry, what string, want map[string]float64) {
	t.Helper()
	if got := counts(t, reg); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func accept(t testing.TB, a tally.Accepter, r *record.Request) {
	t.Helper()
	if _, err := a.Accept(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// Accepted records are counted once, by service and level. Repeats and refused requests are
// not counted.
func TestCounts(t *testing.T) {
	n, reg := &next{}, new(count.Registry)
	a := tally.New(tally.Options{Accept: n, Metrics: reg})
	accept(t, a, request("web error", "web info", "db info", "web error", "_rejected warn", "web audit", "web "))
	n.receipt.Duplicate = true
	accept(t, a, request("web error"))
	n.receipt.Duplicate, n.err = false, record.ErrFull
	if _, err := a.Accept(t.Context(), request("web error")); !errors.Is(err, record.ErrFull) {
		t.Error(err)
	}
	n.err = nil
	accept(t, a, request("other error")) // a service that is called so
	accept(t, a, request("db info"))
	want(t, reg, "counts", map[string]float64{"web/error": 2, "web/info": 1, "web/other": 2, "db/info": 2, "_rejected/warn": 1, "other/error": 1})
}

// Records that lack a part of their head are counted by service.
func TestLacks(t *testing.T) {
	reg := new(count.Registry)
	r := request("web info")
	r.Lacks = []record.Lacks{{Time: 1, TimeUnread: 1, LevelUnread: 1, TimeFar: 1}}
	accept(t, tally.New(tally.Options{Accept: &next{}, Metrics: reg}), r)
	page := count.Read(reg.Page())
	for _, name := range []string{"without_time", "time_unread", "level_unread", "time_far"} {
		if n := page["blobtail_records_"+name+`_total{service="web"}`]; n != 1 {
			t.Errorf("%s is %v", name, n)
		}
	}
}

// A service has a sample of each level from the first record on.
func TestZeros(t *testing.T) {
	reg := new(count.Registry)
	accept(t, tally.New(tally.Options{Accept: &next{}, Metrics: reg}), request("web info"))
	page := string(reg.Page())
	if strings.Count(page, "# TYPE ") != 5 || strings.Count(page, "\nblobtail_records_total{") != 3*record.NumLevels {
		t.Error(page)
	}
}

// Senders may name any services: the number of series is bounded, and every record is counted
// under some label.
func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := new(count.Registry)
		a := tally.New(tally.Options{Accept: &next{}, Metrics: reg, Most: 10})
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go a.Run(ctx)
		sent := 0
		last := map[string]float64{}
		for hour := range 50 {
			for i := range 40 {
				r := many(1+i%3, fmt.Sprintf("s-%d-%d", hour%7, i), "steady", fmt.Sprintf("new-%d", i))
				sent += len(r.Lines)
				accept(t, a, r)
			}
			now := counts(t, reg)
			if len(now) > 12 {
				t.Fatalf("%d series: %v", len(now), now)
			}
			for key, was := range last {
				if is, ok := now[key]; ok && is < was {
					t.Fatalf("%s went from %v to %v within an hour", key, was, is)
				}
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			last = counts(t, reg)
		}
		if last["steady/info"] == 0 || last["other/info"] == 0 {
			t.Errorf("%v", last)
		}
	})
}

// The labels go to the largest services: those that came too late get one within an hour,
// and lose it to no smaller one.
func TestLargest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := new(count.Registry)
		a := tally.New(tally.Options{Accept: &next{}, Metrics: reg, Most: 3})
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go a.Run(ctx)
		hour := func() { time.Sleep(time.Hour); synctest.Wait() }

		accept(t, a, many(1, "junk-1", "junk-2", "junk-3")) // other senders were quicker
		accept(t, a, many(10, "web", "db"))
		accept(t, a, many(2, "small"))
		want(t, reg, "before", map[string]float64{"junk-1/info": 1, "junk-2/info": 1, "junk-3/info": 1, "other/info": 22})
		hour()
		accept(t, a, many(10, "web", "db"))
		accept(t, a, many(2, "small"))
		want(t, reg, "after an hour", map[string]float64{"web/info": 10, "db/info": 10, "junk-3/info": 1, "other/info": 24})
		hour()
		accept(t, a, many(1, "small"))
		want(t, reg, "after two", map[string]float64{"web/info": 10, "db/info": 10, "small/info": 1, "other/info": 24})

		// A service that is silent keeps its label for long, and one of about its size does
		// not take it.
		for range 40 {
			accept(t, a, many(10, "web", "small"))
			hour()
		}
		accept(t, a, many(1, "db", "junk-1"))
		if got := counts(t, reg); got["db/info"] != 11 || got["junk-1/info"] != 0 {
			t.Errorf("after a silence: %v", got)
		}
		// One that is larger than the rest of its volume does.
		accept(t, a, many(100, "late"))
		hour()
		accept(t, a, many(1, "db", "late"))
		if got := counts(t, reg); got["db/info"] != 0 || got["late/info"] != 1 {
			t.Errorf("after a larger one: %v", got)
		}
	})
}

// A flood of names does not hide a large service.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := new(count.Registry)
		a := tally.New(tally.Options{Accept: &next{}, Metrics: reg, Most: 50})
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go a.Run(ctx)
		rnd := rand.New(rand.NewPCG(1, 2))
		for i := range 20 {
			names := make([]string, 500)
			for n := range names {
				names[n] = fmt.Sprintf("flood-%d", rnd.IntN(1e6))
			}
			accept(t, a, many(1, names...))
			accept(t, a, many(100, "web"))
			if i == 10 {
				time.Sleep(time.Hour)
				synctest.Wait()
			}
		}
		if got := counts(t, reg); got["web/info"] != 900 || len(got) > 52 {
			t.Errorf("%d series, web %v", len(got), got["web/info"])
		}
	})
}

func TestCounters(t *testing.T) {
	c, err := tally.NewCounters([]tally.Counter{
		{Name: "errors", Where: `level in ["error", "critical"]`},
		{Name: "web", Service: "web-*"},
		{Name: "slow", Service: "web-*", Where: "took_ms > 1000"},
		{Name: "rejected", Service: "_rejected"},
		{Name: "none", Service: "nobody"},
		{Name: "high", Where: `level >= "warn"`},
		{Name: "low", Where: `not (level >= "warn") and service != "db"`},
	})
	if err != nil {
		t.Fatal(err)
	}
	n, reg := &next{}, new(count.Registry)
	a := tally.New(tally.Options{Accept: n, Counters: c, Metrics: reg})
	r := request("web-1 error", "web-2 info ,\"took_ms\":1200", "db critical", "db info ,\"took_ms\":1200", "_rejected warn", "web-1 info ,\"took_ms\":\"x\"")
	accept(t, a, r)
	n.receipt.Duplicate = true
	accept(t, a, r)
	got := counts(t, reg)
	for name, want := range map[string]float64{"errors": 2, "web": 3, "slow": 1, "rejected": 1, "none": 0, "high": 2, "low": 2} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
}

// A mistake in an expression names the key, the counter and the column.
func TestMistakes(t *testing.T) {
	_, err := tally.NewCounters([]tally.Counter{{Name: "a", Where: "status > 5"}, {Name: "slow", Where: "took_ms >"}, {Name: "b", Where: "1 +"}, {Name: "c", Where: `level >= "hi"`}})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{`counters[1].where: "took_ms >": column 9: the expression ends before it is whole; `, "(counter slow)", "counters[2].where", `counters[3].where: "level >= \"hi\"": column 10: "hi" is no word of a level`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Requests are counted while metrics are collected and labels change hands.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := new(count.Registry)
		a := tally.New(tally.Options{Accept: &next{}, Metrics: reg, Most: 5})
		ctx, end := context.WithCancel(t.Context())
		go a.Run(ctx)
		var all sync.WaitGroup
		for g := range 4 {
			all.Go(func() {
				for i := range 50 {
					accept(t, a, many(1, "steady", fmt.Sprintf("s-%d", (g*i)%30)))
					counts(t, reg)
					time.Sleep(20 * time.Minute)
				}
			})
		}
		all.Wait()
		end()
		if got := counts(t, reg); got["steady/info"] != 200 {
			t.Errorf("%v", got)
		}
	})
}

// BenchmarkAccept measures the counting of a request of 1,000 records of six services.
func BenchmarkAccept(b *testing.B) {
	services := []string{"api-gateway", "checkout", "auth", "payments", "search", "inventory"}
	levels := []string{"debug", "info", "warn", "error"}
	rnd := rand.New(rand.NewPCG(1, 1))
	var records []string
	for range 1000 {
		records = append(records, services[rnd.IntN(6)]+" "+levels[rnd.IntN(4)]+` ,"text":"`+strings.Repeat("x", 200)+`"`)
	}
	r := request(records...)
	slow, err := tally.NewCounters([]tally.Counter{{Name: "slow", Service: "search", Where: `level == "error" and took_ms > 1000`}})
	if err != nil {
		b.Fatal(err)
	}
	for name, counters := range map[string]*tally.Counters{"services": nil, "with a counter": slow} {
		b.Run(name, func(b *testing.B) {
			a := tally.New(tally.Options{Accept: &next{}, Counters: counters})
			b.ReportAllocs()
			for b.Loop() {
				_, _ = a.Accept(b.Context(), r)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/record")
		})
	}
}

// BenchmarkFlood measures a request of 100,000 services that are new each time.
func BenchmarkFlood(b *testing.B) {
	c, err := tally.NewCounters([]tally.Counter{{Name: "errors", Where: `level == "error"`}})
	if err != nil {
		b.Fatal(err)
	}
	a := tally.New(tally.Options{Accept: &next{}, Counters: c})
	services := make([]string, 100_000)
	n := 0
	for b.Loop() {
		b.StopTimer()
		for i := range services {
			n++
			services[i] = fmt.Sprintf("service-%d", n)
		}
		r := many(1, services...)
		b.StartTimer()
		_, _ = a.Accept(b.Context(), r)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/record")
}
