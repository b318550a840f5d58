package filter_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"blobtail/blobfmt/filter"
	"blobtail/internal/dev/testkit"
	"blobtail/record"
)

// A blob of the tests: the searched texts of its blocks, and its filters.
type blob struct {
	blocks  [][]string
	words   *filter.Words
	ids     []byte
	buckets int
}

func build(t testing.TB, b *filter.Builder, blocks [][]string) blob {
	b.Reset()
	for _, texts := range blocks {
		b.Block([]byte(strings.Join(texts, "\n")+"\n"), nil)
	}
	out := blob{blocks: blocks}
	list, ok := b.AppendWords(nil)
	if !ok {
		t.Fatal("no words")
	}
	var err error
	if out.words, err = filter.ParseWords(list, len(blocks)); err != nil {
		t.Fatal(err)
	}
	out.ids, out.buckets = b.AppendIDs(nil, 1<<30)
	if err := b.Check(out.words, out.ids, out.buckets); err != nil {
		t.Fatal(err)
	}
	return out
}

// may returns the blocks that are not ruled out.
func (b *blob) may(t testing.TB, needs filter.Needs) []bool {
	may := make([]bool, len(b.blocks))
	for i := range may {
		may[i] = true
	}
	for _, word := range needs.Words {
		b.words.Rule(may, word)
	}
	for _, key := range needs.Keys {
		stride := len(b.ids) / b.buckets
		have, err := filter.Find(b.ids[filter.BucketOf(key, b.buckets)*stride:][:stride], key, b.buckets)
		if err != nil {
			t.Fatal(err)
		}
		row := filter.NewRow(b.ids, 0, stride, b.buckets)
		for range 2 {
			if same, err := row.Find(key); err != nil || !slices.Equal(same, have) {
				t.Fatalf("a row has key %d in the blocks %v, want %v; %v", key, same, have, err)
			}
		}
		for i := range may {
			may[i] = may[i] && have[i]
		}
	}
	return may
}

// makeText makes a text of few pieces, so that they meet in many ways.
func makeText(r *rand.Rand) string {
	var s strings.Builder
	for range 1 + r.IntN(12) {
		switch r.IntN(9) {
		case 0:
			fmt.Fprintf(&s, "%x", r.Uint64()>>r.IntN(60))
		case 1:
			fmt.Fprintf(&s, "%016x%016x", r.Uint64(), r.Uint64())
		case 2:
			s.WriteString([]string{`\n`, `\"`, `\\`, `\t`, `\u001b`, `\ud800`}[r.IntN(6)])
		case 3:
			s.WriteString([]string{"é", "\u212a", "\u017f", "\uFFFD", "\u0130", "日本"}[r.IntN(6)])
		case 4:
			s.WriteString(strings.Repeat(string(rune('a'+r.IntN(26))), 1+r.IntN(90)))
		case 5:
			fmt.Fprint(&s, r.IntN(3_000_000))
		case 6:
			s.WriteString([]string{"_", "-", ".", "=", " ", ":"}[r.IntN(6)])
		default:
			word := []string{"Error", "disk", "CAFE", "timeout", "deadbeef", "xyz", "ab", "u", "internationalization"}[r.IntN(9)]
			s.WriteString(word[r.IntN(len(word)):])
		}
	}
	return s.String()
}

// tokenAt reports whether a letter, a digit or an underscore is at a place.
func tokenAt(text string, at int) bool {
	if at < 0 || at >= len(text) {
		return false
	}
	c := text[at]
	return (c|0x20)-'a' < 26 || c-'0' < 10 || c == '_'
}

// A block that has a text is never ruled out: as a part, or between borders.
func TestNoRecordIsLost(t *testing.T) {
	n := testkit.Share(100_000, 5000)
	b := filter.NewBuilder()
	r := rand.New(rand.NewPCG(14, 1))
	ruled, asked := 0, 0
	for asked < n {
		blocks := make([][]string, 1+r.IntN(1+r.IntN(70)))
		for i := range blocks {
			for range 1 + r.IntN(6) {
				blocks[i] = append(blocks[i], makeText(r))
			}
		}
		stored := build(t, b, blocks)
		for range 200 {
			block := r.IntN(len(blocks))
			text := blocks[block][r.IntN(len(blocks[block]))]
			if r.IntN(2) == 0 {
				text = string(record.AppendUnescaped(nil, []byte(text)))
			}
			from := r.IntN(len(text) + 1)
			to := from + r.IntN(len(text)+1-from)
			part := text[from:to]
			left, right := !tokenAt(text, from-1) && r.IntN(2) == 0, !tokenAt(text, to) && r.IntN(2) == 0
			if r.IntN(2) == 0 && !strings.ContainsFunc(part, func(c rune) bool { return c >= utf8.RuneSelf }) {
				part = strings.ToUpper(part)
			}
			asked++
			may := stored.may(t, filter.NeedsOf(part, left, right))
			if !may[block] {
				t.Fatalf("%q (borders %v, %v) of %q is ruled out", part, left, right, text)
			}
			if slices.Contains(may, false) {
				ruled++
			}
		}
	}
	if ruled < asked/10 {
		t.Errorf("only %d of %d texts ruled out a block", ruled, asked)
	}
}

// A text that is nowhere rules out nearly all blocks.
func TestAbsent(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 2))
	blocks := make([][]string, 20)
	for i := range blocks {
		for range 2000 {
			blocks[i] = append(blocks[i], fmt.Sprintf(`GET /api/%d request_id=%016x%016x user=u%06d took %dms`, r.IntN(100), r.Uint64(), r.Uint64(), r.IntN(100_000), r.IntN(1000)))
		}
	}
	stored := build(t, filter.NewBuilder(), blocks)
	count := func(text string, bounded bool) (n int) {
		for _, may := range stored.may(t, filter.NeedsOf(text, bounded, bounded)) {
			if may {
				n++
			}
		}
		return n
	}
	for _, absent := range []string{"timeout", "quests", "request_identity", "requ est"} {
		if n := count(absent, false); n > 0 {
			t.Errorf("%q: %d blocks", absent, n)
		}
	}
	left := 0
	for range 1000 {
		left += count(fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64()), false)
		left += count(fmt.Sprintf("u%06d", 100_000+r.IntN(900_000)), true)
	}
	if each := float64(left) / 2000; each > 0.075 {
		t.Errorf("%.2f blocks are left for an id that is nowhere", each)
	}
	left = 0
	for range 200 {
		text := blocks[7][r.IntN(2000)]
		left += count(text[strings.Index(text, "id=")+3:][:32], false)
	}
	if each := float64(left) / 200; each > 1.5 {
		t.Errorf("%.2f blocks are left for an id in one", each)
	}
}

// Ids that would take too many bytes get fewer places, before they are left out.
func TestFewerPlaces(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 3))
	b := filter.NewBuilder()
	for range 20 {
		var lines []byte
		for range 3000 {
			lines = fmt.Appendf(lines, "GET id=%016x%016x\n", r.Uint64(), r.Uint64())
		}
		b.Block(lines, nil)
	}
	full, buckets := b.AppendIDs(nil, 1<<30)
	if buckets < 2 {
		t.Fatalf("%d buckets", buckets)
	}
	for share := 99; share >= 90; share-- { // a bit of nine or ten for each pair less
		most := len(full) * share / 100
		if ids, buckets := b.AppendIDs(nil, most); buckets == 0 || len(ids) > most {
			t.Errorf("ids of %d bytes are left out, or %d bytes of them, where %d are allowed", len(full), len(ids), most)
		}
	}
	if ids, buckets := b.AppendIDs(nil, len(full)/2); buckets != 0 || len(ids) > 0 {
		t.Errorf("%d bytes of ids where %d are allowed", len(ids), len(full)/2)
	}
}

// An id with the key 0 is found: memory that is cleared has this key too.
func TestKeyOfZero(t *testing.T) {
	const id = "08vjqxww"
	needs := filter.NeedsOf(id, true, true)
	if len(needs.Keys) != 1 || needs.Keys[0] != 0 {
		t.Fatalf("%s: %+v", id, needs)
	}
	b := filter.NewBuilder()
	for range 2 {
		made := build(t, b, [][]string{{"abc12345"}, {"of " + id}, {"def67890"}})
		if may := made.may(t, needs); !may[1] {
			t.Errorf("%s is ruled out: %v", id, may)
		}
	}
}
