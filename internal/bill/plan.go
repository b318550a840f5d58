package bill

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"blobtail/configs"
	"blobtail/internal/units"
)

// Plan is a load whose cost is asked for: a file such as configs/plan.yaml, which tells its keys.
type Plan struct {
	Services            float64        `yaml:"services" json:"services"`
	Ingesters           float64        `yaml:"ingesters" json:"ingesters"`
	IngestersPerService float64        `yaml:"ingesters-per-service" json:"ingesters_per_service"` // 0: all
	BytesPerDay         units.Size     `yaml:"bytes-per-day" json:"bytes_per_day"`
	LineBytes           float64        `yaml:"line-bytes" json:"line_bytes"`
	Ratio               float64        `yaml:"ratio" json:"ratio"` // 0: as measured
	Keep                units.Duration `yaml:"keep" json:"keep"`
	SoftDelete          units.Duration `yaml:"soft-delete" json:"soft_delete"`
	ReadsPerDay         float64        `yaml:"reads-per-day" json:"reads_per_day"`
	ReadRange           units.Duration `yaml:"read-range" json:"read_range"`
	ReadsOfCool         float64        `yaml:"reads-of-cool" json:"reads_of_cool"` // of the coolest tier that can be read
	Followers           float64        `yaml:"followers" json:"followers"`
	Compaction          string         `yaml:"compaction" json:"compaction"` // on or off
	// Tiers are the ages at which blobs are moved. They begin in the tier of age 0, else in hot.
	Tiers    map[string]units.Duration `yaml:"tiers" json:"tiers"`
	Machines []struct {
		Count float64    `yaml:"count" json:"count"` // 0: one for each ingester
		Kind  string     `yaml:"kind" json:"kind"`
		Disk  units.Size `yaml:"disk" json:"disk"`
	} `yaml:"machines" json:"machines"`
	Flush Flush `yaml:"flush" json:"flush"`
	Ship  struct {
		Every units.Duration `yaml:"every" json:"every"` // 0: the log is not shipped
	} `yaml:"ship" json:"ship"`
	Tail struct {
		Enabled string         `yaml:"enabled" json:"enabled"` // on or off
		Every   units.Duration `yaml:"every" json:"every"`
		Keep    units.Duration `yaml:"keep" json:"keep"`
	} `yaml:"tail" json:"tail"`
}

// Flush has the settings that decide when a batch becomes a blob, as package config has them.
type Flush struct {
	Size   units.Size     `yaml:"size" json:"size"`
	Min    units.Size     `yaml:"min" json:"min"`
	Age    units.Duration `yaml:"age" json:"age"`
	MaxAge units.Duration `yaml:"max-age" json:"max_age"`
}

// LoadPlan reads the plan at path; "" is configs/plan.yaml as built in, which also has the values of
// the keys that a plan leaves out. Only bytes-per-day is mandatory. An unknown key is an error.
func LoadPlan(path string) (p Plan, err error) {
	if err = decode("plan", "", configs.Plan(), &p); err == nil && path != "" {
		p.BytesPerDay = 0
		err = decode("plan", path, "", &p)
	}
	if err != nil {
		return Plan{}, err
	}
	p.IngestersPerService = cmp.Or(p.IngestersPerService, p.Ingesters)
	if err = p.validate(); err != nil {
		return Plan{}, fmt.Errorf("plan %s: %w", path, err)
	}
	return p, nil
}

func (p *Plan) validate() error {
	const most, years = 1e18, 36500 // beyond any load; it keeps sums within what can be written
	// Each number, its range, and 1 if it counts things.
	numbers := map[string][4]float64{
		"bytes-per-day": {float64(p.BytesPerDay), 1, most}, "line-bytes": {p.LineBytes, 1, most}, "ratio": {cmp.Or(p.Ratio, 1), 0.01, 1e6},
		"services": {p.Services, 1, 1e9, 1}, "ingesters": {p.Ingesters, 1, 1e6, 1}, "ingesters-per-service": {p.IngestersPerService, 1, p.Ingesters, 1},
		"followers": {p.Followers, 0, 1e9, 1}, "reads-per-day": {p.ReadsPerDay, 0, 1e12}, "reads-of-cool": {p.ReadsOfCool, 0, p.ReadsPerDay},
		"keep, in days": {days(p.Keep), 1, years}, "soft-delete, in days": {days(p.SoftDelete), 0, years}, "read-range, in days": {days(p.ReadRange), 1e-6, days(p.Keep)},
		"flush.size": {float64(p.Flush.Size), 1, most}, "flush.max-age, in days": {days(p.Flush.MaxAge), 1e-5, years},
		"ship.every, in days": {days(cmp.Or(p.Ship.Every, units.Duration(time.Second))), 1e-7, years},
		"tail.every, in days": {days(p.Tail.Every), 1e-5, years}, "tail.keep, in days": {days(p.Tail.Keep), 0, years},
		"tiers.hot, where blobs begin, in days": {days(p.Tiers["hot"]), 0, 0},
	}
	for i, k := range p.Machines {
		numbers[fmt.Sprintf("machines[%d].count", i)] = [4]float64{k.Count, 0, 1e6, 1}
	}
	before, known, errs := -1.0, 0, []error(nil)
	for _, tier := range tierNames() {
		if age, ok := p.Tiers[tier]; ok {
			numbers["tiers."+tier+", in days"] = [4]float64{days(age), before + 1e-6, years}
			before = days(age)
			known++
		}
	}
	for _, key := range slices.Sorted(maps.Keys(numbers)) {
		if n := numbers[key]; !(n[0] >= n[1] && n[0] <= n[2]) || n[3] == 1 && n[0] != math.Trunc(n[0]) {
			errs = append(errs, fmt.Errorf("%s: want a number from %.10g to %.10g, without a fraction if it counts things, not %.10g", key, n[1], n[2], n[0]))
		}
	}
	if known < len(p.Tiers) {
		errs = append(errs, fmt.Errorf("tiers: there are no others than %s", strings.Join(tierNames(), ", ")))
	}
	for key, word := range map[string]string{"compaction": p.Compaction, "tail.enabled": p.Tail.Enabled} {
		if word != "on" && word != "off" {
			errs = append(errs, fmt.Errorf("%s: want on or off, not %q", key, word))
		}
	}
	return errors.Join(errs...)
}

// tierNames are the tiers in which blobs can be read, from the hottest.
func tierNames() []string { return []string{"hot", "cool", "cold"} }

func days(d units.Duration) float64 { return time.Duration(d).Hours() / 24 }
