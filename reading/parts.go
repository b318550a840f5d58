package reading

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/units"
	"blobtail/internal/where"
	"blobtail/reading/blobs"
	"blobtail/reading/unflushed"
	"blobtail/record"
)

// Sharing has parts of a question read by other processes too (package fan).
type Sharing interface {
	// Size is how many bytes of stored blobs make a part, about.
	Size() int64
	// Workers is how many others there are now.
	Workers(ctx context.Context) int
	// Share has the parts of a question read and joins their answers. It passes the lines of records to
	// emit in their order. elsewhere says that others have read some. An error ends the whole read, and
	// the summary covers the part before it.
	Share(ctx context.Context, d *Division, emit func(lines []byte) error) (joined blobs.Summary, elsewhere bool, err error)
}

// Answer is that of a part of a question.
type Answer struct {
	blobs.Summary
	Notes []string // that of a part has what notes are made of
	Part  *Part    // to a joint question
}

// Division is a question that is divided by time alone.
type Division struct {
	Parts []blobs.Part // in the order of the answer
	Joint *Joint       // nil: lines are wanted
	// Reverse says that the newest lines come first.
	Reverse bool
	// Limit is how many lines are wanted, from the begin of the answer; 0: all. Fetched are the stored bytes
	// that were read before.
	Limit   int
	Fetched int64

	marked  bool // the lines have ids behind them
	store   *Store
	ask     *Ask
	plan    *blobs.Plan
	others  Ask // as others are asked
	decoded int64
	all     *Part // the joint answer
}

// mostAsked is how long the text of a question may be that others are asked.
const mostAsked = 32 << 10

// divide divides a question that reads much; nil: this process answers it alone, and alone says why. So
// it does if the plan is small, or of one hour of one service; if a filter without a text form counts; and
// if the question is itself a part. Parts at its edges are read here.
func (s *Store) divide(a *Ask, plan *blobs.Plan, j *Joint) (d *Division, alone string) {
	with, numbers := s.r.o.Sharing, j != nil && j.Numbers != nil
	switch {
	case with == nil:
		return nil, "there are no workers"
	case a.Here.Part != nil, a.Live == Only,
		numbers && j.Numbers.Text == "", !numbers && a.pipe != nil && a.LogQL == "":
		return nil, "workers are not asked such questions"
	case plan.Bytes() < 2*with.Size():
		return nil, fmt.Sprintf("less than %s of blobs", units.Size(2*with.Size()))
	case plan.Hours() < 2:
		return nil, "one hour of one service"
	}
	d = &Division{Joint: j, store: s, ask: a, plan: plan, others: *a, Reverse: a.Limit > 0 || a.First == 0 && a.Reverse}
	d.Parts = plan.Parts(with.Size(), a.Limit+a.First > 0)
	for i := range d.Parts {
		p := &d.Parts[i]
		p.Held = p.Held || a.Edges.Touch(p.Range)
	}
	d.others.Fields, d.others.Live, d.others.Here, d.others.Edges, d.others.Reverse = nil, Auto, Here{}, blobs.Edges{}, d.Reverse
	if s.mayRead(a.Services) != "" { // the worker has another token
		d.others.Services = plan.Services()
	}
	if numbers { // the query has the filter
		d.others = Ask{Services: []string{"*"}}
	}
	text, err := json.Marshal(j)
	switch {
	case (a.LogQL != "" || numbers) && s.mayRead(a.Services) != "", err != nil, len(d.others.Values().Encode())+3*len(text) > mostAsked:
		return nil, "workers are not asked such questions"
	case !slices.ContainsFunc(d.Parts, func(p blobs.Part) bool { return !p.Held }):
		return nil, "all hours have records that are in no blob yet"
	}
	if d.Reverse {
		slices.Reverse(d.Parts)
	}
	return d, ""
}

// lines is a reader whose reads of lines are shared, once one process would read much.
func (s *Store) lines(a *Ask, reader *blobs.Reader) *blobs.Reader {
	if s.r.o.Sharing == nil {
		return reader
	}
	return reader.Sharing(func(ctx context.Context, p *blobs.Plan, limit int, marked bool, before *blobs.Summary, emit func([]byte) error) (
		sum blobs.Summary, elsewhere, ok bool, err error) {
		d, _ := s.divide(a, p, nil)
		if d == nil {
			return sum, false, false, nil
		}
		d.Limit, d.marked, d.Fetched, d.decoded = limit, marked, before.Fetched, before.Decoded
		sum, elsewhere, err = s.r.o.Sharing.Share(ctx, d, emit)
		return sum, elsewhere, true, err
	})
}

// Here reads a range in this process, up to a limit if there is one, and passes lines to emit. The asker
// makes fields of lines, of those of workers too.
func (d *Division) Here(ctx context.Context, rng Range, limit int, emit func(lines []byte) error) (ans Answer, err error) {
	switch part := d.plan.Within(rng, limit); {
	case d.Joint != nil:
		if ans.Part, err = d.Joint.part(nil); err == nil { // its bounds are its own
			ans.Summary, err = d.Joint.read(ctx, d.ask, part, ans.Part)
		}
	case d.marked:
		ans.Summary, err = part.Marked(ctx, emit)
	default:
		ans.Summary, err = part.Read(ctx, emit)
	}
	return ans, err
}

// Hear adds what another process has found to what the notes are made of.
func (d *Division) Hear(notes []string) {
	for _, note := range notes {
		f := findings{}
		if json.Unmarshal([]byte(note), &f) != nil {
			continue
		}
		if f.Where != nil && d.ask.where != nil {
			d.ask.where.Join(f.Where)
		}
		if p := d.ask.parser; p != nil {
			p.read.Add(f.Read)
			p.made.Add(f.Made)
			p.other.CompareAndSwap(nil, f.Other)
		}
	}
}

// Join adds the next answer to a part of a joint question, in order of time.
func (d *Division) Join(ctx context.Context, ans *Answer) error { return d.all.join(ctx, ans.Part) }

// Elsewhere is the question for another process about a range, up to a limit if there is one.
func (d *Division) Elsewhere(rng Range, limit int, store string) Ask {
	a := d.others
	if a.Range, a.Here.Part = rng, (&part{store, d.plan.Age(), d.marked}); a.Limit > 0 {
		a.Limit = limit
	} else {
		a.First = limit
	}
	return a
}

// Explain tells what the whole takes at most with some workers, by metadata alone.
func (d *Division) Explain(workers int) Explanation {
	x := d.plan.Foresee()
	x.Parts, x.Workers = len(d.Parts), workers
	return x
}

// StoreID is the id of the store; "": it has none.
func (d *Division) StoreID(ctx context.Context) (string, error) {
	return d.store.r.o.Logs.StoreID(ctx)
}

// TooLarge is the error of a read that has decoded so many bytes of lines, here and elsewhere; nil: it
// may.
func (d *Division) TooLarge(decoded int64) error { return d.plan.TooLarge(d.decoded + decoded) }

// part says that a question is a part by time of one that another process answers. That one asks the
// ingesters before, and tells which services do not exist.
type part struct {
	store string        // the id of the one that has to be read
	age   time.Duration // since the whole question was begun
	// marked says that lines are wanted with ids behind them.
	marked bool
}

// partVersion is that of parts. It changes with the meaning of a question, and of its answer.
const partVersion = "3"

// String is the text form.
func (p *part) String() string {
	return fmt.Sprintf("%s.%s.%d.%t", partVersion, p.store, p.age.Milliseconds(), p.marked)
}

func parsePart(text string) (*part, error) {
	words := append(strings.Split(text, "."), "", "", "", "")
	version, store, marked := words[0], words[1], words[3] == "true"
	ms, err := strconv.ParseInt(words[2], 10, 64)
	if version != partVersion || store == "" || err != nil || ms < 0 || ms > int64(24*time.Hour/time.Millisecond) {
		return nil, badParam("part", "part=%.60s is of another version of servers: this one knows version %s", text, partVersion)
	}
	return &part{store, time.Duration(ms) * time.Millisecond, marked}, nil
}

// begin prepares a question that is a part. It refuses one of another store, and one that the holder of
// the token may not read all of: what is hidden would be missing in the whole.
func (p *part) begin(ctx context.Context, s *Store, a *Ask, q *blobs.Query) error {
	id, err := s.r.o.Logs.StoreID(ctx)
	switch hidden := s.mayRead(q.Services); {
	case err != nil:
		return err
	case id != p.store:
		return badParam("part", "part: this server reads another store, %s", id)
	case hidden != "":
		return badParam("part", "part: the token may not read %s", hidden)
	}
	a.Live, a.Here.Sure = unflushed.Elsewhere, true
	q.Sure, q.Part, q.Aged = true, true, p.age
	return nil
}

// mayRead returns one of some names and globs of which the holder of the token may not read all.
func (s *Store) mayRead(services []string) string {
	for _, name := range services {
		if record.ValidStored(name) && !s.May(name) || !record.ValidStored(name) && !s.mayAll(name) {
			return name
		}
	}
	return ""
}

// findings are what notes are made of, which tell of all parts. The note of a part has them.
type findings struct {
	Where      *where.Findings
	Read, Made int64 // messages
	Other      *string
}

func (a *Ask) found() []string {
	var f findings
	if a.where != nil {
		f.Where = a.where.Findings()
	}
	if p := a.parser; p != nil {
		f.Read, f.Made, f.Other = p.read.Load(), p.made.Load(), p.other.Load()
	}
	text, _ := json.Marshal(f)
	return []string{string(text)}
}
