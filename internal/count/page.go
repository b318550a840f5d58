package count

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ContentType is the type of a page.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Page is a list of metrics. The zero value is empty.
type Page struct {
	families []*section
}

// section is the text of one metric.
type section struct {
	name string
	b    bytes.Buffer
}

// Family begins a metric: its name, its kind (counter, gauge, histogram or summary) and its help.
func (p *Page) Family(name, kind, help string) {
	s := &section{name: name}
	fmt.Fprintf(&s.b, "# HELP %s %s\n# TYPE %s %s\n", name, strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(help), name, kind)
	p.families = append(p.families, s)
}

// Value adds a series of the metric, with pairs of a label and its value.
func (p *Page) Value(v float64, labels ...string) { p.Part("", v, labels...) }

// Part is Value for a series with a suffix to its name, as those of a summary have.
func (p *Page) Part(suffix string, v float64, labels ...string) {
	s := p.families[len(p.families)-1]
	s.b.WriteString(s.name + suffix)
	escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	pairs := make([]string, 0, len(labels)/2)
	for i := 0; i+1 < len(labels); i += 2 {
		pairs = append(pairs, labels[i]+`="`+escape.Replace(labels[i+1])+`"`)
	}
	if len(pairs) > 0 {
		s.b.WriteString("{" + strings.Join(pairs, ",") + "}")
	}
	s.b.WriteString(" " + strconv.FormatFloat(v, 'g', -1, 64) + "\n")
}

// histogram adds a series of a histogram: its bounds in ascending order, how many values are
// in each bucket and, as the last count, beyond the last bound, and the sum of all values.
func (p *Page) histogram(bounds []float64, counts []int64, sum float64, labels ...string) {
	all := int64(0)
	for i, n := range counts {
		all += n
		le := "+Inf"
		if i < len(bounds) {
			le = strconv.FormatFloat(bounds[i], 'g', -1, 64)
		}
		p.Part("_bucket", float64(all), append(labels[:len(labels):len(labels)], "le", le)...)
	}
	p.Part("_sum", sum, labels...)
	p.Part("_count", float64(all), labels...)
}

// Bytes is the page so far, in the order of the names.
func (p *Page) Bytes() []byte {
	slices.SortStableFunc(p.families, func(a, b *section) int { return cmp.Compare(a.name, b.name) })
	var all bytes.Buffer
	for _, s := range p.families {
		all.Write(s.b.Bytes())
	}
	return all.Bytes()
}

// Read returns the values of a page by their series, as in `name{label="value"}`. It skips
// lines that are none.
func Read(page []byte) map[string]float64 {
	values := map[string]float64{}
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if at <= 0 || line[0] == '#' {
			continue
		}
		if v, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			values[line[:at]] = v
		}
	}
	return values
}
