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

	"blobtail/buffer"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/dev/testkit/box"
	"blobtail/reading/blobs"
	"blobtail/record"
	"blobtail/source/httpsource"
)

const (
	ndjson = "application/x-ndjson"
	jsonCT = "application/json"
)

// world is the ingesters of one store, with one clock.
type world struct {
	*box.House
	t     *testing.T
	clock time.Time
	keeps time.Time // days before this one are dropped
}

func newWorld(t *testing.T) *world {
	return &world{House: box.New(t, 0), t: t, clock: time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)}
}

// ingester is one ingester, with its own log.
type ingester struct {
	*box.Ingester
	w      *world
	source *httpsource.Source
}

func (w *world) ingester(lane int) *ingester {
	in := &ingester{Ingester: w.Add(), w: w}
	in.Lease.Lane = lane
	in.Buffer = buffer.Options{Expired: func(_ string, period time.Time) bool { return period.Before(w.keeps) }}
	in.start()
	return in
}

func (in *ingester) start() {
	in.w.t.Helper()
	in.Start()
	buf := in.Process().Buffer
	in.source = httpsource.New(httpsource.Options{Accept: buf, Now: func() time.Time { return in.w.clock }})
	testkit.Until(in.w.t, "the log is replayed", buf.Replayed)
}

func (in *ingester) restart() {
	in.w.t.Helper()
	in.Kill()
	in.start()
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
		in.Flush()
	}
	plan, err := blobs.New(w.Store, blobs.Options{}).Plan(context.Background(), blobs.Query{Services: []string{"web"}, Range: blobs.Always()})
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
	l, err := in.Process().Buffer.Live(context.Background(), buffer.LiveQuery{From: math.MinInt64, To: math.MaxInt64})
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
