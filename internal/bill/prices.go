package bill

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml"

	"blobtail/configs"
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
	Source  string  `yaml:"source"`
	Date    string  `yaml:"date"`
}

// Load reads the table at path; "" is configs/prices.yaml as built in. An unknown key is
// an error, and so is a price without its source and date.
func Load(path string) (p Prices, err error) {
	text := []byte(configs.Prices())
	if path != "" {
		if text, err = os.ReadFile(path); err != nil {
			return Prices{}, fmt.Errorf("read prices: %w", fsys.WhyUnread(err, "correct the path, or leave it out for the built-in table"))
		}
	}
	if err = yaml.UnmarshalWithOptions(text, &p, yaml.DisallowUnknownField()); err != nil {
		err = errors.New(strings.TrimSpace(yaml.FormatError(err, false, true)))
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
	text("currency", p.Currency)
	text("here.name", p.Here.Name)
	lines := p.lines()
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		l := lines[key]
		if l.Price == nil || !(*l.Price >= 0) || math.IsInf(*l.Price, 0) {
			bad(key, "want a price, 0 or more")
		}
		text(key+".source", l.Source)
		if _, err := time.Parse(time.DateOnly, l.Date); err != nil {
			bad(key+".date", "want the day at which the price was seen, for example 2026-11-20")
		}
	}
	seen := map[string]bool{}
	for i := range p.Elsewhere {
		e := &p.Elsewhere[i]
		key := fmt.Sprintf("elsewhere[%d]", i)
		text(key+".name", e.Name)
		if seen[e.Name] {
			bad(key+".name", "there are two of this name")
		}
		seen[e.Name] = true
		if !(e.Million >= 0) || math.IsInf(e.Million, 0) {
			bad(key+".million", "want a price, 0 or more")
		}
		if e.Keeps < 0 {
			bad(key+".keeps", "want a number of days")
		}
	}
	return errors.Join(errs...)
}

// lines are the lines of the table by their keys.
func (p *Prices) lines() map[string]Price {
	h := &p.Here
	lines := map[string]Price{
		"here.storage": h.Storage, "here.writes": h.Writes, "here.lists": h.Lists, "here.reads": h.Reads,
		"here.table-storage": h.TableStorage, "here.table-writes": h.TableWrites,
	}
	for i, e := range p.Elsewhere {
		lines[fmt.Sprintf("elsewhere[%d].gb", i)] = Price{e.GB, e.Source, e.Date}
	}
	return lines
}

// Dates names the dates of the oldest and of the newest line, once if they are equal.
func (p *Prices) Dates() string {
	var dates []string
	for _, l := range p.lines() {
		dates = append(dates, l.Date)
	}
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
		Puts:    digits(float64(s.Puts) / 1e4 * *p.Here.Writes.Price),
		Lists:   digits(float64(s.Lists()) / 1e4 * *p.Here.Lists.Price),
		Storage: digits(float64(s.Stored) / 1e9 * *p.Here.Storage.Price),
	}
	kept := min(1, tail.Hours()/24/daysOfMonth) // prices are per month
	c.Tail = digits(float64(s.TailWrites)/1e4**p.Here.TableWrites.Price + float64(s.TailBytes)/1e9*kept**p.Here.TableStorage.Price)
	for i := range p.Elsewhere {
		e := &p.Elsewhere[i]
		c.Elsewhere = append(c.Elsewhere, digits(float64(s.Raw)/1e9**e.GB+float64(s.Records)/1e6*e.Million))
	}
	return c
}

// Sent is the cost of requests. Traffic within a region of Azure is free, and other traffic
// is not counted.
func (p *Prices) Sent(t *traffic.Counter) float64 {
	of := func(k traffic.Kind, price Price) float64 {
		n, _ := t.Of(k)
		return float64(n) / 1e4 * *price.Price
	}
	h := &p.Here
	return digits(of(traffic.List, h.Lists) + of(traffic.Put, h.Writes) + of(traffic.Get, h.Reads) + of(traffic.Other, h.Reads) + of(traffic.Table, h.TableWrites))
}

// digits rounds to 12 places, more than any bill needs.
func digits(x float64) float64 { return math.Round(x*1e12) / 1e12 }
