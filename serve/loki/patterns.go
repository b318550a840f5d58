package loki

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/internal/units"
	"blobtail/logql/stage"
	"blobtail/reading"
	"blobtail/record"
)

const (
	// mostMined is how many of the newest records patterns are taken from, and mostPatterns how many
	// an answer has.
	mostMined, mostPatterns = 100_000, 300
)

// patterns answers with the patterns of lines, as Logs Drilldown asks for them. The text of each can
// be given to |> as it is.
func (c *call) patterns() error {
	rng, err := c.between()
	if err != nil {
		return err
	}
	e, err := c.parseLog()
	if err != nil {
		return err
	}
	step, err := c.step(rng)
	if err != nil {
		return err
	}
	ch, err := c.choose(e, rng)
	if err != nil {
		return err
	}
	p, out, err := c.store.Patterns(c.ctx(), ch.ask, reading.PatternOptions{Sample: mostMined, Top: mostPatterns})
	if err := c.take(out, err); err != nil {
		return err
	}
	if p.Basis.Newest {
		c.hint("the patterns are those of the newest %s", units.Count(p.Basis.Records, "record"))
	}
	captures := regexp.MustCompile(`<[A-Za-z_][A-Za-z0-9_]*>|<\*>`)
	c.begins()
	c.out = append(c.out, `"data":[`...)
	for i := range p.Patterns {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = appendPattern(c.out, patternText(captures, p.Patterns[i].Template, c.lines), &p.Patterns[i], max(step, p.Basis.By))
		if err := c.some(); err != nil {
			return err
		}
	}
	c.out = append(c.out, ']')
	return nil
}

// appendPattern appends a pattern with its records in stretches of time.
func appendPattern(dst []byte, text string, p *reading.Pattern, step time.Duration) []byte {
	dst = appendLabel(append(dst, '{'), "pattern", text)
	if at := slices.Index(p.Levels[:], p.Count); at >= 0 { // mixed levels have no word
		dst = appendLabel(append(dst, ','), "level", stage.LevelName(record.Level(at)))
	}
	dst = append(dst, `,"samples":[`...)
	for i := 0; i < len(p.Buckets); {
		start, n := floorDiv(p.Buckets[i].Start, int64(step)), int64(0)
		for ; i < len(p.Buckets) && floorDiv(p.Buckets[i].Start, int64(step)) == start; i++ {
			n += p.Buckets[i].Count
		}
		dst = appendSeconds(append(dst, '['), start*int64(step))
		dst = append(strconv.AppendInt(append(dst, ','), n, 10), "],"...)
	}
	return append(dst[:len(dst)-1], "]}"...)
}

// patternText is a template as |> reads it. In the line view a pattern is of the whole line. captures
// finds the texts that would be captures.
func patternText(captures *regexp.Regexp, template string, lines bool) string {
	text, rest := strings.CutSuffix(template, " …")
	if lines {
		text = string(record.AppendEscaped(nil, []byte(text)))
		text = `<_>"msg":"` + text
		rest = true
	}
	text = captures.ReplaceAllString(text, "<_>")
	if rest {
		text += "<_>"
	}
	for strings.Contains(text, "<_><_>") { // one takes as much as two
		text = strings.ReplaceAll(text, "<_><_>", "<_>")
	}
	return text
}
