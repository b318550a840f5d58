package main

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// picture draws text and checks that it is XML.
func picture(t *testing.T, columns int, parts ...string) string {
	t.Helper()
	s := newScreen(columns)
	for _, p := range parts {
		io.WriteString(s, p)
	}
	svg := string(s.svg(`a "title" & more`))
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); err == io.EOF {
			return svg
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
}

func TestPicture(t *testing.T) {
	for _, c := range []struct {
		name  string
		parts []string
		want  []string
	}{
		{"colours", []string{"\x1b[31merror\x1b[0m \x1b[1;31mcritical\x1b[0m plain"},
			[]string{`fill="#f0616d">error<`, `fill="#f0616d" font-weight="bold">critical<`, `textLength="46.8"> plain<`}},
		{"XML is escaped", []string{`<a href="x">&amp;</a>`}, []string{`>&lt;a href=&#34;x&#34;&gt;&amp;amp;&lt;/a&gt;<`}},
		{"a sequence in two parts", []string{"\x1b[3", "2minfo\x1b[", "m."}, []string{`fill="#8ccf6f">info<`, `>.<`}},
		{"a rune in two parts", []string{"gr\xc3", "\xbcn"}, []string{`>grün<`}},
		{"dim, and what is not understood", []string{"\x1b[2mtime\x1b[22m\x1b[2K\x1b[?25l\x07!"}, []string{`opacity="0.6">time<`, `>!<`}},
		{"carriage return", []string{"abc\rX"}, []string{`>Xbc<`}},
		{"a long line", []string{strings.Repeat("x", 45)}, []string{`y="57" textLength="312.0">` + strings.Repeat("x", 40) + "<", `y="75" textLength="39.0">xxxxx<`}},
		{"tab", []string{"a\tb"}, []string{">a       b<"}},
	} {
		svg := picture(t, 40, c.parts...)
		for _, want := range c.want {
			if !strings.Contains(svg, want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, svg)
			}
		}
	}
}

// Text that ends in the middle of a sequence, or has an invalid one, gives a picture
// too.
func FuzzPicture(f *testing.F) {
	f.Add("\x1b[31mx\x1b[")
	f.Add("\x1b]0;title\x07\xff\xfe\n\n\n")
	f.Fuzz(func(t *testing.T, text string) { picture(t, 20, text) })
}

// Commands have a terminal of the requested width, and are interrupted.
func TestRun(t *testing.T) {
	if _, err := os.Stat("/dev/ptmx"); err != nil {
		t.Skip(err)
	}
	out := filepath.Join(t.TempDir(), "x.svg")
	if err := run([]string{"-o", out, "-columns", "77", "stty size", "test -t 1 && echo a terminal", "100ms|sh -c 'trap \"echo interrupted; exit\" INT; echo ready; while :; do sleep 0.01; done'"}); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">50 77<", ">$<", ">a terminal<", "interrupted<"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("no %q in\n%s", want, svg)
		}
	}
}
