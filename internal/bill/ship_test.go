package bill_test

import (
	"slices"
	"strings"
	"testing"

	"blobtail/internal/bill"
)

// Each ingester that ships its log pays for an object each ship.every, whatever its services are, but for
// no more objects than there are records.
func TestShipping(t *testing.T) {
	for text, want := range map[string]float64{
		"ingesters: 3\nship: {every: 250ms}":                                     3 * 345_600,
		"ingesters: 1\nservices: 1\nship: {every: 1s}":                           86_400,
		"ingesters: 1\nline-bytes: 100\nbytes-per-day: 100KB\nship: {every: 1s}": 1000,
	} {
		s := cost(t, text+"\n")
		l := line(t, s, "ship_puts")
		if !near(l.Count, want) || !near(l.PerDay, want/1e4*0.065) || l.Price != "here.writes" || l.Group != "requests" {
			t.Errorf("%s: %+v, want %v", text, l, want)
		}
	}
	shipped := func(l bill.Line) bool { return l.Name == "ship_puts" }
	if s := cost(t, "ingesters: 3\n"); slices.ContainsFunc(s.Lines, shipped) {
		t.Error("a plan that ships nothing pays for it")
	}
	_, err := loadPlan(t, "bytes-per-day: 1GB\nship: {every: 1ns}\n")
	if err == nil || !strings.Contains(err.Error(), "ship.every, in days: ") {
		t.Errorf("no time between objects: %v", err)
	}
}
