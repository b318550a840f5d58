package blobs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/where"
	"blobtail/reading/blobs"
	"blobtail/reading/search"
)

// A rare term is a part of a search that few records match. A term that asks fields may read a block
// more, from which its notes about fields are.
type rareTerm struct {
	text   string
	fields bool
}

// Terms that are joined by OR, AND and NOT read no more blocks than they do alone, and find the records
// that the records of the terms make.
func TestRareTerms(t *testing.T) {
	b := newBuilder(t, 1500)
	var recs []rec
	rare := []struct{ msg, user, trace string }{
		{"the needleone was found", "ann", ""},
		{"the Needle two was found", "ann", "4bf92f3577b34da6a3ce929d0e0e4736"},
		{"request 0af7651916cd43dd8448eb211c80319c failed", "ann", "0af7651916cd43dd8448eb211c80319c"},
		{"the haystackfour is in needleone", "zebedee", ""},
		{"user:zebedee went", "ann", ""},
	}
	for i := range 600 {
		at := noon + int64(i)*1e9
		msg, user := "GET / was answered at length by "+strings.Repeat("nobody ", i%7), "ann"
		trace := fmt.Sprintf("%032x", uint64(i+1)*0x9E3779B97F4A7C15)
		if n := i / 100; i%100 == 50 && n < len(rare) {
			msg, user = rare[n].msg, rare[n].user
			if rare[n].trace != "" {
				trace = rare[n].trace
			}
		}
		fields := fmt.Sprintf(`,"n":%d,"user":%q,"trace":%q,"x-trace":%q}`, i, user, trace, trace)
		text := strings.Replace(line(at, "info", "web", msg), `,"n":1}`, fields, 1)
		recs = append(recs, rec{service: "web", time: at, origin: origin(1), index: uint32(i), line: text})
	}
	b.add(time.Hour, recs)
	ask := func(text string) (found []string, sum blobs.Summary) {
		t.Helper()
		q, err := search.Parse(text)
		if err != nil {
			t.Fatal(text, err)
		}
		p, err := q.Parts(false, nil)
		if err != nil {
			t.Fatal(text, err)
		}
		f := blobs.Filter{Levels: p.Levels, Texts: p.Texts, Without: p.Without, Exprs: p.Exprs}
		if p.Where != "" {
			if f.Where, err = where.Parse(nil, p.Where, false); err != nil {
				t.Fatal(text, err)
			}
		}
		r := blobs.New(b.store, blobs.Options{Workers: 1})
		return read(t, r, blobs.Query{Services: []string{"web"}, Range: blobs.Always(), Filter: f})
	}
	all, sum := ask("*")
	blocks := sum.BlocksRead
	terms := []rareTerm{
		{"needleone", false},
		{`"Needle two"`, false},
		{"/haystack(four|five)/", true}, // NOT of it alone is a condition over all fields, as the page has had it
		{"hay*four", false},
		{"4bf92f3577b34da6a3ce929d0e0e4736", false},
		{"0af7651916cd43dd8448eb211c80319c", false},
		{"trace:4bf92f3577b34da6a3ce929d0e0e4736", true},
		{"trace=0af7651916cd43dd8448eb211c80319c", true},
		{"x-trace=0af7651916cd43dd8448eb211c80319c", true},
		{"user:zebedee", true},
		{`user="zebedee"`, true},
		{"msg:needleone", true},
		{"absentword", false},
		{"(needleone haystackfour)", false},
		{"(needleone OR 4bf92f3577b34da6a3ce929d0e0e4736)", false},
	}
	for _, x := range terms {
		inX, sumX := ask(x.text)
		if sumX.BlocksRead > blocks/5 || len(inX) == 0 != (x.text == "absentword") {
			t.Errorf("%s: %d of %d blocks, %d records", x.text, sumX.BlocksRead, blocks, len(inX))
		}
		for _, y := range terms {
			inY, sumY := ask(y.text)
			either := func(line string) bool { return slices.Contains(inX, line) || slices.Contains(inY, line) }
			in := func(line string) (bool, bool) { return slices.Contains(inX, line), slices.Contains(inY, line) }
			note := int64(0)
			if x.fields || y.fields {
				note = 1
			}
			for _, c := range []struct {
				text string
				most int64
				want func(line string) bool
			}{
				{x.text + " OR " + y.text, sumX.BlocksRead + sumY.BlocksRead, either},
				{"NOT (NOT " + x.text + " AND NOT " + y.text + ")", sumX.BlocksRead + sumY.BlocksRead, either},
				{x.text + " AND " + y.text, min(sumX.BlocksRead, sumY.BlocksRead) + note, func(l string) bool {
					a, b := in(l)
					return a && b
				}},
				{x.text + " AND NOT " + y.text, sumX.BlocksRead + note, func(l string) bool { a, b := in(l); return a && !b }},
				{"(found OR " + x.text + ") " + y.text, sumY.BlocksRead + note, func(l string) bool {
					a, b := in(l)
					return (a || strings.Contains(l, "found")) && b
				}},
				{"(" + x.text + " nobody) OR (" + y.text + " -nobody)", sumX.BlocksRead + sumY.BlocksRead, func(l string) bool {
					a, b := in(l)
					return a && strings.Contains(l, "nobody") || b && !strings.Contains(l, "nobody")
				}},
				{"NOT " + x.text, blocks, func(l string) bool { a, _ := in(l); return !a }},
			} {
				got, sum := ask(c.text)
				var want []string
				for _, l := range all {
					if c.want(l) {
						want = append(want, l)
					}
				}
				if !slices.Equal(got, want) || sum.BlocksRead > c.most || !sum.Complete() {
					t.Errorf("%s: %d blocks, at most %d; %d records, want %d", c.text, sum.BlocksRead, c.most, len(got), len(want))
				}
			}
		}
	}
}

// An OR of many terms of several words rules out what each of them rules out.
func TestManyRareTerms(t *testing.T) {
	q, err := search.Parse(strings.Repeat("(one two three) OR ", 20) + "(four five)")
	if err != nil {
		t.Fatal(err)
	}
	p, err := q.Parts(false, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := where.Parse(nil, p.Where, false)
	if err != nil {
		t.Fatal(err)
	}
	if needs := e.Needs(); len(needs) != 1 || len(needs[0]) != 21 || len(needs[0][0].Words) != 3 {
		t.Errorf("%+v", needs)
	}
}
