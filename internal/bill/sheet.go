package bill

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"blobtail/docs/measured/scale"
	"blobtail/internal/units"
)

// Measured is the result of the scale test, a file of docs/measured/scale: a table of counted requests. Its
// counts are found by paths such as a.default.requests.put.
type Measured struct {
	Date, Commit string
	A            map[string]struct { // two loads, each of one ingester
		Flush Flush
		Every units.Duration `json:"tail_every"`
	}
	root map[string]any
}

// Latest is the newest result of the scale test.
func Latest() (*Measured, error) { return Measure(scale.Latest()) }

// Measure reads a result of the scale test.
func Measure(text []byte) (*Measured, error) {
	m := &Measured{}
	if err := errors.Join(json.Unmarshal(text, m), json.Unmarshal(text, &m.root)); err != nil {
		return nil, fmt.Errorf("result of the scale test: %w", err)
	}
	return m, nil
}

// count is the number at a path; NaN: there is none.
func (m *Measured) count(path string) float64 {
	var v any = m.root
	for name := range strings.SplitSeq(path, ".") {
		level, _ := v.(map[string]any)
		v = level[name]
	}
	if n, ok := v.(float64); ok {
		return n
	}
	return math.NaN()
}

// wait is the seconds from batch to batch of some records a second: by size, by age with min, or max-age.
func (f Flush) wait(records, line float64) float64 {
	rate := records * line
	return 1/records + min(float64(f.Size)/rate, max(time.Duration(f.Age).Seconds(), float64(f.Min)/rate), time.Duration(f.MaxAge).Seconds())
}

// Line is one line of a [Sheet].
type Line struct {
	Name     string  `json:"name"`
	What     string  `json:"what"`
	Group    string  `json:"group,omitempty"` // storage, requests, tables or machines
	Count    float64 `json:"count,omitempty"` // of a day
	Unit     string  `json:"unit,omitempty"`
	Price    string  `json:"price,omitempty"` // its key in the table of prices
	PerDay   float64 `json:"per_day"`
	Path     string  `json:"path,omitempty"`     // of the measured count that Count is a multiple of, if any
	Measured float64 `json:"measured,omitempty"` // the count there
}

// Sheet is the cost of a plan, for a day of its steady state: as much expires as is written.
type Sheet struct {
	Currency string `json:"currency"`
	// PerDay has the sums by name: total, storage_requests_tables, each group and each line.
	PerDay    map[string]float64 `json:"per_day"`
	PerGB     float64            `json:"per_gb"` // storage, requests and tables, for a GB of lines
	Lines     []Line             `json:"lines"`
	Elsewhere []Line             `json:"elsewhere"` // the same load, by parts
	Dates     string             `json:"prices"`    // of the oldest and of the newest price of a line
	Measured  string             `json:"measured"`  // the day and the commit of the scale test
	Plan      Plan               `json:"plan"`
}

// row is what a plan needs a day: a measured count so many times, or as much if path is "".
type row struct {
	name, what, price, path string
	times                   float64
}

// Cost is the cost of the plan, by prices and counts of requests.
func (p Plan) Cost(prices *Prices, m *Measured) (*Sheet, error) {
	s := &Sheet{Currency: prices.Currency, PerDay: map[string]float64{"machines": 0}, Measured: m.Date + " at " + m.Commit, Plan: p}
	lines, dates := prices.lines(), []string(nil)
	for _, r := range p.rows(prices, m) {
		l := Line{Name: r.name, What: r.what, Price: r.price, Count: r.times, Path: r.path}
		if r.path != "" {
			l.Measured = m.count(r.path)
			l.Count *= l.Measured
		}
		price, ok := lines[r.price]
		switch {
		case !(l.Count <= math.MaxFloat64):
			return nil, fmt.Errorf("the result of the scale test of %s has no usable count %s; make scale writes a new one", s.Measured, r.path)
		case l.Count == 0 || r.price == tierPrice("hot", "retrieval"): // reading from there is free
			continue
		case !ok:
			return nil, fmt.Errorf("the table of prices has no %s, which the plan needs; configs/prices.yaml shows its form", r.price)
		}
		l.Group, l.Unit, l.PerDay = price.group, price.unit, digits(prices.money(r.price, l.Count)/price.days)
		l.Count /= price.count
		for _, sum := range []string{l.Name, l.Group, "total"} {
			s.PerDay[sum] = digits(s.PerDay[sum] + l.PerDay)
		}
		s.Lines, dates = append(s.Lines, l), append(dates, price.Date)
	}
	here := digits(s.PerDay["total"] - s.PerDay["machines"])
	s.PerDay["storage_requests_tables"], s.PerGB, s.Dates = here, digits(here/float64(p.BytesPerDay)*gigabyte), span(dates)
	s.elsewhere(prices)
	return s, nil
}

// rows are the table of what the plan needs. docs/measured/cost.md has the ways from a measured count to it.
func (p *Plan) rows(prices *Prices, m *Measured) []row {
	const daySeconds, lists, tables = 24 * 60 * 60, "here.lists", "here.table-writes"
	const read, apply = "b.reads.read.requests.", "b.reads.retention_apply.requests."
	raw, records, pairs := float64(p.BytesPerDay), float64(p.BytesPerDay)/p.LineBytes, p.Services*p.IngestersPerService // each fills batches of its own
	rate := records / daySeconds / pairs
	load := map[bool]string{false: "default", true: "partitions"}[rate*p.LineBytes > 13_000] // nearer to 180 records a second than to 9
	like, at := m.A[load], "a."+load+"."
	seconds, likeRecords, likeRaw, likeRate := m.count(at+"virtual_seconds"), m.count(at+"records"), m.count(at+"raw_bytes"), m.count(at+"records_per_second_pair")
	line, likePairs := likeRaw/likeRecords, math.Round(likeRecords/seconds/likeRate)

	// A batch ends with its hour, and the scale test before.
	puts := pairs * 24 * min(3600*rate, math.Ceil(3600/p.Flush.wait(rate, p.LineBytes)))
	puts /= likePairs * math.Round(seconds/like.Flush.wait(likeRate, line))
	tails, likeTails := min(records, pairs*daySeconds/time.Duration(p.Tail.Every).Seconds()), min(likeRecords, likePairs*seconds/time.Duration(like.Every).Seconds())
	_, room := tailUse(int64(records), int64(tails), p.LineBytes)
	_, likeRoom := tailUse(int64(likeRecords), int64(likeTails), line)
	clock, on := p.Ingesters*daySeconds/seconds, map[string]float64{"on": 1}
	beats, tail, compact := seconds/10, on[p.Tail.Enabled], on[p.Compaction] // an ingester's row of its own, each 10 s

	blobs, stored := puts*m.count(at+"requests.put"), raw/cmp.Or(p.Ratio, likeRaw/m.count(at+"stored_bytes"))
	compacted := blobs - compact*max(0, blobs-24*p.Services)
	out, first, cool := p.kept(prices, stored, compacted, compact)
	ofDay := time.Duration(p.ReadRange).Hours() / 24 / p.Services // the part of a day that a read covers
	gets := max(1, 2*blobs*ofDay/m.count(read+"get"))             // an index and blocks of each blob
	hot, jobs := p.ReadsPerDay-p.ReadsOfCool, p.Services/m.count("b.services")
	writes, reads, retrieval := tierPrice(first, "writes"), tierPrice(first, "reads"), tierPrice(first, "retrieval")
	out = append(out, []row{
		{"puts", "PUTs of ingesters, by the rule of flush.*", writes, at + "requests.put", puts},
		{"ship_puts", "PUTs of shipped logs, one each ship.every at an ingester", writes, "", p.ships(records)},
		{"lists", "LISTs of ingesters, by the clock", lists, at + "requests.list", clock},
		{"gets", "GETs of ingesters, by the clock", reads, at + "requests.get", clock},
		{"heads", "HEADs of ingesters, by the clock", reads, at + "requests.head", clock},
		{"read_lists", "LISTs of reads", lists, read + "list", p.ReadsPerDay},
		{"read_gets", "GETs of reads, 2 a blob, no fewer than measured", reads, read + "get", gets * hot},
		{"read_retrieval", "bytes read from the tier " + first, retrieval, "", stored * ofDay * hot},
		{"cool_gets", "GETs of reads of the tier " + cool, tierPrice(cool, "reads"), read + "get", gets * p.ReadsOfCool},
		{"cool_retrieval", "bytes read from the tier " + cool, tierPrice(cool, "retrieval"), "", stored * ofDay * p.ReadsOfCool},
		{"follower_lists", "LISTs of followers, every 60 s", lists, "", p.Followers * daySeconds / 60},
		{"retention_lists", "LISTs of retention apply, once a day", lists, apply + "list", jobs},
		{"retention_puts", "PUTs of retention apply", writes, apply + "put", jobs},
		{"compaction_lists", "LISTs of retention compact", lists, "b.reads.compact.requests.list", jobs * compact},
		{"compaction_gets", "GETs of retention compact, 2 of each blob, and again before its end", reads, "", 4 * blobs * compact},
		{"compaction_puts", "PUTs of retention compact, for each service and hour", writes, "", compacted * compact},
		{"compaction_retrieval", "bytes that these GETs read", retrieval, "", 2 * stored * compact},
		{"table_reads", "reads of tables by ingesters, by the clock", tables, at + "requests.table_read", clock},
		{"tail_writes", "rows of tables, by the rule of tail.every", tables, at + "requests.table_write", (tails*tail + beats*clock) / (likeTails + beats)},
		{"tail_room", "room of the tables of the newest records", "here.table-storage", at + "tail_bytes", float64(room) * tail / float64(likeRoom) * (days(p.Tail.Keep) + 1)},
		{"read_tables", "reads of tables by readers", tables, read + "table_read", p.ReadsPerDay},
		{"follower_tables", "reads of tables by followers, every 5 s", tables, "", p.Followers * daySeconds / 5},
	}...)
	out = append(out, p.closed(first, blobs, compacted, compact)...)
	for i, k := range p.Machines {
		nth, count := strings.TrimSuffix(fmt.Sprintf("_%d", i+1), "_1"), cmp.Or(k.Count, p.Ingesters) // names differ
		out = append(out, row{"vms" + nth, "virtual machines", "machines." + k.Kind, "", count}, row{"disks" + nth, "disks of these", "disk", "", count * float64(k.Disk)})
	}
	return out
}

// ships is how many objects of their logs the ingesters ship a day: no more than there are records.
func (p *Plan) ships(records float64) float64 {
	if p.Ship.Every == 0 {
		return 0
	}
	return min(records, p.Ingesters/days(p.Ship.Every))
}

// kept are the rows of blobs by their tiers, of which first is that of new blobs, and last the coolest
// one. A blob is kept for a day more, until it is deleted.
func (p *Plan) kept(prices *Prices, stored, compacted, compact float64) (rows []row, first, last string) {
	end, soft, paid := days(p.Keep)+1, days(p.SoftDelete), 0.0
	for _, tier := range slices.Backward(tierNames()) {
		age, ok := p.Tiers[tier]
		from := days(age)
		if !ok && tier != "hot" || from >= end {
			continue
		}
		paid = float64(prices.Here.Tiers[tier].Days)
		span := max(end-from, paid)
		what := fmt.Sprintf("%.4g GB a day in the tier %s for %.4g days, %.4g of them for early deletion", stored/gigabyte, tier, span, span-end+from)
		rows = append(rows, row{"storage_" + tier, what, tierPrice(tier, "storage"), "", stored * span})
		if from > 0 {
			rows = append(rows, row{"moves_" + tier, "blobs moved to the tier " + tier, tierPrice(tier, "writes"), "", compacted})
		}
		end, first, last = from, tier, cmp.Or(last, tier)
	}
	rows = append(rows, row{"storage_deleted", "deleted blobs that can be restored", tierPrice(last, "storage"), "", stored * soft})
	return append(rows, row{"storage_replaced", "blobs that compaction replaced", tierPrice(first, "storage"), "", stored * compact * max(1+soft, paid)}), first, last
}

// closed are the rows of closed days, whose parts begin in a tier.
func (p *Plan) closed(tier string, blobs, compacted, compact float64) []row {
	listed, kept := math.Ceil((blobs+7*compacted)/p.Services/5000), days(p.Keep)+1+days(p.SoftDelete)
	return []row{
		{"close_lists", "LISTs of closing: eight days of each service, and its horizons before each part", "here.lists", "",
			p.Services * (listed + 2 + 2*compact)},
		{"close_puts", "PUTs of parts, one a service, two if it is compacted, and of roots", tierPrice(tier, "writes"), "",
			(p.Services + 1) * (1 + compact)},
		{"close_gets", "GETs of parts by retention compact", tierPrice(tier, "reads"), "", 2 * p.Services * compact},
		{"storage_closed", "parts, some 300 bytes a blob", tierPrice(tier, "storage"), "", 300 * blobs * (1 + compact) * kept},
	}
}

// elsewhere adds the cost of the same load elsewhere.
func (s *Sheet) elsewhere(prices *Prices) {
	p, raw, keep := &s.Plan, float64(s.Plan.BytesPerDay), days(s.Plan.Keep)
	add := func(name, what string, cost float64) {
		if cost > 0 {
			s.Elsewhere = append(s.Elsewhere, Line{Name: name, What: what, PerDay: digits(cost)})
			s.PerDay[name] = digits(s.PerDay[name] + cost)
		}
	}
	for i, e := range prices.Elsewhere {
		add(e.Name, strings.TrimSuffix("what comes in; lacks: "+e.Lacks, "; lacks: "), prices.ingested(i, raw, raw/p.LineBytes))
		add(e.Name, "storage for longer", raw/gigabyte*max(0, keep-float64(e.Keeps))/daysOfMonth*e.Month)
		add(e.Name, "queries, if each service has a table", raw/gigabyte/p.Services*days(p.ReadRange)*p.ReadsPerDay*e.Scanned)
	}
	for _, g := range prices.Programs {
		machines := math.Ceil(g.CPUs * raw / 1e12 / prices.cpus(g.Machine))
		price, bytes := map[string]string{"disks": "disk", "blobs": "here.storage"}[g.Store], raw/g.Ratio*keep/(1-g.Spare)
		add(g.Name, fmt.Sprintf("%.0f machines %s", machines, g.Machine), prices.money("machines."+g.Machine, machines)/daysOfMonth)
		add(g.Name, fmt.Sprintf("%.4g TB of %s", bytes/1e12, g.Store), prices.money(price, bytes)/daysOfMonth)
	}
}
