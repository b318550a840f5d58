package formats_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"blobtail/internal/azurelogs/formats"
	"blobtail/record"
)

// parts is a reader that returns parts of random lengths.
type parts struct {
	r   io.Reader
	rnd *rand.Rand
}

func (p parts) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), 1+p.rnd.IntN(100_000))]) }

// cut tells of each entry its line, its element, its length and whether it has a line.
func cut(t *testing.T, kind formats.Kind, blob string, in func(io.Reader) io.Reader) (out []string) {
	t.Helper()
	s, tr := formats.NewSplitter(kind), formats.NewTranslator(kind, "svc", time.Time{})
	scanner := bufio.NewScanner(in(strings.NewReader(blob)))
	scanner.Buffer(make([]byte, 64<<10), formats.MaxBuffer)
	scanner.Split(s.Split)
	for scanner.Scan() {
		what := "sound"
		if _, _, err := tr.Append(nil, scanner.Bytes()); err != nil {
			what = fmt.Sprintf("%d bytes %v", len(scanner.Bytes()), err)
		}
		out = append(out, fmt.Sprintf("%d.%d %s", s.Line, s.Element, what))
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	if s.Unfinished > 0 {
		out = append(out, fmt.Sprintf("%d unfinished", s.Unfinished))
	}
	if s.Open() {
		out = append(out, "open")
	}
	return out
}

// An entry that is too long is one malformed entry, with any content and any length, and all
// entries behind it are there. The cuts do not depend on how the blob comes.
func TestTooLong(t *testing.T) {
	const one, most = `{"time":"2022-07-05T11:47:39Z"}`, record.MaxRecord
	long := func(n int, fill string) string {
		const head, tail = `{"time":"2022-07-05T11:47:39Z","a":"`, `"}`
		text := strings.Repeat(fill, n/len(fill))
		return head + text[:len(text)-len(head)-len(tail)] + strings.Repeat(" ", n-len(text)) + tail
	}
	array := func(elements ...string) string { return `{"records":[` + strings.Join(elements, ",") + `]}` }
	lines := func(entries ...string) string { return strings.Join(entries, "\n") + "\n" }
	nested := `{"time":"2022-07-05T11:47:39Z","a":` + strings.Repeat(`[{"b":"]},{","c":[]},`, 120_000) + `0` + strings.Repeat(`]`, 120_000) + `}`
	cid := strings.TrimSuffix(classic(nil), "\n")
	quoted := strings.TrimSuffix(classic(map[int]string{27: `"` + strings.Repeat("x\n", 10_000) + `"`}), "\n")
	tooLong := fmt.Sprintf("%d bytes longer than 1 MiB", most+1)
	for name, c := range map[string]struct {
		kind formats.Kind
		blob string
		want []string
	}{
		"array":                    {formats.Resource, array(one, long(2_120_000, "x"), one, one), []string{"1.1 sound", "1.2 " + tooLong, "1.3 sound", "1.4 sound"}},
		"array of only one":        {formats.Resource, array(long(5_000_000, "x")), []string{"1.1 " + tooLong}},
		"first and last":           {formats.Resource, array(long(1_500_000, "x"), one, long(2_500_000, `\"`)), []string{"1.1 " + tooLong, "1.2 sound", "1.3 " + tooLong}},
		"brackets and quotes":      {formats.Resource, array(one, long(2_120_000, `]},{\\\"[`), one), []string{"1.1 sound", "1.2 " + tooLong, "1.3 sound"}},
		"nested":                   {formats.Resource, array(one, nested, nested, one), []string{"1.1 sound", "1.2 " + tooLong, "1.3 " + tooLong, "1.4 sound"}},
		"no object":                {formats.Resource, array(one, `"`+strings.Repeat("x", 2_120_000)+`"`, strings.Repeat("9", 2_000_000), one), []string{"1.1 sound", "1.2 " + tooLong, "1.3 " + tooLong, "1.4 sound"}},
		"newlines in the array":    {formats.Resource, "{\"records\": [\n" + one + ",\n" + strings.Replace(long(2_120_000, "x"), ",", ",\n", 1) + ",\n" + one + "\n]\n}\n" + one + "\n", []string{"2.1 sound", "3.2 " + tooLong, "5.3 sound", "8.0 sound"}},
		"as long as allowed":       {formats.Resource, array(one, long(most, "x"), one), []string{"1.1 sound", "1.2 sound", "1.3 sound"}},
		"a byte too long":          {formats.Resource, array(one, long(most+1, "x"), one), []string{"1.1 sound", "1.2 " + tooLong, "1.3 sound"}},
		"two bytes too long":       {formats.Resource, array(one, long(most+2, "x"), one), []string{"1.1 sound", "1.2 " + tooLong, "1.3 sound"}},
		"cut within":               {formats.Resource, strings.TrimSuffix(array(one, long(2_120_000, "x")), `"}]}`), []string{"1.1 sound", "1.2 " + tooLong}},
		"cut behind":               {formats.Resource, strings.TrimSuffix(array(one, long(2_120_000, "x")), `]}`), []string{"1.1 sound", "1.2 " + tooLong, "open"}},
		"lines":                    {formats.Resource, lines(one, long(2_120_000, "x"), one), []string{"1.0 sound", "2.0 " + tooLong, "3.0 sound"}},
		"a line as long as can be": {formats.Resource, lines(one, long(most, "x"), one), []string{"1.0 sound", "2.0 sound", "3.0 sound"}},
		"a line one byte longer":   {formats.Resource, lines(one, long(most+1, "x"), one), []string{"1.0 sound", "2.0 " + tooLong, "3.0 sound"}},
		"a line without end":       {formats.Resource, one + "\n" + long(1_500_000, "x"), []string{"1.0 sound", "2.0 " + tooLong}},
		"classic":                  {formats.Classic, lines(cid, strings.Repeat("x", 2_120_000), cid), []string{"1.0 sound", "2.0 " + tooLong, "3.0 sound"}},
		"classic with fields":      {formats.Classic, lines(cid, strings.Repeat("x;", 1_100_000), cid), []string{"1.0 sound", "2.0 " + tooLong, "3.0 sound"}},
		"classic of one field":     {formats.Classic, lines(cid, strings.Replace(cid, ";;", ";"+strings.Repeat("x", 2_120_000)+";", 1), cid), []string{"1.0 sound", "2.0 " + tooLong, "3.0 sound"}},
		"classic without end":      {formats.Classic, cid + "\n" + strings.Repeat("x", 1_500_000), []string{"1.0 sound", "2.0 " + tooLong}},
		"classic behind newlines":  {formats.Classic, lines(quoted, strings.Repeat("x", 1_500_000), cid), []string{"1.0 sound", "10002.0 " + tooLong, "10003.0 sound"}},
	} {
		for how, in := range map[string]func(io.Reader) io.Reader{
			"at once": iotest.DataErrReader,
			"parts":   func(r io.Reader) io.Reader { return parts{r, rand.New(rand.NewPCG(1, 2))} },
		} {
			if got := cut(t, c.kind, c.blob, in); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%s, %s:\n%q, want\n%q", name, how, got, c.want)
			}
		}
	}
}

// An array that ends with its blob, behind a whole record, is told from one with an end.
func TestOpenArray(t *testing.T) {
	const one = `{"time":"2022-07-05T11:47:39Z"}`
	for blob, want := range map[string]bool{
		`{"records":[`: true, `{"records":[` + one: true, `{"records":[` + one + `, `: true, `{"records":[` + one + `]`: false, `{"records":[]}`: false, one + "\n": false,
	} {
		if got := cut(t, formats.Resource, blob, iotest.OneByteReader); strings.Contains(fmt.Sprint(got), "open") != want {
			t.Errorf("%s: %q", blob, got)
		}
	}
}
