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

// Measured is the result of the scale test, a file of docs/scale. Its counts are found by paths such
// as a.default.requests.put.
type Measured struct {
	root   map[string]any
	loads  map[string]load
	Date   string `json:"date"`
	Commit string `json:"commit"`
}

// load is one of two of which one ingester was measured.
type load struct {
	Rate    float64        `json:"records_per_second_pair"`
	Records float64        `json:"records"`
	Raw     float64        `json:"raw_bytes"`
	Stored  float64        `json:"stored_bytes"`
	Seconds float64        `json:"virtual_seconds"`
	Tail    float64        `json:"tail_bytes"`
	Every   units.Duration `json:"tail_every"`
	Flush   Flush          `json:"flush"`
	line    float64        // bytes of a line
	pairs   float64        // of a service and an ingester, each of which fills a batch of its own
}

// Latest is the newest result of the scale test.
func Latest() (*Measured, error) { return Measure(scale.Latest()) }

// Measure reads a result of the scale test.
func Measure(text []byte) (*Measured, error) {
	m := &Measured{}
	typed := struct{ A map[string]load }{}
	if err := json.Unmarshal(text, &m.root); err != nil {
		return nil, fmt.Errorf("result of the scale test: %w", err)
	}
	if err := json.Unmarshal(text, &typed); err != nil {
		return nil, fmt.Errorf("result of the scale test: %w", err)
	}
	m.loads = typed.A
	m.Date, _ = m.root["date"].(string)
	m.Commit, _ = m.root["commit"].(string)
	return m, nil
}

// count is the number at a path.
func (m *Measured) count(path string) (float64, bool) {
	var v any = m.root
	for name := range strings.SplitSeq(path, ".") {
		level, _ := v.(map[string]any)
		v = level[name]
	}
	n, ok := v.(float64)
	return n, ok && n >= 0
}

// like is the measured load whose pairs have a rate of bytes that is closest to rate.
func (m *Measured) like(rate float64) (at string, best load, err error) {
	far := math.Inf(1)
	for _, name := range []string{"default", "partitions"} { // each service at all ingesters, and at one
		l := m.loads[name]
		l.line, l.pairs = l.Raw/l.Records, math.Round(l.Records/l.Seconds/l.Rate)
		if !(l.Rate > 0 && l.line > 0 && l.pairs >= 1 && l.Stored > 0 && l.Tail > 0 && l.Every > 0) {
			return "", l, fmt.Errorf("the result of the scale test of %s has no whole load a.%s; make scale writes a new one", m.Date, name)
		}
		if d := math.Abs(math.Log(l.Rate * l.line / max(1e-9, rate))); d < far {
			at, best, far = "a."+name, l, d
		}
	}
	return at, best, nil
}

// wait is the seconds from the first record of a batch to its cut at a rate of bytes: by size, by
// age once it has flush.min, or by max-age.
func (f Flush) wait(rate float64) float64 {
	return min(float64(f.Size)/rate, max(time.Duration(f.Age).Seconds(), float64(f.Min)/rate), time.Duration(f.MaxAge).Seconds())
}

// anHour is how many blobs a pair of some records a second makes. A batch ends with its hour.
func (f Flush) anHour(records, line float64) float64 {
	return min(records*3600, math.Ceil(3600/(f.wait(records*line)+1/records)))
}

// rows is how many rows of the tail a pair writes in some seconds.
func (l *load) rows(records, seconds float64) float64 {
	return min(records*seconds, seconds/time.Duration(l.Every).Seconds())
}

// off is a measured count divided by the nearest one that a rule allows: 1 as long as the rules here
// are those of the ingester.
func off(n, least, most float64) float64 {
	if n < most && least <= 0 {
		return 1
	}
	return n / min(max(n, least), most)
}

// stay is the days of a blob in a tier.
type stay struct {
	tier string
	span float64
}

// stays are the tiers of a blob, from its first.
func (p *Plan) stays() (out []stay) {
	end, next := days(p.Keep)+1, days(p.Keep)+1
	for i := len(tierNames()) - 1; i >= 0; i-- {
		name := tierNames()[i]
		age, ok := p.Tiers[name]
		if (ok || i == 0) && days(age) < end && next > 0 {
			out = append([]stay{{name, next - days(age)}}, out...)
			next = days(age)
		}
	}
	return out
}

// tierPrice is the key of a price of a tier.
func tierPrice(tier, of string) string {
	if tier == "hot" {
		return "here." + of
	}
	return "here.tiers." + tier + "." + of
}
