// Package corpus makes the logs of demonstrations, measurements and tests, and knows the answers
// that a store must give.
//
// [Options.All] are records of eight services, as much alike as those of a busy day. [Write]
// writes them as NDJSON, and returns the [Answers]. [Post] sends them, and [Yardstick] measures the
// machine. [Shop] tells the requests of a small shop with an incident, also live.
//
// Equal options give equal bytes on every machine.
package corpus

import (
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/record"
)

// Record is a record with the answers to questions about it.
type Record struct {
	Time    int64 // unix ns
	Service string
	Level   record.Level
	ID      string // of the request; in [Options.All] it is of one record alone
	// Line is a JSON object, or text if Text is true. It ends in a newline. That of
	// [Options.All] is valid until the next record.
	Line []byte
	Text bool

	needle string
	of     *request
}

// Options describe a corpus. The zero value has no records.
type Options struct {
	Seed     uint64
	Records  int
	Services int           // 1 to 8; 0: 8
	From     time.Time     // start of the range of times; zero: 2026-11-10 12:00 UTC
	Span     time.Duration // its length; 0: 6 h
	// Odd gives a few records in a thousand a time or a level in another form, and texts with
	// escapes.
	Odd bool
}

// The reference corpus of measurements has 2,000,000 records of this seed, in the range that is
// the default: 646 MB.
const (
	ReferenceRecords = 2_000_000
	ReferenceSeed    = 42
)

// Services returns the services of [Options.All] by their volume. The n-th writes about 1/n of
// the first.
func Services() []string {
	return []string{"gateway", "checkout", "auth", "payments", "search", "stock", "mailer", "billing"}
}

// filled returns the options with their defaults.
func (o Options) filled() Options {
	if all := len(Services()); o.Services <= 0 || o.Services > all {
		o.Services = all
	}
	if o.From.IsZero() {
		o.From = time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	}
	if o.Span <= 0 {
		o.Span = 6 * time.Hour
	}
	return o
}

// generator makes records that have nothing to do with each other.
type generator struct {
	o        Options
	dice     dice
	services []string
	patterns [5][]pattern // by level, from debug on
	statuses [5][]string  // likewise
	form     pattern      // of a line

	record    Record
	host      int
	line, msg []byte
}

// form is that of a line. An odd one has labels too.
const (
	form = `{"ts":$time,"level":"$level","service":"$service","host":"$service-5c8d7f4b$host-$few","request_id":"$id",` +
		`"status":$status,"duration_ms":$took,"path":"$path","user_id":"u1$person",`
	odd = `"labels":{"zone":"Grün\t$few"},`
	end = `"msg":"$msg"}` + "\n"
)

// All are the records. Times rise, but neighbours up to a quarter of a second apart may be in
// the wrong order, as on the wire.
func (o Options) All() iter.Seq[Record] {
	o = o.filled()
	return func(yield func(Record) bool) {
		g := &generator{o: o, dice: newDice(o.Seed), services: Services()[:o.Services], form: parsePattern(form + end)}
		g.patterns, g.statuses = parseMessages(), parseStatuses()
		if o.Odd {
			g.form = parsePattern(form + odd + end)
		}
		for i := range o.Records {
			if !yield(g.make(i)) {
				return
			}
		}
	}
}

// make makes the i-th record.
func (g *generator) make(i int) Record {
	late := time.Duration(float64(i) * float64(g.o.Span) / float64(g.o.Records))
	late += time.Duration(g.dice.Int64N(int64(min(g.o.Span/100, 250*time.Millisecond)) + 1))
	weight, service := g.weight(), g.service()
	r := Record{
		Time:    g.o.From.UnixNano() + int64(min(late, g.o.Span-1)),
		Service: g.services[service],
		Level:   record.Debug + record.Level(weight),
		ID:      string(g.dice.hex(nil, 32)),
		needle:  g.o.needle(i),
	}
	g.record, g.host = r, 10+service
	g.msg = g.patterns[weight][g.dice.IntN(len(g.patterns[weight]))].fill(g.msg[:0], g.dice.append)
	g.line = g.form.fill(g.line[:0], g.value)
	r.Line = g.line
	return r
}

// value appends a value of the record.
func (g *generator) value(b []byte, name string) []byte {
	r := &g.record
	switch name {
	case "time":
		return g.time(b, r.Time)
	case "level":
		return append(b, g.word(r.Level)...)
	case "service":
		return append(b, r.Service...)
	case "host":
		return strconv.AppendInt(b, int64(g.host), 10)
	case "id":
		return append(b, r.ID...)
	case "status":
		return append(b, g.dice.of(g.statuses[r.Level-record.Debug]...)...)
	case "took":
		return strconv.AppendFloat(b, g.dice.millis(), 'f', 3, 64)
	case "msg":
		if b = record.AppendEscaped(b, g.msg); r.needle != "" {
			b = append(append(b, " token="...), r.needle...)
		}
		return b
	}
	return g.dice.append(b, name)
}

// parseStatuses has the statuses of answers by level, from debug on.
func parseStatuses() (all [5][]string) {
	const statuses = "200 200 200 204 304,200 200 201 204 302,200 404 429 401 200,500 502 503 504 400,500 503 500 503 507"
	for i, of := range strings.Split(statuses, ",") {
		all[i] = strings.Fields(of)
	}
	return all
}

// weight draws debug to critical as 0 to 4.
func (g *generator) weight() int {
	below := [5]int{60, 90, 96, 99, 100}
	n := g.dice.IntN(100)
	return slices.IndexFunc(below[:], func(sum int) bool { return n < sum })
}

// service draws a service by its share.
func (g *generator) service() int {
	below := [8]int{398, 584, 703, 790, 858, 913, 960, 1000}
	n := g.dice.IntN(below[g.o.Services-1])
	return slices.IndexFunc(below[:], func(sum int) bool { return n < sum })
}

// time writes a time in RFC 3339; of odd ones now and then in another zone, or as a number.
func (g *generator) time(b []byte, ns int64) []byte {
	at := time.Unix(0, ns).UTC()
	if g.o.Odd {
		switch g.dice.IntN(500) {
		case 0:
			return strconv.AppendInt(b, ns, 10)
		case 1:
			at = at.In(time.FixedZone("", 5*3600+1800))
		}
	}
	return append(at.AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
}

// word is the word of a level; of odd ones now and then another name.
func (g *generator) word(l record.Level) string {
	if g.o.Odd && g.dice.IntN(300) == 0 {
		return [5]string{"DBG", "Information", "WARNING", "err", "FATAL"}[l-record.Debug]
	}
	return l.String()
}

// dice draw values.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 0x626c6f627461696c))} }

// millis draws the milliseconds that something took: most are few, and few are many. Floating point
// differs between machines, so it is a number of microseconds that is drawn.
func (d dice) millis() float64 { return float64(d.IntN(1<<(11+d.IntN(7)))) / 1000 }

// hex appends n hexadecimal digits.
func (d dice) hex(b []byte, n int) []byte {
	for ; n > 0; n -= 16 {
		v := d.Uint64()
		for range min(n, 16) {
			b = append(b, "0123456789abcdef"[v&15])
			v >>= 4
		}
	}
	return b
}

// of draws one of a list of words.
func (d dice) of(words ...string) string { return words[d.IntN(len(words))] }
