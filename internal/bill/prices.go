package bill

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"blobtail/configs"
	"blobtail/internal/yamltext"
	"blobtail/storage/fsys"
	"blobtail/storage/traffic"
)

// Prices are a table of prices. Each line has its source and date, because prices
// change and depend on region, redundancy and contract. Operators are meant to look
// up their prices and edit the table.
type Prices struct {
	Currency  string      `yaml:"currency"`
	Here      Here        `yaml:"here"`
	Elsewhere []Elsewhere `yaml:"elsewhere"`
	// Machines are virtual machines, of which a plan names one. Disk is of a GB and month.
	Machines []Machine `yaml:"machines"`
	Disk     Price     `yaml:"disk"`
	Programs []Program `yaml:"programs"`
}

// Here has the prices of the store. A GB is 1,000,000,000 bytes.
type Here struct {
	Name         string `yaml:"name"`
	Storage      Price  `yaml:"storage"`       // a GB and month
	Writes       Price  `yaml:"writes"`        // 10,000 PUTs of blobs
	Lists        Price  `yaml:"lists"`         // 10,000 LISTs
	Reads        Price  `yaml:"reads"`         // 10,000 GETs of blobs, or of anything else
	TableStorage Price  `yaml:"table-storage"` // a GB and month
	TableWrites  Price  `yaml:"table-writes"`  // 10,000 transactions, reads too
	// Tiers are the cooler tiers, by their names. The prices above are of the hot one.
	Tiers map[string]Tier `yaml:"tiers"`
}

// Tier has the prices of a tier of the store.
type Tier struct {
	Storage   Price `yaml:"storage"`   // a GB and month
	Writes    Price `yaml:"writes"`    // 10,000 PUTs into it, or blobs moved into it
	Reads     Price `yaml:"reads"`     // 10,000 GETs
	Retrieval Price `yaml:"retrieval"` // a GB that is read
	// Days are paid for, even if a blob is deleted or moved before.
	Days int `yaml:"days"`
}

// Machine is a virtual machine.
type Machine struct {
	Name  string  `yaml:"name"`
	Month Price   `yaml:"month"`
	CPUs  float64 `yaml:"cpus"`
}

// Program is one that an operator runs in blobtail's place.
type Program struct {
	Name string `yaml:"name"`
	// CPUs that it needs for a TB a day. They come as machines of the kind Machine.
	CPUs    float64 `yaml:"cpus"`
	Machine string  `yaml:"machine"`
	// Ratio is bytes of lines for a byte that it stores.
	Ratio float64 `yaml:"ratio"`
	Store string  `yaml:"store"` // disks or blobs
	// Spare is the part of a disk that stays free.
	Spare  float64 `yaml:"spare"`
	Source string  `yaml:"source"`
	Date   string  `yaml:"date"`
}

// Price is one line of the table.
type Price struct {
	Price  *float64 `yaml:"price"`
	Source string   `yaml:"source"`
	Date   string   `yaml:"date"` // when it was looked up, as 2026-11-20
}

// Elsewhere is the price of another service for ingested bytes, and perhaps for
// records.
type Elsewhere struct {
	Name string   `yaml:"name"`
	GB   *float64 `yaml:"gb"`
	// Million is the additional price of a million records.
	Million float64 `yaml:"million"`
	Keeps   int     `yaml:"keeps"` // days of storage included in the price
	// Month is the price of a GB for each further month, and Scanned of each GB that a query
	// looks at. 0: there is none, or it is not known.
	Month   float64 `yaml:"month"`
	Scanned float64 `yaml:"scanned"`
	Lacks   string  `yaml:"lacks"` // the uses that the price does not cover
	Source  string  `yaml:"source"`
	Date    string  `yaml:"date"`
}

// Load reads the table at path; "" is configs/prices.yaml as built in. An unknown key is
// an error, and so is a price without its source and date.
func Load(path string) (p Prices, err error) {
	text := []byte(configs.Prices())
	if path != "" {
		if text, err = fsys.Read(path); err != nil {
			return Prices{}, fmt.Errorf("read prices: %w", fsys.WhyUnread(err, "correct the path, or leave it out for the built-in table"))
		}
	}
	if err = yamltext.Decode(text, &p); err != nil {
		err = errors.New(yamltext.Error(err, true))
	} else {
		err = p.validate()
	}
	if err != nil {
		return Prices{}, fmt.Errorf("prices %s: %w", path, err)
	}
	return p, nil
}

func (p *Prices) validate() error {
	var errs []error
	bad := func(key, what string) { errs = append(errs, fmt.Errorf("%s: %s", key, what)) }
	text := func(key, s string) {
		if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
			bad(key, "want a text of one line")
		}
	}
	day := func(key, s string) {
		if _, err := time.Parse(time.DateOnly, s); err != nil {
			bad(key, "want the day at which the price was seen, for example 2026-11-20")
		}
	}
	text("currency", p.Currency)
	text("here.name", p.Here.Name)
	lines := p.lines()
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		l := lines[key]
		if l.Price.Price == nil || !amount(*l.Price.Price) {
			bad(key, "want a price, 0 or more, and no more than 1000000000000")
		}
		text(key+".source", l.Source)
		day(key+".date", l.Date)
	}
	names := map[string]bool{}
	named := func(list string, i int, name string) string {
		key := fmt.Sprintf("%s[%d]", list, i)
		text(key+".name", name)
		if names[list+name] {
			bad(key+".name", "there are two of this name")
		}
		names[list+name] = true
		return key
	}
	for i := range p.Elsewhere {
		e := &p.Elsewhere[i]
		key := named("elsewhere", i, e.Name)
		for name, x := range map[string]float64{"million": e.Million, "month": e.Month, "scanned": e.Scanned} {
			if !amount(x) {
				bad(key+"."+name, "want a price, 0 or more, and no more than 1000000000000")
			}
		}
		if e.Keeps < 0 {
			bad(key+".keeps", "want a number of days")
		}
	}
	for name, tier := range p.Here.Tiers {
		if !slices.Contains(tierNames()[1:], name) {
			bad("here.tiers."+name, "there is no such tier; they are "+strings.Join(tierNames()[1:], ", "))
		}
		if tier.Days < 0 {
			bad("here.tiers."+name+".days", "want a number of days")
		}
	}
	for i, m := range p.Machines {
		if key := named("machines", i, m.Name); !(m.CPUs >= 0.01 && amount(m.CPUs)) {
			bad(key+".cpus", "want a number")
		}
	}
	for i := range p.Programs {
		g := &p.Programs[i]
		key := named("programs", i, g.Name)
		text(key+".source", g.Source)
		day(key+".date", g.Date)
		if _, ok := p.machine(g.Machine); !ok {
			bad(key+".machine", "want the name of one of the machines")
		}
		if !amount(g.CPUs) || !(g.Ratio >= 0.01 && amount(g.Ratio)) || !(g.Spare >= 0 && g.Spare <= 0.99) || g.Store != "disks" && g.Store != "blobs" {
			bad(key, "want cpus, a ratio from 0.01, a store of disks or blobs, and a spare part of the disk up to 0.99")
		}
	}
	return errors.Join(errs...)
}

// amount reports whether x can be a price.
func amount(x float64) bool { return x >= 0 && x <= mostAmount }

// mostAmount is beyond any price. It keeps sums within what can be written.
const mostAmount = 1e12

// machine is the kind of machine of a name, and the first one for "".
func (p *Prices) machine(name string) (key string, ok bool) {
	for i := range p.Machines {
		if name == "" || p.Machines[i].Name == name {
			return fmt.Sprintf("machines[%d].month", i), true
		}
	}
	return "", false
}

// Prices are for so many of their things.
const (
	requests = 1e4
	gigabyte = 1e9
)

// priced is a line of the table: the price of unit things.
type priced struct {
	Price
	unit float64
}

// lines are the lines of the table by their keys.
func (p *Prices) lines() map[string]priced {
	h := &p.Here
	lines := map[string]priced{
		"here.storage": {h.Storage, gigabyte}, "here.writes": {h.Writes, requests}, "here.lists": {h.Lists, requests}, "here.reads": {h.Reads, requests},
		"here.table-storage": {h.TableStorage, gigabyte}, "here.table-writes": {h.TableWrites, requests},
	}
	for name, t := range h.Tiers {
		key := "here.tiers." + name
		lines[key+".storage"], lines[key+".retrieval"] = priced{t.Storage, gigabyte}, priced{t.Retrieval, gigabyte}
		lines[key+".writes"], lines[key+".reads"] = priced{t.Writes, requests}, priced{t.Reads, requests}
	}
	for i, m := range p.Machines {
		lines[fmt.Sprintf("machines[%d].month", i)] = priced{m.Month, 1}
	}
	if p.Disk != (Price{}) {
		lines["disk"] = priced{p.Disk, gigabyte}
	}
	for i, e := range p.Elsewhere {
		lines[fmt.Sprintf("elsewhere[%d].gb", i)] = priced{Price{e.GB, e.Source, e.Date}, gigabyte}
	}
	return lines
}

// money is the cost of n things by the line of a key: requests, bytes, bytes for a month,
// or machines for a month. All costs of this package come from it. The key is one of the table.
func (p *Prices) money(key string, n float64) float64 {
	l := p.lines()[key]
	return digits(n / l.unit * *l.Price.Price)
}

// Dates names the dates of the oldest and of the newest line of a bill, once if they are equal.
func (p *Prices) Dates() string {
	var dates []string
	for key, l := range p.lines() {
		if !strings.HasPrefix(key, "here.tiers.") && (strings.HasPrefix(key, "here.") || strings.HasPrefix(key, "elsewhere")) {
			dates = append(dates, l.Date)
		}
	}
	return span(dates)
}

// span names the first and the last of some dates.
func span(dates []string) string {
	oldest, newest := slices.Min(dates), slices.Max(dates)
	if oldest == newest {
		return oldest
	}
	return oldest + " to " + newest
}

// Cost is the cost of a [Sum], to 12 places.
type Cost struct {
	Storage float64 `json:"storage_month"` // each month of storage
	Puts    float64 `json:"puts"`          // once: the requests that stored it
	Lists   float64 `json:"lists"`         // each time all of it is listed
	// Tail is the one-time, estimated cost of the tables of the newest records: their
	// transactions, and their bytes for as long as they are kept.
	Tail      float64   `json:"tail_estimate"`
	Elsewhere []float64 `json:"-"` // once: the price of ingesting it, in the order of the table
}

// Here is the cost of ingesting it here and keeping it for a month.
func (c *Cost) Here() float64 { return c.Puts + c.Storage + c.Tail }

// Cost applies prices to a sum. The tables of the newest records are kept for tail.
func (p *Prices) Cost(s *Sum, tail time.Duration) Cost {
	c := Cost{
		Puts:    p.money("here.writes", float64(s.Puts)),
		Lists:   p.money("here.lists", float64(s.Lists())),
		Storage: p.money("here.storage", float64(s.Stored)),
	}
	kept := min(1, tail.Hours()/24/daysOfMonth) // prices are per month
	c.Tail = digits(p.money("here.table-writes", float64(s.TailWrites)) + p.money("here.table-storage", float64(s.TailBytes)*kept))
	for i := range p.Elsewhere {
		c.Elsewhere = append(c.Elsewhere, p.ingested(i, float64(s.Raw), float64(s.Records)))
	}
	return c
}

// ingested is the price of the bytes of lines, and of the records, at another service.
func (p *Prices) ingested(i int, raw, records float64) float64 {
	return digits(p.money(fmt.Sprintf("elsewhere[%d].gb", i), raw) + records/1e6*p.Elsewhere[i].Million)
}

// Sent is the cost of requests. Traffic within a region of Azure is free, and other traffic
// is not counted.
func (p *Prices) Sent(t *traffic.Counter) float64 {
	sum := 0.0
	for kind, key := range map[traffic.Kind]string{traffic.List: "here.lists", traffic.Put: "here.writes", traffic.Get: "here.reads", traffic.Other: "here.reads", traffic.Table: "here.table-writes"} {
		n, _ := t.Of(kind)
		sum += p.money(key, float64(n))
	}
	return digits(sum)
}

// Retrieval is the cost of reading bytes from cooler tiers, without the requests, and the dates of
// the prices; ok is false if the table lacks a tier.
func (p *Prices) Retrieval(bytes map[string]int64) (sum float64, seen string, ok bool) {
	lines := p.lines()
	var dates []string
	for tier, n := range bytes {
		key := tierPrice(tier, "retrieval")
		line, ok := lines[key]
		if !ok {
			return 0, "", false
		}
		sum += p.money(key, float64(n))
		dates = append(dates, line.Date)
	}
	if len(dates) == 0 {
		return 0, "", false
	}
	return digits(sum), span(dates), true
}

// digits rounds to 12 places, more than any bill needs.
func digits(x float64) float64 { return math.Round(x*1e12) / 1e12 }
