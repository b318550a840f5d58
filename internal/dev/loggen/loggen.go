// Package loggen makes logs: a deterministic corpus of records like those of a shop's
// services, and the answers that a store holding it must give.
//
//	g := loggen.New(loggen.Options{Seed: 1, Records: 200_000})
//	for g.Next() {
//		send(g.Line())       // one JSON object and a newline
//		tally.Add(g.Record()) // the counts that the store must have
//	}
//
// Equal options give equal bytes, on every machine and in every version of this
// package that has the same golden test. Times rise except for a jitter, so that
// neighbours are sometimes out of order, as they are on the wire. Levels and services
// are uneven. In a few records in a thousand, the time or the level has another form
// than in the rest.
package loggen

import (
	"math/rand/v2"
	"strconv"
	"time"

	"blobtail/record"
)

// Options describe the corpus. The zero value makes nothing.
type Options struct {
	Seed     uint64
	Records  int
	Services int           // 1 to 8; 0: 8
	From     time.Time     // start of the time range; zero: 2026-11-10 12:00 UTC
	Span     time.Duration // its length; 0: 6 h
}

// Record has the fields of a record that a query can select by.
type Record struct {
	Time    int64 // unix ns
	Service string
	Level   record.Level
	ID      string // of the request, unique in the corpus
}

// Generator makes one corpus, once.
type Generator struct {
	o    Options
	rand *rand.Rand
	made int
	step float64

	services []string
	total    float64 // of their shares
	words    [5][]string
	names    []string

	line []byte
	rec  Record
}

// services returns the services ordered by their volume: the n-th writes 1/(n+1) of
// the first.
func services() []string {
	return []string{"edge", "orders", "stock", "mail", "ledger", "profile", "images", "cron"}
}

// words returns the patterns of messages, by level: %d a number, %x an id, %w a name,
// %f a duration.
func words() [5][]string {
	return [5][]string{
		{ // debug
			"lookup of basket %x in cache %w took %f",
			"statement insert into %w returned %d rows after %f",
			"lease on shard %d renewed by %w for %f",
			"parsed %d headers of message %x",
			"pool %w: %d idle, %d busy",
			"retry budget of %w is at %d of 100",
		},
		{ // info
			"GET /%w/%d answered 200 with %d bytes in %f",
			"POST /%w answered 201 for customer %d in %f",
			"batch %x of %w finished: %d done, %d skipped",
			"customer %d signed in as %w, session %x",
			"sent \"order %x received\" to %w@example.org",
			"reloaded C:\\conf\\%w.toml, revision %x",
		},
		{ // warn
			"queue of %w holds %d messages, the limit is %d",
			"answer from %w took %f, more than %d ms",
			"certificate of %w.example.org ends in %d days",
			"customer %d was throttled: %d requests within %f",
		},
		{ // error
			"GET /%w/%d answered 502: upstream closed after %f, request %x",
			"write to table %w failed: deadlock with transaction %x\n\tat store.go:%d",
			"connection to %w-%d refused, attempt %d",
		},
		{ // critical
			"disk of %w-%d is full, %d bytes left, reads only",
			"checksum of segment %x of %w differs",
		},
	}
}

func names() []string {
	return []string{"aurora", "basalt", "cedar", "delta", "ember", "fjord", "grün", "harbor", "indigo", "juniper", "krill", "lumen"}
}

// New returns a generator of the corpus that o describes.
func New(o Options) *Generator {
	if o.Services <= 0 || o.Services > len(services()) {
		o.Services = len(services())
	}
	if o.From.IsZero() {
		o.From = time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	}
	if o.Span <= 0 {
		o.Span = 6 * time.Hour
	}
	g := &Generator{
		o: o, rand: rand.New(rand.NewPCG(o.Seed, 0x626c6f627461696c)),
		step:     float64(o.Span) / float64(max(o.Records, 1)),
		services: services()[:o.Services], words: words(), names: names(),
	}
	for i := range g.services {
		g.total += 1 / float64(i+1)
	}
	return g
}

// Next makes the next record and reports whether there was one.
func (g *Generator) Next() bool {
	if g.made >= g.o.Records {
		return false
	}
	r := g.rand
	offset := int64(float64(g.made)*g.step) + r.Int64N(int64(200*time.Millisecond))
	g.rec = Record{
		Time:    g.o.From.UnixNano() + min(offset, int64(g.o.Span)-1),
		Service: g.service(),
		ID:      g.id(),
	}
	weight := g.weight()
	g.rec.Level = record.Debug + record.Level(weight)
	g.compose(weight)
	g.made++
	return true
}

// Line returns the record made last, one JSON object with its newline. It is valid
// until the next call of Next.
func (g *Generator) Line() []byte { return g.line }

// Record returns the queryable fields of the record made last.
func (g *Generator) Record() Record { return g.rec }

func (g *Generator) service() string {
	x := g.rand.Float64() * g.total
	for i, s := range g.services {
		if x -= 1 / float64(i+1); x < 0 {
			return s
		}
	}
	return g.services[0]
}

// weight draws debug to critical as 0 to 4.
func (g *Generator) weight() int {
	switch n := g.rand.IntN(1000); {
	case n < 550:
		return 0
	case n < 900:
		return 1
	case n < 960:
		return 2
	case n < 992:
		return 3
	}
	return 4
}

// id returns a unique id: its last digits are the record's number.
func (g *Generator) id() string {
	return strconv.FormatUint(g.rand.Uint64()>>32|1<<32, 16) + "-" + strconv.FormatInt(int64(g.made), 16)
}

func (g *Generator) compose(weight int) {
	r := g.rand
	b := append(g.line[:0], `{"ts":`...)
	b = g.time(b)
	b = append(b, `,"level":"`...)
	b = append(b, g.word(weight)...)
	b = append(b, `","service":"`...)
	b = append(b, g.rec.Service...)
	b = append(b, `","host":"`...)
	b = append(b, g.rec.Service...)
	b = append(b, '-')
	b = strconv.AppendInt(b, int64(r.IntN(6)), 10)
	b = append(b, `","request":"`...)
	b = append(b, g.rec.ID...)
	b = append(b, `","trace":"`...)
	b = g.hex(b, 32)
	b = append(b, `","took_ms":`...)
	b = g.millis(b)
	b = append(b, `,"labels":{"zone":"`...)
	b = append(b, "abc"[r.IntN(3)])
	b = append(b, `","canary":`...)
	b = strconv.AppendBool(b, r.IntN(20) == 0)
	b = append(b, `},"msg":`...)
	kinds := g.words[weight]
	b = g.message(b, kinds[r.IntN(len(kinds))])
	g.line = append(b, "}\n"...)
}

// time writes the time in RFC 3339; now and then in another zone or as a number.
func (g *Generator) time(b []byte) []byte {
	t := time.Unix(0, g.rec.Time)
	switch g.rand.IntN(500) {
	case 0:
		return strconv.AppendInt(b, g.rec.Time, 10)
	case 1:
		t = t.In(time.FixedZone("", 5*3600+1800))
	default:
		t = t.UTC()
	}
	b = append(b, '"')
	b = t.AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// word writes the level; now and then under another common name.
func (g *Generator) word(weight int) string {
	if g.rand.IntN(300) == 0 {
		return [5]string{"DBG", "Information", "WARNING", "err", "FATAL"}[weight]
	}
	return [5]string{"debug", "info", "warn", "error", "critical"}[weight]
}

// message fills a pattern, as a JSON string.
func (g *Generator) message(b []byte, pattern string) []byte {
	b = append(b, '"')
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
			continue
		case '\n':
			b = append(b, '\\', 'n')
			continue
		case '\t':
			b = append(b, '\\', 't')
			continue
		case '%':
		default:
			b = append(b, c)
			continue
		}
		i++
		switch pattern[i] {
		case 'd':
			b = strconv.AppendInt(b, g.rand.Int64N(100_000), 10)
		case 'x':
			b = g.hex(b, 16)
		case 'w':
			b = append(b, g.names[g.rand.IntN(len(g.names))]...)
		case 'f':
			b = g.millis(b)
			b = append(b, " ms"...)
		}
	}
	return append(b, '"')
}

func (g *Generator) millis(b []byte) []byte {
	us := g.rand.Int64N(1 << (6 + g.rand.IntN(16)))
	return strconv.AppendFloat(b, float64(us)/1000, 'f', 3, 64)
}

func (g *Generator) hex(b []byte, n int) []byte {
	const digits = "0123456789abcdef"
	for n > 0 {
		v := g.rand.Uint64()
		for range min(n, 16) {
			b = append(b, digits[v&15])
			v >>= 4
		}
		n -= 16
	}
	return b
}
