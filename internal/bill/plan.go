package bill

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
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

// UnmarshalYAML reads on or off, or a mapping.
func (t *PlanTail) UnmarshalYAML(read func(any) error) error {
	if read(&t.Enabled) == nil {
		return nil
	}
	type plain PlanTail
	return read((*plain)(t))
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

// Machines are those of the ingesters, and of the servers if a plan counts them too, by kind.
type Machines []Kind

// Kind is some machines of one kind.
type Kind struct {
	Count int    `yaml:"count" json:"count"`
	Kind  string `yaml:"kind" json:"kind"` // a name in the table of prices; "": the first
	Disk  Bytes  `yaml:"disk" json:"disk"` // of each
}

// UnmarshalYAML reads a number of machines, a mapping with their kind and disk, or a list of those.
func (m *Machines) UnmarshalYAML(read func(any) error) error {
	var word Switch
	if read(&word) == nil && !bool(word) {
		*m = nil
		return nil
	}
	var list []any
	if read(&list) == nil {
		type plain Machines
		*m = nil
		return read((*plain)(m))
	}
	var one Kind
	if err := read(&one); err != nil {
		return err
	}
	*m = Machines{one}
	return nil
}

// UnmarshalYAML reads a number of machines, or a mapping.
func (k *Kind) UnmarshalYAML(read func(any) error) error {
	*k = Kind{Disk: 32e9}
	if read(&k.Count) == nil {
		return nil
	}
	type plain Kind
	return read((*plain)(k))
}

// String writes the machines as a plan's defaults have them.
func (m Machines) String() string {
	var parts []string
	for _, k := range m {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%d %s", k.Count, k.Kind))+" with a disk of "+k.Disk.String())
	}
	return cmp.Or(strings.Join(parts, " and "), "none")
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
	var list []any
	if read(&list) == nil {
		switch len(list) {
		case 0:
			*t = nil
			return nil
		case 1:
			if word, ok := list[0].(string); ok {
				*t = Tiers{word: 0}
				return nil
			}
		}
		return errors.New("several tiers need the ages at which blobs are moved, such as {cool: 30d, cold: 90d}")
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
		Flush: Flush{Size: 32 << 20, Min: 2 << 20, Age: units.Duration(time.Minute), MaxAge: units.Duration(10 * time.Minute)},
		Tail:  PlanTail{Enabled: true, Every: units.Duration(5 * time.Second), Keep: 1},
	}
}

// LoadPlan reads the plan at path; "" is configs/plan.yaml as built in. An unknown key is an
// error.
func LoadPlan(path string) (p Plan, err error) {
	text, name := []byte(configs.Plan()), strings.TrimSpace("plan "+path)
	if path != "" {
		if text, err = fsys.Read(path); err != nil {
			return Plan{}, fmt.Errorf("read plan: %w", fsys.WhyUnread(err, "correct the path, or leave it out for the built-in plan"))
		}
	}
	p = DefaultPlan()
	given := map[string]any{}
	if err = yamltext.Decode(text, &p); err == nil {
		err = yaml.Unmarshal(text, &given)
	}
	if err != nil {
		return Plan{}, fmt.Errorf("%s: %s", name, misread(text, err))
	}
	if err := whole(given, ""); err != nil {
		return Plan{}, fmt.Errorf("%s: %w", name, err)
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

// misread says what is wrong with the text of a plan, and of which key.
func misread(text []byte, err error) string {
	said := yamltext.Error(err, true)
	switch {
	case strings.Contains(said, "unknown field"):
		return said + "\nthe keys are " + strings.Join(planKeys(), ", ") + ", as in configs/plan.yaml"
	case strings.HasPrefix(said, "["), strings.HasPrefix(said, "line "): // it has the place
		return said + "\nconfigs/plan.yaml shows what the keys may have"
	}
	given := map[string]any{}
	if yaml.Unmarshal(text, &given) != nil {
		return said
	}
	for _, key := range planKeys() {
		one, err := yaml.Marshal(map[string]any{key: given[key]})
		if err == nil && given[key] != nil && yaml.Unmarshal(one, new(Plan)) != nil {
			return key + ": " + said
		}
	}
	return said
}

// whole ensures that numbers of things have no fraction, which the library of YAML cuts off. name is
// the key of the value, "" for the file.
func whole(value any, name string) error {
	switch v := value.(type) {
	case float64:
		counts := []string{"services", "ingesters", "ingesters-per-service", "followers", "machines", "machines.count"}
		if v != math.Trunc(v) && slices.Contains(counts, name) {
			return fmt.Errorf("%s: %v is no whole number", name, v)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := whole(v[key], strings.TrimPrefix(name+"."+key, ".")); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := whole(item, name); err != nil {
				return err
			}
		}
	}
	return nil
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
		{"machines", func(p *Plan) string { return p.Machines.String() }},
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
		if given[k.name] == nil { // absent, or without a value
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

// The greatest numbers of a plan.
const (
	mostDays     = 36500
	mostServices = 1e9
	mostMachines = 1e6
)

func (p *Plan) validate() error {
	var errs []error
	want := func(ok bool, key, what string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: want %s", key, what))
		}
	}
	// The greatest numbers are beyond any load. They keep sums within what can be written.
	upTo := func(x, most float64) bool { return x >= 0 && x <= most }
	days := func(d Days) bool { return upTo(float64(d), mostDays) }
	want(p.BytesPerDay > 0 && p.BytesPerDay <= 1e18, "bytes-per-day", "the bytes of lines of a day, for example 1TB, and no more than 1000000TB")
	want(p.Services > 0 && p.Services <= mostServices, "services", "a number from 1 to 1000000000")
	want(p.Ingesters > 0 && p.Ingesters <= mostMachines, "ingesters", "a number from 1 to 1000000")
	want(p.IngestersPerService > 0 && p.IngestersPerService <= p.Ingesters, "ingesters-per-service", "1 or more, and no more than there are ingesters")
	want(p.LineBytes >= 1 && upTo(p.LineBytes, 1e9), "line-bytes", "the mean size of a line in bytes, from 1 to 1000000000")
	want(p.Ratio == 0 || p.Ratio >= 0.01 && upTo(p.Ratio, 1e6), "ratio", "bytes of lines for a byte of blobs, for example 4.8, and from 0.01 to 1000000")
	want(p.Keep >= 1 && days(p.Keep), "keep", "a number of days, from 1d to 36500d")
	want(days(p.SoftDelete), "soft-delete", "a number of days, no more than 36500d")
	want(upTo(p.ReadsPerDay, 1e12), "reads-per-day", "a number from 0 to 1000000000000")
	want(p.ReadRange > 0 && time.Duration(p.ReadRange).Hours() <= 24*float64(p.Keep), "read-range", "the time that a read covers, for example 1h, and no more than keep")
	want(upTo(p.ReadsOfCool, p.ReadsPerDay), "reads-of-cool", "a number, no more than reads-per-day")
	want(p.Followers >= 0 && p.Followers <= mostServices, "followers", "a number from 0 to 1000000000")
	for _, k := range p.Machines {
		want(k.Count >= 0 && k.Count <= mostMachines, "machines", "a number from 0 to 1000000")
	}
	want(p.Flush.Size > 0, "flush.size", "a size, for example 32MiB")
	want(p.Flush.MaxAge >= units.Duration(tick), "flush.max-age", "1s or more")
	want(!bool(p.Tail.Enabled) || p.Tail.Every >= units.Duration(tick), "tail.every", "1s or more")
	want(days(p.Tail.Keep), "tail.keep", "a number of days, no more than 36500d")
	return errors.Join(append(errs, p.Tiers.validate()...)...)
}

func (t Tiers) validate() (errs []error) {
	for name, age := range t {
		if !slices.Contains(tierNames(), name) {
			errs = append(errs, fmt.Errorf("tiers: there is no tier %q; they are %s", name, strings.Join(tierNames(), ", ")))
		}
		if !(age >= 0 && age <= mostDays) {
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
