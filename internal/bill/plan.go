package bill

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"blobtail/configs"
	"blobtail/internal/units"
	"blobtail/internal/yamltext"
	"blobtail/storage/fsys"
)

// Plan is a load whose cost is asked for. Only bytes-per-day is mandatory.
type Plan struct {
	Services  int `yaml:"services" json:"services"`
	Ingesters int `yaml:"ingesters" json:"ingesters"`
	// IngestersPerService is how many ingesters get records of one service: all of them, unless
	// partitions or a balancer keep each service at few. 0: all.
	IngestersPerService int     `yaml:"ingesters-per-service" json:"ingesters_per_service"`
	BytesPerDay         Bytes   `yaml:"bytes-per-day" json:"bytes_per_day"`
	LineBytes           float64 `yaml:"line-bytes" json:"line_bytes"`
	// Ratio is bytes of lines for a byte of blobs. 0: as measured.
	Ratio      float64 `yaml:"ratio" json:"ratio"`
	Keep       Days    `yaml:"keep" json:"keep_days"`
	SoftDelete Days    `yaml:"soft-delete" json:"soft_delete_days"` // deleted blobs are paid for so long
	// A read covers ReadRange of one service. ReadsOfCool of the reads are of a range that is
	// in the coolest tier that can be read.
	ReadsPerDay float64        `yaml:"reads-per-day" json:"reads_per_day"`
	ReadRange   units.Duration `yaml:"read-range" json:"read_range"`
	ReadsOfCool float64        `yaml:"reads-of-cool" json:"reads_of_cool"`
	Followers   int            `yaml:"followers" json:"followers"` // that follow all day
	Compaction  Switch         `yaml:"compaction" json:"compaction"`
	Tiers       Tiers          `yaml:"tiers" json:"tiers"`
	Machines    Machines       `yaml:"machines" json:"machines"`
	Flush       Flush          `yaml:"flush" json:"flush"`
	Tail        PlanTail       `yaml:"tail" json:"tail"`
	// Defaults are the keys that the file does not have, with their values.
	Defaults []string `yaml:"-" json:"defaults"`
}

// PlanTail has the settings of the tables of the newest records.
type PlanTail struct {
	Enabled Switch         `yaml:"enabled" json:"enabled"`
	Every   units.Duration `yaml:"every" json:"every"`
	Keep    Days           `yaml:"keep" json:"keep_days"`
}

// Bytes is a size: 1TB, 32GB, or a number of bytes.
type Bytes int64

// UnmarshalText reads a size.
func (b *Bytes) UnmarshalText(text []byte) error {
	var size units.Size
	if err := size.UnmarshalText(text); err != nil {
		return err
	}
	*b = Bytes(size)
	return nil
}

// String writes the size in powers of ten, as prices are, if that leaves a whole number.
func (b Bytes) String() string {
	for _, u := range []struct {
		name string
		n    Bytes
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}} {
		if b != 0 && b%u.n == 0 {
			return strconv.FormatInt(int64(b/u.n), 10) + u.name
		}
	}
	return units.Size(b).String()
}

// Days is a span of days: 30d, 36h, or a number of days.
type Days float64

// UnmarshalText reads a number of days, or a duration.
func (d *Days) UnmarshalText(text []byte) error {
	if n, err := strconv.ParseFloat(string(text), 64); err == nil && n >= 0 && !math.IsInf(n, 0) {
		*d = Days(n)
		return nil
	}
	span, err := units.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is no span of days; want for example 30d", text)
	}
	*d = Days(span.Hours() / 24)
	return nil
}

// String writes the days as a plan has them.
func (d Days) String() string { return strconv.FormatFloat(float64(d), 'f', -1, 64) + "d" }

// Switch is on or off.
type Switch bool

// UnmarshalText reads on and off, and the words of YAML for them.
func (s *Switch) UnmarshalText(text []byte) error {
	switch strings.ToLower(string(text)) {
	case "on", "true", "yes", "daily":
		*s = true
	case "off", "false", "no", "none", "never":
		*s = false
	default:
		return fmt.Errorf("%q is neither on nor off", text)
	}
	return nil
}

// String writes the switch as a plan has it.
func (s Switch) String() string {
	if s {
		return "on"
	}
	return "off"
}

// Machines are those of the ingesters, and of the servers if a plan counts them too.
type Machines struct {
	Count int    `yaml:"count" json:"count"`
	Kind  string `yaml:"kind" json:"kind"` // a name in the table of prices; "": the first
	Disk  Bytes  `yaml:"disk" json:"disk"` // of each
}

// UnmarshalYAML reads a number of machines, or a mapping with their kind and disk.
func (m *Machines) UnmarshalYAML(read func(any) error) error {
	if read(&m.Count) == nil {
		return nil
	}
	var word Switch
	if read(&word) == nil && !bool(word) {
		*m = Machines{}
		return nil
	}
	type plain Machines
	return read((*plain)(m))
}

// Tiers are the ages at which blobs are moved to the tiers of the store. Blobs begin in the
// tier with the age 0.
type Tiers map[string]Days

// tierNames are the tiers, from the hottest.
func tierNames() []string { return []string{"hot", "cool", "cold", "archive"} }

// UnmarshalYAML reads a tier for all blobs, or ages by tier: {cool: 30d, cold: 90d}.
func (t *Tiers) UnmarshalYAML(read func(any) error) error {
	var word string
	if read(&word) == nil && word != "" {
		*t = Tiers{word: 0}
		return nil
	}
	var list []string
	if read(&list) == nil {
		if len(list) != 1 {
			return errors.New("several tiers need the ages at which blobs are moved, such as {cool: 30d, cold: 90d}")
		}
		*t = Tiers{list[0]: 0}
		return nil
	}
	ages := map[string]Days{}
	if err := read(&ages); err != nil {
		return err
	}
	*t = ages
	return nil
}

// DefaultPlan has the settings of an ingester that readers can ask, and no load.
func DefaultPlan() Plan {
	return Plan{
		Services: 20, Ingesters: 1, LineBytes: 323, Keep: 30,
		ReadsPerDay: 100, ReadRange: units.Duration(time.Hour), Followers: 1,
		Machines: Machines{Disk: 32e9},
		Flush:    Flush{Size: 32 << 20, Min: 2 << 20, Age: units.Duration(time.Minute), MaxAge: units.Duration(10 * time.Minute)},
		Tail:     PlanTail{Enabled: true, Every: units.Duration(5 * time.Second), Keep: 1},
	}
}

// LoadPlan reads the plan at path; "" is configs/plan.yaml as built in. An unknown key is an
// error.
func LoadPlan(path string) (p Plan, err error) {
	text, name := []byte(configs.Plan()), "plan "+path
	if path != "" {
		if text, err = os.ReadFile(path); err != nil {
			return Plan{}, fmt.Errorf("read plan: %w", fsys.WhyUnread(err, "correct the path, or leave it out for the built-in plan"))
		}
	}
	p = DefaultPlan()
	given := map[string]any{}
	if err = yaml.UnmarshalWithOptions(text, &p, yaml.DisallowUnknownField()); err == nil {
		err = yaml.Unmarshal(text, &given)
	}
	if err != nil {
		said := yamltext.Error(err, true)
		if strings.Contains(said, "unknown field") {
			said += "\nthe keys are " + strings.Join(planKeys(), ", ")
		}
		return Plan{}, fmt.Errorf("%s: %s", name, said)
	}
	if len(given) == 0 { // comments alone clear the struct
		p = DefaultPlan()
	}
	if p.IngestersPerService == 0 {
		p.IngestersPerService = p.Ingesters
	}
	if len(p.Tiers) == 0 {
		p.Tiers = Tiers{"hot": 0}
	}
	if err := p.validate(); err != nil {
		return Plan{}, fmt.Errorf("%s: %w", name, err)
	}
	p.Defaults = p.unsaid(given)
	return p, nil
}

// planKey is a key of a plan with its value as text.
type planKey struct {
	name  string
	value func(*Plan) string
}

func planTable() []planKey {
	number := strconv.Itoa
	real := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	return []planKey{
		{"services", func(p *Plan) string { return number(p.Services) }},
		{"ingesters", func(p *Plan) string { return number(p.Ingesters) }},
		{"ingesters-per-service", func(p *Plan) string { return number(p.IngestersPerService) }},
		{"bytes-per-day", func(p *Plan) string { return p.BytesPerDay.String() }},
		{"line-bytes", func(p *Plan) string { return real(p.LineBytes) }},
		{"ratio", func(p *Plan) string {
			if p.Ratio == 0 {
				return "as measured"
			}
			return real(p.Ratio)
		}},
		{"keep", func(p *Plan) string { return p.Keep.String() }},
		{"soft-delete", func(p *Plan) string { return p.SoftDelete.String() }},
		{"reads-per-day", func(p *Plan) string { return real(p.ReadsPerDay) }},
		{"read-range", func(p *Plan) string { return p.ReadRange.String() }},
		{"reads-of-cool", func(p *Plan) string { return real(p.ReadsOfCool) }},
		{"followers", func(p *Plan) string { return number(p.Followers) }},
		{"compaction", func(p *Plan) string { return p.Compaction.String() }},
		{"tiers", func(p *Plan) string { return p.Tiers.String() }},
		{"machines", func(p *Plan) string {
			if p.Machines.Count == 0 {
				return "none"
			}
			return fmt.Sprintf("%d with a disk of %s", p.Machines.Count, p.Machines.Disk)
		}},
		{"flush", func(p *Plan) string {
			return fmt.Sprintf("size %s, min %s, age %s, max-age %s", p.Flush.Size, p.Flush.Min, p.Flush.Age, p.Flush.MaxAge)
		}},
		{"tail", func(p *Plan) string {
			return fmt.Sprintf("%s, every %s, keep %s", p.Tail.Enabled, p.Tail.Every, p.Tail.Keep)
		}},
	}
}

// planKeys are the keys of a plan.
func planKeys() (names []string) {
	for _, k := range planTable() {
		names = append(names, k.name)
	}
	return names
}

// unsaid are the keys that a file does not have, with their values.
func (p *Plan) unsaid(given map[string]any) (out []string) {
	for _, k := range planTable() {
		if _, ok := given[k.name]; !ok {
			out = append(out, k.name+": "+k.value(p))
		}
	}
	return out
}

// String writes the ages by tier.
func (t Tiers) String() string {
	var parts []string
	for _, name := range tierNames() {
		if age, ok := t[name]; ok && age == 0 {
			parts = append(parts, name)
		} else if ok {
			parts = append(parts, name+" from "+age.String())
		}
	}
	return strings.Join(parts, ", ")
}

func (p *Plan) validate() error {
	var errs []error
	want := func(ok bool, key, what string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: want %s", key, what))
		}
	}
	finite := func(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }
	want(p.BytesPerDay > 0, "bytes-per-day", "the bytes of lines of a day, for example 1TB")
	want(p.Services > 0, "services", "a number, 1 or more")
	want(p.Ingesters > 0, "ingesters", "a number, 1 or more")
	want(p.IngestersPerService > 0 && p.IngestersPerService <= p.Ingesters, "ingesters-per-service", "1 or more, and no more than there are ingesters")
	want(p.LineBytes >= 1 && finite(p.LineBytes), "line-bytes", "the mean size of a line, 1 or more")
	want(p.Ratio == 0 || p.Ratio > 0 && finite(p.Ratio), "ratio", "bytes of lines for a byte of blobs, for example 4.8")
	want(p.Keep >= 1 && finite(float64(p.Keep)), "keep", "a number of days, 1d or more")
	want(finite(float64(p.SoftDelete)), "soft-delete", "a number of days")
	want(finite(p.ReadsPerDay), "reads-per-day", "a number, 0 or more")
	want(p.ReadRange > 0, "read-range", "the time that a read covers, for example 1h")
	want(finite(p.ReadsOfCool) && p.ReadsOfCool <= p.ReadsPerDay, "reads-of-cool", "a number, no more than reads-per-day")
	want(p.Followers >= 0, "followers", "a number, 0 or more")
	want(p.Machines.Count >= 0, "machines", "a number, 0 or more")
	want(p.Flush.Size > 0, "flush.size", "a size, for example 32MiB")
	want(p.Flush.MaxAge >= units.Duration(tick), "flush.max-age", "1s or more")
	want(!bool(p.Tail.Enabled) || p.Tail.Every >= units.Duration(tick), "tail.every", "1s or more")
	want(finite(float64(p.Tail.Keep)), "tail.keep", "a number of days")
	return errors.Join(append(errs, p.Tiers.validate()...)...)
}

func (t Tiers) validate() (errs []error) {
	for name, age := range t {
		if !slices.Contains(tierNames(), name) {
			errs = append(errs, fmt.Errorf("tiers: there is no tier %q; they are %s", name, strings.Join(tierNames(), ", ")))
		}
		if !(age >= 0) || math.IsInf(float64(age), 0) {
			errs = append(errs, fmt.Errorf("tiers.%s: want the age at which blobs are moved there, for example 30d", name))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	last := Days(-1)
	for i, name := range tierNames() {
		age, ok := t[name]
		switch {
		case !ok:
		case i == 0 && age > 0:
			errs = append(errs, errors.New("tiers.hot: blobs begin there, so its age is 0d; give the ages at which they leave it for others, such as {cool: 30d}"))
		case age <= last:
			errs = append(errs, fmt.Errorf("tiers.%s: want a greater age than those of the tiers before it", name))
		default:
			last = age
		}
	}
	return errs
}

// steps are the tiers of the plan from the first, each with its ages.
func (t Tiers) steps(end float64) (out []step) {
	for i, name := range tierNames() {
		age, ok := t[name]
		if !ok && i > 0 {
			continue
		}
		if !ok && t.begins() {
			continue
		}
		if float64(age) >= end {
			break
		}
		if n := len(out); n > 0 {
			out[n-1].to = float64(age)
		}
		out = append(out, step{tier: name, from: float64(age), to: end})
	}
	return out
}

// begins reports whether blobs begin in another tier than hot.
func (t Tiers) begins() bool {
	for name, age := range t {
		if name != "hot" && age == 0 {
			return true
		}
	}
	return false
}

// step is the time of a blob in a tier, in days.
type step struct {
	tier     string
	from, to float64
}
