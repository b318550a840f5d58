package blobs_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/where"
	"blobtail/reading/blobs"
	"blobtail/record"
)

// A question is a filter with its definition: the meaning of each of its parts for a text or for
// the fields of a record.
type question struct {
	filter blobs.Filter
	texts  []func(text string) bool
	none   []func(text string) bool // of which no text may be one
	where  *cond
	spoken []string // for the report
}

func (q *question) String() string {
	return fmt.Sprintf("%s -i=%v -v=%v levels=%b", strings.Join(q.spoken, " "), q.filter.Fold, q.filter.Invert, q.filter.Levels)
}

// wants is the definition of a filter.
func (q *question) wants(s *seen) bool {
	if q.filter.Levels != 0 && !q.filter.Levels.Has(record.LevelOf([]byte(s.level))) {
		return false
	}
	if q.where != nil && q.where.of(s) != yes {
		return false
	}
	for _, is := range q.none {
		if slices.ContainsFunc(s.texts, is) {
			return false
		}
	}
	if len(q.texts) == 0 {
		return true
	}
	all := true
	for _, is := range q.texts {
		all = all && slices.ContainsFunc(s.texts, is)
	}
	return all != q.filter.Invert
}

// foldASCII makes ASCII letters lower, and no others: U+212A stays.
func foldASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

func isWord(r rune) bool {
	return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// alone reports whether a word is in a text, between borders of words.
func alone(text, word string) bool {
	for i := range text {
		if strings.HasPrefix(text[i:], word) {
			before, _ := utf8.DecodeLastRuneInString(text[:i])
			behind, _ := utf8.DecodeRuneInString(text[i+len(word):])
			if !isWord(before) && !isWord(behind) {
				return true
			}
		}
	}
	return false
}

// part is a part of a text of a record, perhaps spoiled.
func part(rng *rand.Rand, all []*seen) string {
	texts := all[rng.IntN(len(all))].texts
	runes := []rune(texts[rng.IntN(len(texts))])
	from := rng.IntN(len(runes) + 1)
	most := 12
	if rng.IntN(6) == 0 {
		most = 80 // a long id
	}
	s := string(runes[from : from+rng.IntN(min(len(runes)-from, most)+1)])
	switch rng.IntN(10) {
	case 0:
		s = strings.ToUpper(s)
	case 1:
		s = string(record.AppendEscaped(nil, []byte(s)))
	case 2:
		s = strings.Replace(s, "=", `":`, 1)
	case 3:
		s += "="
	case 4:
		s = strings.ReplaceAll(s, `"`, "")
	case 5:
		s = strings.NewReplacer("k", "\u212a", "s", "\u017f").Replace(s)
	}
	return cmp.Or(s, "e")
}

// expression is a regular expression that may match.
func expression(rng *rand.Rand, all []*seen) string {
	quoted := func() string { return regexp.QuoteMeta(part(rng, all)) }
	e := quoted()
	for range rng.IntN(3) {
		switch rng.IntN(15) {
		case 0:
			e = "^" + e
		case 1:
			e += "$"
		case 2:
			e = `\b` + e + `\b`
		case 3:
			e = "(" + e + "|" + quoted() + ")"
		case 4:
			e = "(?i:" + e + ")"
		case 5:
			e += ".*" + quoted()
		case 6:
			e += `[^,]+\d`
		case 7:
			e = "(" + e + ")?x"
		case 8:
			e += `(=|":)`
		case 9:
			e = "(?m)^" + e + "$"
		case 10:
			e = "(?s)" + e + "." + quoted()
		case 11:
			e = "(?:" + e + ")*" // it matches the empty text
		case 12:
			e = `\A` + e + `|` + quoted() + `\z`
		case 13:
			e = `\B` + e
		case 14:
			e += `\x{3d}|(?U:` + quoted() + `+)`
		}
	}
	return e
}

// ask makes a question of one to three parts.
func ask(t *testing.T, rng *rand.Rand, all []*seen) *question {
	q := &question{}
	q.filter.Fold = rng.IntN(3) == 0
	low := func(s string) string { return s }
	if q.filter.Fold {
		low = foldASCII
	}
	for n := 1 + rng.IntN(8)/6 + rng.IntN(8)/7; n > 0; n-- {
		switch rng.IntN(5) {
		case 4:
			text := part(rng, all)
			q.filter.Without = append(q.filter.Without, text)
			q.none = append(q.none, func(s string) bool { return strings.Contains(low(s), low(text)) })
			q.spoken = append(q.spoken, fmt.Sprintf("--without %q", text))
		case 0:
			text := part(rng, all)
			q.filter.Texts = append(q.filter.Texts, text)
			q.texts = append(q.texts, func(s string) bool { return strings.Contains(low(s), low(text)) })
			q.spoken = append(q.spoken, fmt.Sprintf("-F %q", text))
		case 1:
			word := part(rng, all)
			q.filter.Words = append(q.filter.Words, word)
			q.texts = append(q.texts, func(s string) bool { return alone(low(s), low(word)) })
			q.spoken = append(q.spoken, fmt.Sprintf("-w %q", word))
		case 2:
			e := expression(rng, all)
			q.filter.Exprs = append(q.filter.Exprs, e)
			if q.filter.Fold {
				e = "(?i)" + e
			}
			q.texts = append(q.texts, regexp.MustCompile(e).MatchString)
			q.spoken = append(q.spoken, fmt.Sprintf("-g %q", e))
		case 3:
			q.condition(t, rng, all)
		}
	}
	q.filter.Invert = len(q.texts) > 0 && rng.IntN(4) == 0
	if rng.IntN(6) == 0 {
		q.filter.Levels, _ = blobs.ParseLevels([]string{"error", "info", "warn+", "other,info"}[rng.IntN(4)])
	}
	return q
}

// condition gives the question an expression over fields.
func (q *question) condition(t *testing.T, rng *rand.Rand, all []*seen) {
	if q.where != nil {
		return
	}
	q.where = drawCond(rng, all, 2, q.filter.Fold)
	text := q.where.String()
	e, err := where.Parse(nil, text, q.filter.Fold)
	if err != nil {
		t.Fatalf("--where %s: %v", text, err)
	}
	q.filter.Where = e
	q.spoken = append(q.spoken, "--where "+text)
}

// compare reads by the question, and compares the result with the definition.
func compare(t *testing.T, r *blobs.Reader, service string, all []*seen, q *question) (wanted int) {
	t.Helper()
	var want []string
	for _, s := range all {
		if q.wants(s) {
			want = append(want, s.line)
		}
	}
	ask := blobs.Query{Services: []string{service}, Range: blobs.Always(), Filter: q.filter}
	got, sum := read(t, r, ask)
	slices.Sort(got)
	slices.Sort(want)
	if len(sum.Problems) > 0 {
		t.Fatalf("%v: %v", q, sum.Problems)
	}
	if !slices.Equal(got, want) {
		for _, s := range all {
			if q.wants(s) != slices.Contains(got, s.line) {
				t.Fatalf("%v: %d records, want %d; want %v of %s%q", q, len(got), len(want), q.wants(s), s.line, s.texts)
			}
		}
	}
	return len(want)
}

// Queries through a reader agree with the definition on real and generated records in
// blobs, and -v has the others. The definition knows records as encoding/json decodes them.
func TestOracle(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	queries, each := testkit.Portion(10_000, 2500, 500), 250
	matched, lonely, by := 0, 0, map[string]int{}
	for asked := 0; asked < queries; {
		store, services := drawRecords(t, rng, asked/each%2 == 1)
		r := blobs.New(store, blobs.Options{Workers: 2})
		for range min(each, queries-asked) {
			asked++
			service := []string{"real", "wild"}[rng.IntN(2)]
			all := services[service]
			q := ask(t, rng, all)
			n := compare(t, r, service, all, q)
			if len(q.texts) > 0 && len(q.none) == 0 && q.where == nil && q.filter.Levels == 0 {
				q.filter.Invert = !q.filter.Invert
				if rest := count(t, r, service, q.filter); int(rest) != len(all)-n {
					t.Fatalf("%v: %d of %d records, and %d without -v", q, rest, len(all), n)
				}
			}
			if n > 0 {
				matched++
			}
			if n == 1 {
				lonely++
			}
			q.tally(by)
		}
	}
	t.Logf("%d queries, %d of them matched records, %d of these one record; parts: %v; seed %d", queries, matched, lonely, by, seed)
	if matched < queries/4 {
		t.Error("too few queries match anything")
	}
}

func count(t *testing.T, r *blobs.Reader, service string, f blobs.Filter) int64 {
	t.Helper()
	plan, err := r.Plan(context.Background(), blobs.Query{Services: []string{service}, Range: blobs.Always(), Filter: f})
	if err != nil {
		t.Fatal(err)
	}
	n, _, err := plan.Count(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// tally counts the parts of a question.
func (q *question) tally(by map[string]int) {
	by["-F"] += min(1, len(q.filter.Texts))
	by["-w"] += min(1, len(q.filter.Words))
	by["-g"] += min(1, len(q.filter.Exprs))
	by["--without"] += min(1, len(q.filter.Without))
	if q.where != nil {
		by["--where"]++
	}
	if len(q.spoken) > 1 {
		by["several"]++
	}
	if q.filter.Fold {
		by["-i"]++
	}
}
