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
	if err = decode("prices", path, configs.Prices(), &p); err != nil {
		return Prices{}, err
	}
	if err = p.validate(); err != nil {
		return Prices{}, fmt.Errorf("prices %s: %w", path, err)
	}
	return p, nil
}

// decode decodes a file over a value: that at path, or the built-in text if path is "".
func decode(name, path, builtIn string, to any) (err error) {
	text := []byte(builtIn)
	if path != "" {
		if text, err = fsys.Read(path); err != nil {
			return fmt.Errorf("read %s: %w", name, fsys.WhyUnread(err, "correct the path, or leave it out for what is built in"))
		}
	}
	if err = yamltext.Decode(text, to); err != nil {
		return fmt.Errorf("%s %s: %s\nconfigs/%s.yaml shows the keys, and what they may have", name, path, yamltext.Error(err, true), name)
	}
	return nil
}

func (p *Prices) validate() error {
	var errs []error
	want := func(ok bool, key, what string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: %s", key, what))
		}
	}
	price := func(key string, x float64) {
		want(amount(x), key, "want a price, 0 or more, and no more than 1000000000000")
	}
	text := func(key, s string) {
		want(s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }), key, "want a text of one line")
	}
	seen := func(key, source, date string) {
		text(key+".source", source)
		_, err := time.Parse(time.DateOnly, date)
		want(err == nil, key+".date", "want the day at which the price was seen, for example 2026-11-20")
	}
	text("currency", p.Currency)
	text("here.name", p.Here.Name)
	lines := p.lines()
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		l := lines[key]
		price(key, *cmp.Or(l.Price.Price, new(-1.0)))
		seen(key, l.Source, l.Date)
	}
	names := map[string]bool{}
	named := func(list string, i int, name string) string {
		key := fmt.Sprintf("%s[%d]", list, i)
		text(key+".name", name)
		want(!names[list+name], key+".name", "there are two of this name")
		names[list+name] = true
		return key
	}
	for i := range p.Elsewhere {
		e := &p.Elsewhere[i]
		key := named("elsewhere", i, e.Name)
		price(key+".million", e.Million)
		price(key+".month", e.Month)
		price(key+".scanned", e.Scanned)
		want(e.Keeps >= 0, key+".keeps", "want a number of days")
	}
	for name, tier := range p.Here.Tiers {
		want(slices.Contains([]string{"cool", "cold", "archive"}, name), "here.tiers."+name, "there is no such tier; they are cool, cold, archive")
		want(tier.Days >= 0, "here.tiers."+name+".days", "want a number of days")
	}
	for i, m := range p.Machines {
		want(m.CPUs >= 0.01 && amount(m.CPUs), named("machines", i, m.Name)+".cpus", "want a number")
	}
	for i := range p.Programs {
		g := &p.Programs[i]
		key := named("programs", i, g.Name)
		seen(key, g.Source, g.Date)
		want(p.cpus(g.Machine) > 0, key+".machine", "want the name of one of the machines")
		want(amount(g.CPUs) && g.Ratio >= 0.01 && amount(g.Ratio) && g.Spare >= 0 && g.Spare <= 0.99 && (g.Store == "blobs" || g.Store == "disks" && p.Disk.Price != nil),
			key, "want cpus, a ratio from 0.01, a store of blobs or, if disk has a price, of disks, and a spare part of the disk up to 0.99")
	}
	return errors.Join(errs...)
}

// amount reports whether x can be a price.
func amount(x float64) bool { return x >= 0 && x <= mostAmount }

// mostAmount is beyond any price. It keeps sums within what can be written.
const mostAmount = 1e12

// cpus are those of a kind of machine; 0: there is no such kind.
func (p *Prices) cpus(kind string) float64 {
	for _, m := range p.Machines {
		if m.Name == kind {
			return m.CPUs
		}
	}
	return 0
}

// kind is what a price is of: so many things for some days. In a [Sheet], count of them are one unit.
type kind struct {
	of, days, count float64
	group, unit     string
}

// priced is a line of the table.
type priced struct {
	Price
	kind
}

const gigabyte = 1e9

// lines are the lines of the table by their keys.
func (p *Prices) lines() map[string]priced {
	stored, tables := kind{gigabyte, daysOfMonth, gigabyte, "storage", "GB-days"}, kind{gigabyte, daysOfMonth, gigabyte, "tables", "GB-days"}
	request, row, bytes := kind{1e4, 1, 1, "requests", "requests"}, kind{1e4, 1, 1, "tables", "transactions"}, kind{gigabyte, 1, gigabyte, "requests", "GB"}
	h := &p.Here
	lines := map[string]priced{
		"here.storage": {h.Storage, stored}, "here.writes": {h.Writes, request}, "here.lists": {h.Lists, request}, "here.reads": {h.Reads, request},
		"here.table-storage": {h.TableStorage, tables}, "here.table-writes": {h.TableWrites, row},
	}
	for name, t := range h.Tiers {
		key := "here.tiers." + name
		lines[key+".storage"], lines[key+".retrieval"] = priced{t.Storage, stored}, priced{t.Retrieval, bytes}
		lines[key+".writes"], lines[key+".reads"] = priced{t.Writes, request}, priced{t.Reads, request}
	}
	for _, m := range p.Machines {
		lines["machines."+m.Name] = priced{m.Month, kind{1, daysOfMonth, 1, "machines", "machine-days"}}
	}
	if p.Disk != (Price{}) {
		lines["disk"] = priced{p.Disk, kind{gigabyte, daysOfMonth, gigabyte, "machines", "GB-days"}}
	}
	for i, e := range p.Elsewhere {
		lines[fmt.Sprintf("elsewhere[%d].gb", i)] = priced{Price{e.GB, e.Source, e.Date}, bytes}
	}
	return lines
}

// money is the cost of n things by the line of a key: requests, bytes, bytes for a month,
// or machines for a month. All costs of this package come from it. The key is one of the table.
func (p *Prices) money(key string, n float64) float64 {
	l := p.lines()[key]
	return digits(n / l.of * *l.Price.Price)
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

// Gets is the cost of some GETs.
func (p *Prices) Gets(n int64) float64 { return digits(p.money("here.reads", float64(n))) }

// Requests is the cost of some PUTs and LISTs.
func (p *Prices) Requests(puts, lists int) float64 {
	return digits(p.money("here.writes", float64(puts)) + p.money("here.lists", float64(lists)))
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

// tierPrice is the key of a price of a tier.
func tierPrice(tier, of string) string {
	if tier == "hot" {
		return "here." + of
	}
	return "here.tiers." + tier + "." + of
}

// digits rounds to 12 places, more than any bill needs.
func digits(x float64) float64 { return math.Round(x*1e12) / 1e12 }
