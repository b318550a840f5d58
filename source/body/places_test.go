package body

import (
	"blobtail/record/meaning"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// reading gathers a body and returns the place of each accepted line.
func reading(decode decoder, body string) (*Gatherer, map[string]uint32) {
	g := NewGatherer()
	g.After = func(int) bool { return true }
	g.Arrive(Arrival{Service: "web", Time: 1})
	decode([]byte(body), 0, g)
	places := map[string]uint32{}
	for i := range g.Req.Lines {
		l := &g.Req.Lines[i]
		places[string(g.Req.Data[l.Off:l.Off+l.Len])] = g.Req.Index(uint32(i))
	}
	return g, places
}

// A record has the same place in a body in either reading, and for any subset of
// accepted records. The request has the same identity.
func TestPlaces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	n := 0
	object := func() string {
		n++
		return fmt.Sprintf(`{"time":%d.5,"n":%d}`, 1+r.IntN(1000), n)
	}
	pieces := []func() string{
		object, object, object,
		func() string { return object() + object() },
		func() string { return object() + " " + object() + object() + " x" },
		func() string { return object() + " x " + object() },
		func() string { return `{"broken}` },
		func() string { return `{"broken"}` + object() },
		func() string { return object() + `{"a":1,}` },
		func() string { return `x` },
		func() string { return `}` },
		func() string { return `[` + object() + `,` + object() + `]` },
		func() string { return `{"kind":"EventList","items":[` + object() + `,` + object() + `,12]}` },
		func() string { return `{"logs":["x",` + object() + `,{"broken]}` },
		func() string { return `{"logs":["x",` + object() + `]}` + object() },
		func() string { return `{"logs":[` + object() + `]} x` },
		func() string { return `{"owner":"o","logEvents":[{},` + object() + `]}` },
		func() string { return `{"logs":[` },
		func() string { return `12` },
		func() string { return `` },
		func() string { return "  \t\r" },
	}
	for range 2000 {
		var lines []string
		for range 1 + r.IntN(8) {
			lines = append(lines, pieces[r.IntN(len(pieces))]())
		}
		body := object() + "\n" + strings.Join(lines, "\n")
		strict, a := reading(decodeLines, body)
		loose, b := reading(decodeJSON, body)
		mixed, c := reading(decodeMixed, body)
		for line, place := range a {
			if c[line] != place {
				t.Fatalf("%q: %s has place %d in lines, %d in mixed ones", body, line, place, c[line])
			}
		}
		if strict.Places != mixed.Places {
			t.Fatalf("%q: %d places in lines, %d in mixed ones", body, strict.Places, mixed.Places)
		}
		for line, place := range a {
			if b[line] != place {
				t.Fatalf("%q: %s has place %d in lines, %d in objects", body, line, place, b[line])
			}
		}
		if strict.Places != loose.Places || strict.Found != loose.Found || strict.EarliestOwn != loose.EarliestOwn || strict.AnyOwn != loose.AnyOwn {
			t.Fatalf("%q: %+v, %+v", body, strict, loose)
		}
		for what, g := range map[string]*Gatherer{"lines": strict, "objects": loose} {
			if err := g.AddRejected(nil); err != nil {
				t.Fatal(err)
			}
			once := map[uint32]bool{}
			for i := range g.Req.Lines {
				if place := g.Req.Index(uint32(i)); once[place] || int(place) >= g.Places {
					t.Fatalf("%q: %s: place %d of %d twice or beyond", body, what, place, g.Places)
				} else {
					once[place] = true
				}
			}
		}
	}
}

// A record that is refused for its time keeps its place and counts as found.
func TestPlacesOfWhatIsTooFarAhead(t *testing.T) {
	g := NewGatherer()
	g.After = func(int) bool { return true }
	g.Arrive(Arrival{Service: "web", Time: 1})
	for _, ns := range []int64{86401e9, 5e9} {
		g.Begin(meaning.Head{Time: ns})
		g.Record(nil, 1, 0)
	}
	if g.Accepted != 1 || g.Req.Index(0) != 1 || g.Places != 2 || g.Found != 2 || g.EarliestOwn != 5_000_000_000 {
		t.Errorf("%+v", g)
	}
}
