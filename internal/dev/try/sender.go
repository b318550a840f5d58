package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"blobtail/internal/dev/shop"
)

// sender sends the records of the shop to the ingester.
type sender struct {
	o             options
	ingest, admin string // URLs

	sending sync.Mutex // held while records are sent, so that a new rate comes between two batches
	shop    *shop.Generator
	rate    float64

	mu       sync.Mutex // of the facts, of what is acknowledged
	past     history
	now      live
	incident shop.Incident
}

// counts are numbers of records by service and level.
type counts map[string]map[string]int

func (c counts) add(records []shop.Record) {
	for _, r := range records {
		if c[r.Service] == nil {
			c[r.Service] = map[string]int{}
		}
		c[r.Service][r.Level.String()]++
	}
}

// history has the facts of the records that were there at the beginning.
type history struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"` // right behind the last record
	Records int       `json:"records"`
	Counts  counts    `json:"counts"`
	Blobs   int       `json:"blobs"` // how many of the records, the oldest, are in blobs for certain
}

// live has the facts of the later records that the ingester has acknowledged.
type live struct {
	Rate    float64   `json:"rate"`
	Records int       `json:"records"`
	Counts  counts    `json:"counts"`
	Last    time.Time `json:"last,omitzero"` // time of the last record
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
	s := &sender{o: o, ingest: ingest, admin: admin, rate: o.rate, past: history{From: o.at.Add(-o.span), Counts: counts{}}, now: live{Counts: counts{}}}
	if s.rate == asHistory {
		s.rate = rate
	}
	s.now.Rate = s.rate
	s.shop = shop.New(shop.Options{Seed: o.seed, From: s.past.From, Rate: rate, Incident: o.at.Add(-o.incident), Wave: o.span / 3})
	return s
}

// history sends the history. Two thirds are in blobs then, so that reads have blobs and unflushed
// records to join.
func (s *sender) history(ctx context.Context) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	flushed := false
	for s.past.Records < s.o.records {
		sent, err := s.send(ctx, min(batch, s.o.records-s.past.Records), time.Time{})
		if err != nil {
			return err
		}
		s.acknowledged(func() {
			s.past.Records += len(sent)
			s.past.To = time.Unix(0, sent[len(sent)-1].Time+1).UTC()
			s.past.Counts.add(sent)
		})
		if !flushed && s.past.Records >= s.o.records*2/3 {
			if err := s.flush(ctx); err != nil {
				return err
			}
			flushed, s.past.Blobs = true, s.past.Records
		}
	}
	// The records to come go on from the end of the history, unless it is long ago.
	if s.rate > 0 {
		from := s.past.To
		if time.Since(from) > time.Minute {
			from = time.Now()
		}
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
			if err := s.due(ctx); err != nil {
				return err
			}
		}
	}
}

// due sends the records whose time has come.
func (s *sender) due(ctx context.Context) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	for s.rate > 0 {
		sent, err := s.send(ctx, batch, time.Now())
		if err != nil {
			return err
		}
		s.acknowledged(func() {
			s.now.Records += len(sent)
			if len(sent) > 0 {
				s.now.Last = time.Unix(0, sent[len(sent)-1].Time).UTC()
			}
			s.now.Counts.add(sent)
		})
		if len(sent) < batch {
			break
		}
	}
	return nil
}

// acknowledged changes the facts by a batch.
func (s *sender) acknowledged(by func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by()
	s.incident = s.shop.Incident()
}

// setRate changes the live rate, after the batch on its way.
func (s *sender) setRate(rate float64) {
	s.sending.Lock()
	defer s.sending.Unlock()
	if rate > 0 {
		s.shop.SetRate(rate, time.Now())
	}
	s.rate = rate
	s.acknowledged(func() { s.now.Rate = rate })
}

// facts are the present ones.
func (s *sender) facts() (history, live, shop.Incident) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now
	now.Counts = counts{}
	for service, levels := range s.now.Counts {
		now.Counts[service] = map[string]int{}
		for l, n := range levels {
			now.Counts[service][l] = n
		}
	}
	return s.past, now, s.incident
}

// send sends up to n records, none later than until if that is not zero, and returns them. Those of
// JSON are one request, and those of text one for each service.
func (s *sender) send(ctx context.Context, n int, until time.Time) (records []shop.Record, err error) {
	var lines body
	texts := map[string]*body{}
	for len(records) < n && (until.IsZero() || s.shop.Due().Before(until)) {
		r := s.shop.Next()
		records = append(records, r)
		to := &lines
		if r.Text {
			if to = texts[r.Service]; to == nil {
				to = &body{}
				texts[r.Service] = to
			}
		}
		to.add(r.Line)
	}
	err = s.post(ctx, s.ingest+"/ingest", "application/x-ndjson", lines)
	for service, b := range texts {
		if err == nil {
			err = s.post(ctx, s.ingest+"/ingest/"+service, "text/plain", *b)
		}
	}
	return records, err
}

// body is that of a request.
type body struct {
	bytes.Buffer
	records int
}

func (b *body) add(line []byte) {
	b.Write(line)
	b.records++
}

// post sends records until they are acknowledged. A repeat is known by the times of its records.
func (s *sender) post(ctx context.Context, url, form string, b body) error {
	if b.records == 0 {
		return nil
	}
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		status, text, err := post(ctx, url, form, b.Bytes())
		var answer struct{ Accepted, Rejected int }
		switch {
		case err == nil && status == http.StatusOK:
			if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Accepted != b.records {
				return fmt.Errorf("%d records, and the answer %s", b.records, text)
			}
			return nil
		case err == nil && status < 500 && status != http.StatusTooManyRequests:
			return fmt.Errorf("the ingester refused records: %d %s", status, text)
		}
		select { // it was killed and starts again, or it is full
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// flush returns when all records are in blobs.
func (s *sender) flush(ctx context.Context) error {
	status, text, err := post(ctx, s.admin+"/flush", "", nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("/flush: %d %s", status, text)
	}
	return err
}

// post sends a body, and returns the answer.
func post(ctx context.Context, url, form string, body []byte) (status int, text string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if form != "" {
		r.Header.Set("Content-Type", form)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(all), err
}
