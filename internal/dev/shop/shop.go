// Package shop makes the logs of a small shop with an incident in them, for people who look round
// and for tests of the page.
//
//	g := shop.New(shop.Options{Seed: 1, From: from, Rate: 14, Incident: at})
//	for range 100_000 {
//		r := g.Next() // in order of time
//	}
//
// A request of a user goes through several of the five services, and its records have the same
// request_id and trace_id. At the time of the incident a deploy of payments begins. The new
// version writes a message that is new, and the services before it fail in consequence. A few
// records are wild: of several lines, in colours, of 20 KB, with markup.
//
// Equal options give equal records.
package shop

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"

	"blobtail/record"
)

// Options describe the logs.
type Options struct {
	Seed     uint64
	From     time.Time // of the first record
	Rate     float64   // records a second
	Incident time.Time // when the deploy of payments begins
	// Wave is the time from one peak of the traffic to the next. 0: 40 min.
	Wave time.Duration
}

// Record is a record as a service writes it.
type Record struct {
	Time    int64 // unix ns
	Service string
	Level   record.Level
	// Line has a JSON object, or text if Text is true. It ends in a newline.
	Line []byte
	Text bool

	part    part
	request *request
}

// part is the part that a record has in the incident.
type part int

const (
	bystander part = iota
	telling        // the warning
	failure        // the new message
)

// Generator makes the records.
type Generator struct {
	o    Options
	rand *rand.Rand

	pending queue   // records later than the last one of Next
	next    int64   // when the next request begins
	plan    float64 // the same without chance, in ns from From
	flat    bool    // no waves
	requests,
	orders int

	incident Incident
	releases map[string][]release
}

// New returns a generator.
func New(o Options) *Generator {
	g := &Generator{o: o, rand: rand.New(rand.NewPCG(o.Seed, 0x73686f70)), next: o.From.UnixNano(), orders: 48_000}
	if g.o.Wave <= 0 {
		g.o.Wave = 40 * time.Minute
	}
	g.incident = Incident{
		Service: payments, Message: newMessage, Before: tellingMessage, Deploy: o.Incident.UTC(),
		OldVersion: oldPayments, NewVersion: newPayments,
	}
	g.releases = g.history()
	g.deploys()
	return g
}

// Next returns the next record in order of time.
func (g *Generator) Next() Record {
	for len(g.pending) == 0 || g.pending[0].Time >= g.next {
		g.begin()
	}
	r := heap.Pop(&g.pending).(*Record)
	g.incident.note(r)
	return *r
}

// Due returns the time of the next record.
func (g *Generator) Due() time.Time {
	for len(g.pending) == 0 {
		g.begin()
	}
	return time.Unix(0, min(g.pending[0].Time, g.next))
}

// SetRate changes how many records come a second, from now on without waves. Requests go on at a
// time, or where they are if that is later.
func (g *Generator) SetRate(rate float64, from time.Time) {
	g.o.Rate, g.next, g.flat = rate, max(g.next, from.UnixNano()), true
	g.plan = float64(g.next - g.o.From.UnixNano())
}

// begin makes the records of the next request.
func (g *Generator) begin() {
	before := len(g.pending)
	r := g.newRequest()
	g.requests++
	if n := g.requests; n%wildEvery == 0 || n <= firstWild*len(wilds()) && n%firstWild == 0 {
		r.wild(n)
	}
	r.tell()
	// The traffic rises and falls by a sixth. Chance moves a request, and not those behind it.
	wave := 1.0
	if !g.flat {
		wave += math.Sin(2*math.Pi*g.plan/float64(g.o.Wave)) / 6
	}
	pause := float64(len(g.pending)-before) / g.o.Rate / wave * float64(time.Second)
	g.next = max(g.next+1, g.o.From.UnixNano()+int64(g.plan+pause*(0.5+g.rand.Float64())))
	g.plan += pause
}

// wildEvery is how many requests there are for a wild record. At the beginning there is one for
// firstWild, until all kinds have been.
const wildEvery, firstWild = 97, 10

// queue has records by their times.
type queue []*Record

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].Time < q[j].Time }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *queue) Push(r any) { *q = append(*q, r.(*Record)) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	r := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return r
}
