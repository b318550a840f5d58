package bill

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml"

	"blobtail/configs"
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
	TableStorage Price  `yaml:"table-storage"` // a GB and month
	TableWrites  Price  `yaml:"table-writes"`  // 10,000 transactions
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
func Load(path string) (Prices, error) {
	if path == "" {
		return Parse([]byte(configs.Prices()))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Prices{}, fmt.Errorf("read prices: %w", err)
	}
	p, err := Parse(text)
	if err != nil {
		return Prices{}, fmt.Errorf("prices %s: %w", path, err)
	}
	return p, nil
}

// Parse reads a table: the whole of it or nothing.
func Parse(text []byte) (Prices, error) {
	var p Prices
	err := yaml.NewDecoder(bytes.NewReader(text), yaml.DisallowUnknownField()).Decode(&p)
	if err != nil && !errors.Is(err, io.EOF) {
		return Prices{}, errors.New(strings.TrimSpace(yaml.FormatError(err, false, true)))
	}
	if err := p.validate(); err != nil {
		return Prices{}, err
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
	line := func(key string, price *float64, source, date string) {
		if price == nil || math.IsNaN(*price) || math.IsInf(*price, 0) || *price < 0 {
			bad(key, "want a price, 0 or more")
		}
		text(key+".source", source)
		if _, err := time.Parse(time.DateOnly, date); err != nil {
			bad(key+".date", "want the day at which the price was seen, for example 2026-11-20")
		}
	}
	text("currency", p.Currency)
	text("here.name", p.Here.Name)
	for _, l := range p.Here.lines() {
		line("here."+l.key, l.price.Price, l.price.Source, l.price.Date)
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
		line(key+".gb", e.GB, e.Source, e.Date)
		if !(e.Million >= 0) || math.IsInf(e.Million, 0) {
			bad(key+".million", "want a price, 0 or more")
		}
		if e.Keeps < 0 {
			bad(key+".keeps", "want a number of days")
		}
	}
	return errors.Join(errs...)
}

type hereLine struct {
	key   string
	price *Price
}

func (h *Here) lines() []hereLine {
	return []hereLine{
		{"storage", &h.Storage}, {"writes", &h.Writes}, {"lists", &h.Lists},
		{"table-storage", &h.TableStorage}, {"table-writes", &h.TableWrites},
	}
}

// Dates names the dates of the oldest and of the newest line, once if they are equal.
func (p *Prices) Dates() string {
	var dates []string
	for _, l := range p.Here.lines() {
		dates = append(dates, l.price.Date)
	}
	for i := range p.Elsewhere {
		dates = append(dates, p.Elsewhere[i].Date)
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
	const (
		gb      = 1e9
		tenK    = 10_000
		million = 1e6
	)
	c := Cost{
		Puts:    digits(float64(s.Puts) / tenK * *p.Here.Writes.Price),
		Lists:   digits(float64(s.Lists()) / tenK * *p.Here.Lists.Price),
		Storage: digits(float64(s.Stored) / gb * *p.Here.Storage.Price),
	}
	kept := min(1, tail.Hours()/24/daysOfMonth) // prices are per month
	c.Tail = digits(float64(s.TailWrites)/tenK**p.Here.TableWrites.Price + float64(s.TailBytes)/gb*kept**p.Here.TableStorage.Price)
	for i := range p.Elsewhere {
		e := &p.Elsewhere[i]
		c.Elsewhere = append(c.Elsewhere, digits(float64(s.Raw)/gb**e.GB+float64(s.Records)/million*e.Million))
	}
	return c
}

// digits rounds to 12 places, more than any bill needs.
func digits(x float64) float64 {
	const places = 1e12
	if math.Abs(x) > math.MaxInt64/places {
		return x
	}
	return math.Round(x*places) / places
}
