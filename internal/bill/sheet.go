package bill

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Line is one line of a [Sheet].
type Line struct {
	Name   string  `json:"name"`
	Group  string  `json:"group"` // storage, requests, tables or machines
	What   string  `json:"what"`
	Count  float64 `json:"count"` // of a day
	Unit   string  `json:"unit"`
	Price  string  `json:"price"` // its key in the table of prices
	PerDay float64 `json:"per_day"`
	// Path is the place of the measured count that the line is scaled from; "": the plan and
	// the rules alone give it. How tells the way from there to Count.
	Path     string  `json:"path,omitempty"`
	Measured float64 `json:"measured,omitempty"`
	How      string  `json:"how"`
}

// Other is the cost of the same load elsewhere. How tells its parts.
type Other struct {
	Name   string  `json:"name"`
	PerDay float64 `json:"per_day"`
	How    string  `json:"how"`
	Lacks  string  `json:"lacks,omitempty"`
	Source string  `json:"source"`
	Date   string  `json:"date"`
}

// Sheet is the cost of a plan, for a day of its steady state: as much expires as is written.
type Sheet struct {
	Currency string `json:"currency"`
	// PerDay has the sums: total, storage_requests_tables, each group and each line by its name.
	PerDay    map[string]float64 `json:"per_day"`
	PerGB     float64            `json:"per_gb"` // storage, requests and tables, for a GB of lines
	Lines     []Line             `json:"lines"`
	Elsewhere []Other            `json:"elsewhere"`
	Dates     string             `json:"prices"` // of the oldest and of the newest price
	Measured  *Measured          `json:"measured"`
	Plan      Plan               `json:"plan"`
}

type sheet struct {
	Sheet
	prices                          *Prices
	err                             error
	at                              string // the measured load
	like                            load
	pair, pairs, raw, stored, blobs float64 // records a second of a pair; bytes and blobs of a day
	first                           string  // the tier of new blobs
}

const daySeconds = 24 * 60 * 60

// Cost is the cost of the plan, by prices and counts of requests.
func (p Plan) Cost(prices *Prices, m *Measured) (*Sheet, error) {
	s := &sheet{Sheet: Sheet{Currency: prices.Currency, Plan: p, PerDay: map[string]float64{}, Measured: m}, prices: prices, raw: float64(p.BytesPerDay)}
	s.pairs = p.Services * p.IngestersPerService
	s.pair = s.raw / p.LineBytes / daySeconds / s.pairs
	if s.at, s.like, s.err = m.like(s.pair * p.LineBytes); s.err != nil {
		return nil, s.err
	}
	s.stored = s.raw / cmp.Or(p.Ratio, s.like.Raw/s.like.Stored)
	s.ingested()
	s.kept()
	s.read()
	s.retention()
	s.machines()
	if s.err != nil {
		return nil, s.err
	}
	added := s.Lines
	s.Lines = nil
	for _, group := range []string{"storage", "requests", "tables", "machines"} {
		s.PerDay[group] = 0
		for _, l := range added {
			if l.Group == group {
				s.Lines = append(s.Lines, l)
				s.PerDay[l.Name], s.PerDay[group] = l.PerDay, digits(s.PerDay[group]+l.PerDay)
			}
		}
		s.PerDay["total"] = digits(s.PerDay["total"] + s.PerDay[group])
		if group == "tables" {
			s.PerDay["storage_requests_tables"] = s.PerDay["total"]
		}
	}
	s.PerGB = digits(s.PerDay["storage_requests_tables"] / s.raw * gigabyte)
	s.elsewhere()
	return &s.Sheet, nil
}

// add adds a line of a group and unit, such as "requests requests", by the key of its price; one of
// nothing is left out. What is counted may have its measured count behind a tab.
func (s *sheet) add(name, what, kind, price string, count float64, how string) {
	group, unit, _ := strings.Cut(kind, " ")
	l := Line{Name: name, What: what, Group: group, Unit: unit, Price: price, Count: count, How: how}
	if s.err != nil || count == 0 {
		return
	}
	if what, path, ok := strings.Cut(what, "\t"); ok {
		l.What = what
		if n, ok := s.Measured.count(path); ok {
			l.Path, l.Measured = path, n
		}
	}
	if _, ok := s.prices.lines()[price]; !ok {
		s.err = fmt.Errorf("the table of prices has no %s, which the plan needs; configs/prices.yaml has one", price)
		return
	}
	l.PerDay = s.prices.money(price, count)
	if strings.HasSuffix(unit, "-days") { // the price is of a month
		l.PerDay = digits(l.PerDay / daysOfMonth)
	}
	if strings.HasPrefix(unit, "GB") {
		l.Count /= gigabyte
	}
	s.Lines = append(s.Lines, l)
}

// count is the measured count at a path, or that of a rule if the result lacks it. Without a rule
// that is an error.
func (s *sheet) count(path string, rule float64) float64 {
	n, ok := s.Measured.count(path)
	if ok {
		return n
	}
	if rule < 0 {
		s.err = cmp.Or(s.err, fmt.Errorf("the result of the scale test of %s has no count %s; make scale writes a new one", s.Measured.Date, path))
	}
	return rule
}

// ingested adds the requests of ingesters, and the tables of the newest records.
func (s *sheet) ingested() {
	p, like, path := &s.Plan, &s.like, s.at+".requests."
	s.first = p.stays()[0].tier
	window := fmt.Sprintf("one ingester, %.0f pairs of %.3g records/s, %.0f s", like.pairs, like.Rate, like.Seconds)

	n, each := s.count(path+"put", -1), 24*p.Flush.anHour(s.pair, p.LineBytes)
	wait := like.Flush.wait(like.Rate * like.line)
	least, most := math.Floor(like.Seconds/(wait+1+1/like.Rate)), math.Ceil(like.Seconds/wait)
	s.blobs = s.pairs * each * off(n, like.pairs*least, like.pairs*most)
	s.add("puts", "PUTs of ingesters\t"+path+"put", "requests requests", tierPrice(s.first, "writes"), s.blobs,
		fmt.Sprintf("%s: the rule of flush.* gives %.0f to %.0f a pair; in the plan %.0f pairs of %.3g records/s put %.0f blobs a day each, one after %.0f s",
			window, least, most, s.pairs, s.pair, each, p.Flush.wait(s.pair*p.LineBytes)))

	day := daySeconds / like.Seconds * p.Ingesters
	how := fmt.Sprintf("%s; times %.0f ingesters and %.0f, because they come by the clock", window, p.Ingesters, daySeconds/like.Seconds)
	s.add("lists", "LISTs of ingesters\t"+path+"list", "requests requests", "here.lists", day*s.count(path+"list", -1), how)
	s.add("gets", "GETs of ingesters\t"+path+"get", "requests requests", s.ownReads(), day*s.count(path+"get", -1), how)
	s.add("heads", "HEADs of ingesters\t"+path+"head", "requests requests", s.ownReads(), day*s.count(path+"head", -1), how)
	s.add("table_reads", "reads of tables by ingesters\t"+path+"table_read", "tables transactions", "here.table-writes", day*s.count(path+"table_read", -1), how)

	const heartbeat = 10 // seconds between the rows of an ingester, see internal/lease
	beats := p.Ingesters * daySeconds / heartbeat
	if p.Tail.Enabled == "off" {
		s.add("heartbeats", "rows of ingesters", "tables transactions", "here.table-writes", beats, "each ingester, every 10s")
		return
	}
	n, rows := s.count(path+"table_write", -1), like.pairs*like.rows(like.Rate, like.Seconds)
	load := load{Every: p.Tail.Every}
	each = load.rows(s.pair, daySeconds)
	s.add("tail_writes", "writes of the tables of the newest records\t"+path+"table_write", "tables transactions", "here.table-writes",
		(s.pairs*each+beats)*off(n, 0.95*rows, rows+like.pairs+like.Seconds/heartbeat),
		fmt.Sprintf("%s, a row every %s; in the plan %.0f pairs write %.0f rows a day each, and %.0f ingesters a row of their own every 10s",
			window, like.Every, s.pairs, each, p.Ingesters))
	_, there := tailUse(int64(like.Rate*like.Seconds), int64(like.rows(like.Rate, like.Seconds)), like.line)
	_, ours := tailUse(int64(s.pair*daySeconds), int64(each), p.LineBytes)
	bytes, kept := s.pairs*float64(ours)*like.Tail/(like.pairs*float64(there)), days(p.Tail.Keep)+1
	s.add("tail_room", "room of these tables\t"+s.at+".tail_bytes", "tables GB-days", "here.table-storage", bytes*kept,
		fmt.Sprintf("%.3g bytes of table a byte of lines there, %.3g in the plan; %.3g days, because a table is dropped whole", like.Tail/like.Raw, bytes/s.raw, kept))
}

// kept adds the room of blobs, by tier.
func (s *sheet) kept() {
	p, stays := &s.Plan, s.Plan.stays()
	for i, t := range stays {
		span, why := t.span, ""
		if least := float64(s.prices.Here.Tiers[t.tier].Days); span < least {
			why, span = fmt.Sprintf("; %.3g of these days are for early deletion: the tier is paid for %.0f", least-span, least), least
		}
		s.add("storage_"+t.tier, "blobs in the tier "+t.tier, "storage GB-days", tierPrice(t.tier, "storage"), s.stored*span,
			fmt.Sprintf("%.4g GB a day, %.4g days (keep, and a day until the deletion); lines are %.2f times the blobs%s", s.stored/gigabyte, span, s.raw/s.stored, why))
		if i > 0 {
			s.add("moves_"+t.tier, "blobs moved to the tier "+t.tier, "requests requests", tierPrice(t.tier, "writes"), s.compacted(), "each blob once")
		}
	}
	s.add("storage_deleted", "deleted blobs that can be restored", "storage GB-days", tierPrice(stays[len(stays)-1].tier, "storage"), s.stored*days(p.SoftDelete),
		fmt.Sprintf("%.4g GB a day, %.4g days of soft delete", s.stored/gigabyte, days(p.SoftDelete)))
}

// compacted is how many blobs a day are kept.
func (s *sheet) compacted() float64 {
	if s.Plan.Compaction == "on" {
		return min(s.blobs, s.Plan.Services*24)
	}
	return s.blobs
}

// ownReads is the price of reading objects other than blobs of records: their tier is never archive.
func (s *sheet) ownReads() string {
	if s.first == "archive" {
		return tierPrice("hot", "reads")
	}
	return tierPrice(s.first, "reads")
}

// read adds the requests of readers and followers.
func (s *sheet) read() {
	p, hours := &s.Plan, time.Duration(s.Plan.ReadRange).Hours()
	const path, getsOfBlob = "b.reads.read.requests.", 2 // its index, and its blocks
	lists, tables, blobs := s.count(path+"list", 2), s.count(path+"table_read", 2), s.blobs/p.Services/24*hours
	each := max(s.count(path+"get", 0), blobs*getsOfBlob)
	how := fmt.Sprintf("reads of %s of a service, which has %.3g blobs there: %.3g GETs each, %d a blob and no fewer than measured", p.ReadRange, blobs, each, getsOfBlob)
	s.add("read_lists", "LISTs of reads\t"+path+"list", "requests requests", "here.lists", lists*p.ReadsPerDay, fmt.Sprintf("%.6g reads with %.3g each", p.ReadsPerDay, lists))
	s.add("read_tables", "reads of tables by readers\t"+path+"table_read", "tables transactions", "here.table-writes", tables*p.ReadsPerDay, fmt.Sprintf("%.6g reads with %.3g each", p.ReadsPerDay, tables))
	cool := ""
	for _, t := range p.stays() {
		if t.tier == "cool" || t.tier == "cold" {
			cool = t.tier
		}
	}
	for _, r := range []struct {
		prefix, what, tier string
		reads              float64
	}{{"read_", "GETs of reads", s.first, p.ReadsPerDay - p.ReadsOfCool}, {"cool_", "GETs of reads of the tier " + cool, cool, p.ReadsOfCool}} {
		switch {
		case r.reads == 0:
		case r.tier == "":
			s.err = cmp.Or(s.err, errors.New("plan: reads-of-cool: no tier of the plan is cool or cold while blobs are kept"))
		case r.tier == "archive":
			s.err = cmp.Or(s.err, errors.New("plan: the tier archive cannot be read: give reads-per-day: 0, or another tier for new blobs"))
		default:
			s.add(r.prefix+"gets", r.what+"\t"+path+"get", "requests requests", tierPrice(r.tier, "reads"), each*r.reads, fmt.Sprintf("%.6g %s", r.reads, how))
			if r.tier != "hot" {
				s.add(r.prefix+"retrieval", "bytes read from the tier "+r.tier, "requests GB", tierPrice(r.tier, "retrieval"), s.stored/p.Services/24*hours*r.reads, fmt.Sprintf("%.6g reads", r.reads))
			}
		}
	}
	s.add("follower_lists", "LISTs of followers", "requests requests", "here.lists", p.Followers*daySeconds/60, fmt.Sprintf("%.0f followers, every 60 s", p.Followers))
	s.add("follower_tables", "reads of tables by followers", "tables transactions", "here.table-writes", p.Followers*daySeconds/5, fmt.Sprintf("%.0f followers, every 5 s", p.Followers))
}

// retention adds the daily retention and compaction.
func (s *sheet) retention() {
	p := &s.Plan
	services := max(1, s.count("b.services", 1))
	job := func(name, what, path, price string, rule float64) {
		n := s.count("b.reads."+path, rule*services)
		s.add(name, what+"\tb.reads."+path, "requests requests", price, n*p.Services/services, fmt.Sprintf("%.3g for each of %.0f services; once a day", n/services, p.Services))
	}
	job("retention_lists", "LISTs of retention apply", "retention_apply.requests.list", "here.lists", 2)
	job("retention_puts", "PUTs of retention apply", "retention_apply.requests.put", tierPrice(s.first, "writes"), 1)
	job("retention_gets", "GETs of retention apply", "retention_apply.requests.get", s.ownReads(), 0)
	if p.Compaction == "off" {
		return
	}
	if s.first == "archive" {
		s.err = cmp.Or(s.err, errors.New("plan: compaction: it cannot read new blobs in the tier archive: give compaction: off, or another tier for new blobs"))
	}
	job("compaction_lists", "LISTs of retention compact", "compact.requests.list", "here.lists", 2)
	s.add("compaction_gets", "GETs of retention compact", "requests requests", tierPrice(s.first, "reads"), 4*s.blobs, "2 of each blob that is joined, and again before it is deleted")
	s.add("compaction_puts", "PUTs of retention compact", "requests requests", tierPrice(s.first, "writes"), s.compacted(), "a blob for each service and hour")
	span := max(1+days(p.SoftDelete), float64(s.prices.Here.Tiers[s.first].Days))
	s.add("storage_replaced", "blobs that compaction replaced", "storage GB-days", tierPrice(s.first, "storage"), s.stored*span,
		fmt.Sprintf("%.4g GB a day, %.3g days: one until the deletion, and soft delete; no fewer than the tier is paid for", s.stored/gigabyte, span))
	if s.first != "hot" {
		s.add("compaction_retrieval", "bytes read from the tier "+s.first, "requests GB", tierPrice(s.first, "retrieval"), 2*s.stored, "as often as retention compact gets them")
	}
}

// machines adds the machines and disks of the plan.
func (s *sheet) machines() {
	for i, m := range s.Plan.Machines {
		key, ok := s.prices.machine(m.Kind)
		if !ok {
			s.err = cmp.Or(s.err, fmt.Errorf("plan: machines.kind: the table of prices has no machine %q; configs/prices.yaml has some", m.Kind))
			return
		}
		nth := strings.TrimSuffix(fmt.Sprintf("_%d", i+1), "_1") // names differ
		s.add("vms"+nth, "virtual machines", "machines machine-days", key, m.Count, fmt.Sprintf("%.0f of the plan", m.Count))
		s.add("disks"+nth, "disks of these", "machines GB-days", "disk", m.Count*float64(m.Disk), fmt.Sprintf("%.0f of %.4g GB", m.Count, float64(m.Disk)/gigabyte))
	}
}

// elsewhere fills Elsewhere and Dates.
func (s *sheet) elsewhere() {
	p, seen := &s.Plan, []string(nil)
	for i, e := range s.prices.Elsewhere {
		cost := s.prices.ingested(i, s.raw, s.raw/p.LineBytes)
		how := fmt.Sprintf("%.2f to take in", cost)
		if longer := days(p.Keep) - float64(e.Keeps); longer > 0 && e.Month > 0 {
			x := s.raw / gigabyte * longer / daysOfMonth * e.Month
			cost, how = cost+x, how+fmt.Sprintf(", %.2f to keep for %.4g days more", x, longer)
		}
		if e.Scanned > 0 {
			x := s.raw / gigabyte / p.Services * days(p.ReadRange) * p.ReadsPerDay * e.Scanned
			cost, how = cost+x, how+fmt.Sprintf(", %.2f for queries if each service has a table (%.2f if all have one)", x, x*p.Services)
		}
		s.Elsewhere = append(s.Elsewhere, Other{e.Name, digits(cost), how, e.Lacks, e.Source, e.Date})
	}
	for _, g := range s.prices.Programs {
		key, _ := s.prices.machine(g.Machine)
		at := slices.IndexFunc(s.prices.Machines, func(m Machine) bool { return g.Machine == "" || m.Name == g.Machine })
		count := math.Ceil(g.CPUs * s.raw / 1e12 / s.prices.Machines[at].CPUs)
		price, bytes := "here.storage", s.raw/g.Ratio*days(p.Keep)
		if g.Store == "disks" {
			price, bytes = "disk", bytes/(1-g.Spare)
		}
		vms, room := s.prices.money(key, count)/daysOfMonth, s.prices.money(price, bytes)/daysOfMonth
		s.Elsewhere = append(s.Elsewhere, Other{Name: g.Name, PerDay: digits(vms + room), Source: g.Source, Date: g.Date,
			How: fmt.Sprintf("%.2f for %.0f machines %s, %.2f for %.4g TB of %s", vms, count, s.prices.Machines[at].Name, room, bytes/1e12, g.Store)})
	}
	for _, l := range s.Lines {
		seen = append(seen, s.prices.lines()[l.Price].Date)
	}
	for _, o := range s.Elsewhere {
		seen = append(seen, o.Date)
	}
	s.Dates = span(seen)
}
