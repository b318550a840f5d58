package result

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bar is one of the bars of a picture.
type Bar struct {
	Name string
	// Parts are stacked from the left, by the order of the names of the parts.
	Parts []float64
}

// Bars are panels of bars with one scale each.
type Bars struct {
	Title, Under string
	Parts        []string // names of the parts, at most four
	Panels       []Panel
	Foot         string
}

// Panel is a group of bars with a scale of its own.
type Panel struct {
	Title string
	Bars  []Bar
}

// The pictures, in units of SVG.
const (
	width                         = 860
	firstX, firstY, gapY          = 20, 74, 22
	barH, barGap, barsL, barsR    = 18, 10, 250, 90
	ratioRow, ratioHead           = 19, 50
	ratiosL, ratiosR              = 410, 24 // of the panel, left and right of the plot
	panelHead, footH, footOfRatio = 40, 30, 40
)

// style has colours for pages with a light and a dark background, and one for each part or mark.
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
<style>
.p0{fill:#0969da}.p1{fill:#bc4c00}.p2{fill:#1a7f37}.p3{fill:#8c959f}
@media (prefers-color-scheme:dark){.p0{fill:#4493f8}.p1{fill:#f0883e}.p2{fill:#3fb950}.p3{fill:#6e7681}}
</style>
`

// begin begins a picture.
func begin(b *bytes.Buffer, tall int, title, under string) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img">`+"\n", width, tall)
	fmt.Fprintf(b, "<title>%s</title>\n%s", plain(title), style)
	fmt.Fprintf(b, `<rect class="page" width="%d" height="%d"/>`+"\n", width, tall)
	label(b, firstX, 32, "title", "start", title)
	label(b, firstX, 54, "soft", "start", under)
}

// card begins a panel.
func card(b *bytes.Buffer, y, tall int, title string) {
	fmt.Fprintf(b, `<g transform="translate(%d %d)">`+"\n", firstX, y)
	fmt.Fprintf(b, `<rect class="card" width="%d" height="%d" rx="6"/>`+"\n", width-2*firstX, tall)
	label(b, 14, 22, "head", "start", title)
}

// DrawBars draws bars. The same bars always give the same bytes.
func DrawBars(s Bars) ([]byte, error) {
	if len(s.Panels) == 0 || len(s.Parts) == 0 || len(s.Parts) > 4 {
		return nil, errors.New("there are no bars to draw, or too many parts")
	}
	high := firstY + footH
	for _, p := range s.Panels {
		high += p.height() + gapY
	}
	var b bytes.Buffer
	begin(&b, high, s.Title, s.Under)
	x := width - firstX
	for i := len(s.Parts) - 1; i >= 0; i-- {
		x -= 7*len(s.Parts[i]) + 26
		fmt.Fprintf(&b, `<rect class="p%d" x="%d" y="22" width="12" height="12"/>`+"\n", i, x)
		label(&b, x+17, 32, "", "start", s.Parts[i])
	}
	y := firstY
	for _, p := range s.Panels {
		p.draw(&b, y)
		y += p.height() + gapY
	}
	label(&b, firstX, high-14, "soft", "start", s.Foot)
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}

func (p Panel) height() int { return panelHead + len(p.Bars)*(barH+barGap) }

// draw draws a panel.
func (p Panel) draw(b *bytes.Buffer, top int) {
	most := 1e-9
	for _, bar := range p.Bars {
		most = max(most, bar.sum())
	}
	card(b, top, p.height(), p.Title)
	room := float64(width - 2*firstX - barsL - barsR)
	for i, bar := range p.Bars {
		x, y := float64(barsL), 34+i*(barH+barGap)
		label(b, barsL-10, y+13, "", "end", bar.Name)
		for n, part := range bar.Parts {
			if w := part / most * room; w >= 0.05 {
				fmt.Fprintf(b, `<rect class="p%d" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", n, x, y, w, barH)
				x += w
			}
		}
		label(b, x+6, float64(y+13), "", "start", Number(bar.sum()))
	}
	b.WriteString("</g>\n")
}

func (b Bar) sum() (sum float64) {
	for _, part := range b.Parts {
		sum += part
	}
	return sum
}

// DrawGrowth draws the growth of a result.
func DrawGrowth(r Result) ([]byte, error) {
	panels := []Panel{
		{Title: "Ingest until stored: CPU, as multiples of zstd's fastest level (Y)"},
		{Title: "Memory of the ingester: peak RSS, MB"},
		{Title: "i: errors of two minutes of one service, whole process, ms"},
		{Title: "iv: the newest 100 records of one service, whole process, ms"},
	}
	if len(r.Growth) < 2 {
		return nil, errors.New("the result has no growth to draw")
	}
	for _, p := range r.Growth {
		name := strconv.FormatFloat(float64(p.Records)/1e6, 'f', 1, 64) + " million records"
		if p.Services == 1 {
			name = fmt.Sprintf("%s, %s blobs", name, Thousands(p.Blobs))
		}
		for i, v := range []float64{p.IngestY, p.RSSMB, p.Window.Median, p.Newest.Median} {
			panels[i].Bars = append(panels[i].Bars, Bar{name, []float64{v}})
		}
	}
	return DrawBars(Bars{Title: "Cost over the size of the store", Parts: []string{"median"}, Panels: panels,
		Under: fmt.Sprintf("dir store, %d cores; commit %s, %.10s", r.Machine.Cores, r.Commit, r.Date),
		Foot:  "Six hours of 8 services for each 2 million records. The store of many blobs has one service over seven days."})
}

// ratioPanel is a group of lines.
type ratioPanel struct {
	title string
	lines []ratioLine
}

// ratioLine is a name with marks beside it.
type ratioLine struct {
	name   string
	points []ratioPoint
}

// ratioPoint is a mark, by its index, at a ratio.
type ratioPoint struct {
	mark  int
	ratio float64
}

func (p ratioPanel) height() int { return ratioHead + len(p.lines)*ratioRow }

// drawRatios draws panels of lines with marks on one scale of logarithms, around 1.
func drawRatios(title, under, foot string, marks []string, panels []ratioPanel) ([]byte, error) {
	low, high := 0.5, 2.0
	tall := firstY + footOfRatio
	for _, p := range panels {
		tall += p.height() + gapY
		for _, l := range p.lines {
			for _, at := range l.points {
				low, high = min(low, at.ratio), max(high, at.ratio)
			}
		}
	}
	if len(panels) == 0 || !(low > 0) || math.IsInf(high, 0) {
		return nil, errors.New("there are no ratios to draw, or one that is none")
	}
	room := float64(width - 2*firstX - ratiosL - ratiosR)
	low, high = low/1.1, high*1.1
	x := func(ratio float64) float64 { return ratiosL + math.Log(ratio/low)/math.Log(high/low)*room }
	var b bytes.Buffer
	begin(&b, tall, title, under)
	legend := float64(firstX)
	for i, name := range marks {
		mark(&b, i, legend+6, firstY)
		label(&b, legend+18, firstY+4, "", "start", name)
		legend += float64(7*len(name) + 40)
	}
	y := firstY + 20
	for _, p := range panels {
		card(&b, y, p.height(), p.title)
		p.draw(&b, low, high, x)
		b.WriteString("</g>\n")
		y += p.height() + gapY
	}
	label(&b, firstX, tall-12, "soft", "start", foot)
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}

// draw draws the scale and the lines of a panel.
func (p ratioPanel) draw(b *bytes.Buffer, low, high float64, x func(float64) float64) {
	for _, tick := range []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20} {
		if tick < low || tick > high {
			continue
		}
		class := map[bool]string{true: "axis", false: "grid"}[tick == 1]
		fmt.Fprintf(b, `<path class="%s" d="M%.1f 42V%d"/>`+"\n", class, x(tick), p.height()-10)
		label(b, x(tick), 36, "soft", "middle", Number(tick))
	}
	for i, l := range p.lines {
		y := float64(ratioHead + i*ratioRow + 4)
		label(b, ratiosL-12, y+4, "", "end", l.name)
		for _, at := range l.points {
			mark(b, at.mark, x(at.ratio), y)
		}
	}
}

// mark draws a mark: a circle, a diamond, a square or a triangle.
func mark(b *bytes.Buffer, i int, x, y float64) {
	if i == 0 {
		fmt.Fprintf(b, `<circle class="p0" cx="%.1f" cy="%.1f" r="4.5"/>`+"\n", x, y)
		return
	}
	form := []string{"m0 -5l5 5l-5 5l-5 -5z", "m-4 -4h8v8h-8z", "m0 -5l5 9h-10z"}[i-1]
	fmt.Fprintf(b, `<path class="p%d" d="M%.1f %.1f%s"/>`+"\n", i, x, y, form)
}

// plain escapes a text for XML.
func plain(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// label writes a text.
func label[N int | float64](b *bytes.Buffer, x, y N, class, anchor, text string) {
	tenth := func(v N) float64 { return math.Round(float64(v)*10) / 10 }
	fmt.Fprintf(b, `<text x="%v" y="%v" class="%s" text-anchor="%s">%s</text>`+"\n", tenth(x), tenth(y), class, anchor, plain(text))
}

// Number writes a figure with three digits.
func Number(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Thousands writes a number with commas.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
