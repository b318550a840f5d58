package search_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"blobtail/query/search"
	"blobtail/record"
)

const loghub = "../../../shared/data/loghub"

// known is a stored line with its texts, decoded by encoding/json.
type known struct {
	line  []byte // with its newline
	texts []string
}

func know(t *testing.T, line []byte) known {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	at := bytes.Index(line, []byte(`,"msg":"`)) + len(`,"msg":"`)
	k := known{line: line, texts: []string{strings.TrimSuffix(string(line[at:]), "\n")}}
	for key, raw := range fields {
		value := string(raw)
		if raw[0] == '"' {
			var text string
			if err := json.Unmarshal(raw, &text); err != nil {
				t.Fatal(err)
			}
			k.texts = append(k.texts, text)
			if inside := value[1 : len(value)-1]; inside != "" && !strings.ContainsAny(inside, " =\"\\") {
				value = inside
			}
		}
		if !slices.Contains([]string{"ts", "level", "service", "msg"}, key) {
			k.texts = append(k.texts, key+"="+value)
		}
	}
	return k
}

// wild makes records with quotes, escapes, control characters and Unicode.
func wild(rng *rand.Rand, n int) []byte {
	alphabet := []string{"a", "b", "k", "S", "K", "=", "=", `"`, `\`, " ", "\n", "\t", "\x01", "\u202e", "é", "日", "ſ", "K", "_", "7", "}", ",", ":", "{", "/", "n", "u0", "error"}
	text := func(most int) string {
		var b strings.Builder
		for range rng.IntN(most) {
			b.WriteString(alphabet[rng.IntN(len(alphabet))])
		}
		return b.String()
	}
	var out []byte
	for range n {
		fields := map[string]any{"msg": text(12), "level": []string{"error", "info", text(4)}[rng.IntN(3)]}
		for range rng.IntN(4) {
			key := text(4)
			fields["x"+key] = []any{text(6), rng.IntN(600), rng.Float64(), nil, true, []any{text(3), 1}, map[string]any{text(3): text(3)}}[rng.IntN(7)]
		}
		b, err := json.Marshal(fields)
		if err != nil {
			panic(err)
		}
		out = append(append(out, b...), '\n')
	}
	return out
}

// stored makes stored lines of NDJSON.
func stored(t *testing.T, body []byte) (all []known) {
	t.Helper()
	p := record.NewParser()
	for line := range bytes.Lines(body) {
		if _, err := p.Scan(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out, _ := p.AppendLine(nil, record.Defaults{Service: "web", Time: 1795187045250000000})
		all = append(all, know(t, out))
	}
	return all
}

func lines(t *testing.T, rng *rand.Rand) (all []known) {
	files, err := filepath.Glob(loghub + "/*.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 && os.Getenv("CI") != "" {
		t.Fatal("the real logs are missing: " + loghub)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, stored(t, body)...)
	}
	all = append(all, stored(t, wild(rng, 4000))...)
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// a question is a pattern, and its definition.
type question struct {
	name    string
	pattern *search.Pattern
	is      func(text string) bool
}

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
func part(rng *rand.Rand, all []known) string {
	texts := all[rng.IntN(len(all))].texts
	runes := []rune(texts[rng.IntN(len(texts))])
	from := rng.IntN(len(runes) + 1)
	runes = runes[from : from+rng.IntN(min(len(runes)-from, 12)+1)]
	s := string(runes)
	switch rng.IntN(8) {
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
	}
	if s == "" {
		return "e"
	}
	return s
}

func expression(rng *rand.Rand, all []known) string {
	e := regexp.QuoteMeta(part(rng, all))
	for range rng.IntN(3) {
		switch rng.IntN(9) {
		case 0:
			e = "^" + e
		case 1:
			e += "$"
		case 2:
			e = `\b` + e + `\b`
		case 3:
			e = "(" + e + "|" + regexp.QuoteMeta(part(rng, all)) + ")"
		case 4:
			e = "(?i:" + e + ")"
		case 5:
			e += ".*" + regexp.QuoteMeta(part(rng, all))
		case 6:
			e += `[^,]+\d`
		case 7:
			e = "(" + e + ")?x"
		case 8:
			e += `(=|":)`
		}
	}
	return e
}

func ask(t *testing.T, rng *rand.Rand, all []known) question {
	fold := rng.IntN(3) == 0
	low := func(s string) string { return s }
	if fold {
		low = foldASCII
	}
	switch rng.IntN(3) {
	case 0:
		text := part(rng, all)
		return question{fmt.Sprintf("-F %q, fold %v", text, fold), search.Fixed(text, fold), func(s string) bool { return strings.Contains(low(s), low(text)) }}
	case 1:
		text := part(rng, all)
		return question{fmt.Sprintf("-w %q, fold %v", text, fold), search.Word(text, fold), func(s string) bool { return alone(low(s), low(text)) }}
	}
	e := expression(rng, all)
	p, err := search.Expr(e, fold)
	if err != nil {
		t.Fatalf("%q: %v", e, err)
	}
	if fold {
		e = "(?i:" + e + ")"
	}
	return question{fmt.Sprintf("-g %q", e), p, regexp.MustCompile(e).MatchString}
}

// Patterns agree with the definition on random queries over real and generated records,
// and no line that matches lacks all spellings.
func TestOracle(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	all := lines(t, rng)
	matched, lonely := 0, 0
	const queries, size = 10_000, 100
	for range queries {
		q := ask(t, rng, all)
		from := rng.IntN(len(all) - size)
		sample := all[from : from+size]
		var raw []byte
		for _, k := range sample {
			raw = append(raw, k.line...)
		}
		low := raw
		if q.pattern.Folds() {
			low = make([]byte, len(raw))
			search.Fold(low, raw)
		}
		var line search.Line
		finder, pos, any := q.pattern.Finder(low), 0, 0
		for _, k := range sample {
			end := pos + len(k.line)
			line.Set(raw[pos:end-1], low[pos:end-1])
			got, want := q.pattern.Match(&line), slices.ContainsFunc(k.texts, q.is)
			if got != want {
				t.Fatalf("%s: %v, want %v: %s", q.name, got, want, k.line)
			}
			if want && q.pattern.Weight() > 0 && finder.From(pos) >= end {
				t.Fatalf("%s: no spelling in %s", q.name, k.line)
			}
			if want {
				any++
			}
			pos = end
		}
		if any > 0 {
			matched++
		}
		if any == 1 {
			lonely++
		}
	}
	t.Logf("%d of %d queries matched records of their %d, %d of them one", matched, queries, size, lonely)
	if matched < queries/4 {
		t.Error("too few queries match anything")
	}
}
