package regex_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/regex"
)

// allocated is how many bytes the process has allocated.
func allocated() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// large are expressions with compiled forms much larger than their texts.
func large() []string {
	class := `[\pL\pN]`
	var texts []string
	for i := range 300 {
		texts = append(texts, fmt.Sprintf("%c%c", 'a'+i%26, 'a'+i/26))
	}
	return []string{
		`^` + class + `{990}$`, class + `{990}`, `^` + strings.Repeat("(", 490) + class + strings.Repeat(")", 490) + `$`,
		`^(?:` + strings.Join(texts, "|") + `)$`, `((a{10}){10}){10}`, `^` + strings.Repeat(`[a-zα-ω]?x`, 300) + `$`, strings.Repeat(`\pL`, 5000), `^(?i:` + strings.Repeat("k", 900) + `)$`,
		`^(((((` + class + `+)*)*)*)*)*$`,
	}
}

// An expression has no more memory than it takes from the budget, and a plain one has little.
func TestCost(t *testing.T) {
	testkit.FullOnly(t, "it makes many bytes, and counts them")
	for _, text := range append(large(), strings.Repeat("a long text ", 5000), strings.Repeat("a text ", 140), `error`, `^(GET|POST) /api`, `\d{1,3}\.\d{1,3}`) {
		cost := int64(0)
		_, b := budget.NewPool(budget.Limits{Query: 1 << 40, Sure: 1 << 40}).Begin(t.Context())
		re, err := regex.Compile(b, text)
		if err != nil {
			t.Fatalf("%.40s: %v", text, err)
		}
		for step := int64(1 << 39); step > 0; step /= 2 { // how much is left
			if b.Try(step) {
				cost += step
			}
		}
		cost = b.Spare() - cost
		re.Close()
		before := allocated()
		expr := regexp.MustCompile(text)
		plain := regexp.QuoteMeta(text) == text
		dropped := int64(3) // by the compiler, for each byte of the cost
		if plain {
			dropped = 5
		}
		if took := allocated() - before; took > (1+dropped)*cost+64<<10 {
			t.Errorf("%.40s takes %d bytes, and costs %d", text, took, cost)
		}
		if len(text) < 30 && !strings.Contains(text, `\p`) && cost > 64<<10 {
			t.Errorf("%s costs %d bytes", expr, cost)
		}
		if plain && cost > 300*int64(len(text)) {
			t.Errorf("%.40s, a text of %d bytes, costs %d", text, len(text), cost)
		}
		b.End()
	}
}

// The expressions of a query are bounded together, and each is by itself.
func TestBounds(t *testing.T) {
	testkit.FullOnly(t, "it makes many bytes, and counts them")
	for _, text := range large()[:3] {
		_, b := budget.NewPool(budget.Limits{Query: 2 << 20}).Begin(t.Context())
		before, n := allocated(), 0
		var err error
		for ; err == nil && n < 1000; n++ {
			_, err = regex.Compile(b, text)
		}
		var over *budget.Error
		if made := allocated() - before; !errors.As(err, &over) || made > 100<<20 {
			t.Errorf("%.40s: %v after %d, %d bytes", text, err, n, made)
		}
		b.End()
	}
	for text, want := range map[string]string{
		"((a{1000}){1000}){1000}":                 "invalid repeat count",
		strings.Repeat("(a{0,1000}b{1000})", 999): "too large",
		strings.Repeat("a", 70_000):               "70000 bytes",
		"a(":                                      "missing closing )",
	} {
		if _, err := regex.Compile(nil, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}

// A search ends soon after its query, however long it would take.
func TestEnds(t *testing.T) {
	testkit.FullOnly(t, "it makes many bytes, and counts them")
	text := strings.Repeat("a", 500_000)
	slow := strings.Repeat("a*", 8000) + "b"
	for name, search := range map[string]func(b *budget.Budget) error{
		"match": func(b *budget.Budget) error {
			re, err := regex.Compile(b, slow)
			if err == nil && (re.Match([]byte(text)) || re.MatchString(text) || re.FindSubmatchIndex([]byte(text)) != nil) {
				err = errors.New("it matches")
			}
			return err
		},
		"count": func(b *budget.Budget) error {
			re, err := regex.Compile(b, `a(.*b)?`)
			if err == nil {
				_, err = re.Count(text)
			}
			return err
		},
		"replace": func(b *budget.Budget) error {
			re, err := regex.Compile(b, `a(.*b)?`)
			if err == nil {
				_, err = re.ReplaceAll(text, "x$1")
			}
			return err
		},
		"too long": func(b *budget.Budget) error {
			re, err := regex.Compile(b, slow)
			if err != nil {
				return err
			}
			if _, err = re.ReplaceAllLiteral(text, "x"); errors.Is(err, regex.ErrLong) {
				return context.DeadlineExceeded
			}
			return err
		},
	} {
		ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, b := budget.NewPool(budget.Limits{}).Begin(ctx)
		begun := time.Now()
		err := search(b)
		if err == nil {
			err = b.Err()
		}
		if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took > 30*time.Second {
			t.Errorf("%s: %v after %v", name, err, took)
		}
		b.End()
		stop()
	}
}

// same compares an expression with that of package regexp.
func same(t *testing.T, expr, text, with string) {
	want, wrong := regexp.Compile(expr)
	re, err := regex.Compile(nil, expr)
	if err != nil {
		if wrong == nil && !strings.Contains(err.Error(), "large") && !strings.Contains(err.Error(), "bytes") {
			t.Errorf("%q: %v", expr, err)
		}
		return
	}
	if wrong != nil {
		t.Errorf("%q is taken; %v", expr, wrong)
		return
	}
	if got := re.Match([]byte(text)); got != want.MatchString(text) || re.MatchString(text) != got {
		t.Errorf("%q in %q: %v", expr, text, got)
	}
	if got, want := re.FindSubmatchIndex([]byte(text)), want.FindStringSubmatchIndex(text); !reflect.DeepEqual(got, want) {
		t.Errorf("%q in %q: %v, want %v", expr, text, got, want)
	}
	if n, err := re.Count(text); err != nil || n != len(want.FindAllStringIndex(text, -1)) {
		t.Errorf("%q in %q: %d matches, %v", expr, text, n, err)
	}
	if got, err := re.ReplaceAll(text, with); err != nil || got != want.ReplaceAllString(text, with) {
		t.Errorf("%q in %q by %q: %q, %v", expr, text, with, got, err)
	}
	if got, err := re.ReplaceAllLiteral(text, with); err != nil || got != want.ReplaceAllLiteralString(text, with) {
		t.Errorf("%q in %q by %q: %q, %v", expr, text, with, got, err)
	}
}

// An expression has the matches that package regexp finds, in short and in long texts.
func TestSame(t *testing.T) {
	for _, expr := range []string{`a+`, `^a`, `(?m)^\s*(b)?`, `\bx\b`, `(a|b)(c)?$`, ``, `(?i)K`, `.`, `\xff`, `[^a]`, `^(?:a|b)$`, `a{2,3}?`, `(`} {
		for _, text := range []string{"", "a", "aab b\n b x xb", "\xffa\xfe", "K\u212a", strings.Repeat("ab c\n", 200)} {
			same(t, expr, text, "<$1>")
		}
	}
	testkit.FullOnly(t, "a long match takes minutes")
	long := strings.Repeat("ab c\n", 13_000) + "xyz"
	many := `(?:` + strings.Repeat("q?", 600) + `)xy(z)?`
	re, err := regex.Compile(nil, many)
	if err != nil {
		t.Fatal(err)
	}
	if want := regexp.MustCompile(many).FindStringSubmatchIndex(long); !re.MatchString(long) || !reflect.DeepEqual(re.FindSubmatchIndex([]byte(long)), want) {
		t.Error("a match that looks at the budget differs")
	}
}

// FuzzRegex finds expressions that match otherwise than those of package regexp, that take more
// memory than they may, or that work for long.
func FuzzRegex(f *testing.F) {
	for _, expr := range large() {
		f.Add(expr, "aab", "$1")
	}
	f.Add(`(?m)^(a|\b)`, "a\nb", "${1}x")
	f.Fuzz(func(t *testing.T, expr, text, with string) {
		const most = 4 << 20
		ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer stop()
		_, b := budget.NewPool(budget.Limits{Query: most}).Begin(ctx)
		defer b.End()
		before, begun := allocated(), time.Now()
		re, err := regex.Compile(b, expr)
		if err == nil {
			re.MatchString(strings.Repeat(text, 1+100_000/(len(text)+1)))
		}
		if made, took := allocated()-before, time.Since(begun); made > 256<<20 || took > 30*time.Second {
			t.Errorf("%q makes %d bytes in %v", expr, made, took)
		}
		if len(expr) < 50 && len(text) < 100 && len(with) < 20 && b.Err() == nil && !strings.Contains(expr, "{") {
			same(t, expr, text, with)
		}
	})
}
