package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	results "blobtail/docs/measured/scale"
	"blobtail/internal/config"
	"blobtail/internal/dev/scale"
	"blobtail/internal/dev/testkit"
	"blobtail/record/ack"
)

// The measured time lies in the midst of an hour, so that the boundary of a period is not in it,
// and far from the multiples of flush.max-age, so that each flush is wholly in it or not at all:
// a batch begins with the hour, and each later one with the end of the one before.
const (
	scaleWarm = 3 * time.Minute
	scaleSpan = 30 * time.Minute
)

// load is what each ingester is sent: rate records a second of each of the services.
type load struct {
	services int
	rate     int
	min      config.Size   // flush.min; 0: the default
	ship     time.Duration // ship.every, with answers of shipped; 0: those of disk
	pause    time.Duration // between two requests; 0: a second
}

// settings are those of an ingester with the load.
func (l load) settings(c *config.Config) {
	c.Flush.Min = cmp.Or(l.min, c.Flush.Min)
	if l.ship > 0 {
		c.Ingest.Ack, c.Ship.Every = ack.Shipped, config.Duration(l.ship)
	}
}

// sent counts records that were accepted, and their bytes.
type sent struct{ records, bytes atomic.Int64 }

// send sends an ingester the records of each second, or of each pause, until ctx ends. A request has
// those of all services, as that of a shipper of a host has.
func (f *fleet) send(ctx context.Context, l load, i int, sent *sent) {
	lines, names := scale.NewLines(uint64(i)), scale.Services(l.services)
	pause := cmp.Or(l.pause, time.Second)
	each := int(pause * time.Duration(l.rate) / time.Second)
	var body []byte
	for from := time.Now().Truncate(time.Second).Add(time.Second); ; from = from.Add(pause) {
		select {
		case <-time.After(time.Until(from.Add(pause))):
		case <-ctx.Done():
			return
		}
		body = body[:0]
		for k := range each {
			at := from.Add(time.Duration(k) * time.Second / time.Duration(l.rate))
			for _, name := range names {
				body = lines.Append(body, name, at)
			}
		}
		if err := f.ask(f.hosts[i], "/ingest", body); err != nil {
			f.t.Errorf("send: %v", err)
			return
		}
		sent.records.Add(int64(each * len(names)))
		sent.bytes.Add(int64(len(body)))
	}
}

// now is the state of the account and of the senders.
func (f *fleet) now(sent *sent) scale.Ingest {
	_, stored := f.account.Stored()
	tail := f.account.Written(config.Default().Tail.Prefix)
	return scale.Ingest{
		Records: sent.records.Load(), RawBytes: sent.bytes.Load(), StoredBytes: stored,
		TailBytes: tail.Bytes, TailRows: tail.Rows, Requests: f.account.Counts(), Detail: f.account.Detail(),
	}
}

// ingest runs n ingesters under a load in virtual time and returns what they did in the measured
// time, all of them together.
func ingest(t *testing.T, n int, l load) (r scale.Ingest) {
	// Within a bubble the goroutine of package signal would stop the time.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	defer signal.Stop(signals)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := startFleet(t, n, l)
		ctx, stop := context.WithCancel(t.Context())
		var sent sent
		var sending sync.WaitGroup
		for i := range n {
			sending.Go(func() { f.send(ctx, l, i, &sent) })
		}
		time.Sleep(time.Until(start.Add(scaleWarm)))
		before := f.now(&sent)
		time.Sleep(scaleSpan)
		r = since(before, f.now(&sent))
		stop()
		sending.Wait()
		f.stop()
		f.ended.Wait()
		f.client.CloseIdleConnections()
		r.Flush = f.flush
	})
	r.Services, r.Ingesters, r.RecordsPerSecond, r.VirtualSeconds = l.services, n, float64(l.rate), int(scaleSpan.Seconds())
	writes := r.Detail["table_write "+config.Default().Tail.Prefix]
	if writes > 0 { // a service's rows of one time are a transaction
		every := scaleSpan * time.Duration(l.services*n) / time.Duration(writes)
		r.TailEvery = config.Duration(every.Round(100 * time.Millisecond)).String()
	}
	return r
}

// since is the difference of two states.
func since(before, after scale.Ingest) scale.Ingest {
	detail := map[string]int64{}
	for what, n := range after.Detail {
		if n -= before.Detail[what]; n > 0 {
			detail[what] = n
		}
	}
	requests := after.Requests.Since(before.Requests)
	return scale.Ingest{
		Records: after.Records - before.Records, RawBytes: after.RawBytes - before.RawBytes, StoredBytes: after.StoredBytes - before.StoredBytes,
		TailBytes: after.TailBytes - before.TailBytes, TailRows: after.TailRows - before.TailRows,
		Requests: requests, Refused: requests.Refused, Detail: detail,
	}
}

// The load of each ingester in the case of docs/measured/scale.md, and ingesters that have a tenth of its
// services each instead, with flush.min as docs/operate/partitions.md has it. small is a hundredth of the case.
const (
	scaleIngesters = 20
	scaleServices  = 200
	scaleRate      = 9
)

func small() load { return load{services: scaleServices / 100, rate: scaleRate} }
func whole() load { return load{services: scaleServices, rate: scaleRate} }
func partitions() load {
	return load{services: scaleServices / scaleIngesters, rate: scaleRate * scaleIngesters, min: 16 << 20}
}

// restless is a load of shipped records without a rest: ten requests a second.
func restless(every time.Duration) load {
	return load{services: scaleServices / 100, rate: 10, ship: every, pause: 100 * time.Millisecond}
}

// one is the result of one of the ingesters.
func one(t *testing.T, l load) scale.Ingest {
	r := ingest(t, 1, l)
	r.Ingesters = scaleIngesters
	return r
}

// apart compares the requests of all ingesters at once with those of one. The start of each falls
// on another part of a second, so a request in a hundred may lie beyond the measured time.
func apart(t *testing.T) scale.Apart {
	one, all := ingest(t, 1, small()), ingest(t, scaleIngesters, small())
	a := scale.Apart{Services: one.Services, Ingesters: scaleIngesters, One: one.Requests, All: all.Requests, Exceptions: map[string][2]int64{}}
	for what, n := range all.Detail {
		if !near(n, scaleIngesters*one.Detail[what], 0.01) {
			a.Exceptions[what] = [2]int64{one.Detail[what], n}
		}
	}
	return a
}

// near reports whether a number is about another one.
func near(n, want int64, share float64) bool {
	return math.Abs(float64(n-want)) <= share*float64(want)
}

// TestScaleIngest is the part of `make scale` that measures ingesters. It writes its result.
func TestScaleIngest(t *testing.T) {
	dir := os.Getenv("BLOBTAIL_SCALE")
	if dir == "" {
		t.Skip("make scale runs it; it takes minutes")
	}
	var a struct {
		Default    scale.Ingest `json:"default"`
		Partitions scale.Ingest `json:"partitions"`
		Shipped    scale.Ingest `json:"shipped"`
		ShippedS   scale.Ingest `json:"shipped_1s"`
	}
	a.Default, a.Partitions = one(t, whole()), one(t, partitions())
	a.Shipped, a.ShippedS = one(t, restless(250*time.Millisecond)), one(t, restless(time.Second))
	file, err := scale.Update(dir, map[string]any{"a": a, "apart": apart(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("written: " + file)
}

// The result in docs/measured/scale is whole, is that of the defaults, and agrees with a run at a hundredth
// of its size: what each service costs is a hundredth, and what an ingester costs is the same.
func TestScaleResult(t *testing.T) {
	testkit.FullOnly(t, "the detector would find nothing: the ingester is that of the command's other tests")
	const stale = "docs/measured/scale is not of this program; make scale measures again: "
	var result struct {
		Version               int
		Date, Commit, Machine string
		A                     map[string]scale.Ingest
		Apart                 *scale.Apart
		B                     json.RawMessage
	}
	d := json.NewDecoder(bytes.NewReader(results.Latest()))
	d.DisallowUnknownFields()
	if err := d.Decode(&result); err != nil {
		t.Fatal(stale, err)
	}
	if result.Version != 1 || result.Date == "" || result.Commit == "" || result.Machine == "" || result.Apart == nil {
		t.Errorf(stale+"%+v", result)
	}
	sameFields(t, result.A)
	short := one(t, small())
	c, err := scaleConfig(t.TempDir(), "10.1.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]load{"default": whole(), "partitions": partitions()} {
		r, ok := result.A[name]
		want := scale.Ingest{Services: l.services, Ingesters: scaleIngesters, RecordsPerSecond: float64(l.rate), VirtualSeconds: int(scaleSpan.Seconds())}
		if !ok || r.Services != want.Services || r.Ingesters != want.Ingesters || r.RecordsPerSecond != want.RecordsPerSecond || r.VirtualSeconds != want.VirtualSeconds {
			t.Errorf(stale+"a.%s is of another case: %+v", name, r)
		}
		c := c
		l.settings(&c)
		if r.Flush != flushOf(c) || r.TailEvery != short.TailEvery {
			t.Errorf(stale+"a.%s has %+v and %s, its settings are %+v and %s", name, r.Flush, r.TailEvery, flushOf(c), short.TailEvery)
		}
		if want := int64(l.services * l.rate * r.VirtualSeconds); r.Records != want || r.Requests.Put*r.StoredBytes*r.TailBytes*r.TailRows == 0 || r.Refused != 0 {
			t.Errorf(stale+"a.%s: %d records, want %d: %+v", name, r.Records, want, r)
		}
	}
	for name, every := range map[string]time.Duration{"shipped": 250 * time.Millisecond, "shipped_1s": time.Second} {
		if puts, n := int64(scaleSpan/every), result.A[name].Detail["put _wal"]; n != puts {
			t.Errorf(stale+"a.%s has %d objects of shipped records, not one each %v: %d", name, n, every, puts)
		}
	}
	if r := one(t, restless(250*time.Millisecond)); !maps.Equal(r.Detail, result.A["shipped"].Detail) {
		t.Errorf(stale+"a.shipped: %v, now %v", result.A["shipped"].Detail, r.Detail)
	}
	r := result.A["default"]
	for name, n := range map[string][2]int64{
		"records": {short.Records, r.Records}, "raw_bytes": {short.RawBytes, r.RawBytes}, "stored_bytes": {short.StoredBytes, r.StoredBytes},
		"tail_bytes": {short.TailBytes, r.TailBytes}, "tail_rows": {short.TailRows, r.TailRows}, "requests.put": {short.Requests.Put, r.Requests.Put},
	} {
		if !near(100*n[0], n[1], 0.05) { // the names of services differ in length
			t.Errorf(stale+"a.default.%s is %d, and %d in a run at a hundredth", name, n[1], n[0])
		}
	}
	for what, n := range r.Detail {
		of := short.Detail[what]
		if what == "put blobs" || what == "table_write "+config.Default().Tail.Prefix {
			of *= 100
		}
		if !near(of, n, 0.02) {
			t.Errorf(stale+"%s: %d, and %d in a run at a hundredth, times 100 where services count", what, n, of)
		}
	}
	if a := result.Apart; a.Ingesters != scaleIngesters || len(a.Exceptions) > 0 || !near(a.One.Requests(), short.Requests.Requests(), 0.01) || !near(a.All.Requests(), scaleIngesters*a.One.Requests(), 0.01) {
		t.Errorf(stale+"ingesters have an effect on each other, or the test is another one: %+v", a)
	}
}

// sameFields ensures that a file of results has each field.
func sameFields(t *testing.T, want map[string]scale.Ingest) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"a": want})
	if err != nil {
		t.Fatal(err)
	}
	var full, got struct {
		A map[string]map[string]json.RawMessage
	}
	if err := errors.Join(json.Unmarshal(text, &full), json.Unmarshal(results.Latest(), &got)); err != nil {
		t.Fatal(err)
	}
	for name, fields := range full.A {
		for field := range fields {
			if _, ok := got.A[name][field]; !ok {
				t.Errorf("docs/measured/scale lacks a.%s.%s; make scale", name, field)
			}
		}
	}
}
