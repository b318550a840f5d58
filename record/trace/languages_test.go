package trace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blobtail/record/text"
	"blobtail/record/times"
)

// The index has each language at the bytes by which its forms are found.
func TestIndex(t *testing.T) {
	var want [256]row
	for l := range tongues {
		is := set(1) << l
		if l == int(none) {
			continue
		}
		for _, form := range languages[l].first {
			w := &want[strings.TrimPrefix(form, `\`)[0]]
			w.first |= is
			if signs[form[0]] || signs[form[1]] || signs[form[2]] {
				w.third = "any"
			} else if !strings.Contains(w.third, form[2:3]) && w.third != "any" {
				w.third += form[2:3]
			}
		}
		for _, form := range languages[l].hinted {
			head, behind, two := strings.Cut(strings.TrimSuffix(form, "$"), "\n")
			if two && !signs[behind[0]] {
				want[behind[0]].next |= is
			} else {
				want[head[len(head)-1]].last |= is
			}
		}
		for _, form := range languages[l].call {
			if form[0] == '*' {
				want['.'].end |= is
				want['&'].end |= is
			} else {
				want[form[0]].call |= is
			}
		}
	}
	for i := range want {
		if want[i].third == "any" {
			want[i].third = ""
		}
	}
	if index == want {
		return
	}
	var b strings.Builder
	full := 0
	name := func(s set) string {
		var all []string
		for l, n := range []string{"none", "golang", "rust", "php", "node", "jvm", "report", "thrown", "java", "dotnet", "javascript",
			"ruby", "elixir", "dart",
			"clojure", "lua", "haskell", "julia", "rlang", "tcl", "perl", "python", "native",
			"zig", "ocaml", "clickHouse", "zap", "sidekiq", "slow", "gorm"} {
			if s>>l&1 != 0 {
				all = append(all, "1<<"+n)
			}
		}
		return strings.Join(all, " | ")
	}
	for c, r := range want {
		if r == (row{}) {
			continue
		}
		var parts []string
		if r.third != "" {
			parts = append(parts, fmt.Sprintf("third: %q", r.third))
		}
		for _, p := range []struct {
			name string
			s    set
		}{{"first", r.first}, {"last", r.last}, {"next", r.next}, {"call", r.call}, {"end", r.end}} {
			if p.s != 0 {
				parts = append(parts, p.name+": "+name(p.s))
			}
		}
		key := fmt.Sprintf("%q", rune(c))
		if c >= 0x80 {
			key = fmt.Sprintf("%#x", c)
		}
		if entry := fmt.Sprintf("%s: {%s},", key, strings.Join(parts, ", ")); b.Len()+len(entry) > full {
			full = b.Len() + 128
			b.WriteString("\n\t" + entry)
		} else {
			b.WriteString(" " + entry)
		}
	}
	t.Errorf("the index is not that of the languages, which is%s\n", b.String())
}

// Each form of the table has a line in the texts of the tests.
func TestForms(t *testing.T) {
	var lines []string
	files, err := filepath.Glob("../../source/body/loggers/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "../../source/body/testdata/traces.txt", "testdata/forms.txt") {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(raw))
	}
	body := []byte(strings.Join(lines, "\n"))
	var r times.Reader
	j := New(body, &r)
	type place struct {
		s   []byte
		end int
	}
	var all []place
	for off := 0; off < len(body); {
		end := text.LineEnd(body, off)
		line := bytes.TrimSuffix(body[off:end], []byte("\r"))
		var at text.Stamp
		at.Read(&r, line)
		plain := text.Uncoloured(line)
		for _, s := range [][]byte{line, plain, bytes.TrimLeft(plain, " \t"), bytes.TrimLeft(text.Uncoloured(at.Rest), " ]")} {
			if len(s) > 0 {
				all = append(all, place{s, end})
			}
		}
		off = end + 1
	}
	for l, row := range languages {
		for _, forms := range [][]string{row.first, row.hinted, row.message, row.end, row.lead, row.on, row.call, row.placed} {
			for _, form := range forms {
				if !slices.ContainsFunc(all, func(p place) bool {
					if slices.Contains(row.placed, form) {
						p.s = p.s[placeOf(p.s):]
					}
					return len(p.s) > 0 && (form[0] == p.s[0] || signs[form[0]]) && j.fits(form, p.s, p.end)
				}) {
					t.Errorf("%d: no text has a line of the form %q", l, form)
				}
			}
		}
	}
}
