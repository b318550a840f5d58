package main

import (
	"context"
	"net/http"
	"time"

	"blobtail/internal/dev/corpus"
)

// sender sends the records of the shop to the ingester.
type sender struct {
	o             options
	ingest, admin string // URLs
	shop          *corpus.Shop
	rate          float64
	past          history
}

// history has the facts of the records that were there at the beginning.
type history struct {
	From    time.Time     `json:"from"`
	To      time.Time     `json:"to"` // right behind the last record
	Records int           `json:"records"`
	Counts  corpus.Counts `json:"counts"`
	Blobs   int           `json:"blobs"` // how many of the records, the oldest, are in blobs for certain
}

// batch is how many records a request has at most, and beat the time between two requests.
const batch, beat = 5000, 200 * time.Millisecond

func newSender(o options, ingest, admin string) *sender {
	if o.at.IsZero() {
		o.at = time.Now()
	}
	o.at = o.at.UTC()
	// The last requests take some seconds. None of their records is to be later than o.at.
	rate := float64(o.records) / (o.span - min(10*time.Second, o.span/10)).Seconds()
	s := &sender{o: o, ingest: ingest, admin: admin, rate: o.rate, past: history{From: o.at.Add(-o.span), Counts: corpus.Counts{}}}
	if s.rate == asHistory {
		s.rate = rate
	}
	s.shop = corpus.NewShop(corpus.ShopOptions{Seed: o.seed, From: s.past.From, Rate: rate, Incident: o.at.Add(-o.incident), Wave: o.span / 3})
	return s
}

// history sends the history. Two thirds are in blobs then, so that reads have blobs and unflushed
// records to join.
func (s *sender) history(ctx context.Context) error {
	for p := &s.past; p.Records < s.o.records; {
		sent, err := s.send(ctx, min(batch, s.o.records-p.Records), time.Time{})
		if err != nil {
			return err
		}
		for _, r := range sent {
			p.Counts.Add(r)
		}
		p.Records += len(sent)
		p.To = time.Unix(0, sent[len(sent)-1].Time+1).UTC()
		if p.Blobs == 0 && p.Records >= s.o.records*2/3 {
			if err := s.post(ctx, s.admin+"/flush", "", nil); err != nil {
				return err
			}
			p.Blobs = p.Records
		}
	}
	// The records to come go on from the end of the history, unless it is long ago.
	from := s.past.To
	if time.Since(from) > time.Minute {
		from = time.Now()
	}
	if s.rate > 0 {
		s.shop.SetRate(s.rate, from)
	}
	return nil
}

// live sends what comes, until the end of the context.
func (s *sender) live(ctx context.Context) error {
	beats := time.NewTicker(beat)
	defer beats.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-beats.C:
		}
		for n := batch; n == batch && s.rate > 0; {
			sent, err := s.send(ctx, batch, time.Now())
			if err != nil {
				return err
			}
			n = len(sent)
		}
	}
}

// send sends up to n records, none later than until if that is not zero, and returns them. Those of
// JSON are one request, and those of text one for each service.
func (s *sender) send(ctx context.Context, n int, until time.Time) (records []corpus.Record, err error) {
	bodies := map[string][]byte{}
	for len(records) < n && (until.IsZero() || s.shop.Due().Before(until)) {
		r := s.shop.Next()
		records = append(records, r)
		to := "/ingest"
		if r.Text {
			to += "/" + r.Service
		}
		bodies[to] = append(bodies[to], r.Line...)
	}
	for path, body := range bodies {
		form := "text/plain"
		if path == "/ingest" {
			form = "application/x-ndjson"
		}
		if err := s.post(ctx, s.ingest+path, form, body); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// post sends a body until it is acknowledged: an ingester may be full for some time. A repeat is
// known by the times of its records.
func (s *sender) post(ctx context.Context, url, form string, body []byte) error {
	for begun := time.Now(); ; {
		_, err := corpus.Post(ctx, url, http.Header{"Content-Type": {form}}, 1, [][]byte{body})
		if err == nil || ctx.Err() != nil || time.Since(begun) > patience {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(beat):
		}
	}
}
