package loggen

import "blobtail/record"

// Tally counts records in a half-open range of time: the answers to queries. A range
// of zero length means all time.
type Tally struct {
	From, To int64
	// Counts are by service, then by level.
	Counts map[string]*[record.NumLevels]int
	// Total is the sum of all.
	Total int
}

// Add counts r if it lies in the range.
func (t *Tally) Add(r Record) {
	if t.From != t.To && (r.Time < t.From || r.Time >= t.To) {
		return
	}
	if t.Counts == nil {
		t.Counts = map[string]*[record.NumLevels]int{}
	}
	c := t.Counts[r.Service]
	if c == nil {
		c = new([record.NumLevels]int)
		t.Counts[r.Service] = c
	}
	c[r.Level]++
	t.Total++
}
