package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// The picture, in units of SVG.
const (
	cellWidth  = 7.8 // for a font of 13
	lineHeight = 18
	fontSize   = 13
	margin     = 14
	barHeight  = 30
)

// svg draws the screen.
func (s *screen) svg(title string) []byte {
	lines := s.lines
	for len(lines) > 0 && len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	width := float64(s.columns)*cellWidth + 2*margin
	height := barHeight + margin + len(lines)*lineHeight + margin/2
	var b bytes.Buffer
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%d\" viewBox=\"0 0 %.0f %d\">\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", escaped(title))
	fmt.Fprintf(&b, "<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#16181d\"/>\n")
	fmt.Fprintf(&b, "<path d=\"M0 %d V8 Q0 0 8 0 H%.0f Q%.0f 0 %.0f 8 V%d Z\" fill=\"#2a2d35\"/>\n", barHeight, width-8, width, width, barHeight)
	for i, color := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, "<circle cx=\"%d\" cy=\"%d\" r=\"5\" fill=\"%s\"/>\n", 18+i*18, barHeight/2, color)
	}
	font := `font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"`
	fmt.Fprintf(&b, "<text x=\"%.0f\" y=\"%d\" fill=\"#9aa0ac\" font-size=\"12\" text-anchor=\"middle\" %s>%s</text>\n", width/2, barHeight/2+4, font, escaped(title))
	fmt.Fprintf(&b, "<g %s font-size=\"%d\" fill=\"#d5d8df\" xml:space=\"preserve\">\n", font, fontSize)
	for i, line := range lines {
		drawLine(&b, line, barHeight+margin+i*lineHeight+fontSize)
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes()
}

// drawLine writes each run of cells with the same style at its place, with its
// length, so that columns line up in any font.
func drawLine(b *bytes.Buffer, line []cell, y int) {
	for start := 0; start < len(line); {
		end := start
		var text strings.Builder
		for end < len(line) && line[end].style == line[start].style {
			text.WriteRune(line[end].r)
			end++
		}
		if strings.TrimSpace(text.String()) != "" {
			fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\" textLength=\"%.1f\"%s>%s</text>\n",
				margin+float64(start)*cellWidth, y, float64(end-start)*cellWidth, line[start].attributes(), escaped(text.String()))
		}
		start = end
	}
}

// attributes returns the SVG attributes of a style.
func (s style) attributes() string {
	colors := [...]string{
		"", "#5c6370", "#f0616d", "#8ccf6f", "#e5c07b", "#61a8f0", "#c678dd", "#56c2cf", "#d5d8df",
		"#7f848e", "#ff7b86", "#a5e887", "#ffd98f", "#82c0ff", "#e098f5", "#7ee0ec", "#ffffff",
	}
	out := ""
	if s.color > 0 {
		out += ` fill="` + colors[s.color] + `"`
	}
	if s.bold {
		out += ` font-weight="bold"`
	}
	if s.dim {
		out += ` opacity="0.6"`
	}
	return out
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder accepts everything
	return b.String()
}
