package reading_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog/horizon"
	"blobtail/internal/lease"
	"blobtail/reading"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
	"blobtail/tailindex"
)

// An account counts requests and the bytes of their answers as Azure does: a listing has pages of
// 5,000 names, and begins at its prefix, whatever name it is to start after.
type account struct {
	*mem.Store

	mu       sync.Mutex
	requests map[string]int
	bytes    map[string]int64
}

// What a page has for each name, about.
const (
	pageOf       = 5000
	bytesOfBlob  = 900
	bytesOfDir   = 60
	bytesOfEmpty = 250
)

func (a *account) count(kind string, requests int, bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests[kind] += requests
	a.bytes[kind] += bytes
}

// take returns what was counted since the last call.
func (a *account) take() (requests map[string]int, bytes map[string]int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	requests, bytes = a.requests, a.bytes
	a.requests, a.bytes = map[string]int{}, map[string]int64{}
	return requests, bytes
}

// List implements [storage.BlobStore].
func (a *account) List(ctx context.Context, prefix, after string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) {
		n := 0
		for b, err := range a.Store.List(ctx, prefix, "") {
			if n%pageOf == 0 {
				a.count("list", 1, bytesOfEmpty)
			}
			n++
			a.count("list", 0, bytesOfBlob)
			if (err != nil || b.Key > after) && !yield(b, err) {
				return
			}
		}
		if n == 0 {
			a.count("list", 1, bytesOfEmpty)
		}
	}
}

// Dirs implements [storage.BlobStore].
func (a *account) Dirs(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		n := 0
		for name, err := range a.Store.Dirs(ctx, prefix) {
			if n%pageOf == 0 {
				a.count("dirs", 1, bytesOfEmpty)
			}
			n++
			a.count("dirs", 0, bytesOfDir)
			if !yield(name, err) {
				return
			}
		}
		if n == 0 {
			a.count("dirs", 1, bytesOfEmpty)
		}
	}
}

// Get implements [storage.BlobStore].
func (a *account) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	r, err := a.Store.Get(ctx, key, off, n)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(r)
	a.count("get", 1, int64(len(body)))
	return io.NopCloser(bytes.NewReader(body)), err
}

// Scan implements [storage.TableStore].
func (a *account) Scan(ctx context.Context, table, partition, from, to string, limit int, props ...string) iter.Seq2[storage.Row, error] {
	a.count("table", 1, bytesOfEmpty)
	return a.Store.Scan(ctx, table, partition, from, to, limit, props...)
}

// reader reads the account, which no ingester writes to any more.
func (a *account) reader(ingesters int) *reading.Store {
	var rows []lease.Ingester
	for n := range ingesters {
		rows = append(rows, lease.Ingester{ID: fmt.Sprintf("%08x", n), StoreID: "s", State: lease.Idle, At: time.Now(), Lane: n})
	}
	from := blobs.New(a, blobs.Options{Workers: 1, Distant: true})
	return reading.New(reading.Options{Blobs: from, Logs: unflushed.New(unflushed.Options{
		Blobs: from, Distant: true, Tail: tailindex.NewReader(a, tailindex.Options{}),
		Store: func(context.Context) (string, error) { return "s", nil },
		Ingesters: func(context.Context) ([]lease.Ingester, time.Time, error) {
			a.count("table", 1, bytesOfEmpty)
			return rows, time.Now(), nil
		},
	})}).For(nil)
}

// newAccount has so many services, and a horizon of each for each of ten runs of retention. The
// service web has a blob of ten records in each hour of so many days, and the others have a blob.
func newAccount(t *testing.T, services, days int) *account {
	a := &account{Store: mem.New(mem.Options{})}
	a.take()
	enc, err := blobfmt.NewEncoder(blobfmt.EncoderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	number := uint64(0)
	put := func(service string, hour time.Time, records int) {
		enc.Reset()
		number++
		var from record.Origin
		binary.BigEndian.PutUint64(from[8:], number)
		for i := range records {
			at := hour.Add(time.Duration(i) * 6 * time.Minute).UnixNano()
			line := fmt.Sprintf("{\"ts\":\"%s\",\"level\":\"info\",\"service\":\"%s\",\"msg\":\"what is said\"}\n", record.AppendTime(nil, at), service)
			if err := enc.Add([]byte(line), at, from, uint32(i)); err != nil {
				t.Fatal(err)
			}
		}
		var id blobfmt.BatchID
		binary.BigEndian.PutUint64(id[8:], number)
		body, meta, err := enc.Finish(id)
		if err != nil {
			t.Fatal(err)
		}
		key := blobfmt.Name{Service: service, Period: hour, Number: 1}.String()
		storagetest.Put(t, a, key, body, storage.Attrs{Metadata: meta.Map()})
	}
	now := time.Now().Truncate(time.Hour)
	today := horizon.DayOf(now)
	publish := func(service string, marks int) {
		for n := range marks {
			if err := horizon.Publish(t.Context(), a, service, today-40-horizon.Day(n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for hour := range 24 * days {
		put("web", now.Add(-time.Duration(hour)*time.Hour), 10)
	}
	publish("web", 2) // retention removes the others
	for n := range services - 1 {
		service := fmt.Sprintf("s%05d", n)
		put(service, now, 1)
		publish(service, 10)
	}
	return a
}

// A read of one service makes the same requests, however many services and days the store has,
// and its answers have the same bytes but for the names of a month's days.
func TestRequestsOfOneService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2001, 11, 26, 0, 20, 0, 0, time.UTC))) // some minutes after midnight
		midnight := time.Now().Truncate(24 * time.Hour)
		since := func(d time.Duration) reading.Range {
			return reading.Range{From: time.Now().Add(-d).UnixNano(), To: reading.Newest}
		}
		until := func(from, to time.Duration) reading.Range {
			return reading.Range{From: midnight.Add(from).UnixNano(), To: midnight.Add(to).UnixNano()}
		}
		read := func(s *reading.Store, a reading.Ask) (*reading.Outcome, error) {
			return s.Records(t.Context(), a, func([]byte) error { return nil })
		}
		questions := []struct {
			name string
			days int // that the store has at least
			most int // requests for blobs and lists
			ask  reading.Ask
			how  func(s *reading.Store, a reading.Ask) (*reading.Outcome, error)
		}{
			{"an hour", 1, 6, reading.Ask{Range: until(-10*time.Hour, -9*time.Hour)}, read},
			{"over midnight", 1, 8, reading.Ask{Range: until(-time.Hour, 10*time.Minute)}, read},
			{"the last hour", 1, 12, reading.Ask{Range: since(time.Hour)}, read},
			{"the newest", 1, 30, reading.Ask{Range: reading.Always(), Limit: 50}, read},
			{"tail", 1, 30, reading.Ask{Range: reading.Always(), Limit: 50}, func(s *reading.Store, a reading.Ask) (*reading.Outcome, error) {
				return s.Tail(t.Context(), a, func([]byte) error { return nil })
			}},
			{"a histogram", 1, 12, reading.Ask{Range: since(time.Hour)}, func(s *reading.Store, a reading.Ask) (*reading.Outcome, error) {
				_, out, err := s.Histogram(t.Context(), a, reading.Slices{})
				return out, err
			}},
			{"a week", 7, 200, reading.Ask{Range: since(7*24*time.Hour - time.Hour), Texts: []string{"nothing has this"}}, read},
			{"a bounded week", 7, 200, reading.Ask{Range: until(-6*24*time.Hour, 0)}, read},
		}
		type cost struct {
			requests string
			bytes    int64
		}
		first := map[string]cost{}
		for _, size := range []struct{ services, days, ingesters int }{{10, 1, 1}, {10, 8, 20}, {100, 30, 1}, {10_000, 30, 20}} {
			a := newAccount(t, size.services, size.days)
			for _, q := range questions {
				if q.days > size.days {
					continue
				}
				q.ask.Services = []string{"web"}
				s := a.reader(size.ingesters)
				a.take()
				out, err := q.how(s, q.ask)
				if err != nil || !out.Complete() {
					t.Fatalf("%s: %v, %v", q.name, err, out.Problems())
				}
				requests, bytes := a.take()
				if n := requests["list"] + requests["dirs"] + requests["get"]; n > q.most {
					t.Errorf("%s: %d requests for blobs, more than %d: %v", q.name, n, q.most, requests)
				}
				if q.ask.Limit > 0 { // blobs are opened ahead, by the pace of the merge
					delete(requests, "get")
				}
				c := cost{requests: strings.TrimPrefix(fmt.Sprint(requests), "map"), bytes: bytes["list"] + bytes["get"] + bytes["dirs"]}
				t.Logf("%d services, %d days, %s: %d records, %s, %v bytes", size.services, size.days, q.name, out.Records, c.requests, bytes)
				was, ok := first[q.name]
				if !ok {
					first[q.name], was = c, c
				}
				if c.requests != was.requests || c.bytes-was.bytes > 8<<10 || was.bytes-c.bytes > 8<<10 {
					t.Errorf("%d services and %d days: %s costs %s and %d bytes, and was %s and %d bytes in the smallest store",
						size.services, size.days, q.name, c.requests, c.bytes, was.requests, was.bytes)
				}
			}
		}
	})
}

// A read of two services that is told of names that are no service makes no more requests for it, in
// each order. It is told before the first record.
func TestRequestsOfNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2001, 11, 26, 0, 20, 0, 0, time.UTC)))
		a := newAccount(t, 10, 3)
		costs := func(ask reading.Ask, told *[]string) string {
			t.Helper()
			if told != nil {
				ask.Here.Absent = func(names []*reading.NoServiceError) {
					for _, none := range names {
						*told = append(*told, none.Name)
					}
				}
			}
			a.take()
			first := -1 // how many names were told before the first record
			out, err := a.reader(1).Records(t.Context(), ask, func([]byte) error {
				if first < 0 && told != nil {
					first = len(*told)
				}
				return nil
			})
			if err != nil || !out.Complete() || first >= 0 && first < len(out.Absent) {
				t.Fatalf("%v: %v, %d of %d names before the first record", ask.Services, err, first, len(out.Absent))
			}
			requests, _ := a.take()
			delete(requests, "get") // blobs are opened ahead, by the pace of the merge
			return fmt.Sprint(requests)
		}
		for name, ask := range map[string]reading.Ask{
			"all":               {},
			"the newest":        {Limit: 3},
			"the newest first":  {Limit: 3, Reverse: true},
			"more than an hour": {Limit: 300},
			"all from the last": {Reverse: true},
		} {
			ask.Services, ask.Range = []string{"web", "s00000"}, reading.Always()
			was, told := costs(ask, nil), []string{}
			if got := costs(ask, &told); got != was || len(told) > 0 {
				t.Errorf("%s: %s, and without the names %s; told %q", name, got, was, told)
			}
			ask.Services = append(ask.Services, "nosuch")
			if costs(ask, &told); len(told) == 0 || told[0] != "nosuch" {
				t.Errorf("%s: told %q", name, told)
			}
		}
	})
}
