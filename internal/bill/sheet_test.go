package bill_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"blobtail/internal/bill"
)

func prices(t *testing.T) *bill.Prices {
	t.Helper()
	p, err := bill.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

// latest is the result that the command has built in.
func latest(t *testing.T) *bill.Measured {
	t.Helper()
	m, err := bill.Latest()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// example is a result with round numbers, made by hand.
func example(t *testing.T) *bill.Measured {
	t.Helper()
	return edited(t, "version", func(n float64) any { return n })
}

// cost is the sheet of a plan with bytes.
func cost(t *testing.T, text string) *bill.Sheet {
	t.Helper()
	if !strings.Contains(text, "bytes-per-day") {
		text += "\nbytes-per-day: 1TB\n"
	}
	p, err := loadPlan(t, text)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Cost(prices(t), example(t))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

func line(t *testing.T, s *bill.Sheet, name string) bill.Line {
	t.Helper()
	for _, l := range s.Lines {
		if l.Name == name {
			return l
		}
	}
	t.Fatalf("no line %s", name)
	return bill.Line{}
}

// near reports whether two numbers are equal but for a part in a million.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Max(math.Abs(a), math.Abs(b)) }

// The rules by which the sheet scales counts foretell the measured ones: the load that was measured
// costs what it took.
func TestRulesFitTheMeasurement(t *testing.T) {
	for spread, want := range map[string]map[string]float64{
		"20":                     {"puts": 4000 * 144, "tail_writes": 4000*17280 + 20*8640},
		"1\nflush: {min: 16MiB}": {"puts": 200 * 24 * 13, "tail_writes": 200*17280 + 20*8640},
	} {
		p, err := loadPlan(t, "services: 200\ningesters: 20\nbytes-per-day: 1TB\ningesters-per-service: "+spread)
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Cost(prices(t), latest(t))
		if err != nil {
			t.Fatal(err)
		}
		for name, n := range want {
			if l := line(t, s, name); math.Abs(l.Count/n-1) > 0.05 {
				t.Errorf("%s: %v by the measurement, %v by the rule", name, l.Count, n)
			}
		}
	}
}

// edited is the measurement with another number at a path.
func edited(t *testing.T, path string, change func(float64) any) *bill.Measured {
	t.Helper()
	text, err := os.ReadFile("testdata/scale.json")
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	level, names := root, strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		level = level[name].(map[string]any)
	}
	last := names[len(names)-1]
	n, _ := level[last].(float64)
	if v := change(n); v == nil {
		delete(level, last)
	} else {
		level[last] = v
	}
	if text, err = json.Marshal(root); err != nil {
		t.Fatal(err)
	}
	m, err := bill.Measure(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A wrong count of requests is noticed, in each measured load.
func TestWrongCountIsNoticed(t *testing.T) {
	for at, spread := range map[string]string{"a.default": "20", "a.partitions": "1\nflush: {min: 16MiB}"} {
		text := "services: 200\ningesters: 20\ningesters-per-service: " + spread
		p, err := loadPlan(t, text+"\nbytes-per-day: 1TB\n")
		if err != nil {
			t.Fatal(err)
		}
		for name, path := range map[string]string{"puts": at + ".requests.put", "tail_writes": at + ".requests.table_write"} {
			for _, by := range []float64{0.5, 1.6} {
				s, err := p.Cost(prices(t), edited(t, path, func(n float64) any { return n * by }))
				if err != nil {
					t.Fatal(err)
				}
				if got := line(t, s, name).Count / line(t, cost(t, text), name).Count; math.Abs(got-1) < 0.06 {
					t.Errorf("%s times %v: the count is %v times the right one", path, by, got)
				}
			}
		}
	}
}

// Each line that is measured is its count, and follows the count.
func TestLinesFollowTheMeasurement(t *testing.T) {
	for _, text := range []string{"services: 200\ningesters: 20\ncompaction: on", "services: 200\ningesters: 20\ningesters-per-service: 1"} {
		p, err := loadPlan(t, text+"\nbytes-per-day: 1TB\n")
		if err != nil {
			t.Fatal(err)
		}
		paths := 0
		for _, l := range cost(t, text).Lines {
			if l.What == "" || l.Price == "" || l.Group == "" || l.PerDay < 0 {
				t.Errorf("%+v", l)
			}
			if l.Path == "" {
				continue
			}
			paths++
			edited(t, l.Path, func(n float64) any {
				if n != l.Measured {
					t.Errorf("%s: %v at %s is %v", l.Name, l.Measured, l.Path, n)
				}
				return n
			})
			twice, err := p.Cost(prices(t), edited(t, l.Path, func(n float64) any { return 1000 * n }))
			if err != nil {
				t.Fatal(err)
			}
			if again := line(t, twice, l.Name); again.Count <= 5*l.Count {
				t.Errorf("%s: a thousand times %s changes %v to %v", l.Name, l.Path, l.Count, again.Count)
			}
			if _, err := p.Cost(prices(t), edited(t, l.Path, func(float64) any { return nil })); err == nil || !strings.Contains(err.Error(), l.Path) {
				t.Errorf("%s without %s: %v", l.Name, l.Path, err)
			}
		}
		if paths < 8 {
			t.Errorf("%d lines are measured", paths)
		}
	}
	for _, text := range []string{"", "[]", "{", "null"} {
		m, err := bill.Measure([]byte(text))
		if err == nil {
			_, err = bill.Plan{BytesPerDay: 1e12, Services: 1, IngestersPerService: 1, LineBytes: 1}.Cost(prices(t), m)
		}
		if err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// The case of docs/measured/cost.md stays under its bounds.
func TestCase(t *testing.T) {
	p, err := bill.LoadPlan("")
	if err != nil {
		t.Fatal(err)
	}
	for spread, most := range map[float64]float64{20: 14, 1: 10} {
		p.IngestersPerService = spread
		s, err := p.Cost(prices(t), latest(t))
		if err != nil {
			t.Fatal(err)
		}
		sum := map[string]float64{}
		for _, l := range s.Lines {
			sum[l.Group] += l.PerDay
			if s.PerDay[l.Name] != l.PerDay {
				t.Errorf("%s: %v and %v", l.Name, s.PerDay[l.Name], l.PerDay)
			}
		}
		three := s.PerDay["storage_requests_tables"]
		if !near(three, sum["storage"]+sum["requests"]+sum["tables"]) || !near(s.PerDay["total"], three+sum["machines"]) || sum["machines"] == 0 {
			t.Errorf("the lines add up to %v, the sums are %v", sum, s.PerDay)
		}
		if three >= most || three < most/4 {
			t.Errorf("%v ingesters a service: %v a day, want less than %v", spread, three, most)
		}
	}
}

// The sheet is arithmetic that a person can repeat.
func TestArithmetic(t *testing.T) {
	base := "services: 200\ningesters: 20\nratio: 5\nkeep: 30d\nreads-per-day: 0\nfollowers: 0\n"
	s := cost(t, base)
	for name, want := range map[string]float64{
		"storage_hot": 200.0 * 31 * 0.018 / 30,
		"puts":        4000 * 144 / 1e4 * 0.065,
		"tail_writes": (4000*17280 + 20*8640) / 1e4 * 0.00036,
	} {
		if got := line(t, s, name).PerDay; !near(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for text, want := range map[string]float64{
		"flush: {max-age: 5m}":                       4000 * 288,
		"flush: {max-age: 2h, age: 1h}":              4000 * 24, // a batch ends with its hour
		"flush: {size: 100KiB}":                      4000 * 24 * 102,
		"ingesters-per-service: 1":                   200 * 1440,
		"ingesters-per-service: 1\nflush: {age: 5m}": 200 * 288,
		"bytes-per-day: 323KB":                       1000, // a thousand records
	} {
		if got := line(t, cost(t, base+text), "puts").Count; math.Abs(got-want) > 0.02*want {
			t.Errorf("%s: %v blobs, want %v", text, got, want)
		}
	}
	s = cost(t, "services: 200\ningesters: 20\nratio: 5\nreads-per-day: 1000\nfollowers: 3\nsoft-delete: 2d\ncompaction: on\n"+
		"tail: {keep: 3d}\nmachines: [{count: 1, kind: B2s_v2, disk: 30GB}]")
	for name, want := range map[string]float64{
		"read_gets": 1000 * 2 * 120, "follower_lists": 3 * 1440, "follower_tables": 3 * 17280, "compaction_gets": 4 * 576000,
		"storage_deleted": 200 * 2, "storage_replaced": 200 * 3, "tail_room": 4 * 0.343836 * 20 * 48, "disks": 30,
	} {
		if got := line(t, s, name).Count; math.Abs(got-want) > 0.01*want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	// Of 576,000 blobs and 200 services, closing lists a day of 2,880 blobs, and a week with 24 each:
	// 3,048 in one LIST. Both parts of a day are made after two LISTs of its horizons. The second one
	// is read twice, and has as many blobs again. They are kept for 31 days, and 2 when deleted.
	for name, want := range map[string]float64{
		"close_lists": 200 * (1 + 2 + 2), "close_puts": 2 * (200 + 1), "close_gets": 2 * 200,
		"storage_closed": 2 * 576000 * 300 * 33 / 1e9,
	} {
		if got := line(t, s, name).Count; math.Abs(got-want) > 0.01*want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	// Without compaction eight days have 23,040 blobs a service: 5 LISTs.
	for name, want := range map[string]float64{
		"close_lists": 200 * (5 + 2), "close_puts": 200 + 1, "storage_closed": 576000 * 300 * 38 / 1e9,
	} {
		if got := line(t, cost(t, base), name).Count; math.Abs(got-want) > 0.01*want {
			t.Errorf("%s without compaction: %v, want %v", name, got, want)
		}
	}
	if disks := line(t, s, "disks"); disks.Unit != "GB-days" || !near(disks.PerDay, 0.0698) {
		t.Errorf("%+v", disks)
	}
	if all := s.PerDay["storage_requests_tables"]; !near(s.PerGB, all/1000) {
		t.Errorf("a GB takes %v of %v", s.PerGB, all)
	}
	// Without the tables of the newest records, ingesters write rows of their own.
	s = cost(t, base+"tail: {enabled: off}")
	if got := line(t, s, "tail_writes").Count; !near(got, 20*8640) || slices.ContainsFunc(s.Lines, func(l bill.Line) bool { return l.Name == "tail_room" }) {
		t.Errorf("%v rows: %+v", got, s.Lines)
	}
}

// Machines of several kinds have a line each, and a sum. Without a count there is one for each ingester.
func TestMachines(t *testing.T) {
	s := cost(t, "machines: [{count: 3, kind: D2s_v5, disk: 32GB}, {count: 2, kind: B2s_v2, disk: 64GB}]\n")
	vms, others := line(t, s, "vms").PerDay, line(t, s, "vms_2").PerDay
	if !near(vms, 3*70.08/30) || !near(others, 2*line(t, cost(t, "machines: [{count: 1, kind: B2s_v2, disk: 32GB}]"), "vms").PerDay) {
		t.Errorf("%v, %v", vms, others)
	}
	if sum := vms + others + line(t, s, "disks").PerDay + line(t, s, "disks_2").PerDay; !near(s.PerDay["machines"], sum) {
		t.Errorf("the sum is %v, not %v", s.PerDay["machines"], sum)
	}
	if got := line(t, cost(t, "ingesters: 3\nmachines: [{kind: D2s_v5}]"), "vms").PerDay; !near(got, vms) {
		t.Errorf("%v, want %v", got, vms)
	}
}

// The greatest plan that is taken has sums that can be written.
func TestGreatestPlan(t *testing.T) {
	s := cost(t, "bytes-per-day: 1000TB\nkeep: 36500d\nsoft-delete: 36500d\nservices: 1000000000\ningesters: 1000000\nreads-per-day: 1e12\nread-range: 36500d\nreads-of-cool: 1e12\n"+
		"ratio: 0.01\nline-bytes: 1\nflush: {size: 1}\ncompaction: on\nfollowers: 1000000000\nmachines: [{count: 1000000, kind: B2s_v2, disk: 9000TB}]\ntiers: {cool: 1d, cold: 2d}\n")
	text, err := json.Marshal(map[string]any{"sums": s.PerDay, "lines": s.Lines, "elsewhere": s.Elsewhere})
	if err != nil || strings.Contains(string(text), "Inf") || strings.Contains(string(text), "NaN") {
		t.Errorf("%v\n%s", err, text)
	}
}

// Tiers have their own prices, and are paid for their least time.
func TestTiers(t *testing.T) {
	base := "services: 200\ningesters: 20\nratio: 5\nkeep: 119d\nsoft-delete: 0d\n"
	s := cost(t, base+"tiers: {cool: 30d, cold: 60d}\ncompaction: on\nreads-of-cool: 50\nreads-per-day: 100\n")
	for name, want := range map[string]float64{
		"storage_hot":     200.0 * 30 * 0.018 / 30,
		"storage_cool":    200.0 * 30 * 0.01 / 30,
		"storage_cold":    200.0 * 90 * 0.0036 / 30, // 60 days, and 30 for early deletion
		"moves_cool":      4800 / 1e4 * 0.10,
		"cool_retrieval":  50 * 200.0 / 200 / 24 * 0.03,
		"compaction_puts": 4800 / 1e4 * 0.065,
	} {
		if got := line(t, s, name).PerDay; !near(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	// Blobs that are deleted before they would be moved are not.
	if s := cost(t, base+"tiers: {cool: 200d}"); slices.ContainsFunc(s.Lines, func(l bill.Line) bool { return strings.Contains(l.Name, "cool") }) {
		t.Errorf("%+v", s.Lines)
	}
	if s := cost(t, base+"tiers: {cool: 0d}"); line(t, s, "puts").Price != "here.tiers.cool.writes" || line(t, s, "read_retrieval").PerDay == 0 {
		t.Errorf("%+v", s.Lines)
	}
	// What compaction replaces in a cooler tier is read there, and paid for its least time.
	s = cost(t, base+"tiers: {cool: 0d}\ncompaction: on\n")
	for name, want := range map[string]float64{"storage_replaced": 200.0 * 30 * 0.01 / 30, "compaction_retrieval": 2 * 200 * 0.01} {
		if got := line(t, s, name).PerDay; !near(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	// Reads of a cool tier that a plan has not got are of the hot one.
	s = cost(t, base+"tiers: {hot: 0d}\nreads-per-day: 100\nreads-of-cool: 25\n")
	if hot, cool := line(t, s, "read_gets"), line(t, s, "cool_gets"); cool.Price != hot.Price || !near(3*cool.Count, hot.Count) {
		t.Errorf("%+v, %+v", hot, cool)
	}
}

// A table of prices without the price of a tier or machine names the key that it lacks.
func TestLackingPrices(t *testing.T) {
	for text, want := range map[string]string{"tiers: {cold: 5d}": "here.tiers.cold.storage", "machines: [{count: 3, kind: B2s_v2}]": "machines.B2s_v2", "machines: [{count: 1, kind: X9}]": "machines.X9"} {
		p, err := loadPlan(t, text+"\nbytes-per-day: 1TB\n")
		if err != nil {
			t.Fatal(err)
		}
		table := prices(t)
		if !strings.Contains(text, "X9") {
			table.Here.Tiers, table.Machines, table.Programs = nil, nil, nil
		}
		if _, err := p.Cost(table, example(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// The same load elsewhere has its input, its queries and its time of keeping.
func TestElsewhere(t *testing.T) {
	s := cost(t, "services: 200\nkeep: 60d\nreads-per-day: 1000\n")
	lacks := ""
	for _, o := range s.Elsewhere {
		if o.What == "" || o.PerDay <= 0 {
			t.Errorf("%+v", o)
		}
		if o.Name == "Azure Monitor, Auxiliary logs" {
			lacks += o.What
		}
	}
	for name, want := range map[string]float64{
		"Azure Monitor, Analytics logs":       2300 + 1000*29.0/30*0.1,
		"Azure Monitor, Auxiliary logs":       50 + 1000*1*0.02 + 1000*1000.0/200/24*0.005,
		"Microsoft Sentinel data lake":        150,
		"VictoriaLogs, on machines and disks": 2*70.08/30 + 1000.0/10*60/0.8*0.0698/30,
	} {
		if !near(s.PerDay[name], want) {
			t.Errorf("%s: %v, want %v", name, s.PerDay[name], want)
		}
	}
	if !strings.Contains(lacks, "no alerts") {
		t.Error(lacks)
	}
}
