package corpus

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/record"
)

// ShopOptions describe the logs of a shop.
type ShopOptions struct {
	Seed     uint64
	From     time.Time     // of the first record
	Rate     float64       // records a second
	Incident time.Time     // when the deploy of payments begins
	Wave     time.Duration // from one peak of the traffic to the next; 0: 40 min
}

// Shop tells requests of users. One goes through several of the five services, and its records have
// the same request_id and trace_id. At the time of the incident a deploy of payments begins. The
// new version writes a message that is new, and the services before it fail in consequence. A few
// records are wild: of several lines, in colours, of 20 KB, with markup.
type Shop struct {
	o        ShopOptions
	dice     dice
	stories  []story
	wilds    []story
	releases map[string][]release

	pending  []Record // records later than the last one of Next
	next     int64    // when the next request begins
	plan     float64  // the same without chance, in ns from From
	flat     bool     // no waves
	requests int
	incident Incident
}

// ShopServices are the services of a shop, by name.
func ShopServices() []string { return []string{"gateway", "orders", "payments", "stock", "web"} }

// hosts is the number of hosts of each service, and rollout the time between the restarts of two.
const hosts, rollout = 3, 20 * time.Second

// The incident is a deploy of a service, from one version to another.
const faulty, oldVersion, newVersion = "payments", "2.13.4", "2.14.0"

// NewShop returns a shop.
func NewShop(o ShopOptions) *Shop {
	if o.Wave <= 0 {
		o.Wave = 40 * time.Minute
	}
	s := &Shop{o: o, dice: newDice(o.Seed), next: o.From.UnixNano(), stories: parseStories(), incident: Incident{
		Service: faulty, Message: newMessage, Before: warning, Deploy: o.Incident.UTC(), OldVersion: oldVersion, NewVersion: newVersion,
	}}
	for _, st := range s.stories {
		if strings.HasPrefix(st.name, "wild") {
			s.wilds = append(s.wilds, st)
		}
	}
	s.deploy()
	return s
}

// Next returns the next record in order of time. Its Line stays valid.
func (s *Shop) Next() Record {
	for len(s.pending) == 0 || s.pending[0].Time >= s.next {
		s.begin()
	}
	r := s.pending[0]
	s.pending = s.pending[1:]
	s.incident.note(r)
	return r
}

// Due returns the time of the next record.
func (s *Shop) Due() time.Time {
	for len(s.pending) == 0 {
		s.begin()
	}
	return time.Unix(0, min(s.pending[0].Time, s.next))
}

// SetRate changes how many records come a second, from now on without waves. Requests go on at a
// time, or where they are if that is later.
func (s *Shop) SetRate(rate float64, from time.Time) {
	s.o.Rate, s.next, s.flat = rate, max(s.next, from.UnixNano()), true
	s.plan = float64(s.next - s.o.From.UnixNano())
}

// Incident returns the facts of the records that Next has returned.
func (s *Shop) Incident() Incident { return s.incident }

// wildEvery is how many requests there are for a wild record. At the beginning there is one for
// firstWild, until all kinds have been.
const wildEvery, firstWild = 97, 10

// begin tells the next request. One of 16 is a check or a job of a service instead.
func (s *Shop) begin() {
	before := len(s.pending)
	r := s.system(s.next)
	r.id, r.trace = "req-"+string(s.dice.hex(nil, 12)), string(s.dice.hex(nil, 32))
	s.requests++
	if n := s.requests; n <= firstWild*len(s.wilds) && n%firstWild == 0 {
		r.tell(s.wilds[n/firstWild-1])
	} else if n%wildEvery == 0 {
		r.tell(s.wilds[n/wildEvery%len(s.wilds)])
	}
	r.tell(s.draw(r))
	// The traffic rises and falls by a sixth. Chance moves a request, and not those behind it.
	wave := 1.0
	if !s.flat {
		wave += math.Sin(2*math.Pi*s.plan/float64(s.o.Wave)) / 6
	}
	pause := float64(len(s.pending)-before) / s.o.Rate / wave * float64(time.Second)
	s.next = max(s.next+1, s.o.From.UnixNano()+int64(s.plan+pause*(0.5+s.dice.Float64())))
	s.plan += pause
}

// draw draws the story of a request. Its host may have the new version.
func (s *Shop) draw(r *request) story {
	phase := 0
	if s.version(faulty, r.host, r.at) == newVersion {
		phase = 1
	}
	n := s.dice.IntN(1000)
	return s.stories[slices.IndexFunc(s.stories, func(st story) bool { n -= st.weights[phase]; return n < 0 })]
}

// release is a version with the time of its start on the first host, in unix ns.
type release struct {
	since   int64
	version string
}

// deploy tells of the restarts: one that changes nothing, two of new versions, and that of the
// incident.
func (s *Shop) deploy() {
	s.releases = map[string][]release{
		"gateway": {{0, "1.9.2"}}, "web": {{0, "5.21.0"}}, "orders": {{0, "3.7.1"}}, faulty: {{0, oldVersion}}, "stock": {{0, "4.2.8"}},
	}
	for _, d := range []struct {
		service, version string
		part             float64 // of the time from the first record to the incident
	}{{faulty, oldVersion, 0.1}, {"web", "5.21.1", 0.4}, {"orders", "3.7.2", 0.7}, {faulty, newVersion, 1}} {
		first := s.o.From.Add(time.Duration(float64(s.o.Incident.Sub(s.o.From)) * d.part)).UnixNano()
		s.releases[d.service] = append(s.releases[d.service], release{first, d.version})
		for host := 1; host <= hosts; host++ {
			r := s.system(first + int64(host-1)*int64(rollout) - int64(3*time.Second))
			r.host = host
			r.log(parseStep(d.service+" info 0-0 stopping on SIGTERM, requests in flight: $items", false))
			r.log(parseStep(d.service+" info 3000-3000 started version "+d.version+", revision $hex", false))
		}
	}
}

// version is that of a service on a host at a time.
func (s *Shop) version(service string, host int, at int64) (version string) {
	for _, r := range s.releases[service] {
		if at >= r.since+int64(host-1)*int64(rollout) || version == "" {
			version = r.version
		}
	}
	return version
}

// request is a request of a user on its way, or the work of a service that no user asked for.
type request struct {
	s         *Shop
	begun, at int64  // unix ns: of its beginning, and of its last record
	id        string // none of a job
	trace     string
	host      int
	number    int
	known     map[string]string // its values by their names
	records   int

	// of the record that is written
	step   *step
	waited time.Duration
	msg    []byte
}

func (s *Shop) system(at int64) *request {
	return &request{s: s, begun: at, at: at, number: s.requests, host: 1 + s.dice.IntN(hosts), known: map[string]string{}}
}

// log writes the record of a step.
func (r *request) log(st *step) {
	r.step, r.waited = st, time.Duration(st.low+r.s.dice.IntN(st.high-st.low+1))*time.Millisecond
	r.at += int64(r.waited) + 1000 + r.s.dice.Int64N(900_000)
	r.msg = st.msg.fill(nil, r.value)
	line := st.line.fill(make([]byte, 0, 384+len(r.msg)), r.value)
	r.records++
	at, _ := slices.BinarySearchFunc(r.s.pending, r.at, func(p Record, at int64) int { return cmp.Compare(p.Time, at) })
	made := Record{Time: r.at, Service: st.service, Level: st.level, ID: r.id, Line: line, Text: st.text, of: r}
	r.s.pending = slices.Insert(r.s.pending, at, made)
}

// tell writes the records of a story.
func (r *request) tell(of story) {
	if strings.HasPrefix(of.name, "job") {
		r.id = ""
	}
	for _, st := range of.steps {
		if r.s.dice.IntN(st.oneIn) == 0 {
			r.log(st)
		}
	}
}

// value appends a value. But for those of a record, a request has one of each name.
func (r *request) value(b []byte, name string) []byte {
	switch name {
	case "time":
		return record.AppendTime(b, r.at)
	case "msg":
		if r.step.text {
			return append(b, r.msg...)
		}
		return record.AppendEscaped(b, r.msg)
	case "host":
		return strconv.AppendInt(b, int64(r.host), 10)
	case "version":
		return append(b, r.s.version(r.step.service, r.host, r.at)...)
	case "request":
		if r.id == "" {
			return b
		}
		return fmt.Appendf(b, `,"request_id":%q,"trace_id":%q`, r.id, r.trace)
	case "wait":
		return strconv.AppendInt(b, r.waited.Milliseconds(), 10)
	case "took":
		return strconv.AppendInt(b, (r.at-r.begun)/1e6, 10)
	case "order":
		return strconv.AppendInt(b, int64(48_000+r.number), 10)
	}
	if _, ok := r.known[name]; !ok {
		r.known[name] = string(r.s.dice.append(nil, name))
	}
	return append(b, r.known[name]...)
}

// Incident has the facts of the incident in the records so far.
type Incident struct {
	Service    string    `json:"service"`
	Message    string    `json:"message"` // the beginning of the new message
	Before     string    `json:"before"`  // the beginning of the warning just before it in the same request
	Deploy     time.Time `json:"deploy"`
	OldVersion string    `json:"old_version"`
	NewVersion string    `json:"new_version"`

	Errors   int    `json:"errors"`   // records with the new message
	Warnings int    `json:"warnings"` // records with the warning
	Request  string `json:"request"`  // id of the first request that failed so
	Records  int    `json:"records"`  // of that request in all services, also the ones to come
}

// note counts a record.
func (i *Incident) note(r Record) {
	if bytes.Contains(r.Line, []byte(`"`+warning)) {
		i.Warnings++
	}
	if bytes.Contains(r.Line, []byte(`"`+newMessage)) {
		if i.Errors++; i.Request == "" {
			i.Request, i.Records = r.ID, r.of.records
		}
	}
}
