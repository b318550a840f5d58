package config

import (
	"slices"
	"time"
)

// Logs says how the log is kept.
type Logs struct {
	Log  Log  `yaml:"log"`
	Ship Ship `yaml:"ship"`
}

// Ship says how the log is shipped to the store, for acknowledgements that survive the machine.
type Ship struct {
	Every    Duration `yaml:"every"`    // an object at most so often, with traffic
	Wait     Duration `yaml:"wait"`     // so long requests wait for a store that does not answer
	Fallback string   `yaml:"fallback"` // refuse or disk: what they are told then
	// AdoptAfter is the silence after which another ingester takes the shipped log of one over: a time,
	// off, or auto.
	AdoptAfter string `yaml:"adopt-after"`
}

func (s *Ship) validate(m *mistakes) {
	every, wait := time.Duration(s.Every), time.Duration(s.Wait)
	m.check(every >= 50*time.Millisecond && every <= time.Minute, "ship.every", s.Every, "want 50ms to 1m")
	m.check(wait >= max(time.Second, 2*every) && wait <= 5*time.Minute, "ship.wait", s.Wait,
		"want 1s to 5m, and at least twice ship.every: each request waits for the next object")
	m.check(slices.Contains([]string{"refuse", "disk"}, s.Fallback), "ship.fallback", s.Fallback, "want refuse or disk")
	after, err := ParseDuration(s.AdoptAfter)
	known := slices.Contains([]string{"auto", "off"}, s.AdoptAfter) || err == nil && after >= leastAdoptAfter
	m.check(known, "ship.adopt-after", s.AdoptAfter, "want auto, off, or 2m and more")
}

// leastAdoptAfter is more than an ingester needs to be silent for to count as that.
const leastAdoptAfter = 2 * time.Minute

// AdoptAfter returns ship.adopt-after; 0 is never. Ingesters of a directory end with their host.
func (c Config) AdoptAfter() time.Duration {
	after, err := ParseDuration(c.Ship.AdoptAfter)
	switch {
	case err == nil:
		return after
	case c.Ship.AdoptAfter == "auto" && c.Store.Remote():
		return 10 * time.Minute
	}
	return 0
}
