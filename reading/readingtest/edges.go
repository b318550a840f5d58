package readingtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/reading"
	"blobtail/record"
)

// Pages of records begin next to a record, exact among many of one moment, in blobs and in none.
func testEdges(t *testing.T, open Open) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	h := New(t, 2)
	number := 0
	send := func(ingester, n int) {
		var lines []Line
		for range n {
			at := noon
			if rng.IntN(4) == 0 {
				at = noon.Add(time.Duration(rng.IntN(200)-100) * time.Minute)
			}
			lines = append(lines, Line{Time: at, Service: []string{"web", "api"}[rng.IntN(2)], Level: []string{"info", "error"}[rng.IntN(2)], Msg: fmt.Sprint("m", number)})
			number++
		}
		h.Send(ingester, lines...)
	}
	for range 5 {
		send(0, 300)
		send(1, 150)
		h.Flush()
	}
	send(0, 200)
	send(1, 100)
	s := open(t, h)
	for _, a := range []reading.Ask{of("*"), of("web"), with(of("*"), func(a *reading.Ask) { a.Levels = 1 << record.Error }), with(of("*"), func(a *reading.Ask) { a.Texts = []string{"m1"} })} {
		var all []string
		var keys []record.Key
		if _, err := h.Reader().For(nil).Entries(t.Context(), a, func(e *record.Entry) error {
			all, keys = append(all, firsts(e.Line)...), append(keys, e.Key())
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for range 6 {
			i, n := rng.IntN(len(all)), 1+rng.IntN(400)
			j := rng.IntN(len(all))
			before, after := keys[max(i, j)], keys[min(i, j)]
			older, newer := all[:max(i, j)], all[min(i, j)+1:]
			between := slices.Clone(all[min(min(i, j)+1, max(i, j)):max(i, j)])
			for name, c := range map[string]struct {
				change func(a *reading.Ask)
				want   []string
			}{
				"before":                {func(a *reading.Ask) { a.Edges.Before, a.Limit = &before, n }, older[max(0, len(older)-n):]},
				"before, newest first":  {func(a *reading.Ask) { a.Edges.Before, a.Limit, a.Reverse = &before, n, true }, reversed(older[max(0, len(older)-n):])},
				"after":                 {func(a *reading.Ask) { a.Edges.After, a.First = &after, n }, newer[:min(n, len(newer))]},
				"after, the newest":     {func(a *reading.Ask) { a.Edges.After, a.Limit = &after, n }, newer[max(0, len(newer)-n):]},
				"between":               {func(a *reading.Ask) { a.Edges.After, a.Edges.Before = &after, &before }, between},
				"between, newest first": {func(a *reading.Ask) { a.Edges.After, a.Edges.Before, a.Reverse = &after, &before, true }, reversed(between)},
			} {
				got := read(t, s, with(a, c.change))
				if got, _, _ = strings.Cut(got, "("); strings.TrimSpace(got) != strings.Join(c.want, " ") {
					t.Fatalf("seed %d: %d %s record %d or %d of %d of %v:\n%.400s\nnot\n%.400s", seed, n, name, i, j, len(all), a.Services, got, strings.Join(c.want, " "))
				}
				count := with(a, c.change)
				if out, err := h.Reader().For(nil).Count(t.Context(), count); err != nil || out.Records != int64(len(c.want)) {
					t.Fatalf("seed %d: count of %d %s: %d, not %d, %v", seed, n, name, out.Records, len(c.want), err)
				}
			}
		}
	}
	outside := with(of("*"), func(a *reading.Ask) {
		a.Edges.Before = &record.Key{Time: noon.Add(-24 * time.Hour).UnixNano()}
		a.Limit = 5
	})
	check(t, "before all records", read(t, s, outside), "(0 records)")
	outside.Range = hour()
	check(t, "before the range", read(t, s, outside), "(0 records)")
}

func reversed(words []string) []string {
	out := slices.Clone(words)
	slices.Reverse(out)
	return out
}
