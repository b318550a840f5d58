package report

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// The picture, in units of SVG: two rows of two panels under a title.
const (
	width, height   = 860, 640
	panelW, panelH  = 400, 250
	firstX, firstY  = 20, 74
	gapX, gapY      = 20, 22
	plotL, plotT    = 44, 56 // of the panel, around the plot
	plotR, plotB    = 132, 34
	plotW           = panelW - plotL - plotR
	plotH           = panelH - plotT - plotB
	asideX          = plotL + plotW + 76 // of the store of many blobs
	whisker, radius = 3, 4
)

// panel shows one figure over the size of the store.
type panel struct {
	title, unit string
	of          func(Point) Spread
}

// style has colours for pages with a light and a dark background.
const style = `<style>
text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;font-size:12px;fill:#1f2328}
.title{font-size:17px;font-weight:600}.head{font-size:13px;font-weight:600}.soft{fill:#59636e}
.page{fill:#ffffff}.card{fill:#f6f8fa;stroke:#d1d9e0}.grid{stroke:#d1d9e0}.axis{stroke:#59636e}
.line{fill:none;stroke:#0969da;stroke-width:2}.dot{fill:#0969da}.range{stroke:#0969da}
.aside{fill:#bc4c00}.asiderange{stroke:#bc4c00}
@media (prefers-color-scheme:dark){
text{fill:#f0f6fc}.soft{fill:#9198a1}.page{fill:#0d1117}.card{fill:#151b23;stroke:#3d444d}.grid{stroke:#3d444d}.axis{stroke:#9198a1}
.line{stroke:#4493f8}.dot{fill:#4493f8}.range{stroke:#4493f8}.aside{fill:#f0883e}.asiderange{stroke:#f0883e}}
</style>
`

// Draw draws the growth of a report. The same report always gives the same bytes.
func Draw(r Report) ([]byte, error) {
	var sizes []Point
	var many *Point
	for i, p := range r.Growth {
		if p.Services == 1 {
			many = &r.Growth[i]
		} else {
			sizes = append(sizes, p)
		}
	}
	if len(sizes) < 2 || many == nil {
		return nil, errors.New("the report has no growth to draw")
	}
	once := func(v float64) Spread { return Spread{v, v, v} }
	panels := []panel{
		{"Ingest until stored", "CPU, as multiples of zstd's fastest level (Y)", func(p Point) Spread { return once(p.IngestY) }},
		{"Memory of the ingester", "peak RSS, MB", func(p Point) Spread { return once(p.RSSMB) }},
		{"i: errors of two minutes of one service", "whole process, ms", func(p Point) Spread { return p.Window }},
		{"iv: the newest 100 records of one service", "whole process, ms", func(p Point) Spread { return p.Newest }},
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>Cost over size</title>\n%s", style)
	fmt.Fprintf(&b, `<rect class="page" width="%d" height="%d"/>`+"\n", width, height)
	label(&b, firstX, 32, "title", "start", "Cost over the size of the store")
	label(&b, firstX, 54, "soft", "start", fmt.Sprintf("dir store, %d cores; medians, bars from least to most; commit %s, %.10s", r.Machine.Cores, r.Commit, r.Date))
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", firstX+i%2*(panelW+gapX), firstY+i/2*(panelH+gapY))
		p.draw(&b, sizes, *many)
		b.WriteString("</g>\n")
	}
	label(&b, firstX, height-14, "soft", "start", fmt.Sprintf("Line: 8 services, 6 hours for each 2 million records. Diamond: %s blobs of one service over %d days, %s million records.",
		Thousands(many.Blobs), many.Hours/24, millions(many.Records)))
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}

// draw draws a panel at the origin.
func (p panel) draw(b *bytes.Buffer, sizes []Point, many Point) {
	most := p.of(many).Max
	for _, s := range sizes {
		most = max(most, p.of(s).Max)
	}
	top, step := scale(most)
	largest := float64(sizes[len(sizes)-1].Records)
	x := func(s Point) float64 { return plotL + float64(s.Records)/largest*plotW }
	y := func(v float64) float64 { return plotT + plotH - v/top*plotH }

	fmt.Fprintf(b, `<rect class="card" width="%d" height="%d" rx="6"/>`+"\n", panelW, panelH)
	label(b, 14, 20, "head", "start", p.title)
	label(b, 14, 36, "soft", "start", p.unit)
	for v := 0.0; v <= top*1.0001; v += step {
		fmt.Fprintf(b, `<path class="grid" d="M%d %.1fH%d"/>`+"\n", plotL, y(v), panelW-14)
		label(b, plotL-6, y(v)+4, "soft", "end", Number(v))
	}
	fmt.Fprintf(b, `<path class="axis" d="M%d %.1fH%d"/>`+"\n", plotL, y(0), panelW-14)
	line := ""
	for i, s := range sizes {
		at := p.of(s)
		line += fmt.Sprintf("%c%.1f %.1f", "ML"[min(i, 1)], x(s), y(at.Median))
		p.bar(b, "range", x(s), y, at)
		fmt.Fprintf(b, `<circle class="dot" cx="%.1f" cy="%.1f" r="%d"/>`+"\n", x(s), y(at.Median), radius)
		// The figure is on the side that the line to the next point leaves free.
		under := -7.0
		if i+1 < len(sizes) && p.of(sizes[i+1]).Median > at.Median {
			under = 15
		}
		label(b, x(s)+6, y(at.Median)+under, "", "start", Number(at.Median))
		text := millions(s.Records)
		if i == len(sizes)-1 {
			text += " million"
		}
		label(b, x(s), panelH-14, "soft", "middle", text)
	}
	fmt.Fprintf(b, `<path class="line" d="%s"/>`+"\n", line)
	at := p.of(many)
	p.bar(b, "asiderange", asideX, y, at)
	fmt.Fprintf(b, `<path class="aside" d="M%d %.1fl5 5l-5 5l-5 -5z"/>`+"\n", asideX, y(at.Median)-5)
	label(b, asideX+9, y(at.Median)+4, "", "start", Number(at.Median))
	label(b, asideX, panelH-14, "soft", "middle", Thousands(many.Blobs)+" blobs")
}

// bar draws the range of a figure, if it has one.
func (p panel) bar(b *bytes.Buffer, class string, x float64, y func(float64) float64, s Spread) {
	if s.Min == s.Max {
		return
	}
	fmt.Fprintf(b, `<path class="%s" d="M%.1f %.1fV%.1fM%.1f %.1fh%dM%.1f %.1fh%d"/>`+"\n", class,
		x, y(s.Min), y(s.Max), x-whisker, y(s.Min), 2*whisker, x-whisker, y(s.Max), 2*whisker)
}

// label writes a text, which has no characters that are special in XML.
func label[N int | float64](b *bytes.Buffer, x, y N, class, anchor, text string) {
	fmt.Fprintf(b, `<text x="%v" y="%v" class="%s" text-anchor="%s">%s</text>`+"\n", tenth(x), tenth(y), class, anchor, text)
}

func tenth[N int | float64](v N) float64 { return math.Round(float64(v)*10) / 10 }

// scale returns the end of an axis for values up to most, with room for a label, and the
// distance of its lines.
func scale(most float64) (top, step float64) {
	step = math.Pow(10, math.Floor(math.Log10(most)))
	for _, part := range []float64{5, 2} {
		if most*1.15/(step/part) <= 5 {
			step /= part
			break
		}
	}
	for most*1.15/step > 5 {
		step *= 2
	}
	return math.Ceil(most*1.15/step) * step, step
}

// Number writes a figure with three digits.
func Number(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func millions(n int) string { return strconv.FormatFloat(float64(n)/1e6, 'f', -1, 64) }

// Thousands writes a number with commas.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
