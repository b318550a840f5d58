package tailindex_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
	"blobtail/tailindex"
)

// watched is a table store that remembers its writes and their times.
type watched struct {
	storage.TableStore
	mu     sync.Mutex
	writes []write
}

type write struct {
	at               time.Time
	table, partition string
	rows             []storage.Row
}

func (s *watched) Upsert(ctx context.Context, table, partition string, rows []storage.Row) error {
	s.mu.Lock()
	s.writes = append(s.writes, write{time.Now(), table, partition, rows})
	s.mu.Unlock()
	return s.TableStore.Upsert(ctx, table, partition, rows)
}

// of returns the writes of rows so far.
func (s *watched) of() []write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.writes), func(w write) bool { return len(w.rows) == 0 })
}

// A busy service is written once an interval, at its own phase of it, which is the same at all
// ingesters. A quiet one is written at once.
func TestPace(t *testing.T) {
	for _, every := range []time.Duration{0, 5 * time.Second, 30 * time.Second} {
		t.Run(every.String(), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { pace(t, every) }) })
	}
}

func pace(t *testing.T, set time.Duration) {
	every := max(set, time.Second)
	s := &watched{TableStore: mem.New(mem.Options{})}
	var writers []*tailindex.Writer
	for range 3 {
		w, stop := start(t, s, tailindex.Options{Every: set})
		defer stop()
		writers = append(writers, w)
		time.Sleep(137 * time.Millisecond) // they start at different times
	}
	for range 2000 {
		for i, w := range writers {
			for _, service := range []string{"web", "db"} {
				w.Accepted(1, newRun(service, uint64(i), line(time.Now(), "info", service, "x")))
			}
		}
		time.Sleep(every / 100)
	}
	time.Sleep(2 * every)
	synctest.Wait()
	phases := map[string]map[time.Duration]int{}
	for _, w := range s.of() {
		if phases[w.partition] == nil {
			phases[w.partition] = map[time.Duration]int{}
		}
		phases[w.partition][time.Duration(w.at.UnixNano())%every]++
	}
	for partition, at := range phases {
		most, all := 0, 0
		for _, n := range at {
			most = max(most, n)
			all += n
		}
		// The first writes come before the services fall into step.
		if most < 3*19 || all > 3*23 {
			t.Errorf("%s: %d writes in 20 intervals, %d of them in step: %v", partition, all, most, at)
		}
	}
	if slices.Equal(slices.Sorted(maps.Keys(phases["web~0"])), slices.Sorted(maps.Keys(phases["db~0"]))) {
		t.Error("two services are written at the same time")
	}
	time.Sleep(10 * every)
	before := len(s.of())
	writers[0].Accepted(1, newRun("web", 9, line(time.Now(), "info", "web", "after a pause")))
	time.Sleep(200 * time.Millisecond)
	synctest.Wait()
	if got := len(s.of()) - before; got != 1 {
		t.Errorf("%d writes within 200 ms", got)
	}
	// The rest waits for its turn, which is no delay.
	writers[0].Accepted(1, newRun("web", 10, line(time.Now(), "info", "web", "and more")))
	longest := time.Duration(0)
	for range 110 {
		time.Sleep(every / 100)
		_, behind := writers[0].Waiting()
		longest = max(longest, behind)
	}
	if n, _ := writers[0].Waiting(); n != 0 || longest > time.Second {
		t.Errorf("%d services wait, for %v", n, longest)
	}
}

// Many busy services do not lose lines to the bound on memory by waiting for an interval: the
// turns that are already set come sooner too.
func TestMemoryShortens(t *testing.T) {
	for _, services := range []int{300, 600} {
		synctest.Test(t, func(t *testing.T) {
			s := mem.New(mem.Options{})
			w, stop := start(t, s, tailindex.Options{Every: 30 * time.Second, Memory: 4 << 20})
			text := strings.Repeat("x", 300)
			for n := range 60 {
				for service := range services {
					name := fmt.Sprint("s", service)
					var lines []string
					for range 3 {
						lines = append(lines, line(time.Now(), "info", name, text))
					}
					w.Accepted(1, newRun(name, uint64(n*1000+service), lines...))
				}
				time.Sleep(time.Second)
			}
			stop()
			if st := w.Stats(); st.Omitted > 0 || st.Records != uint64(60*services*3) {
				t.Errorf("%d services: %d records are shown and %d omitted", services, st.Records, st.Omitted)
			}
		})
	}
}

// No row shows a record that is not durable.
func TestDurableFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &watched{TableStore: mem.New(mem.Options{})}
		durable := make(chan struct{})
		var asked []uint64
		fail := true
		w, stop := start(t, s, tailindex.Options{Durable: func(mark uint64) error {
			asked = append(asked, mark)
			if fail {
				fail = false
				return errors.New("not yet")
			}
			<-durable
			return nil
		}})
		defer stop()
		w.Accepted(5, newRun("web", 1, line(time.Now(), "info", "web", "one")))
		w.Accepted(3, newRun("web", 2, line(time.Now(), "info", "web", "two")))
		time.Sleep(time.Minute)
		if n := len(s.of()); n != 0 {
			t.Errorf("%d writes", n)
		}
		close(durable)
		synctest.Wait()
		if n := len(s.of()); n != 1 {
			t.Errorf("%d writes", n)
		}
		if !slices.Equal(asked, []uint64{5, 5}) {
			t.Errorf("asked for %v", asked)
		}
	})
}

// A store that is unavailable for a minute costs one row a service, and that counts the
// omitted records. The rows with an unknown outcome are written again unchanged. Numbers
// have no gaps, and each failure is logged once.
func TestOutage(t *testing.T) {
	for name, fault := range map[string]storagetest.Fault{
		"refused": {Before: errors.New("status 503 (request 1a2b)")}, "lost answers": {After: storagetest.ErrFault}, "hangs": {Delay: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { outage(t, fault) })
		})
	}
}

func outage(t *testing.T, fault storagetest.Fault) {
	var down sync.Map
	s := &watched{TableStore: storagetest.FaultyTables(mem.New(mem.Options{}), func(op storagetest.Op, key string) storagetest.Fault {
		if _, ok := down.Load("down"); ok && op == storagetest.Upsert {
			return fault
		}
		return storagetest.Fault{}
	})}
	var log bytes.Buffer
	w, stop := start(t, s, tailindex.Options{Log: zerolog.New(&log)})
	services := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o"}
	send := func(d time.Duration) (n int) {
		for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			for _, service := range services {
				var lines []string
				for range 10 {
					lines = append(lines, line(time.Now(), "error", service, fmt.Sprint(n)))
					n++
				}
				w.Accepted(1, newRun(service, uint64(n), lines...))
			}
		}
		return n / len(services)
	}
	sent := send(10 * time.Second)
	down.Store("down", true)
	sent += send(time.Minute)
	down.Delete("down")
	sent += send(15 * time.Second)
	time.Sleep(12 * time.Second)
	stop()
	r := tailindex.NewReader(s, tailindex.Options{})
	for _, service := range services {
		for _, errs := range []bool{false, true} {
			rows, err := r.Written(t.Context(), service, errs, time.Now().Add(-time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			told := 0
			for i, row := range rows {
				told += row.Count
				if row.Number != uint64(i+1) {
					t.Fatalf("%s: row %d has number %d", service, i, row.Number)
				}
			}
			if told != sent || len(rows) > 45 {
				t.Errorf("%s: %d rows tell of %d records of %d", service, len(rows), told, sent)
			}
		}
	}
	same := map[string]string{}
	for _, w := range s.of() {
		for _, row := range w.rows {
			text := fmt.Sprint(row)
			if before, ok := same[w.partition+row.Key]; ok && before != text {
				t.Fatalf("row %s came again as another", row.Key)
			}
			same[w.partition+row.Key] = text
		}
	}
	if n := strings.Count(log.String(), "cannot be written"); n < 1 || n > 2 {
		t.Errorf("said %d times that it fails:\n%s", n, &log)
	}
	if n := strings.Count(log.String(), "written again"); n != 1 {
		t.Errorf("said %d times that it is over:\n%s", n, &log)
	}
	if n, behind := w.Waiting(); n != 0 || behind != 0 {
		t.Errorf("%d services wait, for %v", n, behind)
	}
	if st := w.Stats(); st.Written == 0 || st.Failed == 0 || st.Records+st.Omitted != uint64(sent*len(services)) || st.Outside != 0 {
		t.Errorf("%d records of each of %d services are counted as %+v", sent, len(services), st)
	}
}

// In an outage each service waits as a pointer: neither workers nor goroutines become
// more with the services. At a stop each gets its last write.
func TestManyServicesWait(t *testing.T) {
	const services = 3000
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		hangs.Store(true)
		s := &watched{TableStore: storagetest.FaultyTables(mem.New(mem.Options{}), func(op storagetest.Op, _ string) storagetest.Fault {
			if op == storagetest.Upsert && hangs.Load() {
				return storagetest.Fault{Delay: time.Hour}
			}
			return storagetest.Fault{}
		})}
		w, stop := start(t, s, tailindex.Options{})
		for n := range services {
			service := fmt.Sprint("web-", n)
			w.Accepted(1, newRun(service, uint64(n), line(time.Now(), "info", service, "x")))
		}
		time.Sleep(20 * time.Second) // all are due
		if n := runtime.NumGoroutine(); n > 100 {
			t.Errorf("%d goroutines for %d services", n, services)
		}
		if n, _ := w.Waiting(); n != services {
			t.Errorf("%d services wait", n)
		}
		hangs.Store(false)
		stop()
		written := map[string]bool{}
		for _, write := range s.of() {
			written[write.partition] = true
		}
		if n, _ := w.Waiting(); n > 0 || len(written) != services {
			t.Errorf("%d services wait at the end, %d are written", n, len(written))
		}
	})
}

// Services that are busier than the workers can write get their rows later, in turn, and lose no
// lines: 10,000 at 15 ms a write each 12.5 s or so. This is a tenth of that, ten times slower.
func TestMoreThanWorkersWrite(t *testing.T) {
	const services, seconds = 1000, 60
	synctest.Test(t, func(t *testing.T) {
		s := &watched{TableStore: storagetest.FaultyTables(mem.New(mem.Options{}), func(op storagetest.Op, _ string) storagetest.Fault {
			if op == storagetest.Upsert {
				return storagetest.Fault{Delay: 150 * time.Millisecond}
			}
			return storagetest.Fault{}
		})}
		w, stop := start(t, s, tailindex.Options{Every: 5 * time.Second})
		defer stop()
		var behind time.Duration
		for n := range seconds {
			for i := range services {
				service := fmt.Sprint("s", i)
				w.Accepted(1, newRun(service, uint64(n), line(time.Now(), "info", service, "x")))
			}
			time.Sleep(time.Second)
			_, d := w.Waiting()
			behind = max(behind, d)
		}
		last, longest := map[string]time.Time{}, time.Duration(0)
		for _, write := range s.of() {
			if at, ok := last[write.partition]; ok {
				longest = max(longest, write.at.Sub(at))
			}
			last[write.partition] = write.at
		}
		if len(last) != services || longest < 12*time.Second || longest > 18*time.Second {
			t.Errorf("%d services are written, one after %v", len(last), longest)
		}
		if behind < 8*time.Second || behind > 12*time.Second {
			t.Errorf("%v behind", behind)
		}
		time.Sleep(18 * time.Second)
		if st := w.Stats(); st.Omitted > 0 || st.Records != services*seconds {
			t.Errorf("%d records are shown and %d omitted", st.Records, st.Omitted)
		}
	})
}

// Services with writes that hang do not keep the rest waiting.
func TestHangingServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tables := storagetest.FaultyTables(mem.New(mem.Options{}), func(op storagetest.Op, key string) storagetest.Fault {
			if op == storagetest.Upsert && strings.Contains(key, "/hangs-") {
				return storagetest.Fault{Delay: time.Hour}
			}
			return storagetest.Fault{}
		})
		s := &watched{TableStore: tables}
		w, stop := start(t, s, tailindex.Options{})
		began := time.Now()
		for n := range 10 * 120 {
			for _, service := range []string{fmt.Sprint("hangs-", n%40), "web"} {
				w.Accepted(1, newRun(service, uint64(n), line(time.Now(), "info", service, "x")))
			}
			time.Sleep(100 * time.Millisecond)
		}
		stop()
		last, tried := began.Add(30*time.Second), map[string]bool{} // until each has hung once
		for _, write := range s.of() {
			if write.partition != "web~0" {
				tried[write.partition] = write.at.After(began.Add(time.Minute))
				continue
			}
			if pause := write.at.Sub(last); pause > 1250*time.Millisecond {
				t.Errorf("no write for %v", pause)
			}
			if write.at.After(last) {
				last = write.at
			}
		}
		if len(tried) != 40 {
			t.Errorf("%d services are tried", len(tried))
		}
		for partition, again := range tried {
			if !again {
				t.Errorf("%s is not tried again", partition)
			}
		}
	})
}

// Stopping the writer writes the waiting records, and does not wait for a store that
// hangs.
func TestStop(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			script := storagetest.Script(func(storagetest.Op, string) storagetest.Fault { return storagetest.Fault{} })
			if hangs {
				script = storagetest.Times(-1, storagetest.Upsert, "~", storagetest.Fault{Delay: time.Hour})
			}
			s := &watched{TableStore: storagetest.FaultyTables(mem.New(mem.Options{}), script)}
			w, stop := start(t, s, tailindex.Options{})
			for i := range 50 {
				service := fmt.Sprint("s", i)
				w.Accepted(1, newRun(service, 1, line(time.Now(), "info", service, "last words")))
			}
			began := time.Now()
			stop()
			if d := time.Since(began); d > 2*time.Second || !hangs && d > 100*time.Millisecond {
				t.Errorf("stopped after %v", d)
			}
			if n := len(s.of()); n != 50 && !hangs {
				t.Errorf("%d writes", n)
			}
		})
	}
}

// The table of a day is made an hour ahead, and arrivals around midnight are found from
// both sides of it.
func TestMidnight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Date(2026, 11, 20, 22, 0, 0, 0, time.UTC)
		offset := time.Until(now)
		clock := func() time.Time { return time.Now().Add(offset) }
		s := mem.New(mem.Options{})
		w, stop := start(t, s, tailindex.Options{Now: clock})
		defer stop()
		r := tailindex.NewReader(s, tailindex.Options{Now: clock})
		exists := func(table string) bool {
			for name := range s.Tables(t.Context(), table) {
				return name == table
			}
			return false
		}
		time.Sleep(59 * time.Minute)
		if !exists("tail20261120") || exists("tail20261121") {
			t.Error("tables at 22:59")
		}
		time.Sleep(2 * time.Minute)
		if !exists("tail20261121") {
			t.Error("no table of tomorrow at 23:01")
		}
		time.Sleep(58*time.Minute + 50*time.Second)
		for i := range 20 {
			w.Accepted(1, newRun("web", uint64(i), line(clock(), "info", "web", fmt.Sprint(i))))
			time.Sleep(time.Second)
		}
		for _, table := range []string{"tail20261120", "tail20261121"} {
			n := 0
			for range s.Scan(t.Context(), table, "web~0", "", "", 0) {
				n++
			}
			if n < 9 {
				t.Errorf("%d rows in %s", n, table)
			}
		}
		rows, err := r.Newest(t.Context(), "web", false, 15)
		if got := merged(rows); err != nil || len(got) < 15 {
			t.Errorf("%d of 15 records, %v", len(got), err)
		}
	})
}

// A row omits a line that is too long and counts it. It has MaxLines lines only if
// all that it omits are older.
func TestLongLines(t *testing.T) {
	now := time.Now()
	short := func(i int) string {
		return line(now.Add(time.Duration(i)*time.Microsecond), "error", "web", fmt.Sprint(i))
	}
	long := func(i int) string {
		s := line(now.Add(time.Duration(i)*time.Microsecond), "error", "web", "")
		return strings.Replace(s, `"msg":"`, `"msg":"`+strings.Repeat("x", tailindex.MaxLine+1-len(s)), 1)
	}
	var many []string
	for i := range tailindex.MaxLines {
		many = append(many, short(i+1))
	}
	longest := strings.Replace(long(1), "x", "", 1)
	for _, c := range []struct {
		name   string
		runs   [][]string
		want   []string
		oldest bool
	}{
		{"nothing else", [][]string{{long(0)}}, nil, false},
		{"the longest that fits", [][]string{{longest}}, []string{longest}, true},
		{"newest", [][]string{many, {long(200)}}, many[1:], false},
		{"among them", [][]string{{many[0], long(1)}, many[1:]}, many[1:], false},
		{"oldest", [][]string{many, {long(0)}}, many, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := mem.New(mem.Options{})
				w, stop := start(t, s, tailindex.Options{Now: func() time.Time { return now }})
				defer stop()
				sent := 0
				for i, lines := range c.runs {
					w.Accepted(1, newRun("web", uint64(i), lines...))
					sent += len(lines)
				}
				time.Sleep(time.Second)
				r := tailindex.NewReader(s, tailindex.Options{Now: func() time.Time { return now }})
				for _, errs := range []bool{false, true} {
					rows, err := r.Newest(t.Context(), "web", errs, 100)
					if err != nil || len(rows) != 1 {
						t.Fatalf("%+v, %v", rows, err)
					}
					row := rows[0]
					var got []string
					for _, e := range row.Entries {
						got = append(got, string(e.Line))
					}
					if !slices.Equal(got, c.want) || row.Count != sent || row.Omitted != sent-len(c.want) || row.OldestOmitted() != c.oldest {
						t.Errorf("errors %v: %d lines, %d of %d omitted, the oldest: %v", errs, len(got), row.Omitted, row.Count, row.OldestOmitted())
					}
				}
			})
		})
	}
}

// Many goroutines may call Accepted at the same time; all records are counted.
func TestAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New(mem.Options{})
		w, stop := start(t, s, tailindex.Options{})
		var senders sync.WaitGroup
		const each = 300
		for i := range 8 {
			senders.Go(func() {
				for n := range each {
					service := fmt.Sprint("s", n%3)
					w.Accepted(uint64(n), newRun(service, uint64(i*each+n), line(time.Now(), "error", service, fmt.Sprint(n))))
					time.Sleep(time.Duration(i+1) * 7 * time.Millisecond)
				}
			})
		}
		senders.Wait()
		stop()
		told := 0
		for i := range 3 {
			rows, err := tailindex.NewReader(s, tailindex.Options{}).Written(t.Context(), fmt.Sprint("s", i), true, time.Now().Add(-time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				told += row.Count
			}
		}
		if told != 8*each {
			t.Errorf("told of %d records of %d", told, 8*each)
		}
	})
}
