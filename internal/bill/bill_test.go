package bill_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/internal/bill"
	"blobtail/record"
	"blobtail/storage"
	"blobtail/storage/mem"
	"blobtail/storage/storagetest"
)

func at(t *testing.T, s string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

// put stores an object that looks like a blob: only its metadata and size count.
func put(t *testing.T, s storage.BlobStore, service string, period time.Time, number int, size int, m blobfmt.Meta) {
	t.Helper()
	if m.Records == 0 {
		m.Records = 1
	}
	if m.RawBytes == 0 {
		m.RawBytes = 1
	}
	m.Batch[0], m.Batch[1] = byte(number), byte(number>>8)
	if m.First == 0 {
		m.First, m.Last = period.UnixNano(), period.UnixNano()
	}
	if m.Levels == [record.NumLevels]int64{} {
		m.Levels[record.Info] = m.Records
	}
	name := blobfmt.Name{Service: service, Period: period, Number: number}
	storagetest.Put(t, s, name.String(), make([]byte, size), storage.Attrs{Metadata: m.Map()})
}

// Foreign and unreadable objects are counted apart from the sums. The parts of closed days are
// blobtail's own: each is a PUT and its bytes, and no blob.
func TestRead(t *testing.T) {
	s := mem.New(mem.Options{})
	hour := at(t, "2026-11-20T15:00:00Z")
	put(t, s, "web", hour, 1, 100, blobfmt.Meta{Records: 10, RawBytes: 500})
	put(t, s, "web", hour.Add(24*time.Hour), 1, 50, blobfmt.Meta{Records: 5, RawBytes: 300})
	put(t, s, "web2", hour, 1, 7, blobfmt.Meta{Records: 2, RawBytes: 20})
	put(t, s, "app", hour, 990001, 30, blobfmt.Meta{Records: 4, RawBytes: 90, Compacted: 3})
	put(t, s, "app", hour.Add(time.Hour), 1, 30, blobfmt.Meta{})
	put(t, s, "app", hour.Add(2*time.Hour), 990001, 30, blobfmt.Meta{Compacted: 2})
	put(t, s, "app", hour.Add(2*time.Hour), 1, 30, blobfmt.Meta{})
	for key, meta := range map[string]map[string]string{
		"web/2026/11/20/1500/000002.log": {"format": "1", "batch": "?"},
		"web/2026/11/20/1500/000003.log": nil,
		"web/2026/11/20/1500/notes.txt":  nil,
		"web/readme":                     nil,
	} {
		storagetest.Put(t, s, key, make([]byte, 1000), storage.Attrs{Metadata: meta})
	}
	for _, key := range []string{"web/2026/11/20/_closed.000001", "web/2026/11/20/_closed.000002", "gone/2026/11/19/_closed.000001"} {
		storagetest.Put(t, s, key, make([]byte, 200))
	}
	r, err := bill.Read(t.Context(), s, []string{"web", "app", "none", "gone"}, catalog.Range{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, sums := range [][]bill.Sum{r.Services, r.Days, {r.Total}} {
		for _, s := range sums {
			got = append(got, fmt.Sprintf("%s: %d %d %d %d puts %d unknown %d", s.Name, s.Blobs, s.Records, s.Raw, s.Stored, s.Puts, s.Unknown))
		}
	}
	want := []string{
		"app: 4 7 93 120 puts 9 unknown 0",
		"gone: 0 0 0 200 puts 1 unknown 0",
		"web: 3 15 800 1550 puts 5 unknown 1", // 100, 50 and 1000 bytes of blobs, and 2 parts of 200
		"2026-11-19: 0 0 0 200 puts 1 unknown 0",
		"2026-11-20: 6 17 593 1620 puts 13 unknown 1",
		"2026-11-21: 1 5 300 50 puts 1 unknown 0",
		": 7 22 893 1870 puts 15 unknown 1",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r.Foreign != 3 || r.ForeignBytes != 3000 || r.ForeignKey != "web/2026/11/20/1500/000003.log" || r.Twice != 1 {
		t.Errorf("%+v", r)
	}
	if m, ok := r.Month(at(t, "2026-11-22T00:00:00Z")); !ok || m.Days != 2 || m.From != "2026-11-20" {
		t.Errorf("a day without blobs counts: %+v", m)
	}
	if _, err := bill.Read(t.Context(), failing{}, []string{"web"}, catalog.Range{}, nil); !errors.Is(err, storage.ErrUnauthorized) {
		t.Error(err)
	}
}

// Adjacent ranges count each blob once, and services and days have the same total.
func TestRangesAddUp(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	start := at(t, "2026-10-30T22:00:00Z")
	services := []string{"app", "app-2", "app2", "web"}
	for range 30 {
		s := mem.New(mem.Options{})
		for n := range 60 {
			period := start.Add(time.Duration(rnd.IntN(6*72)) * 10 * time.Minute)
			put(t, s, services[rnd.IntN(len(services))], period, n+1, rnd.IntN(1000), blobfmt.Meta{
				Records: 1 + rnd.Int64N(1000), RawBytes: 1 + rnd.Int64N(100000), Compacted: rnd.IntN(3)})
		}
		for d := range 5 {
			storagetest.Put(t, s, "web/"+start.AddDate(0, 0, d).Format("2006/01/02/")+"_closed.000001", make([]byte, 1+rnd.IntN(1000)))
		}
		cut := start.Add(time.Duration(rnd.Int64N(int64(72 * time.Hour))))
		if rnd.IntN(2) == 0 {
			cut = cut.Truncate(10 * time.Minute)
		}
		read := func(rng catalog.Range) *bill.Report {
			r, err := bill.Read(t.Context(), s, services, rng, nil)
			if err != nil {
				t.Fatal(err)
			}
			for name, sums := range map[string][]bill.Sum{"services": r.Services, "days": r.Days} {
				if all := total(sums); all != r.Total {
					t.Fatalf("seed %d: %s add up to %+v, the total is %+v", seed, name, all, r.Total)
				}
			}
			return r
		}
		whole, older, newer := read(catalog.Range{}), read(catalog.Range{To: cut}), read(catalog.Range{From: cut})
		if older.Total.Blobs+newer.Total.Blobs != 60 || older.Total.Raw+newer.Total.Raw != whole.Total.Raw ||
			older.Total.Stored+newer.Total.Stored != whole.Total.Stored {
			t.Fatalf("seed %d: %d before and %d from %s, of %d", seed, older.Total.Blobs, newer.Total.Blobs, cut, whole.Total.Blobs)
		}
	}
}

func total(sums []bill.Sum) (all bill.Sum) {
	for _, s := range sums {
		all.Blobs += s.Blobs
		all.Records += s.Records
		all.Raw += s.Raw
		all.Stored += s.Stored
		all.Puts += s.Puts
		all.TailWrites += s.TailWrites
		all.TailBytes += s.TailBytes
	}
	return all
}

func TestMonth(t *testing.T) {
	s := mem.New(mem.Options{})
	day := at(t, "2026-11-18T10:00:00Z")
	for i, raw := range []int64{10, 20, 60} { // the 18th, the 19th, and part of the 21st
		put(t, s, "web", day.AddDate(0, 0, []int{0, 1, 3}[i]), 1, 3, blobfmt.Meta{Records: raw, RawBytes: raw})
	}
	r, err := bill.Read(t.Context(), s, []string{"web"}, catalog.Range{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Days without blobs do not count, and today is not over.
	m, ok := r.Month(at(t, "2026-11-21T11:00:00Z"))
	if !ok || m.Raw != 450 || m.Blobs != 30 || m.Days != 2 || m.From != "2026-11-18" || m.To != "2026-11-19" || m.Partial {
		t.Errorf("%+v %v", m, ok)
	}
	if m, _ = r.Month(at(t, "2026-11-22T00:00:00Z")); m.Raw != 900 || m.Days != 3 || m.Partial {
		t.Errorf("%+v", m)
	}
	r, err = bill.Read(t.Context(), s, []string{"web"}, catalog.Range{From: at(t, "2026-11-21T00:00:00Z")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m, _ = r.Month(at(t, "2026-11-21T11:00:00Z")); m.Raw != 1800 || m.Days != 1 || !m.Partial {
		t.Errorf("%+v", m)
	}
	if _, ok = (&bill.Report{}).Month(time.Now()); ok {
		t.Error("a month of nothing")
	}
}

// A service that logs a line a second writes a row each five seconds. One that logs a thousand
// lines writes no more rows, with a hundred lines in each.
func TestTail(t *testing.T) {
	hour := at(t, "2026-11-20T15:00:00Z")
	last := hour.Add(time.Hour).UnixNano() - 1
	for _, c := range []struct {
		name           string
		records, raw   int64
		severe         int64
		writes, tailed int64
	}{
		{"one a second", 3600, 3600 * 300, 0, 720, 720 * (330 + 5*75)},
		{"a thousand a second", 3600 * 1000, 3600 * 1000 * 300, 0, 720, 720 * (330 + 100*75)},
		{"ten in all", 10, 10 * 300, 0, 10, 10 * (330 + 75)},
		{"errors go twice", 3600, 3600 * 300, 36, 720, 720*(330+5*75) + 36*(330+75)},
	} {
		s := mem.New(mem.Options{})
		m := blobfmt.Meta{Records: c.records, RawBytes: c.raw, First: hour.UnixNano(), Last: last}
		m.Levels[record.Error], m.Levels[record.Info] = c.severe, c.records-c.severe
		put(t, s, "web", hour, 1, 1, m)
		r, err := bill.Read(t.Context(), s, []string{"web"}, catalog.Range{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Total.TailWrites != c.writes || r.Total.TailBytes != c.tailed {
			t.Errorf("%s: %d writes of %d bytes, want %d of %d", c.name, r.Total.TailWrites, r.Total.TailBytes, c.writes, c.tailed)
		}
	}
}

func TestCost(t *testing.T) {
	p, err := bill.Load("")
	if err != nil {
		t.Fatal(err)
	}
	one := 1.0
	p.Here = bill.Here{Name: "x"}
	for _, l := range []*bill.Price{&p.Here.Storage, &p.Here.Writes, &p.Here.Lists, &p.Here.TableStorage, &p.Here.TableWrites} {
		l.Price = &one
	}
	p.Elsewhere = []bill.Elsewhere{{GB: &one}, {GB: &one, Million: 2}}
	c := p.Cost(&bill.Sum{Blobs: 10_001, Records: 3e6, Raw: 5e9, Stored: 1e9, Puts: 20_000, TailWrites: 30_000, TailBytes: 2e9}, 15*24*time.Hour)
	want := bill.Cost{Puts: 2, Lists: 0.0003, Storage: 1, Tail: 3 + 1, Elsewhere: []float64{5, 11}}
	if !reflect.DeepEqual(c, want) || c.Here() != 7 {
		t.Errorf("%+v, want %+v", c, want)
	}
}

// The built-in table has a price elsewhere and a date for the bill.
func TestDefault(t *testing.T) {
	p, err := bill.Load("")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Elsewhere) == 0 || p.Dates() == "" {
		t.Errorf("%+v", p)
	}
	file, err := bill.Load("../../configs/prices.yaml")
	if err != nil || !reflect.DeepEqual(p, file) {
		t.Errorf("configs/prices.yaml gives %+v, %v\nbuilt in is %+v", file, err, p)
	}
}

func TestPricesAreStrict(t *testing.T) {
	text, err := os.ReadFile("../../configs/prices.yaml")
	if err != nil {
		t.Fatal(err)
	}
	good := string(text)
	for _, c := range []struct{ name, old, new, want string }{
		{"unknown key", "currency: USD", "currency: USD\ncoins: 3", "coins"},
		{"misspelt price", "price: 0.018", "prise: 0.018", "prise"},
		{"no price", "    price: 0.018\n", "", "here.storage: want a price"},
		{"negative", "price: 0.018", "price: -0.018", "here.storage: want a price"},
		{"not a number", "price: 0.018", "price: .nan", "here.storage: want a price"},
		{"endless", "price: 0.018", "price: .inf", "here.storage: want a price"},
		{"a text", "price: 0.018", "price: cheap", "cheap"},
		{"no currency", "currency: USD", "currency: \"\"", "currency: want"},
		{"no date", "    date: 2026-11-22\n", "", "here.storage.date: want the day"},
		{"no such day", "date: 2026-11-22", "date: 2026-11-31", "here.storage.date: want the day"},
		{"two of a name", "Azure Monitor, Basic logs", "Azure Monitor, Analytics logs", "there are two"},
		{"negative million", "million: 1.7", "million: -1", "million: want"},
		{"no disk of a program", good[strings.Index(good, "disk:\n"):strings.Index(good, "# Programs")], "", "if disk has a price"},
		{"nothing", good, "", "currency"},
		{"comments", good, "# nothing\n", "currency"},
		{"no YAML", good, "a: [", "["},
		{"a list", good, "- a\n", ""},
	} {
		bad := strings.Replace(good, c.old, c.new, 1)
		if bad == good {
			t.Fatalf("%s: nothing was replaced", c.name)
		}
		if _, err := load(t, bad); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if p, err := load(t, good[:strings.Index(good, "elsewhere:")]); err != nil || len(p.Elsewhere) != 0 {
		t.Errorf("without elsewhere: %v", err)
	}
}

// load loads a table from a file.
func load(t *testing.T, text string) (bill.Prices, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return bill.Load(path)
}

type failing struct{ catalog.Store }

func (failing) List(context.Context, string, string) iter.Seq2[storage.Blob, error] {
	return func(yield func(storage.Blob, error) bool) { yield(storage.Blob{}, storage.ErrUnauthorized) }
}
