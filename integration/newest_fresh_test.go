package integration_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/internal/dev/check"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
)

const (
	// fresh is the limit for the time from a record's acknowledgement to its output.
	fresh = 2 * time.Second
	// window is the time for which a follower holds records back to sort them, and
	// rowsWindow that of one without live records.
	window, rowsWindow = 500 * time.Millisecond, 400 * time.Millisecond
)

// flow sends records of one service to all ingesters of a house at a steady rate,
// with current times, and checks a follower's output against them.
type flow struct {
	t       testing.TB
	senders []*flowSender
	size    int // records in a body

	probed atomic.Bool

	shown atomic.Int64 // printed records

	// Used only by the goroutine that reads the follower's output.
	twice, strange int
	greatest       int64
	greatestID     string
	late           int           // records printed after one of a greater time
	deepest        time.Duration // the greatest delay of such a record
	soonest        time.Duration // after the greater time, the least time until such a record
	wrong          string        // which one that was
}

// flowSender is one sender. A record is identified by the sender and its number.
type flowSender struct {
	acked   []atomic.Int64 // when each body was acknowledged, in ns
	sent    int            // acknowledged bodies
	printed []int64        // when each record was printed, in ns; 0: not yet
}

// again returns the same flow for the output of another follower.
func (f *flow) again() *flow {
	other := &flow{t: f.t, size: f.size}
	for _, s := range f.senders {
		other.senders = append(other.senders, &flowSender{acked: s.acked, printed: make([]int64, len(s.printed))})
	}
	return other
}

// newFlow makes room for the given number of records a second over the given time.
func newFlow(t testing.TB, senders, perSecond int, pause, lasts time.Duration) *flow {
	f := &flow{t: t, size: max(1, int(float64(perSecond)*pause.Seconds())/senders)}
	for range senders {
		bodies := int(lasts/pause) + 1
		f.senders = append(f.senders, &flowSender{acked: make([]atomic.Int64, bodies), printed: make([]int64, bodies*f.size)})
	}
	return f
}

// run sends for the given time and returns the number of acknowledged records.
func (f *flow) run(h *house, service string, pause, lasts time.Duration) (sent int) {
	var running sync.WaitGroup
	begun := time.Now()
	for k, s := range f.senders {
		running.Go(func() {
			p := h.p(k % len(h.ps))
			phase := pause * time.Duration(k) / time.Duration(len(f.senders))
			var body []byte
			for n := range s.acked {
				// Late ones are not left out, so that the nominal rate is kept.
				time.Sleep(time.Until(begun.Add(phase + time.Duration(n)*pause)))
				if time.Since(begun) > lasts {
					return
				}
				body = body[:0]
				at := time.Now().UnixNano()
				for i := range f.size {
					id := "s" + strconv.Itoa(k) + "-" + strconv.Itoa(n*f.size+i)
					body = appendRecord(body, at+int64(i), id, "GET /api/orders/4711 200 in 13 ms for 10.0.0.7")
				}
				if code, a, _, err := p.post("/ingest/"+service, body); err != nil || code != 200 || a.Accepted != f.size {
					f.t.Errorf("sender %d: %d %+v, %v", k, code, a, err)
					return
				}
				s.acked[n].Store(time.Now().UnixNano())
				s.sent++
			}
		})
	}
	running.Wait()
	for _, s := range f.senders {
		sent += s.sent * f.size
	}
	return sent
}

// line processes a line of the follower.
func (f *flow) line(line []byte, at time.Time) {
	id := check.ID(line)
	if strings.HasPrefix(id, "probe-") {
		f.probed.Store(true)
		return
	}
	sender, number, _ := strings.Cut(id, "-")
	k, err1 := strconv.Atoi(strings.TrimPrefix(sender, "s"))
	n, err2 := strconv.Atoi(number)
	t, ok := record.LineTime(line)
	if err1 != nil || err2 != nil || !ok || k >= len(f.senders) || n >= len(f.senders[k].printed) {
		f.strange++
		f.t.Errorf("printed, and never sent: %.200s", line)
		return
	}
	if f.senders[k].printed[n] != 0 {
		f.twice++
		return
	}
	f.senders[k].printed[n] = at.UnixNano()
	f.shown.Add(1)
	if t >= f.greatest {
		f.greatest, f.greatestID = t, id
		return
	}
	// It reached the follower after the other had waited for the window.
	f.late++
	f.deepest = max(f.deepest, time.Duration(f.greatest-t))
	if since := time.Duration(at.UnixNano() - f.greatest); f.wrong == "" || since < f.soonest {
		f.soonest = since
		f.wrong = fmt.Sprintf("%s is printed behind %s, which is %v newer, %v after the time of that", id, f.greatestID, time.Duration(f.greatest-t), since)
	}
}

// shows returns the number of printed records.
func (f *flow) shows() int { return int(f.shown.Load()) }

// latencies returns the time from acknowledgement to output of each record, sorted.
func (f *flow) latencies() (all []time.Duration) {
	for _, s := range f.senders {
		for n, at := range s.printed {
			if acked := s.acked[n/f.size].Load(); acked != 0 && at != 0 {
				all = append(all, max(0, time.Duration(at-acked)))
			}
		}
	}
	slices.Sort(all)
	return all
}

// judge reports errors in the output, and its freshness. The reader holds records back for
// the given time at least.
func (f *flow) judge(t *testing.T, reader *following, sent int, took, limit, held time.Duration) {
	t.Helper()
	all := f.latencies()
	if len(all) == 0 {
		t.Fatal("nothing was printed")
	}
	p := func(share float64) time.Duration {
		return all[min(len(all)-1, int(share*float64(len(all))))].Round(time.Millisecond)
	}
	t.Logf("%d records at %.0f/s; printed after p50 %v, p99 %v, max %v; %d behind a newer one, by %v at most",
		sent, float64(sent)/took.Seconds(), p(0.5), p(0.99), p(1), f.late, f.deepest.Round(time.Millisecond))
	if f.twice > 0 {
		t.Errorf("%d records are printed twice", f.twice)
	}
	if p(0.99) > limit {
		t.Errorf("p99 is %v, want %v by the pace of this machine", p(0.99), limit)
	}
	// A follower may have to read blobs after all, since a log was given up at that
	// very moment. It then reports that and prints its records at once.
	if f.wrong != "" && f.soonest < held && !strings.Contains(reader.Log(), "blobs are read instead") {
		t.Errorf("out of order without need: %s", f.wrong)
	}
}

// rateOf returns how many records a second a test sends: the promised rate on an
// otherwise idle host. The daily run has two cores, next to other packages, for three
// ingesters, Azurite, senders and followers, and sends three in ten of them.
func rateOf(t testing.TB, promised int) int {
	t.Helper()
	text := os.Getenv("BLOBTAIL_RATE")
	if text == "" {
		if _, long := torture(t); long {
			return promised
		}
		return promised * 3 / 10
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("BLOBTAIL_RATE=%s is no number", text)
	}
	return n
}

// briefly returns the duration of a test that holds all its records in memory: the
// daily duration, or a minute or two in a long run.
func briefly(t testing.TB, daily, most time.Duration) time.Duration {
	return min(lasting(t, daily), max(daily, most))
}

// eachStore runs a test on a directory and on Azurite, one after the other: it
// measures times.
func eachStore(t *testing.T, test func(t *testing.T, at place)) {
	t.Run("dir", func(t *testing.T) {
		at, _ := dirStore(t)
		test(t, at)
	})
	t.Run("azure", func(t *testing.T) {
		at, _ := azureStore(t)
		test(t, at)
	})
}

// logquery tail -f prints each record of three ingesters once, within two seconds, in
// the order of time except for records that reached the follower late. A second
// follower has no live records. It prints the records in the tail's rows of a busy
// service and reports the number of the rest. The printed and the reported records
// add up to the sent ones.
func TestFreshAndInOrder(t *testing.T) {
	eachStore(t, func(t *testing.T, at place) {
		lasts, pause := briefly(t, 2500*time.Millisecond, time.Minute), 60*time.Millisecond
		h := newHouse(t, at, 3, "--flush-age", "3s", "--flush-min", "64KiB", "--tail-every", "1s")
		live := newFlow(t, 6, rateOf(t, 50_000), pause, lasts)
		reader := follow(t, h.read, live.line, "tail", "web", "-f", "-n", "0")
		rows := live.again()
		poor := follow(t, at, rows.line, "tail", "web", "-f", "-n", "0", "--live", "off")
		probe(t, h.p(0), "web", func() bool { return live.probed.Load() && rows.probed.Load() })
		begun, pace := time.Now(), measurePace()
		sent := live.run(h, "web", pause, lasts)
		took := time.Since(begun)
		testkit.Until(t, "all is printed", func() bool { return live.shows() >= sent && rows.shows()+poor.told() >= sent })
		time.Sleep(time.Second) // for duplicates
		reader.interrupt()
		poor.interrupt()
		// A follower that gets no processor for a while prints a large answer at once, so that
		// it holds the last records of that back for less.
		limit := pace.endBusy(fresh)
		live.judge(t, reader, sent, took, limit, window-pace.most)
		if live.shows() != sent {
			t.Errorf("%d records printed of %d", live.shows(), sent)
		}
		rows.judge(t, poor, sent, took, limit, rowsWindow-pace.most)
		told := poor.told()
		t.Logf("without live records %d were printed and %d told of", rows.shows(), told)
		if rows.shows()+told != sent || rows.shows() == 0 {
			t.Errorf("%d records sent, %d printed and %d told of", sent, rows.shows(), told)
		}
	})
}

// As long as the rows of the tail hold all records, a follower without live records
// prints each record once, soon after its acknowledgement: after the interval of the rows.
func TestFreshRows(t *testing.T) {
	t.Run("1s", func(t *testing.T) { freshRows(t, fresh, "--tail-every", "1s") })
	t.Run("auto", func(t *testing.T) { freshRows(t, fresh+4*time.Second) }) // 5 s: an address is advertised
}

func freshRows(t *testing.T, want time.Duration, flags ...string) {
	stores(t, func(t *testing.T, at place) { // so few records that the two do not disturb each other
		lasts, pause := briefly(t, 3*time.Second, time.Minute), 150*time.Millisecond
		h := newHouse(t, at, 3, flags...)
		f := newFlow(t, 6, 3*14, pause, lasts) // a row holds 100: all of an ingester in a short run
		reader := follow(t, at, f.line, "tail", "web", "-f", "-n", "0", "--live", "off")
		probe(t, h.p(0), "web", f.probed.Load)
		begun, pace := time.Now(), measurePace()
		sent := f.run(h, "web", pause, lasts)
		took := time.Since(begun)
		testkit.Until(t, "all is printed", func() bool { return f.shows()+reader.told() >= sent })
		time.Sleep(time.Second) // for duplicates
		reader.interrupt()
		limit := pace.endBusy(want)
		f.judge(t, reader, sent, took, limit, rowsWindow-pace.most)
		if told := reader.told(); f.shows() != sent || told != 0 {
			t.Errorf("%d records printed of %d, and %d more told of", f.shows(), sent, told)
		}
	})
}
