package scale_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/horizon"
	"blobtail/internal/dev/scale"
	"blobtail/reading"
	"blobtail/record"
	"blobtail/retention"
	"blobtail/retention/closing"
	"blobtail/retention/compact"
	"blobtail/storage"
	"blobtail/tailindex"
)

// shape is a store with many services. Each has a blob of one flush some minutes ago. Busy ones
// have a compacted blob of each hour of the days before, too.
type shape struct {
	services, busy, days int
	horizons             int // of all services
}

// wanted is an id that a record of the first service has once a day.
const wanted = "4bf92f3577b34da6a3ce929d0e0e4736"

func serviceName(n int) string { return fmt.Sprintf("s%05d", n) }

// fill makes the blobs and the horizons of a shape. All of it is there at once.
func (s shape) fill(t *testing.T, a *scale.Account) {
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	number := uint64(0)
	put := func(service string, hour time.Time, records int, compacted bool) {
		enc.Reset()
		number++
		var from record.Origin
		binary.BigEndian.PutUint64(from[8:], number)
		for i := range records {
			at := hour.Add(time.Duration(i)*4*time.Minute + time.Duration(number%10_000)*time.Millisecond).UnixNano()
			id := fmt.Sprintf("%032x", number<<8|uint64(i))
			if service == serviceName(0) && i == 1 && hour.Hour() == 3 {
				id = wanted
			}
			line := fmt.Sprintf("{\"ts\":\"%s\",\"level\":\"info\",\"service\":\"%s\",\"msg\":\"paid\",\"trace_id\":\"%s\"}\n", record.AppendTime(nil, at), service, id)
			if err := enc.Add([]byte(line), at, from, uint32(i)); err != nil {
				t.Fatal(err)
			}
		}
		var id blobfmt.BatchID
		binary.BigEndian.PutUint64(id[8:], number)
		if compacted {
			replaced := id
			replaced[0] = 1
			enc.Replaces(replaced)
		}
		body, meta, err := enc.Finish(id)
		if err != nil {
			t.Fatal(err)
		}
		name := blobfmt.Name{Service: service, Period: hour, Number: 1}
		if compacted {
			name.Number = 990_001
		}
		a.Add(name.String(), body, storage.Attrs{ContentType: blobfmt.ContentType, ContentEncoding: blobfmt.ContentEncoding, Metadata: meta.Map()})
	}
	now := time.Now().UTC().Truncate(time.Hour)
	for n := range s.services {
		put(serviceName(n), now, 3, false)
	}
	for n := range s.busy {
		for hour := range 24 * s.days {
			put(serviceName(n), now.Add(-time.Duration(hour+1)*time.Hour), 3, true)
		}
	}
	first := horizon.DayOf(now) - horizon.Day(s.days) - 1
	for n := range s.horizons {
		day := (first - horizon.Day(n/s.services)).Start().Format("20060102")
		a.Add("_horizon/"+serviceName(n%s.services)+"/"+day, nil, storage.Attrs{})
	}
}

// cost is what the account was asked for, and how long that took beside the work of the CPU.
type cost struct {
	Requests scale.Counts `json:"requests"`
	Bytes    int64        `json:"bytes"`
	Seconds  float64      `json:"seconds"`
	Records  int64        `json:"records"`
}

// measured is the cost of do.
func measured(t *testing.T, a *scale.Account, do func() (records int64, err error)) cost {
	t.Helper()
	before, begun := a.Counts(), time.Now()
	records, err := do()
	if err != nil {
		t.Fatal(err)
	}
	c := a.Counts().Since(before)
	return cost{Requests: c, Bytes: c.Out, Seconds: time.Since(begun).Seconds(), Records: records}
}

// openReader opens the account as logquery does, and keeps indexes as its server does.
func openReader(t *testing.T, a *scale.Account, keep bool) *reading.Store {
	t.Helper()
	store, err := a.Open()
	if err != nil {
		t.Fatal(err)
	}
	r, err := reading.Open(reading.OpenOptions{
		Blobs: store, Tables: store, Now: time.Now, Distant: true, Unasked: true, KeepIndexes: keep, Tail: tailindex.Options{Prefix: "tail"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.For(nil)
}

func since(d time.Duration) reading.Range {
	return reading.Range{From: time.Now().Add(-d).UnixNano(), To: reading.Newest}
}

func recordsOf(out *reading.Outcome, err error) (int64, error) {
	if err == nil && !out.Complete() {
		err = fmt.Errorf("the read is not complete: %v", out.Problems())
	}
	return out.Records, err
}

func silent([]byte) error { return nil }

// dashboard asks what a dashboard of twelve panels does, at once: eleven services, and all.
func dashboard(ctx context.Context, s *reading.Store) (records int64, err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	add := func(out *reading.Outcome, failed error) {
		mu.Lock()
		defer mu.Unlock()
		n, failed := recordsOf(out, failed)
		if records += n; err == nil {
			err = failed
		}
	}
	all.Go(func() {
		if _, failed := s.Names(ctx); failed != nil {
			mu.Lock()
			defer mu.Unlock()
			err = failed
		}
	})
	for n := range 11 {
		all.Go(func() {
			a := reading.Ask{Services: []string{serviceName(n)}, Range: since(6 * time.Hour)}
			if n%2 == 0 {
				a.Limit = 100
				add(s.Records(ctx, a, silent))
				return
			}
			_, out, err := s.Histogram(ctx, a, reading.Slices{})
			add(out, err)
		})
	}
	all.Go(func() {
		_, out, err := s.Histogram(ctx, reading.Ask{Services: []string{"*"}, Range: since(6 * time.Hour)}, reading.Slices{})
		add(out, err)
	})
	all.Wait()
	return records, err
}

// The requests of readers and jobs on a store of 10,000 services. BLOBTAIL_SCALE is the directory
// of the results; without it the test is skipped: it takes some minutes.
func TestScaleServices(t *testing.T) {
	dir := os.Getenv("BLOBTAIL_SCALE")
	if dir == "" {
		t.Skip("BLOBTAIL_SCALE names no directory for the results (make scale)")
	}
	reads, same := map[string]cost{}, []sameCost{}
	of := shape{services: 10_000, busy: 200, days: 30, horizons: 100_000}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 26, 15, 40, 0, 0, time.UTC)))
		a := scale.New(scale.Options{})
		of.fill(t, a)
		measureReads(t, a, reads)
		measureJobs(t, a, reads)
	})
	for _, s := range []shape{{10, 1, 1, 100}, {100, 1, 8, 1000}, {1000, 1, 30, 10_000}, {10_000, 1, 30, 100_000}} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(time.Date(2026, 11, 26, 15, 40, 0, 0, time.UTC)))
			a := scale.New(scale.Options{})
			s.fill(t, a)
			r := openReader(t, a, false)
			c := measured(t, a, func() (int64, error) {
				return recordsOf(r.Records(t.Context(), reading.Ask{Services: []string{serviceName(0)}, Range: since(6 * time.Hour)}, silent))
			})
			t.Logf("%+v: %+v", s, c)
			same = append(same, sameCost{Services: s.services, Days: s.days, cost: c})
		})
	}
	for _, c := range same[1:] {
		c.Bytes, c.Requests.Out, c.Requests.In = same[0].Bytes, same[0].Requests.Out, same[0].Requests.In
		c.Services, c.Days, c.Seconds = same[0].Services, same[0].Days, same[0].Seconds
		if c != same[0] {
			t.Errorf("a read of one service costs %+v in a larger store, and %+v in a small one", c, same[0])
		}
	}
	update(t, dir, map[string]any{
		"services": of.services, "days": of.days, "blobs": of.busy * 24 * of.days, "flushed": of.services, "horizons": of.horizons, "reads": reads, "same": same,
	})
}

// sameCost is the cost of the same read in a store of another size.
type sameCost struct {
	Services int `json:"services"`
	Days     int `json:"days"`
	cost
}

// measureReads measures the questions of readers. Each is of a command of its own.
func measureReads(t *testing.T, a *scale.Account, to map[string]cost) {
	ctx := t.Context()
	one := []string{serviceName(0)}
	all := []string{"*"}
	for _, q := range []struct {
		name string
		how  func(s *reading.Store) (int64, error)
	}{
		{"ls", func(s *reading.Store) (int64, error) {
			_, out, err := s.Services(ctx, reading.Ask{Range: reading.Always()})
			return recordsOf(out, err)
		}},
		{"hist", func(s *reading.Store) (int64, error) {
			_, out, err := s.Histogram(ctx, reading.Ask{Services: all, Range: since(24 * time.Hour)}, reading.Slices{})
			return recordsOf(out, err)
		}},
		{"tail", func(s *reading.Store) (int64, error) {
			return recordsOf(s.Tail(ctx, reading.Ask{Services: all, Range: reading.Always(), Limit: 100}, silent))
		}},
		{"tail_one", func(s *reading.Store) (int64, error) {
			return recordsOf(s.Tail(ctx, reading.Ask{Services: one, Range: reading.Always(), Limit: 100}, silent))
		}},
		{"read", func(s *reading.Store) (int64, error) {
			return recordsOf(s.Records(ctx, reading.Ask{Services: one, Range: since(time.Hour)}, silent))
		}},
		{"search_id_week", func(s *reading.Store) (int64, error) {
			return recordsOf(s.Records(ctx, reading.Ask{Services: one, Range: since(7 * 24 * time.Hour), Texts: []string{wanted}}, silent))
		}},
		{"search_id_week_all", func(s *reading.Store) (int64, error) {
			return recordsOf(s.Records(ctx, reading.Ask{Services: all, Range: since(7 * 24 * time.Hour), Texts: []string{wanted}}, silent))
		}},
	} {
		s := openReader(t, a, false)
		to[q.name] = measured(t, a, func() (int64, error) { return q.how(s) })
	}
	server := openReader(t, a, true)
	for _, name := range []string{"dashboard_first", "dashboard_second"} {
		to[name] = measured(t, a, func() (int64, error) { return dashboard(ctx, server) })
		time.Sleep(30 * time.Second)
	}
}

// measureJobs measures the jobs, two days later, when the first days expire.
func measureJobs(t *testing.T, a *scale.Account, to map[string]cost) {
	ctx := t.Context()
	time.Sleep(2 * 24 * time.Hour)
	job := func() *retention.Job {
		store, err := a.Open()
		if err != nil {
			t.Fatal(err)
		}
		return retention.New(store, store, retention.Options{Policy: retention.Policy{Default: 30 * 24 * time.Hour}, Grace: time.Hour, Prefix: "tail"})
	}
	hash := ""
	to["retention_plan"] = measured(t, a, func() (int64, error) {
		p, err := job().Plan(ctx)
		if err != nil {
			return 0, err
		}
		hash = p.Hash
		if p.Confirm == "" {
			hash = ""
		}
		return p.Total().Records, nil
	})
	to["retention_apply"] = measured(t, a, func() (int64, error) {
		r, err := job().Apply(ctx, hash)
		if err != nil {
			return 0, err
		}
		return int64(len(r.Raised)), nil
	})
	time.Sleep(2 * time.Hour)
	to["retention_apply_later"] = measured(t, a, func() (int64, error) {
		r, err := job().Apply(ctx, "")
		if err != nil {
			return 0, err
		}
		return r.Total().Records, nil
	})
	to["compact"] = measured(t, a, func() (int64, error) {
		store, err := a.Open()
		if err != nil {
			return 0, err
		}
		if _, err := closing.Run(ctx, store, closing.Options{}); err != nil {
			return 0, err
		}
		r, err := compact.Run(ctx, store, compact.Options{})
		return r.Records, err
	})
}

// update writes parts of "b" into the results.
func update(t *testing.T, dir string, parts map[string]any) {
	t.Helper()
	file, err := scale.UpdateIn(dir, "b", parts)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s has %v", file, slices.Sorted(maps.Keys(parts)))
}
