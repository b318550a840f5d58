package meaning_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"blobtail/record"
	"blobtail/record/meaning"
)

// A record by parts has the same line after any records before it as with a new parser:
// after records with the same keys, with others from some key on, and of the same day.
func TestPartsAfterOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	keys := []string{"a", "b", "b", `d"`, "é", "ts", "ts.original", "service.name", "service.original", "time", "x", "y"}
	used := meaning.NewReader()
	d := meaning.Defaults{Time: arrival}
	h := meaning.Head{Msg: []byte("m")}
	names := []string{"a"}
	accepted := 0
	for range 30_000 {
		switch r.IntN(4) {
		case 0: // the same keys again
		case 1:
			names = names[:r.IntN(len(names)+1)]
		default:
			names = append(names[:r.IntN(len(names)+1)], keys[r.IntN(len(keys))])
			if r.IntN(9) == 0 {
				names = slices.Concat(names, names)[:min(2*len(names), 40)]
			}
		}
		if h.Time += r.Int64N(int64(9*time.Hour)) - int64(4*time.Hour); r.IntN(100) == 0 {
			h.Time = r.Int64() - r.Int64()
		}
		h.Renames = r.IntN(20) > 0
		h.Service = []byte([]string{"web", "Web Shop"}[r.IntN(2)])
		line, stamp, err := addText(used, h, d, names)
		wantLine, want, wantErr := addText(meaning.NewReader(), h, d, names)
		if !bytes.Equal(line, wantLine) || stamp != want || (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
			t.Fatalf("keys %q\n%s%+v %v\nwith a new parser\n%s%+v %v", names, line, stamp, err, wantLine, want, wantErr)
		}
		if err == nil {
			accepted++
		}
	}
	if accepted < 20_000 {
		t.Errorf("only %d accepted", accepted)
	}
}

func addText(p *meaning.Reader, h meaning.Head, d meaning.Defaults, names []string) ([]byte, record.Stamp, error) {
	b := p.Begin(nil, h, &d)
	for _, name := range names {
		b.Text(name, []byte("v"))
	}
	return b.End()
}

// A record by parts with a key twice is rejected, also behind one with the same keys, and behind an object.
func TestRepeatedPartsAgain(t *testing.T) {
	p := meaning.NewReader()
	for round := range 3 {
		if round == 2 {
			if _, err := p.Scan([]byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		b := p.Begin(nil, meaning.Head{}, &meaning.Defaults{})
		for i := range 40 {
			b.Int(fmt.Sprint("k", i), 1)
		}
		b.Int("k0", 2)
		b.Int("k1", 2)
		if line, _, err := b.End(); err == nil {
			t.Errorf("round %d: %s", round, line)
		}
	}
}
