package search

import (
	"math/rand/v2"
	"strings"
	"testing"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/where"
)

// Whatever the condition, its line is a search, and the condition of that is right.
func TestMeantIsRight(t *testing.T) {
	words := strings.Fields(`status path msg level http.status "GET" 'x y' "a%" 502 1.5 5xx 1KB 10.0.0.0/8 2026-11-25 ==
		!= >= < = =~ ~ <> in IN not ! and or && | AND
		LIKE between contains matches startsWith is null ( ) [ ]
		{ } , ; : .. $ @ . * - + error warn+ exists( like .status ${path} “ \ ts true nil /a/ TO`)
	r := rand.New(rand.NewPCG(1, 2))
	lines := 0
	for range testkit.Share(400, 100) {
		var parts []string
		for range 2 + r.IntN(7) {
			parts = append(parts, words[r.IntN(len(words))])
		}
		text := strings.Join(parts, " ")
		line := Meant(text)
		if line == "" {
			continue
		}
		lines++
		q, err := Parse(line)
		if err != nil {
			t.Errorf("%s: %s: %v", text, line, err)
			continue
		}
		p, err := q.Parts(false, nil)
		if err == nil && p.Where != "" {
			_, err = where.Parse(nil, p.Where, false)
		}
		if err != nil {
			t.Errorf("%s: %s: %v", text, line, err)
		}
	}
	if lines == 0 {
		t.Error("no line")
	}
}

// The example of each habit becomes its search.
func TestHabits(t *testing.T) {
	for _, h := range habits() {
		if got := Meant(h.Example); got != h.Result {
			t.Errorf("%s: %s, want %s", h.Example, got, h.Result)
		}
	}
}

// Words that are joined are texts.
func TestWords(t *testing.T) {
	for condition, want := range map[string]string{
		"timeout AND refused":          "timeout refused",
		"timeout or not refused":       "timeout OR -refused",
		"level:error AND timeout":      "level=error timeout",
		`status = 500 and "timed out"`: `status=500 "timed out"`,
		"a b c":                        "",
	} {
		if got := Meant(condition); got != want {
			t.Errorf("%s: %s, want %s", condition, got, want)
		}
	}
}

// A condition that no search says has none.
func TestNoHabit(t *testing.T) {
	for _, text := range []string{"", "status", "timeout", "len(msg) > 5 and status = 5",
		"status >", `"x"`, "a+b = 5", `{service="web"}`} {
		if got := Meant(text); got != "" {
			t.Errorf("%s: %s", text, got)
		}
	}
}
