package reads

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"blobtail/internal/dev/bench/rig"
	"blobtail/internal/dev/compare/canon"
)

// index has of a corpus the parts that answers need. Each record is hashed once.
type index struct {
	seed     maphash.Seed
	random   *rand.Rand
	from, to time.Time
	order    []string                // services; the first is that of the generator's answers
	known    map[string][2]time.Time // the generator's windows
	drawn    drawn

	all    map[string][]one // by service, in order of time
	errors map[string][]one // those of the levels error and critical
	levels map[cell]int     // numbers of records by level
	status map[cell]int     // and by status
	found  map[finding][]one
	plants []planted
}

// planted is a needle in the message of a record.
type planted struct {
	record         one
	needle, before string // before is what the message has before it
}

// cell is a value in a minute of a service.
type cell struct {
	service, value string
	minute         int64 // since 1970
}

// finding is a text that was found in records, of a service if the question is of one.
type finding struct{ service, text string }

// record is a record of the corpus, as its file has it.
type record struct{ line, level, service, status, request, msg []byte }

// scan calls f for each step-th record of a corpus, which is valid until f returns.
func scan(file string, step int, f func(*record) error) error {
	n := -1
	for line, err := range rig.Lines(file) {
		if err != nil {
			return err
		}
		if n++; n%step != 0 {
			continue
		}
		r := record{line: line}
		err = canon.Members(r.line, func(name, value []byte) error {
			switch string(name) {
			case "level":
				r.level = value
			case "service":
				r.service = value
			case "status":
				r.status = value
			case "request_id":
				r.request = value
			case "msg":
				r.msg = value
			}
			return nil
		})
		if err == nil {
			err = f(&r)
		}
		if err != nil {
			return fmt.Errorf("%w: %.300s", err, r.line)
		}
	}
	return nil
}

// indexOf draws texts, and reads a corpus.
func indexOf(c *rig.Corpus) (*index, error) {
	x := &index{seed: maphash.MakeSeed(), random: rand.New(rand.NewPCG(c.Seed, 0)), from: c.From, to: c.To, known: map[string][2]time.Time{},
		all: map[string][]one{}, errors: map[string][]one{}, levels: map[cell]int{}, status: map[cell]int{}, found: map[finding][]one{}}
	x.order = append(x.order, c.LastService)
	for _, s := range c.Services {
		if s != c.LastService {
			x.order = append(x.order, s)
		}
	}
	for _, w := range c.Windows {
		from, err1 := time.Parse(time.RFC3339Nano, w.From)
		to, err2 := time.Parse(time.RFC3339Nano, w.To)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		x.known[w.Name] = [2]time.Time{from, to}
	}
	d, err := draw(c, x.random)
	if err != nil {
		return nil, err
	}
	x.drawn = *d
	if err := x.read(c.File); err != nil {
		return nil, err
	}
	for _, of := range []map[string][]one{x.all, x.errors} {
		for _, records := range of {
			slices.SortFunc(records, byTime)
		}
	}
	return x, nil
}

func byTime(a, b one) int { return cmp.Compare(a.at, b.at) }

// read reads the whole corpus. A token, an id or a word is in a record if it stands between borders
// of words: tokens and ids are never parts of longer ones, and such words were not drawn.
func (x *index) read(file string) error {
	anywhere, inService := map[string]string{}, map[string]string{}
	for _, texts := range [][]string{x.drawn.requests, x.drawn.needles, x.drawn.tokens} {
		for _, text := range texts {
			anywhere[text] = text
		}
	}
	needles := map[string]bool{}
	for _, text := range x.drawn.needles {
		needles[text] = true
	}
	for _, text := range x.drawn.words {
		inService[text] = text
	}
	literals := map[string][]expression{}
	for _, e := range x.drawn.expressions {
		literals[e.literal] = append(literals[e.literal], e)
	}
	names := map[string]string{} // so that each is one string
	name := func(b []byte) string {
		if _, ok := names[string(b)]; !ok {
			names[string(b)] = string(b)
		}
		return names[string(b)]
	}
	form := canon.Corpus(x.seed)
	return scan(file, 1, func(r *record) error {
		at, sum, err := form.Sum(r.line)
		if err != nil {
			return err
		}
		it := one{at, sum}
		service, level, minute := name(r.service), name(r.level), at/int64(time.Minute)
		x.all[service] = append(x.all[service], it)
		if level == "error" || level == "critical" {
			x.errors[service] = append(x.errors[service], it)
		}
		x.levels[cell{service, level, minute}]++
		x.status[cell{service, name(r.status), minute}]++
		if text, ok := anywhere[string(r.request)]; ok {
			x.add(finding{text: text}, it)
		}
		eachRun(r.msg, func(run []byte) {
			if text, ok := anywhere[string(run)]; ok {
				x.add(finding{text: text}, it)
				if needles[text] {
					before, _, _ := strings.Cut(string(r.msg), text)
					x.plants = append(x.plants, planted{it, text, before})
				}
			} else if text, ok := inService[string(run)]; ok {
				x.add(finding{service, text}, it)
			}
		})
		for literal, of := range literals {
			if !bytes.Contains(r.msg, []byte(literal)) {
				continue
			}
			for _, e := range of {
				if e.Match(r.msg) {
					x.add(finding{service, e.String()}, it)
				}
			}
		}
		return nil
	})
}

// add adds a record to those with a text, once.
func (x *index) add(f finding, it one) {
	if have := x.found[f]; len(have) == 0 || have[len(have)-1] != it {
		x.found[f] = append(have, it)
	}
}

// within returns those of the records that a time has.
func within(records []one, s span) []one {
	find := func(t time.Time) int {
		i, _ := slices.BinarySearchFunc(records, t.UnixNano(), func(o one, at int64) int { return cmp.Compare(o.at, at) })
		return i
	}
	return records[find(s.from):find(s.to)]
}

// newest returns the newest records of services before a moment; none, if it does not know which
// ones they are because two have the same time.
func (x *index) newest(before time.Time, services ...string) []one {
	var all []one
	for _, service := range services {
		records := within(x.all[service], span{from: x.from, to: before})
		all = append(all, records[max(0, len(records)-newestRecords-1):]...)
	}
	slices.SortFunc(all, byTime)
	if n := len(all) - newestRecords; n > 0 {
		if all[n].at == all[n-1].at {
			return nil
		}
		all = all[n:]
	}
	return all
}

// questionsOf makes the questions to a corpus, with their right answers.
func questionsOf(c *rig.Corpus) ([]*question, error) {
	x, err := indexOf(c)
	if err != nil {
		return nil, err
	}
	all := ask(x)
	for _, q := range all {
		for _, v := range q.variants {
			v.want.seed = x.seed
		}
		if q.ours.counts != nil {
			continue
		}
		if q.variants = slices.DeleteFunc(q.variants, func(v *variant) bool { return len(v.want.records) == 0 }); len(q.variants) == 0 {
			return nil, fmt.Errorf("%s: the corpus has no record that answers it; take a larger one", q.title)
		}
	}
	return all, agree(all, x, c)
}
