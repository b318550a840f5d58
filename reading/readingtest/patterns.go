package readingtest

import (
	"fmt"
	"testing"
	"time"

	"blobtail/reading"
	"blobtail/record"
)

// The patterns of records are those of all, or of the newest, with the ones that another window does
// not have.
func testPatterns(t *testing.T, open Open) {
	h := full(t)
	h.Send(0, Line{Time: noon.Add(20*time.Minute + time.Second), Service: "web", Level: "error", Msg: "disk 7 is full"}, Line{Time: noon.Add(5*time.Minute + time.Second), Service: "web", Msg: "hello"})
	s := open(t, h)
	after := func(a *reading.Ask) {
		a.Range = reading.Range{From: noon.Add(15 * time.Minute).UnixNano(), To: noon.Add(30 * time.Minute).UnixNano()}
	}
	before := &reading.Range{From: reading.Oldest, To: noon.Add(15 * time.Minute).UnixNano()}
	for _, c := range []struct {
		name string
		ask  reading.Ask
		o    reading.PatternOptions
		want string
	}{
		{"all", of("*"), reading.PatternOptions{},
			`30 m<*> took <*> ms [{api 15} {web 15}] in 6 (m29 took 290 ms); 1 disk <*> is full [{web 1}] in 1 (disk 7 is full); 1 hello [{web 1}] in 1 (hello); 1 late [{web 1}] in 1 (late); 0 others; 33 of 33, newest false; 33 records`},
		{"limits and places, which do not count", with(of("*"), func(a *reading.Ask) {
			a.Limit, a.Reverse, a.Edges.Before = 1, true, &record.Key{Time: noon.Add(10 * time.Minute).UnixNano()}
		}), reading.PatternOptions{},
			`30 m<*> took <*> ms [{api 15} {web 15}] in 6 (m29 took 290 ms); 1 disk <*> is full [{web 1}] in 1 (disk 7 is full); 1 hello [{web 1}] in 1 (hello); 1 late [{web 1}] in 1 (late); 0 others; 33 of 33, newest false; 33 records`},
		{"the newest", of("*"), reading.PatternOptions{Sample: 2, Top: 1},
			`1 late [{web 1}] in 1 (late); 1 others; 2 of 33, newest true; 2 records, more`},
		{"a filter", with(of("web", "nosuch"), func(a *reading.Ask) { a.Texts = []string{"full"} }), reading.PatternOptions{},
			`1 disk <*> is full [{web 1}] in 1 (disk 7 is full); 0 others; 1 of 1, newest false; 1 records, no nosuch`},
		{"two windows", with(of("*"), after), reading.PatternOptions{Against: before, Top: 1},
			`15 m<*> took <*> ms [{api 8} {web 7}] in 15 (m29 took 290 ms); 1 disk <*> is full [{web 1}] in 1 (disk 7 is full); 0 others; 16 of 16, newest false; against 16 of 16, lacks false: new disk <*> is full, gone hello 1, more [], less []; 16 records`},
		{"an unknown name", of("nosuch"), reading.PatternOptions{}, "no service nosuch"},
	} {
		p, out, err := s.Patterns(t.Context(), c.ask, c.o)
		if err != nil {
			check(t, "patterns of "+c.name, told(out, err), c.want)
			continue
		}
		text, names, n := "", map[string]string{}, p.Others
		for i := range p.Patterns {
			of := &p.Patterns[i]
			names[of.ID], n = of.Template, n+of.Count
			text += fmt.Sprintf("%d %s %v in %d (%s); ", of.Count, of.Template, of.Services, len(of.Buckets), of.Example)
			if c.o.Sample > 0 {
				continue
			}
			a := c.ask
			a.Where, a.Limit, a.Edges.Before = of.Where, 0, nil
			if out, err := s.Count(t.Context(), a); err != nil || out.Records != of.Count {
				t.Errorf("patterns of %s: %s is true for %s, not for %d", c.name, of.Where, told(out, err), of.Count)
			}
		}
		if n != p.Basis.Records {
			t.Errorf("patterns of %s: %d records in all of %d", c.name, n, p.Basis.Records)
		}
		text += fmt.Sprintf("%d others; %d of %d, newest %v; ", p.Others, p.Basis.Records, p.Basis.Of, p.Basis.Newest)
		if c := p.Against; c != nil {
			text += fmt.Sprintf("against %d of %d, lacks %v: new", c.Basis.Records, c.Basis.Of, c.Lacks)
			for _, id := range c.New {
				text += " " + names[id]
			}
			for _, of := range c.Gone {
				text += fmt.Sprintf(", gone %s %d", of.Template, of.Count)
			}
			text += fmt.Sprintf(", more %v, less %v; ", c.More, c.Less)
		}
		check(t, "patterns of "+c.name, text+told(out, nil), c.want)
	}
}
