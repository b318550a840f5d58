// Package repeats holds tests of repeated requests. They run the HTTP source and the
// buffer over a real log, blobs, and a reader of these.
package repeats_test

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/blobwriter"
	"blobtail/buffer"
	"blobtail/buffer/wal"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/source/httpsource"
	"blobtail/storage/mem"
)

const (
	ndjson = "application/x-ndjson"
	jsonCT = "application/json"
)

// world is the ingesters of one store, with one clock.
type world struct {
	t     *testing.T
	store *mem.Store
	clock time.Time
	keeps time.Time // days before this one are dropped
}

func newWorld(t *testing.T) *world {
	return &world{t: t, store: mem.New(mem.Options{}), clock: time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)}
}

// ingester is one ingester, with its own log.
type ingester struct {
	w      *world
	dir    string
	lane   int
	buf    *buffer.Buffer
	source *httpsource.Source
	stop   func()
}

// sink stores batches as cmd/ingest does.
type sink struct{ *blobwriter.Writer }

func (s sink) Write(ctx context.Context, b *buffer.Batch) error { return s.Writer.Write(ctx, b) }

func (w *world) ingester(lane int) *ingester {
	in := &ingester{w: w, dir: w.t.TempDir(), lane: lane}
	in.start()
	w.t.Cleanup(func() { in.stop() })
	return in
}

func (in *ingester) start() {
	t := in.w.t
	t.Helper()
	log, err := wal.Open(in.dir, wal.Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	writer := blobwriter.New(in.w.store, blobwriter.Options{}, nil)
	if err := writer.SetLane(in.lane); err != nil {
		t.Fatal(err)
	}
	in.buf = buffer.New(log, sink{writer}, buffer.Options{
		Expired: func(_ string, period time.Time) bool { return period.Before(in.w.keeps) },
	})
	in.source = httpsource.New(httpsource.Options{Accept: in.buf, Now: func() time.Time { return in.w.clock }})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- in.buf.Run(ctx) }()
	for !in.buf.Replayed() {
		time.Sleep(time.Millisecond)
	}
	in.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
}

func (in *ingester) restart() {
	in.w.t.Helper()
	in.stop()
	in.start()
}

func (in *ingester) flush() {
	in.w.t.Helper()
	if left, err := in.buf.Flush(context.Background()); err != nil {
		in.w.t.Fatalf("flush: %v, left %+v", err, left)
	}
}

// answer is the answer to a sender.
type answer struct {
	Accepted, Rejected, Expired int
	Duplicate                   bool
}

// request is one request, kept by its sender for a repeat.
type request struct {
	contentType, key, from, body string
	query                        string // of the URL, with its question mark
}

func (in *ingester) post(q request) answer {
	in.w.t.Helper()
	status, a := in.try(q)
	if status != http.StatusOK {
		in.w.t.Fatalf("status %d", status)
	}
	return a
}

func (in *ingester) try(q request) (status int, a answer) {
	in.w.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/ingest/web"+q.query, strings.NewReader(q.body))
	r.Header.Set("Content-Type", q.contentType)
	if q.key != "" {
		r.Header.Set("Idempotency-Key", q.key)
	}
	if q.from != "" {
		r.RemoteAddr = q.from
	}
	w := httptest.NewRecorder()
	in.source.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		in.w.t.Fatal(err)
	}
	return w.Code, a
}

// read flushes ingesters and returns the messages of service web in the blobs, in
// alphabetical order.
func (w *world) read(ins ...*ingester) string {
	w.t.Helper()
	for _, in := range ins {
		in.flush()
	}
	plan, err := blobs.New(w.store, blobs.Options{}).Plan(context.Background(), blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	sum, err := plan.Read(context.Background(), func(lines []byte) error {
		for line := range strings.Lines(string(lines)) {
			var r struct{ Msg string }
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				return err
			}
			all = append(all, r.Msg)
		}
		return nil
	})
	if err != nil || !sum.Complete() {
		w.t.Fatalf("%v, %+v", err, sum)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// live returns the number of unflushed records of an ingester.
func (in *ingester) live() (n int) {
	in.w.t.Helper()
	l, err := in.buf.Live(context.Background(), buffer.LiveQuery{From: math.MinInt64, To: math.MaxInt64})
	if err != nil {
		in.w.t.Fatal(err)
	}
	defer l.Close()
	err = l.Each(context.Background(), func(e *record.Entry) error {
		if service, _ := record.LineService(e.Line); string(service) == "web" {
			n++
		}
		return nil
	})
	if err != nil {
		in.w.t.Fatal(err)
	}
	return n
}
