package patterns_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"blobtail/reading/patterns"
)

// Miners of slices of time make the templates of one miner. With more messages than are held each record
// is counted all the same, and the services of a template have the numbers of all records.
func TestJoined(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	folded, left := 0, 0
	for round := range 40 {
		o, services := patterns.Options{}, 5
		if round%2 == 1 {
			o.Messages, services = 5+rng.IntN(60), 160
		}
		whole, joined := patterns.New(o), patterns.New(o)
		of := map[string]map[string]int64{} // by the first word, by service
		n, spread := 0, 1+rng.IntN(100_000)
		for range 1 + rng.IntN(8) {
			window := rng.IntN(2)
			piece := patterns.New(o)
			for range rng.IntN(400) {
				word := string(rune('a' + rng.IntN(3)))
				msg := fmt.Sprintf("%s is %d of %s", word, rng.IntN(99), []string{"x", "y", "z", "u", "v", "w"}[rng.IntN(6)])
				if rng.IntN(3) == 0 {
					msg = word + " " + letters(rng) + " of some words that are long and alike"
				}
				n++
				service := fmt.Sprint("s", rng.IntN(services))
				e := entry(n*spread, msg)
				e.Line = []byte(strings.Replace(string(e.Line), `"service":"web"`, `"service":"`+service+`"`, 1))
				if of[word] == nil {
					of[word] = map[string]int64{}
				}
				of[word][service]++
				if err := errors.Join(whole.Add(window, &e), piece.Add(window, &e)); err != nil {
					t.Fatal(err)
				}
			}
			if err := joined.Join(sent(t, piece)); err != nil {
				t.Fatal(err)
			}
		}
		got, want := joined.Patterns(), whole.Patterns()
		if err := errors.Join(got.Describe(got.Patterns), want.Describe(want.Patterns)); err != nil {
			t.Fatal(err)
		}
		a, err := json.Marshal(got)
		b, err2 := json.Marshal(want)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if got.Folded {
			folded++
		} else if services < 100 && string(a) != string(b) {
			t.Fatalf("seed %d: %s\nand not\n%s", seed, a, b)
		}
		all := got.Others[0] + got.Others[1]
		for _, p := range got.Patterns {
			all += p.In[0].Count + p.In[1].Count
			for w := range p.In {
				sum := int64(0)
				for _, s := range p.In[w].Services {
					sum += s.Count
					if s.Count > of[p.Template[:1]][s.Name] {
						t.Fatalf("seed %d: %d records of %s in %s", seed, s.Count, s.Name, p.Template)
					}
				}
				if sum < p.In[w].Count {
					left++
				}
				if sum > p.In[w].Count || len(p.In[w].Services) > 100 {
					t.Fatalf("seed %d: %d records of services, and %d of %s", seed, sum, p.In[w].Count, p.Template)
				}
			}
		}
		if all != int64(n) || got.Records != want.Records || got.By != want.By {
			t.Fatalf("seed %d: %d records of %d, %v of %v, by %v and not %v", seed, all, n, got.Records, want.Records, got.By, want.By)
		}
	}
	if folded == 0 || left == 0 {
		t.Errorf("no bound was reached: %d %d", folded, left)
	}
}

// A service that is listed has all of its records, whichever slice has left others out.
func TestJoinedServices(t *testing.T) {
	joined := patterns.New(patterns.Options{})
	add := func(from, to int) {
		piece := patterns.New(patterns.Options{})
		for i := from; i < to; i++ {
			e := entry(i, "hello")
			e.Line = []byte(strings.Replace(string(e.Line), `"service":"web"`, fmt.Sprintf(`"service":"s%d"`, i), 1))
			if err := piece.Add(0, &e); err != nil {
				t.Fatal(err)
			}
		}
		if err := joined.Join(piece); err != nil {
			t.Fatal(err)
		}
	}
	add(0, 60)
	add(40, 190) // which leaves out those from 140 on
	add(0, 10)
	add(100, 110)
	in := &joined.Patterns().Patterns[0].In[0]
	text := fmt.Sprint(in.Count, len(in.Services))
	for _, s := range in.Services {
		want := int64(1)
		var i int
		if _, err := fmt.Sscanf(s.Name, "s%d", &i); err != nil || i < 40 || i >= 140 {
			t.Errorf("%s is not known to all", s.Name)
		} else if i < 60 || i >= 100 && i < 110 {
			want = 2
		}
		if s.Count != want {
			t.Errorf("%s has %d records, not %d", s.Name, s.Count, want)
		}
	}
	if text != "230 60" { // 40 to 99, the first hundred that were not left out
		t.Error(text)
	}
}

// sent is a state as another process gets it.
func sent[T any](t *testing.T, state *T) *T {
	t.Helper()
	var bytes bytes.Buffer
	again := new(T)
	if err := errors.Join(gob.NewEncoder(&bytes).Encode(state), gob.NewDecoder(&bytes).Decode(again)); err != nil {
		t.Fatal(err)
	}
	return again
}
