package report

import (
	"bytes"
	"errors"
	"fmt"
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

const (
	barH, barGap = 18, 10
	barsL, barsR = 250, 90
)

// partStyle has a colour for each part, in both themes.
const partStyle = `<style>
.p0{fill:#0969da}.p1{fill:#bc4c00}.p2{fill:#1a7f37}.p3{fill:#8c959f}
@media (prefers-color-scheme:dark){.p0{fill:#4493f8}.p1{fill:#f0883e}.p2{fill:#3fb950}.p3{fill:#6e7681}}
</style>
`

// DrawBars draws bars. The same bars always give the same bytes.
func DrawBars(s Bars) ([]byte, error) {
	if len(s.Panels) == 0 || len(s.Parts) == 0 || len(s.Parts) > 4 {
		return nil, errors.New("there are no bars to draw, or too many parts")
	}
	high := firstY
	for _, p := range s.Panels {
		high += panelHeight(p) + gapY
	}
	high += 30
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", width, high, width, high)
	fmt.Fprintf(&b, "<title>%s</title>\n%s%s", s.Title, style, partStyle)
	fmt.Fprintf(&b, `<rect class="page" width="%d" height="%d"/>`+"\n", width, high)
	label(&b, firstX, 32, "title", "start", s.Title)
	label(&b, firstX, 54, "soft", "start", s.Under)
	x := width - firstX
	for i := len(s.Parts) - 1; i >= 0; i-- {
		x -= 7*len(s.Parts[i]) + 26
		fmt.Fprintf(&b, `<rect class="p%d" x="%d" y="22" width="12" height="12"/>`+"\n", i, x)
		label(&b, x+17, 32, "", "start", s.Parts[i])
	}
	y := firstY
	for _, p := range s.Panels {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", firstX, y)
		p.draw(&b)
		b.WriteString("</g>\n")
		y += panelHeight(p) + gapY
	}
	label(&b, firstX, high-14, "soft", "start", s.Foot)
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}

func panelHeight(p Panel) int { return 40 + len(p.Bars)*(barH+barGap) }

// draw draws a panel at the origin.
func (p Panel) draw(b *bytes.Buffer) {
	most := 0.0
	for _, bar := range p.Bars {
		most = max(most, bar.sum())
	}
	fmt.Fprintf(b, `<rect class="card" width="%d" height="%d" rx="6"/>`+"\n", width-2*firstX, panelHeight(p))
	label(b, 14, 22, "head", "start", p.Title)
	room := float64(width - 2*firstX - barsL - barsR)
	for i, bar := range p.Bars {
		y := 34 + i*(barH+barGap)
		label(b, barsL-10, y+13, "", "end", bar.Name)
		x := float64(barsL)
		for n, part := range bar.Parts {
			w := part / max(most, 1e-9) * room
			if w < 0.05 {
				continue
			}
			fmt.Fprintf(b, `<rect class="p%d" x="%.1f" y="%d" width="%.1f" height="%d"/>`+"\n", n, x, y, w, barH)
			x += w
		}
		label(b, x+6, float64(y+13), "", "start", Number(bar.sum()))
	}
}

func (b Bar) sum() (sum float64) {
	for _, part := range b.Parts {
		sum += part
	}
	return sum
}
