package corpus_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/corpus"
	"blobtail/record"
)

// at is the time of the incident in these tests.
func at() time.Time { return time.Date(2026, 11, 20, 11, 48, 0, 0, time.UTC) }

func options(seed uint64) corpus.ShopOptions {
	return corpus.ShopOptions{Seed: seed, From: at().Add(-108 * time.Minute), Rate: 5, Incident: at()}
}

// made are the first records.
func made(o corpus.ShopOptions, n int) ([]corpus.Record, corpus.Incident) {
	g := corpus.NewShop(o)
	var all []corpus.Record
	for range n {
		all = append(all, g.Next())
	}
	return all, g.Incident()
}

// parsed is a record as its line has it.
type parsed struct {
	TS        time.Time `json:"ts"`
	Level     string    `json:"level"`
	Service   string    `json:"service"`
	Msg       string    `json:"msg"`
	Version   string    `json:"version"`
	RequestID string    `json:"request_id"`
	TraceID   string    `json:"trace_id"`
}

func TestShop(t *testing.T) {
	all, incident := made(options(1), 36_000)
	again, _ := made(options(1), 36_000)
	other, _ := made(options(2), 36_000)
	var same, different int
	for i, r := range all {
		if i > 0 && r.Time < all[i-1].Time {
			t.Fatalf("record %d is older than the one before", i)
		}
		if string(r.Line) == string(again[i].Line) {
			same++
		}
		if string(r.Line) != string(other[i].Line) {
			different++
		}
		if r.Text {
			continue
		}
		var p parsed
		if err := json.Unmarshal(r.Line, &p); err != nil {
			t.Fatalf("%v: %s", err, r.Line)
		}
		if p.TS.UnixNano() != r.Time || p.Level != r.Level.String() || p.Service != r.Service || !slices.Contains(corpus.ShopServices(), p.Service) {
			t.Fatalf("%+v of %s", r, r.Line)
		}
		if isNew := strings.HasPrefix(p.Msg, incident.Message) || strings.HasPrefix(p.Msg, incident.Before); isNew &&
			(p.TS.Before(at()) || p.Service != incident.Service || p.Version != incident.NewVersion) {
			t.Fatalf("a part of the incident: %s", r.Line)
		}
	}
	if same != len(all) || different < len(all)*9/10 {
		t.Errorf("%d records are the same with the same seed, and %d are others with another, of %d", same, different, len(all))
	}
	if end := all[len(all)-1].Time - at().Add(12*time.Minute).UnixNano(); time.Duration(end).Abs() > 30*time.Second {
		t.Errorf("the records end %s off", time.Duration(end))
	}
}

// In each request with the new message, the warning is right before it.
func TestIncident(t *testing.T) {
	all, incident := made(options(3), 36_000)
	requests := map[string][]parsed{}
	errors := map[bool]int{} // since the deploy, or before
	for _, r := range all {
		if r.Text {
			continue
		}
		var p parsed
		if err := json.Unmarshal(r.Line, &p); err != nil {
			t.Fatal(err)
		}
		requests[p.RequestID] = append(requests[p.RequestID], p)
		if r.Level == record.Error {
			errors[!p.TS.Before(at())]++
		}
	}
	if before, since := float64(errors[false])/108, float64(errors[true])/12; since < 5*before || before == 0 {
		t.Errorf("errors a minute: %.1f before the deploy, %.1f since", before, since)
	}
	found := 0
	for id, of := range requests {
		i := slices.IndexFunc(of, func(p parsed) bool { return strings.HasPrefix(p.Msg, incident.Message) })
		if i < 0 {
			continue
		}
		found++
		if i == 0 || !strings.HasPrefix(of[i-1].Msg, incident.Before) || of[i].Level != "error" || of[i-1].Level != "warn" || id == "" || of[i].TraceID == "" || of[i].TraceID != of[i-1].TraceID {
			t.Errorf("request %s: %+v", id, of)
		}
	}
	if found != incident.Errors || found < 20 || incident.Warnings <= found {
		t.Errorf("%d requests with the new message; the facts say %d, and %d warnings", found, incident.Errors, incident.Warnings)
	}
	if got := len(requests[incident.Request]); got != incident.Records || got < 6 {
		t.Errorf("the facts are %+v, and the first request has %d records", incident, got)
	}
}

// Each kind of wild record comes soon, before and after the incident.
func TestWild(t *testing.T) {
	all, _ := made(options(1), 36_000)
	for _, w := range corpus.Wilds() {
		count := func(from, to int) (n int) {
			for _, r := range all[from:to] {
				if r.Service == w.Service && strings.Contains(string(r.Line), w.Text) {
					n++
				}
			}
			return n
		}
		incident, _ := slices.BinarySearchFunc(all, at().UnixNano(), func(r corpus.Record, ns int64) int { return int(r.Time - ns) })
		if count(0, 1000) == 0 || count(0, incident) < 3 || count(incident, len(all)) == 0 {
			t.Errorf("%s: %d in the first 1,000 records, %d before the incident, %d since", w.Kind, count(0, 1000), count(0, incident), count(incident, len(all)))
		}
	}
}

// A live rate is that of the records.
func TestRate(t *testing.T) {
	g := corpus.NewShop(options(1))
	g.Next()
	from := at().Add(time.Hour)
	g.SetRate(2000, from)
	n := 0
	for g.Due().Before(from.Add(30 * time.Second)) {
		g.Next()
		n++
	}
	if n < 57_000 || n > 63_000 {
		t.Errorf("%d records within 30 s", n)
	}
}
