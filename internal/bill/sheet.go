package bill

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"blobtail/internal/units"
)

// Line is one line of a [Sheet].
type Line struct {
	Name  string  `json:"name"`
	Group string  `json:"group"` // storage, requests, tables or machines
	What  string  `json:"what"`
	Count float64 `json:"count"` // of a day
	Unit  string  `json:"unit"`
	Price string  `json:"price"` // its key in the table of prices
	// PerDay is the cost of a day.
	PerDay float64 `json:"per_day"`
	// Path is the place of the measured count that the line is scaled from; "": the plan and
	// the rules alone give it. How tells the way from there to Count.
	Path     string  `json:"path,omitempty"`
	Measured float64 `json:"measured,omitempty"`
	How      string  `json:"how"`
}

// The groups of lines. The first three make up storage_requests_tables.
const (
	ofStorage  = "storage"
	ofRequests = "requests"
	ofTables   = "tables"
	ofMachines = "machines"
)

// Sheet is the cost of a plan, for a day of its steady state: nothing expires later than it
// is written.
type Sheet struct {
	Plan  Plan
	Lines []Line
	// PerDay has the sums: total, storage_requests_tables, each group and each line by its name.
	PerDay    map[string]float64
	PerGB     float64 // storage, requests and tables, for a GB of lines
	Elsewhere []Other
	Measured  *Measured
	// Dates names the dates of the oldest and of the newest price.
	Dates string
}

// Other is the cost of the same load elsewhere.
type Other struct {
	Name   string  `json:"name"`
	PerDay float64 `json:"per_day"`
	// How tells the parts of the cost.
	How    string `json:"how"`
	Lacks  string `json:"lacks,omitempty"`
	Source string `json:"source"`
	Date   string `json:"date"`
}

// sheet makes a Sheet.
type sheet struct {
	Sheet
	prices *Prices
	err    error

	pair     pair    // of the plan
	pairs    float64 // of the plan
	like     *shape
	raw      float64 // bytes of lines a day
	stored   float64 // bytes of blobs a day
	puts     float64 // blobs a day
	end      float64 // days until a blob is deleted
	first    string  // the tier of new blobs
	byTiers  []step
	bytesHow string
}

// Cost is the cost of the plan, by prices and counts of requests.
func (p Plan) Cost(prices *Prices, m *Measured) (*Sheet, error) {
	return newSheet(p, prices, m)
}

func newSheet(plan Plan, prices *Prices, m *Measured) (*Sheet, error) {
	s := &sheet{Sheet: Sheet{Plan: plan, PerDay: map[string]float64{}, Measured: m}, prices: prices}
	p := &s.Plan
	s.raw = float64(p.BytesPerDay)
	s.pairs = float64(p.Services * p.IngestersPerService)
	s.pair = pair{records: s.raw / p.LineBytes / daySeconds / s.pairs, line: p.LineBytes}
	var err error
	if s.like, err = m.like(s.pair); err != nil {
		return nil, err
	}
	if p.Ratio == 0 {
		p.Ratio = 1 / s.like.stored
		s.bytesHow = fmt.Sprintf("lines are %.2f times the blobs, as %s.raw_bytes and stored_bytes", p.Ratio, s.like.path)
	} else {
		s.bytesHow = fmt.Sprintf("lines are %.2f times the blobs, by the plan", p.Ratio)
	}
	s.stored = s.raw / p.Ratio
	s.end = float64(p.Keep) + 1
	s.byTiers = p.Tiers.steps(s.end)
	s.first = s.byTiers[0].tier
	s.written()
	s.kept()
	s.listed()
	s.tables()
	s.reads()
	s.jobs()
	s.machines()
	if s.err != nil {
		return nil, s.err
	}
	s.sum()
	s.others()
	s.Dates = s.dates()
	return &s.Sheet, nil
}

const daySeconds = 24 * 60 * 60

// add adds a line. A line of nothing is left out.
func (s *sheet) add(l Line) {
	if s.err != nil || l.Count == 0 {
		return
	}
	if _, ok := s.prices.lines()[l.Price]; !ok {
		s.err = fmt.Errorf("the table of prices has no %s, which the plan needs; configs/prices.yaml has one", l.Price)
		return
	}
	if l.Path == "" {
		l.Measured = 0
	}
	l.PerDay = s.prices.money(l.Price, l.Count)
	switch l.Unit { // their prices are for a month
	case "GB-days":
		l.PerDay = digits(l.PerDay / daysOfMonth)
		l.Count /= gigabyte
	case "machine-days":
		l.PerDay = digits(l.PerDay / daysOfMonth)
	case "GB":
		l.Count /= gigabyte
	}
	s.Lines = append(s.Lines, l)
}

// count is a measured count; an absent one ends the sheet.
func (s *sheet) count(path string) float64 {
	n, err := s.Measured.Count(path)
	s.err = cmp.Or(s.err, err)
	return n
}

// countOr is a measured count with its path, or the count of a rule with the path "" if the
// result of the scale test has not got that part.
func (s *sheet) countOr(path string, rule float64) (n float64, at string) {
	n, err := s.Measured.Count(path)
	if err != nil {
		return rule, ""
	}
	return n, path
}

// tierPrice is the key of a price of a tier.
func tierPrice(tier, of string) string {
	if tier == "hot" {
		return "here." + of
	}
	return "here.tiers." + tier + "." + of
}

// ruled scales a count that a rule of this package foretells, from the measured load to the
// plan: the rule's count for the plan, times the deviation of the measurement from the rule.
func (s *sheet) ruled(kind string, planned float64) (path string, measured, count float64) {
	path = s.like.path + ".requests." + kind
	measured = s.count(path)
	by, err := s.like.deviation(kind, measured)
	s.err = cmp.Or(s.err, err)
	return path, measured, planned * by
}

// window says how much was measured.
func (s *sheet) window() string {
	return fmt.Sprintf("one ingester, %.0f pairs of %.3g records/s, %.0f s", s.like.pairs, s.like.pair.records, s.like.window.Seconds())
}

// written adds the PUTs of ingesters.
func (s *sheet) written() {
	flush := s.Plan.Flush
	each := flush.puts(s.pair)
	path, measured, n := s.ruled("put", s.pairs*each)
	s.puts = n
	least, most := s.like.flush.putsWithin(s.like.pair, s.like.window)
	s.add(Line{Name: "puts", Group: ofRequests, What: "PUTs of ingesters", Count: n, Unit: "requests", Price: tierPrice(s.first, "writes"), Path: path, Measured: measured,
		How: fmt.Sprintf("%s: the rule of flush.* gives %.0f to %.0f a pair; in the plan %.0f pairs of %.3g records/s put %.0f blobs a day each, one after %s",
			s.window(), least, most, s.pairs, s.pair.records, each, flush.wait(s.pair).Round(time.Second))})
}

// kept adds the room of blobs, by tier.
func (s *sheet) kept() {
	blobs, bytes := s.puts, "as put"
	if s.Plan.Compaction {
		blobs, bytes = min(s.puts, float64(s.Plan.Services)*24), "compacted"
	}
	for i, step := range s.byTiers {
		days, why := step.to-step.from, ""
		least := float64(s.prices.Here.Tiers[step.tier].Days)
		if days < least {
			why = fmt.Sprintf("; %.3g of these days are for early deletion: the tier is paid for %.0f", least-days, least)
			days = least
		}
		s.add(Line{Name: "storage_" + step.tier, Group: ofStorage, What: "blobs in the tier " + step.tier, Count: s.stored * days, Unit: "GB-days", Price: tierPrice(step.tier, "storage"),
			How: fmt.Sprintf("%.4g GB a day, %.4g days (keep, and a day until the deletion); %s%s", s.stored/gigabyte, days, s.bytesHow, why)})
		if i > 0 {
			s.add(Line{Name: "moves_" + step.tier, Group: ofRequests, What: "blobs moved to the tier " + step.tier, Count: blobs, Unit: "requests", Price: tierPrice(step.tier, "writes"),
				How: "each blob once, " + bytes})
		}
	}
	last := s.byTiers[len(s.byTiers)-1].tier
	s.add(Line{Name: "storage_deleted", Group: ofStorage, What: "deleted blobs that can be restored", Count: s.stored * float64(s.Plan.SoftDelete), Unit: "GB-days", Price: tierPrice(last, "storage"),
		How: fmt.Sprintf("%.4g GB a day, %s of soft delete", s.stored/gigabyte, s.Plan.SoftDelete)})
}

// ownReads is the price of reading objects other than blobs of records. They are in the tier of the
// account, which is never archive.
func (s *sheet) ownReads() string {
	if s.first == "archive" {
		return tierPrice("hot", "reads")
	}
	return tierPrice(s.first, "reads")
}

// listed adds the other requests of ingesters, which come by the clock.
func (s *sheet) listed() {
	day := daySeconds / s.like.window.Seconds() * float64(s.Plan.Ingesters)
	how := fmt.Sprintf("%s; times %s and %.0f, because they come by the clock", s.window(), units.Count(s.Plan.Ingesters, "ingester"), daySeconds/s.like.window.Seconds())
	for _, k := range []struct{ kind, name, what, price string }{
		{"list", "lists", "LISTs of ingesters", "here.lists"},
		{"get", "gets", "GETs of ingesters", s.ownReads()},
		{"head", "heads", "HEADs of ingesters", s.ownReads()},
	} {
		path := s.like.path + ".requests." + k.kind
		n := s.count(path)
		s.add(Line{Name: k.name, Group: ofRequests, What: k.what, Count: n * day, Unit: "requests", Price: k.price, Path: path, Measured: n, How: how})
	}
	path := s.like.path + ".requests.table_read"
	n := s.count(path)
	s.add(Line{Name: "table_reads", Group: ofTables, What: "reads of tables by ingesters", Count: n * day, Unit: "transactions", Price: "here.table-writes", Path: path, Measured: n, How: how})
}

// tables adds the tables of the newest records.
func (s *sheet) tables() {
	p := &s.Plan
	every := time.Duration(p.Tail.Every)
	beats := float64(p.Ingesters) * daySeconds / heartbeat.Seconds()
	if !p.Tail.Enabled {
		s.add(Line{Name: "heartbeats", Group: ofTables, What: "rows of ingesters", Count: beats, Unit: "transactions", Price: "here.table-writes", How: fmt.Sprintf("each ingester, every %s", heartbeat)})
		return
	}
	each := rows(s.pair, every, daySeconds*time.Second)
	path, measured, n := s.ruled("table_write", s.pairs*each+beats)
	s.add(Line{Name: "tail_writes", Group: ofTables, What: "writes of the tables of the newest records", Count: n, Unit: "transactions", Price: "here.table-writes", Path: path, Measured: measured,
		How: fmt.Sprintf("%s, a row every %s; in the plan %.0f pairs write %.0f rows a day each, and %s a row of their own every %s", s.window(), s.like.every, s.pairs, each, units.Count(p.Ingesters, "ingester"), heartbeat)})

	foretold := s.like.pairs * tailBytes(s.like.pair, time.Duration(s.like.every), s.like.window)
	bytes := s.pairs * tailBytes(s.pair, every, daySeconds*time.Second) * s.like.tail / foretold
	days := float64(p.Tail.Keep) + 1
	s.add(Line{Name: "tail_room", Group: ofTables, What: "room of these tables", Count: bytes * days, Unit: "GB-days", Price: "here.table-storage", Path: s.like.path + ".tail_bytes", Measured: s.like.tail,
		How: fmt.Sprintf("%.3g bytes of table a byte of lines there, %.3g in the plan; %.3g days, because a table is dropped whole", s.like.tail/(s.like.pair.records*s.like.pair.line*s.like.window.Seconds()*s.like.pairs), bytes/s.raw, days)})
}

// getsOfBlob is how many GETs a read makes of a blob: its index, and its blocks.
const getsOfBlob = 2

// reads adds the requests of readers and followers.
func (s *sheet) reads() {
	p := &s.Plan
	hours := time.Duration(p.ReadRange).Hours()
	blobs := s.puts / float64(p.Services) / 24 * hours
	const read = "b.reads.read.requests."
	lists, listsAt := s.countOr(read+"list", 2)
	gets, getsAt := s.countOr(read+"get", 0)
	rows, rowsAt := s.countOr(read+"table_read", 2)
	s.add(Line{Name: "read_lists", Group: ofRequests, What: "LISTs of reads", Count: lists * p.ReadsPerDay, Unit: "requests", Price: "here.lists", Path: listsAt, Measured: lists,
		How: fmt.Sprintf("%.6g reads with %.3g each", p.ReadsPerDay, lists)})
	each := max(gets, blobs*getsOfBlob)
	how := fmt.Sprintf("%%.6g reads of %s of a service, which has %.3g blobs there: %.3g GETs each, %d a blob and no fewer than measured", p.ReadRange, blobs, each, getsOfBlob)
	s.add(Line{Name: "read_gets", Group: ofRequests, What: "GETs of reads", Count: each * (p.ReadsPerDay - p.ReadsOfCool), Unit: "requests", Price: tierPrice(s.first, "reads"), Path: getsAt, Measured: gets, How: fmt.Sprintf(how, p.ReadsPerDay-p.ReadsOfCool)})
	s.add(Line{Name: "read_tables", Group: ofTables, What: "reads of tables by readers", Count: rows * p.ReadsPerDay, Unit: "transactions", Price: "here.table-writes", Path: rowsAt, Measured: rows,
		How: fmt.Sprintf("%.6g reads with %.3g each", p.ReadsPerDay, rows)})
	if p.ReadsOfCool > 0 {
		s.coolReads(each, hours, how)
	}
	if s.first != "hot" {
		s.retrieved("read_retrieval", s.first, p.ReadsPerDay-p.ReadsOfCool, hours)
	}
	f := float64(p.Followers)
	s.add(Line{Name: "follower_lists", Group: ofRequests, What: "LISTs of followers", Count: f * daySeconds / 60, Unit: "requests", Price: "here.lists", How: units.Count(p.Followers, "follower") + ", every 60 s"})
	s.add(Line{Name: "follower_tables", Group: ofTables, What: "reads of tables by followers", Count: f * daySeconds / 5, Unit: "transactions", Price: "here.table-writes", How: units.Count(p.Followers, "follower") + ", every 5 s"})
}

// coolReads adds the reads of the coolest tier that can be read.
func (s *sheet) coolReads(gets, hours float64, how string) {
	tier := ""
	for _, step := range s.byTiers {
		if step.tier != "hot" && step.tier != "archive" {
			tier = step.tier
		}
	}
	if tier == "" {
		s.err = fmt.Errorf("plan: reads-of-cool: no tier of the plan is cool or cold while blobs are kept; tiers: %s", s.Plan.Tiers)
		return
	}
	s.add(Line{Name: "cool_gets", Group: ofRequests, What: "GETs of reads of the tier " + tier, Count: gets * s.Plan.ReadsOfCool, Unit: "requests", Price: tierPrice(tier, "reads"), How: fmt.Sprintf(how, s.Plan.ReadsOfCool)})
	s.retrieved("cool_retrieval", tier, s.Plan.ReadsOfCool, hours)
}

// retrieved adds the bytes that reads take from a cooler tier.
func (s *sheet) retrieved(name, tier string, reads, hours float64) {
	if reads <= 0 {
		return
	}
	if tier == "archive" {
		s.err = cmp.Or(s.err, errors.New("plan: the tier archive cannot be read: give reads-per-day: 0, or another tier for new blobs"))
		return
	}
	each := s.stored / float64(s.Plan.Services) / 24 * hours
	s.add(Line{Name: name, Group: ofRequests, What: "bytes read from the tier " + tier, Count: each * reads, Unit: "GB", Price: tierPrice(tier, "retrieval"),
		How: fmt.Sprintf("%.6g reads of %.3g MB of blobs", reads, each/1e6)})
}

// jobs adds the daily retention and compaction.
func (s *sheet) jobs() {
	services, _ := s.countOr("b.services", 1)
	services = max(1, services)
	ours := float64(s.Plan.Services)
	for _, k := range []struct {
		kind, name, price string
		rule              float64 // for each service
	}{{"list", "lists", "here.lists", 2}, {"put", "puts", tierPrice(s.first, "writes"), 1}, {"get", "gets", s.ownReads(), 0}} {
		n, at := s.countOr("b.reads.retention_apply.requests."+k.kind, k.rule*services)
		s.add(Line{Name: "retention_" + k.name, Group: ofRequests, What: strings.ToUpper(k.kind) + "s of retention apply", Count: n * ours / services, Unit: "requests", Price: k.price, Path: at, Measured: n,
			How: fmt.Sprintf("%.3g for each of %.0f services; once a day", n/services, ours)})
	}
	if !s.Plan.Compaction {
		return
	}
	n, at := s.countOr("b.reads.compact.requests.list", 2*services)
	s.add(Line{Name: "compaction_lists", Group: ofRequests, What: "LISTs of retention compact", Count: n * ours / services, Unit: "requests", Price: "here.lists", Path: at, Measured: n,
		How: fmt.Sprintf("%.3g for each of %.0f services; once a day", n/services, ours)})
	s.add(Line{Name: "compaction_gets", Group: ofRequests, What: "GETs of retention compact", Count: 2 * getsOfBlob * s.puts, Unit: "requests", Price: tierPrice(s.first, "reads"),
		How: fmt.Sprintf("%d of each blob that is joined, and again before it is deleted", getsOfBlob)})
	s.add(Line{Name: "compaction_puts", Group: ofRequests, What: "PUTs of retention compact", Count: min(s.puts, float64(s.Plan.Services)*24), Unit: "requests", Price: tierPrice(s.first, "writes"),
		How: "a blob for each service and hour"})
	s.replaced()
}

// replaced adds what compaction reads of the blobs that it replaces, and their room until they are
// gone.
func (s *sheet) replaced() {
	days := 1 + float64(s.Plan.SoftDelete)
	how := fmt.Sprintf("%.4g GB a day, %.3g days: one until the deletion, and soft delete", s.stored/gigabyte, days)
	if least := float64(s.prices.Here.Tiers[s.first].Days); days < least {
		how += fmt.Sprintf("; the tier is paid for %.0f days", least)
		days = least
	}
	s.add(Line{Name: "storage_replaced", Group: ofStorage, What: "blobs that compaction replaced", Count: s.stored * days, Unit: "GB-days", Price: tierPrice(s.first, "storage"), How: how})
	switch s.first {
	case "hot":
	case "archive":
		s.err = cmp.Or(s.err, errors.New("plan: compaction: it cannot read new blobs in the tier archive: give compaction: off, or another tier for new blobs"))
	default:
		s.add(Line{Name: "compaction_retrieval", Group: ofRequests, What: "bytes read from the tier " + s.first, Count: 2 * s.stored, Unit: "GB", Price: tierPrice(s.first, "retrieval"),
			How: fmt.Sprintf("%.4g GB a day, as often as retention compact gets them", s.stored/gigabyte)})
	}
}

// machines adds the machines and disks of the plan.
func (s *sheet) machines() {
	for i, m := range s.Plan.Machines {
		if m.Count == 0 {
			continue
		}
		key, ok := s.prices.machine(m.Kind)
		if !ok {
			has := "there are " + strings.Join(s.prices.machineNames(), ", ")
			if len(s.prices.Machines) == 0 {
				has = "it has none: add machines as in configs/prices.yaml"
			}
			s.err = cmp.Or(s.err, fmt.Errorf("plan: machines.kind: the table of prices has no machine %q; %s", m.Kind, has))
			return
		}
		nth := "" // names differ
		if i > 0 {
			nth = fmt.Sprintf("_%d", i+1)
		}
		s.add(Line{Name: "vms" + nth, Group: ofMachines, What: "virtual machines", Count: float64(m.Count), Unit: "machine-days", Price: key, How: fmt.Sprintf("%d of the plan", m.Count)})
		s.add(Line{Name: "disks" + nth, Group: ofMachines, What: "disks of these", Count: float64(m.Count) * float64(m.Disk), Unit: "GB-days", Price: "disk", How: fmt.Sprintf("%d of %s", m.Count, m.Disk)})
	}
}

// sum fills PerDay.
func (s *sheet) sum() {
	for _, group := range []string{ofStorage, ofRequests, ofTables, ofMachines} {
		s.PerDay[group] = 0
	}
	for i := range s.Lines {
		l := &s.Lines[i]
		s.PerDay[l.Name] = l.PerDay
		s.PerDay[l.Group] = digits(s.PerDay[l.Group] + l.PerDay)
	}
	three := digits(s.PerDay[ofStorage] + s.PerDay[ofRequests] + s.PerDay[ofTables])
	s.PerDay["storage_requests_tables"] = three
	s.PerDay["total"] = digits(three + s.PerDay[ofMachines])
	s.PerGB = digits(three / (s.raw / gigabyte))
	slices.SortStableFunc(s.Lines, func(a, b Line) int { return cmp.Compare(groupOrder(a.Group), groupOrder(b.Group)) })
}

func groupOrder(group string) int {
	return slices.Index([]string{ofStorage, ofRequests, ofTables, ofMachines}, group)
}

// others fills Elsewhere.
func (s *sheet) others() {
	p := &s.Plan
	for i := range s.prices.Elsewhere {
		e := &s.prices.Elsewhere[i]
		cost := s.prices.ingested(i, s.raw, s.raw/p.LineBytes)
		parts := []string{fmt.Sprintf("%s to take in", short(cost))}
		if longer := float64(p.Keep) - float64(e.Keeps); longer > 0 && e.Month > 0 {
			x := s.raw / gigabyte * longer / daysOfMonth * e.Month
			cost += x
			parts = append(parts, fmt.Sprintf("%s to keep for %.4g days more", short(x), longer))
		}
		if e.Scanned > 0 {
			each := s.raw / gigabyte / float64(p.Services) / 24 * time.Duration(p.ReadRange).Hours()
			x := each * p.ReadsPerDay * e.Scanned
			cost += x
			parts = append(parts, fmt.Sprintf("%s for queries if each service has a table (%s if all have one)", short(x), short(x*float64(p.Services))))
		}
		s.Elsewhere = append(s.Elsewhere, Other{Name: e.Name, PerDay: digits(cost), How: strings.Join(parts, ", "), Lacks: e.Lacks, Source: e.Source, Date: e.Date})
	}
	for i := range s.prices.Programs {
		s.program(&s.prices.Programs[i])
	}
}

// program adds the cost of a program on machines of its own.
func (s *sheet) program(g *Program) {
	key, _ := s.prices.machine(g.Machine)
	at := slices.IndexFunc(s.prices.Machines, func(m Machine) bool { return g.Machine == "" || m.Name == g.Machine })
	kind := &s.prices.Machines[at]
	count := math.Ceil(g.CPUs * s.raw / 1e12 / kind.CPUs)
	vms := s.prices.money(key, count) / daysOfMonth
	bytes := s.raw / g.Ratio * float64(s.Plan.Keep)
	room, where := 0.0, "of blobs"
	if g.Store == "disks" {
		bytes, where = bytes/(1-g.Spare), "of disks"
		if _, ok := s.prices.lines()["disk"]; ok {
			room = s.prices.money("disk", bytes) / daysOfMonth
		}
	} else {
		room = s.prices.money("here.storage", bytes) / daysOfMonth
	}
	s.Elsewhere = append(s.Elsewhere, Other{Name: g.Name, PerDay: digits(vms + room), Source: g.Source, Date: g.Date,
		How: fmt.Sprintf("%s for %.0f machines %s, %s for %.4g TB %s", short(vms), count, kind.Name, short(room), bytes/1e12, where)})
}

// dates names the dates of the prices of the sheet.
func (s *sheet) dates() string {
	var dates []string
	for i := range s.Lines {
		dates = append(dates, s.prices.lines()[s.Lines[i].Price].Date)
	}
	for i := range s.Elsewhere {
		dates = append(dates, s.Elsewhere[i].Date)
	}
	return span(dates)
}

// short writes a sum of money within a text.
func short(x float64) string { return fmt.Sprintf("%.2f", x) }
