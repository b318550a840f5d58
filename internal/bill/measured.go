package bill

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"blobtail/docs/scale"
	"blobtail/internal/units"
)

// Measured is the result of the scale test, a file of docs/scale. Its numbers are found by
// paths such as a.default.requests.put.
type Measured struct {
	root         map[string]any
	Date, Commit string
}

// Latest is the newest result of the scale test.
func Latest() (*Measured, error) { return Measure(scale.Latest()) }

// Measure reads a result of the scale test.
func Measure(text []byte) (*Measured, error) {
	m := &Measured{}
	if err := json.Unmarshal(text, &m.root); err != nil {
		return nil, fmt.Errorf("result of the scale test: %w", err)
	}
	m.Date, _ = m.root["date"].(string)
	m.Commit, _ = m.root["commit"].(string)
	return m, nil
}

// at is the value at a path; nil: there is none.
func (m *Measured) at(path string) any {
	var v any = m.root
	for name := range strings.SplitSeq(path, ".") {
		level, _ := v.(map[string]any)
		v = level[name]
	}
	return v
}

// Count is the number at a path, and an error if there is none.
func (m *Measured) Count(path string) (float64, error) {
	n, ok := m.at(path).(float64)
	if !ok || math.IsNaN(n) || n < 0 {
		return 0, fmt.Errorf("the result of the scale test of %s has no count %s; make scale writes a new one", m.Date, path)
	}
	return n, nil
}

// shape is one of the two loads of which one ingester was measured.
type shape struct {
	path   string
	pair   pair
	pairs  float64 // services at the ingester
	window time.Duration
	flush  Flush
	every  units.Duration // tail.every
	stored float64        // bytes of blobs for a byte of lines
	tail   float64        // bytes of the tail's rows
}

// shapes are the paths of the loads: each service at each ingester, and at one.
func shapes() []string { return []string{"a.default", "a.partitions"} }

// shape reads the load at a path.
func (m *Measured) shape(path string) (*shape, error) {
	s := &shape{path: path}
	numbers := map[string]*float64{"records_per_second_pair": &s.pair.records, "tail_bytes": &s.tail, "records": new(float64), "raw_bytes": new(float64), "stored_bytes": new(float64), "virtual_seconds": new(float64)}
	for name, to := range numbers {
		n, err := m.Count(path + "." + name)
		if err != nil {
			return nil, err
		}
		*to = n
	}
	records, raw := *numbers["records"], *numbers["raw_bytes"]
	s.window = time.Duration(*numbers["virtual_seconds"] * float64(time.Second))
	if records <= 0 || raw <= 0 || s.window <= 0 || s.pair.records <= 0 {
		return nil, fmt.Errorf("the result of the scale test of %s has no records at %s", m.Date, path)
	}
	s.pair.line = raw / records
	s.pairs = math.Round(records / s.window.Seconds() / s.pair.records)
	if s.pairs < 1 {
		return nil, fmt.Errorf("the result of the scale test of %s has fewer records at %s than one pair", m.Date, path)
	}
	s.stored = *numbers["stored_bytes"] / raw
	var err error
	for name, to := range map[string]interface{ UnmarshalText([]byte) error }{"flush.size": &s.flush.Size, "flush.min": &s.flush.Min, "flush.age": &s.flush.Age, "flush.max_age": &s.flush.MaxAge, "tail_every": &s.every} {
		text, _ := m.at(path + "." + name).(string)
		if e := to.UnmarshalText([]byte(text)); e != nil {
			err = fmt.Errorf("the result of the scale test of %s, %s.%s: %w", m.Date, path, name, e)
		}
	}
	return s, err
}

// like is the measured load whose pairs have a rate that is closest to that of p.
func (m *Measured) like(p pair) (*shape, error) {
	var best *shape
	far := func(s *shape) float64 {
		return math.Abs(math.Log(s.pair.records * s.pair.line / max(1e-9, p.records*p.line)))
	}
	for _, path := range shapes() {
		s, err := m.shape(path)
		if err != nil {
			return nil, err
		}
		if best == nil || far(s) < far(best) {
			best = s
		}
	}
	return best, nil
}

// Deviation is the count at a path, divided by the nearest count that the rules of this package
// allow for that load. It is 1 as long as the rules are those of the ingester.
func (m *Measured) Deviation(path string) (float64, error) {
	load, kind, ok := strings.Cut(path, ".requests.")
	if !ok {
		return 0, fmt.Errorf("%s is no count of requests", path)
	}
	s, err := m.shape(load)
	if err != nil {
		return 0, err
	}
	n, err := m.Count(path)
	if err != nil {
		return 0, err
	}
	return s.deviation(kind, n)
}

// within bounds the requests of the load by the rules.
func (s *shape) within(kind string) (least, most float64, err error) {
	switch kind {
	case "put":
		least, most = s.flush.putsWithin(s.pair, s.window)
		return least * s.pairs, most * s.pairs, nil
	case "table_write":
		least, most = rowsWithin(s.pair, time.Duration(s.every), s.window)
		return least * s.pairs, most*s.pairs + math.Ceil(s.window.Seconds()/heartbeat.Seconds()), nil
	}
	return 0, 0, fmt.Errorf("no rule foretells the requests %s", kind)
}

func (s *shape) deviation(kind string, n float64) (float64, error) {
	least, most, err := s.within(kind)
	if err != nil {
		return 0, err
	}
	if least <= 0 && n < most {
		return 1, nil
	}
	return n / min(max(n, least), most), nil
}
