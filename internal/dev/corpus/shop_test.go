package corpus_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/corpus"
)

// at is the time of the incident in these tests.
func at() time.Time { return time.Date(2026, 11, 20, 11, 48, 0, 0, time.UTC) }

// parsed is a record, and what its line has.
type parsed struct {
	corpus.Record `json:"-"`
	TS            time.Time `json:"ts"`
	Word          string    `json:"level"`
	Name          string    `json:"service"`
	Msg           string    `json:"msg"`
	Version       string    `json:"version"`
	RequestID     string    `json:"request_id"`
	TraceID       string    `json:"trace_id"`
}

// shop makes records of two hours, with the incident twelve minutes before their end.
func shop(t *testing.T, seed uint64) (all []parsed, _ corpus.Incident) {
	t.Helper()
	s := corpus.NewShop(corpus.ShopOptions{Seed: seed, From: at().Add(-108 * time.Minute), Rate: 5, Incident: at()})
	for range 36_000 {
		p := parsed{Record: s.Next()}
		if err := json.Unmarshal(p.Line, &p); err != nil && !p.Text {
			t.Fatalf("%v: %s", err, p.Line)
		}
		all = append(all, p)
	}
	return all, s.Incident()
}

func TestShop(t *testing.T) {
	all, incident := shop(t, 1)
	again, _ := shop(t, 1)
	other, _ := shop(t, 2)
	different := 0
	for i, r := range all {
		if i > 0 && r.Time < all[i-1].Time || !bytes.Equal(r.Line, again[i].Line) {
			t.Fatalf("record %d is older than the one before, or %s the next time", i, again[i].Line)
		}
		if !bytes.Equal(r.Line, other[i].Line) {
			different++
		}
		same := r.Text || r.TS.UnixNano() == r.Time && r.Word == r.Level.String() && r.Name == r.Service && r.RequestID == r.ID
		if !same || !slices.Contains(corpus.ShopServices(), r.Service) {
			t.Fatalf("%+v of %s", r, r.Line)
		}
		if isNew := strings.HasPrefix(r.Msg, incident.Message) || strings.HasPrefix(r.Msg, incident.Before); isNew &&
			(r.TS.Before(at()) || r.Service != incident.Service || r.Version != incident.NewVersion) {
			t.Fatalf("a part of the incident: %s", r.Line)
		}
	}
	end := time.Unix(0, all[len(all)-1].Time).Sub(at().Add(12 * time.Minute))
	if different < len(all)*9/10 || end.Abs() > 30*time.Second {
		t.Errorf("another seed makes %d other records of %d; they end %s off", different, len(all), end)
	}
	// Each kind of wild record comes soon, before and after the incident.
	for _, kind := range []string{"IllegalStateException", "warehouse feed", "keepalive pool", "reopening log files", "slow query",
		"invoice made", "<b>red</b>", "imported from the old system", "Grüße"} {
		count := func(some []parsed) (n int) {
			for _, r := range some {
				if strings.Contains(string(r.Line), kind) {
					n++
				}
			}
			return n
		}
		since := slices.IndexFunc(all, func(r parsed) bool { return r.Time >= at().UnixNano() })
		if soon, before, later := count(all[:1000]), count(all[:since]), count(all[since:]); soon == 0 || before < 3 || later == 0 {
			t.Errorf("%s: %d in the first 1,000 records, %d before the incident, %d since", kind, soon, before, later)
		}
	}
}

// In each request with the new message, the warning is right before it.
func TestIncident(t *testing.T) {
	all, incident := shop(t, 3)
	requests := map[string][]parsed{}
	errors := map[bool]float64{} // since the deploy, or before
	for _, r := range all {
		requests[r.RequestID] = append(requests[r.RequestID], r)
		if r.Word == "error" {
			errors[!r.TS.Before(at())]++
		}
	}
	if before, since := errors[false]/108, errors[true]/12; since < 5*before || before == 0 {
		t.Errorf("errors a minute: %.1f before the deploy, %.1f since", before, since)
	}
	found := 0
	for id, of := range requests {
		i := slices.IndexFunc(of, func(p parsed) bool { return strings.HasPrefix(p.Msg, incident.Message) })
		if i < 0 {
			continue
		}
		found++
		if i == 0 || !strings.HasPrefix(of[i-1].Msg, incident.Before) || of[i].Word != "error" || of[i-1].Word != "warn" {
			t.Errorf("request %s: %+v", id, of)
		} else if id == "" || of[i].TraceID == "" || of[i].TraceID != of[i-1].TraceID {
			t.Errorf("request %q has the traces %q and %q", id, of[i-1].TraceID, of[i].TraceID)
		}
	}
	of := len(requests[incident.Request])
	if found != incident.Errors || found < 20 || incident.Warnings <= found || of != incident.Records || of < 6 {
		t.Errorf("%d requests with the new message, %d records of the first; the facts are %+v", found, of, incident)
	}
}

// A live rate is that of the records.
func TestRate(t *testing.T) {
	s := corpus.NewShop(corpus.ShopOptions{Seed: 1, From: at().Add(-108 * time.Minute), Rate: 5, Incident: at()})
	s.Next()
	from := at().Add(time.Hour)
	s.SetRate(2000, from)
	n := 0
	for ; s.Due().Before(from.Add(30 * time.Second)); n++ {
		s.Next()
	}
	if n < 57_000 || n > 63_000 {
		t.Errorf("%d records within 30 s", n)
	}
}
