package where_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"blobtail/internal/dev/testkit"
	"blobtail/internal/where"
)

// mistaken is a record with fields of each type.
const mistaken = `{"ts":"2026-11-25T15:04:05.000000000Z","level":"error","service":"web","msg":"GET /api/x","status":502,"path":"/api/x","request":"GET","rt":1.5,"took":"1.5s","size":"1500","http-status-code":503,"ok":false,"http":{"status":404},"tags":["a","b"],"nums":[1,2],"host":"web-1"}` + "\n"

// answer is what the writer of an expression is told: an error, or notes after a read. "": nothing.
func answer(text string) string {
	e, err := where.Parse(nil, text, false)
	if err != nil {
		return err.Error()
	}
	e.Match([]byte(mistaken))
	if notes := e.Notes(strings.TrimSpace); len(notes) > 0 {
		return "note: " + strings.Join(notes, " | ")
	}
	return ""
}

// Each mistake is answered in one line with what is wrong, its place, and the text to write.
// testdata/mistakes.txt has expressions, each with its answer below it.
func TestMistakes(t *testing.T) {
	file, err := os.Open("testdata/mistakes.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, n := "", 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		want, isAnswer := strings.CutPrefix(line, "    ")
		switch {
		case isAnswer:
			if got := answer(text); got != want {
				t.Errorf("%s\n got %s\nwant %s", text, got, want)
			}
			// The text to write is right.
			if _, fix, ok := strings.Cut(want, "; write "); ok && strings.HasPrefix(want, "column") {
				if _, err := where.Parse(nil, fix, false); err != nil && !strings.Contains(want, "is no word of a level") {
					t.Errorf("%s: the fix %s: %v", text, fix, err)
				}
			}
			n++
		case line != "" && line[0] != '#':
			text = line
		}
	}
	if n < 150 {
		t.Errorf("only %d mistakes are in the table", n)
	}
}

// ofGo are words of Go, and of the parser of the language.
func ofGo() *regexp.Regexp {
	return regexp.MustCompile(`float64|interface|int64|reflect|runtime|[tT]oken|Operator\(|Bracket\(|Identifier\(|EOF|<nil>|mismatched|U\+|goroutine|strconv|panic|%!`)
}

// No answer has words of Go, however wrong the expression is. It has one line.
func TestAnswersAreForPeople(t *testing.T) {
	words := []string{"status", "path", "msg", "tags", "http", "ok", "level", "rt", "took", "missing", "502", "1.5", `"GET"`, `'x'`, `"1s"`, "true", "nil", "null", "5xx", "1KB", "127.0.0.1", "2026-11-25", "==", "!=", ">=", "<", "=", "=~", "~", "<>", "in", "not", "!",
		"and", "or", "&&", "|", "&", "AND", "LIKE", "contains", "matches", "startsWith", "(", ")", "[", "]", "{", "}", ",", ";", ":", "?", "??", ".", "..", "$", "$env", "#", "+", "-", "*", "/", "%", "len", "upper(", "any(", "int(", "float(", "date(", "duration(", "fromJSON(", "split(", "foo(", "map(", "sort(", "first(", "keys(", "“", "\\", "@", "let", "is", "between", "/*", "ü"}
	r := rand.New(rand.NewPCG(1, 2))
	for range testkit.Share(1_000, 200) {
		var parts []string
		for range 1 + r.IntN(7) {
			parts = append(parts, words[r.IntN(len(words))])
		}
		text := strings.Join(parts, []string{" ", ""}[r.IntN(5)/4])
		got := answer(text)
		if ofGo().MatchString(got) || strings.Contains(got, "\n") {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// A note tells in how many records a part of the expression had no result. It comes though others
// matched.
func TestNotesCount(t *testing.T) {
	line := func(value string) []byte {
		return fmt.Appendf(nil, `{"ts":"2026-11-25T15:04:05.000000000Z","level":"info","service":"web","msg":"m","status":%s}`+"\n", value)
	}
	e, err := where.Parse(nil, "status >= 500", false)
	if err != nil {
		t.Fatal(err)
	}
	matched := 0
	for _, value := range []string{"502", `"503"`, "200", `"200"`, "null", `"-"`} {
		if e.Match(line(value)) {
			matched++
		}
	}
	e.Match(line(`"-"`)) // a read may see a record twice
	e.Match([]byte(`{"ts":"2026-11-25T15:04:05.000000000Z","level":"info","service":"web","msg":"m"}` + "\n"))
	e.Match(line("[1]"))
	want := "in 3 records status is a text, and 500 is a number\nin 1 record status is a list; write any(status, # >= 500)"
	if got := strings.Join(e.Notes(nil), "\n"); matched != 1 || got != want {
		t.Errorf("%d matched; %s, want %s", matched, got, want)
	}
}

// Any text has an answer, in one line.
func FuzzAnswer(f *testing.F) {
	table, err := os.ReadFile("testdata/mistakes.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != ' ' && line[0] != '#' {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := answer(text); strings.Contains(got, "\n") {
			t.Errorf("%q: %q", text, got)
		}
	})
}
