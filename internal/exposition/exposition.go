// Package exposition writes metrics in the text format of Prometheus, from plain numbers.
//
// It is for commands that link no metrics library, because one costs each of their starts.
// Make a [Page], call [Page.Family] once for each metric and then [Page.Value] for its
// series, and write [Page.Bytes] with the type [ContentType]. The package keeps no numbers.
package exposition

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// ContentType is the type of a page.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Page is a list of metrics. The zero value is empty.
type Page struct {
	b    bytes.Buffer
	name string
}

// Family begins a metric: its name, its kind (counter, gauge or histogram) and its help.
func (p *Page) Family(name, kind, help string) {
	p.name = name
	fmt.Fprintf(&p.b, "# HELP %s %s\n# TYPE %s %s\n", name, strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(help), name, kind)
}

// Value adds a series of the metric, with pairs of a label and its value.
func (p *Page) Value(v float64, labels ...string) { p.suffixed("", v, labels...) }

func (p *Page) suffixed(suffix string, v float64, labels ...string) {
	p.b.WriteString(p.name + suffix)
	escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
	pairs := make([]string, 0, len(labels)/2)
	for i := 0; i+1 < len(labels); i += 2 {
		pairs = append(pairs, labels[i]+`="`+escape.Replace(labels[i+1])+`"`)
	}
	if len(pairs) > 0 {
		p.b.WriteString("{" + strings.Join(pairs, ",") + "}")
	}
	p.b.WriteString(" " + strconv.FormatFloat(v, 'g', -1, 64) + "\n")
}

// Histogram adds a series of a histogram: its bounds in ascending order, how many values are
// in each bucket and, as the last count, beyond the last bound, and the sum of all values.
func (p *Page) Histogram(bounds []float64, counts []int64, sum float64, labels ...string) {
	all := int64(0)
	for i, n := range counts {
		all += n
		le := "+Inf"
		if i < len(bounds) {
			le = strconv.FormatFloat(bounds[i], 'g', -1, 64)
		}
		p.suffixed("_bucket", float64(all), append(labels[:len(labels):len(labels)], "le", le)...)
	}
	p.suffixed("_sum", sum, labels...)
	p.suffixed("_count", float64(all), labels...)
}

// Bytes is the page so far.
func (p *Page) Bytes() []byte { return p.b.Bytes() }
