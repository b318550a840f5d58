package bill

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"blobtail/configs"
	"blobtail/internal/units"
	"blobtail/internal/yamltext"
	"blobtail/storage/fsys"
)

// Plan is a load whose cost is asked for: a file such as configs/plan.yaml, which tells its keys.
// Only bytes-per-day is mandatory.
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
	Machines []Kind                    `yaml:"machines" json:"machines"`
	Flush    Flush                     `yaml:"flush" json:"flush"`
	Tail     PlanTail                  `yaml:"tail" json:"tail"`
	// Defaults are the keys that the file does not have, with their values.
	Defaults []string `yaml:"-" json:"defaults"`
}

// Flush has the settings that decide when a batch becomes a blob, as package config has them.
type Flush struct {
	Size   units.Size     `yaml:"size" json:"size"`
	Min    units.Size     `yaml:"min" json:"min"`
	Age    units.Duration `yaml:"age" json:"age"`
	MaxAge units.Duration `yaml:"max-age" json:"max_age"`
}

// PlanTail has the settings of the tables of the newest records.
type PlanTail struct {
	Enabled string         `yaml:"enabled" json:"enabled"` // on or off
	Every   units.Duration `yaml:"every" json:"every"`
	Keep    units.Duration `yaml:"keep" json:"keep"`
}

// Kind is some machines of a kind of the table of prices, each with a disk.
type Kind struct {
	Count float64    `yaml:"count" json:"count"`
	Kind  string     `yaml:"kind" json:"kind"`
	Disk  units.Size `yaml:"disk" json:"disk"`
}

// tierNames are the tiers, from the hottest.
func tierNames() []string { return []string{"hot", "cool", "cold", "archive"} }

// LoadPlan reads the plan at path; "" is configs/plan.yaml as built in. An unknown key is an
// error.
func LoadPlan(path string) (p Plan, err error) {
	text, name := []byte(configs.Plan()), strings.TrimSpace("plan "+path)
	if path != "" {
		if text, err = fsys.Read(path); err != nil {
			return p, fmt.Errorf("read plan: %w", fsys.WhyUnread(err, "correct the path, or leave it out for the built-in plan"))
		}
	}
	const day = units.Duration(24 * time.Hour)
	p = Plan{
		Services: 20, Ingesters: 1, LineBytes: 323, Keep: 30 * day, ReadsPerDay: 100, ReadRange: day / 24, Followers: 1, Compaction: "off",
		Flush: Flush{Size: 32 << 20, Min: 2 << 20, Age: units.Duration(time.Minute), MaxAge: units.Duration(10 * time.Minute)},
		Tail:  PlanTail{Enabled: "on", Every: units.Duration(5 * time.Second), Keep: day},
	}
	given, all := map[string]any{}, yaml.MapSlice{}
	if err = yaml.Unmarshal(text, &given); err != nil || len(given) > 0 { // comments alone clear the struct
		if err = yamltext.Decode(text, &p); err != nil {
			return p, fmt.Errorf("%s: %s\nconfigs/plan.yaml shows the keys, and what they may have", name, yamltext.Error(err, true))
		}
	}
	if p.IngestersPerService == 0 {
		p.IngestersPerService = p.Ingesters
	}
	if len(p.Tiers) == 0 {
		p.Tiers = map[string]units.Duration{"hot": 0}
	}
	if err = p.validate(); err == nil {
		text, err = yaml.Marshal(p)
	}
	if err = errors.Join(err, yaml.Unmarshal(text, &all)); err != nil {
		return p, fmt.Errorf("%s: %w", name, err)
	}
	for _, item := range all {
		if key := fmt.Sprint(item.Key); given[key] == nil {
			p.Defaults = append(p.Defaults, fmt.Sprintf("%s: %v", key, item.Value))
		}
	}
	return p, nil
}

func (p *Plan) validate() error {
	type number struct {
		key         string
		x           float64
		least, most float64
	}
	const most = 1e18 // beyond any load; it keeps sums within what can be written
	numbers := []number{
		{"bytes-per-day", float64(p.BytesPerDay), 1, most}, {"line-bytes", p.LineBytes, 1, most}, {"services", p.Services, 1, 1e9},
		{"ingesters", p.Ingesters, 1, 1e6}, {"ingesters-per-service", p.IngestersPerService, 1, p.Ingesters}, {"followers", p.Followers, 0, 1e9},
		{"keep, in days", days(p.Keep), 1, 36500}, {"soft-delete, in days", days(p.SoftDelete), 0, 36500}, {"tail.keep, in days", days(p.Tail.Keep), 0, 36500},
		{"reads-per-day", p.ReadsPerDay, 0, 1e12}, {"reads-of-cool", p.ReadsOfCool, 0, p.ReadsPerDay}, {"flush.size", float64(p.Flush.Size), 1, most},
		{"read-range, in days", days(p.ReadRange), 1e-6, days(p.Keep)}, {"flush.max-age, in days", days(p.Flush.MaxAge), 1e-5, 36500},
		{"tail.every, in days", days(p.Tail.Every), 1e-5, 36500}, {"tiers.hot, where blobs begin, in days", days(p.Tiers["hot"]), 0, 0},
	}
	if p.Ratio != 0 {
		numbers = append(numbers, number{"ratio", p.Ratio, 0.01, 1e6})
	}
	for _, k := range p.Machines {
		numbers = append(numbers, number{"machines.count", k.Count, 0, 1e6})
	}
	last, errs := -1.0, []error(nil)
	for _, name := range tierNames() {
		if age, ok := p.Tiers[name]; ok {
			numbers = append(numbers, number{"tiers." + name + ", in days", days(age), last + 1e-6, 36500})
			last = days(age)
		}
	}
	for name := range p.Tiers {
		if !slices.Contains(tierNames(), name) {
			errs = append(errs, fmt.Errorf("tiers: there is no tier %q; they are %s", name, strings.Join(tierNames(), ", ")))
		}
	}
	for key, word := range map[string]string{"compaction": p.Compaction, "tail.enabled": p.Tail.Enabled} {
		if word != "on" && word != "off" {
			errs = append(errs, fmt.Errorf("%s: want on or off, not %q", key, word))
		}
	}
	for _, n := range numbers {
		whole := slices.Contains([]string{"services", "ingesters", "ingesters-per-service", "followers", "machines.count"}, n.key)
		if !(n.x >= n.least && n.x <= n.most) || whole && n.x != math.Trunc(n.x) {
			errs = append(errs, fmt.Errorf("%s: want a number from %.10g to %.10g, without a fraction if it counts things, not %.10g", n.key, n.least, n.most, n.x))
		}
	}
	return errors.Join(errs...)
}

func days(d units.Duration) float64 { return time.Duration(d).Hours() / 24 }
