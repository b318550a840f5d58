package report

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
)

// Ratios are panels of lines with marks on one scale of logarithms, around 1.
type Ratios struct {
	Title, Under string
	Marks        []string // names of the marks, at most four
	Panels       []RatioPanel
	Foot         string
}

// RatioPanel is a group of lines.
type RatioPanel struct {
	Title string
	Lines []RatioLine
}

// RatioLine is a name with marks beside it.
type RatioLine struct {
	Name   string
	Points []RatioPoint
}

// RatioPoint is a mark, by its index, at a ratio.
type RatioPoint struct {
	Mark  int
	Ratio float64
}

const (
	ratioRow  = 19
	ratiosL   = 410 // of the panel, left of the plot
	ratiosR   = 24
	ratioHead = 50
)

// DrawRatios draws ratios. The same ratios always give the same bytes.
func DrawRatios(s Ratios) ([]byte, error) {
	low, high := 0.5, 2.0
	lines := 0
	for _, p := range s.Panels {
		for _, l := range p.Lines {
			lines++
			for _, at := range l.Points {
				if !(at.Ratio > 0) || math.IsInf(at.Ratio, 0) || at.Mark < 0 || at.Mark >= len(s.Marks) {
					return nil, fmt.Errorf("%s: no mark %d at %v", l.Name, at.Mark, at.Ratio)
				}
				low, high = min(low, at.Ratio), max(high, at.Ratio)
			}
		}
	}
	if lines == 0 || len(s.Marks) > 4 {
		return nil, errors.New("there are no ratios to draw, or too many marks")
	}
	tall := firstY + 40
	for _, p := range s.Panels {
		tall += ratioHead + len(p.Lines)*ratioRow + gapY
	}
	room := float64(width - 2*firstX - ratiosL - ratiosR)
	low, high = low/1.1, high*1.1
	x := func(ratio float64) float64 { return ratiosL + math.Log(ratio/low)/math.Log(high/low)*room }
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", width, tall, width, tall)
	fmt.Fprintf(&b, "<title>%s</title>\n%s%s", plain(s.Title), style, partStyle)
	fmt.Fprintf(&b, `<rect class="page" width="%d" height="%d"/>`+"\n", width, tall)
	label(&b, firstX, 32, "title", "start", plain(s.Title))
	label(&b, firstX, 54, "soft", "start", plain(s.Under))
	legend := float64(firstX)
	for i, name := range s.Marks {
		mark(&b, i, legend+6, firstY)
		label(&b, legend+18, firstY+4, "", "start", plain(name))
		legend += float64(7*len(name) + 40)
	}
	y := firstY + 20
	for _, p := range s.Panels {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", firstX, y)
		p.draw(&b, low, high, x)
		b.WriteString("</g>\n")
		y += ratioHead + len(p.Lines)*ratioRow + gapY
	}
	label(&b, firstX, tall-12, "soft", "start", plain(s.Foot))
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}

// draw draws a panel at the origin.
func (p RatioPanel) draw(b *bytes.Buffer, low, high float64, x func(float64) float64) {
	tall := ratioHead + len(p.Lines)*ratioRow
	fmt.Fprintf(b, `<rect class="card" width="%d" height="%d" rx="6"/>`+"\n", width-2*firstX, tall)
	label(b, 14, 22, "head", "start", plain(p.Title))
	for _, tick := range []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20} {
		if tick < low || tick > high {
			continue
		}
		class := "grid"
		if tick == 1 {
			class = "axis"
		}
		fmt.Fprintf(b, `<path class="%s" d="M%.1f 42V%d"/>`+"\n", class, x(tick), tall-10)
		label(b, x(tick), 36, "soft", "middle", Number(tick))
	}
	for i, l := range p.Lines {
		y := float64(ratioHead + i*ratioRow + 4)
		label(b, ratiosL-12, y+4, "", "end", plain(l.Name))
		for _, at := range l.Points {
			mark(b, at.Mark, x(at.Ratio), y)
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
