package stage

import (
	"bytes"
	"fmt"
	"strings"

	"blobtail/internal/budget"
	"blobtail/internal/regex"
	"blobtail/logql"
	"blobtail/record"
)

// A logfmtStage makes labels of the pairs of a line such as a=1 b="x y".
type logfmtStage struct {
	strict, keepEmpty bool
	extracts          []logql.Extract
}

func (l *logfmtStage) changesLine() bool { return false }
func (l *logfmtStage) mayFail() bool     { return l.strict }

func (l *logfmtStage) changes(name string) bool {
	if l.extracts == nil {
		return name != nameServiceName
	}
	for _, e := range l.extracts {
		if e.Name == name || e.Name+extracted == name {
			return true
		}
	}
	return false
}

func (l *logfmtStage) before(n *need) step {
	if !n.some(l.changes) && (!n.failure || !l.strict) {
		return nil
	}
	n.line = true
	step := &logfmtStep{logfmtStage: l, wish: newWish(n)}
	if l.extracts == nil && !l.strict && !n.all {
		step.starts = l.startsOf(n)
	}
	return step
}

// startsOf are texts so that each needed label has one of them in its line; nil if one needs none.
func (l *logfmtStage) startsOf(n *need) [][]byte {
	var starts [][]byte
	for name := range n.names {
		first, _, more := strings.Cut(name, "_")
		if first == "" {
			return nil
		}
		if !more && !l.keepEmpty {
			first += "="
		}
		starts = append(starts, []byte(first))
	}
	return starts
}

type logfmtStep struct {
	*logfmtStage
	wish   wish
	starts [][]byte
}

// idle reports whether the line has none of the needed labels.
func (l *logfmtStep) idle(s *state) bool {
	for _, start := range l.starts {
		if bytes.Contains(s.text(), start) {
			return false
		}
	}
	return l.starts != nil
}

func (l *logfmtStep) run(s *state) bool {
	if l.idle(s) {
		return true
	}
	for p := (logfmtPairs{line: s.text(), strict: l.strict}); ; {
		key, value, quoted, ok := p.next()
		if s.over() {
			return false
		}
		if !ok {
			if l.strict && p.bad {
				s.fail("LogfmtParserErr", fmt.Sprintf("no pair at byte %d", p.at))
			}
			break
		}
		if quoted {
			value = s.unescaped(value)
		}
		if len(value) == 0 && !l.keepEmpty {
			continue
		}
		if l.extracts == nil {
			l.label(s, key, value)
			continue
		}
		for _, e := range l.extracts {
			if e.Path == string(key) {
				s.extractAs(e.Name, value, false)
			}
		}
	}
	if l.keepEmpty {
		for _, e := range l.extracts {
			s.extractAs(e.Name, nil, false)
		}
	}
	return true
}

// label makes a label of a pair.
func (l *logfmtStep) label(s *state, key, value []byte) {
	name := appendName(s.spare[:0], key, true)
	s.spare = name
	if s.streamHas(name) {
		name = append(name, extracted...)
	}
	if len(name) <= maxName && l.wish.wants(name) {
		s.extract(name, value, false)
	}
}

// logfmtPairs goes through the pairs of a line.
type logfmtPairs struct {
	line   []byte
	at     int
	strict bool
	bad    bool // the line ended at a text that is no pair
}

// next returns the next pair. The value of a quoted one still has its escapes. Texts that are no
// pair are passed over, or end the line if strict is set.
func (p *logfmtPairs) next() (key, value []byte, quoted, ok bool) {
	for {
		for p.at < len(p.line) && p.line[p.at] <= ' ' {
			p.at++
		}
		if p.at == len(p.line) {
			return nil, nil, false, false
		}
		start := p.at
		if key, value, quoted, ok = p.pair(); ok {
			return key, value, quoted, true
		}
		if p.at = start; p.strict {
			p.bad = true
			return nil, nil, false, false
		}
		for p.at < len(p.line) && p.line[p.at] > ' ' {
			p.at++
		}
	}
}

// pair reads one pair.
func (p *logfmtPairs) pair() (key, value []byte, quoted, ok bool) {
	start := p.at
	for p.at < len(p.line) && p.line[p.at] > ' ' && p.line[p.at] != '=' {
		if p.line[p.at] == '"' {
			return nil, nil, false, false
		}
		p.at++
	}
	if key = p.line[start:p.at]; len(key) == 0 {
		return nil, nil, false, false
	}
	if p.at == len(p.line) || p.line[p.at] != '=' {
		return key, nil, false, true
	}
	if p.at++; p.at < len(p.line) && p.line[p.at] == '"' {
		end := record.StringEnd(p.line, p.at+1)
		if end < 0 || end < len(p.line) && p.line[end] > ' ' {
			return nil, nil, false, false
		}
		value = p.line[p.at+1 : end-1]
		p.at = end
		return key, value, true, true
	}
	start = p.at
	for p.at < len(p.line) && p.line[p.at] > ' ' {
		if c := p.line[p.at]; c == '"' || c == '=' && p.strict {
			return nil, nil, false, false
		}
		p.at++
	}
	return key, p.line[start:p.at], false, true
}

// A regexpStage makes labels of the named groups of an expression.
type regexpStage struct {
	expr  *regex.Regex
	names []string // of the groups; "" for none
}

func newRegexp(b *budget.Budget, text string) (stage, error) {
	expr, err := regex.Compile(b, text)
	if err != nil {
		return nil, fmt.Errorf("the expression %q: %w", text, reason(err))
	}
	return &regexpStage{expr, expr.SubexpNames()}, nil
}

func (r *regexpStage) changesLine() bool        { return false }
func (r *regexpStage) mayFail() bool            { return false }
func (r *regexpStage) changes(name string) bool { return names(r.names).has(name) }

func (r *regexpStage) before(n *need) step {
	if !n.some(r.changes) {
		return nil
	}
	n.line = true
	return r
}

func (r *regexpStage) run(s *state) bool {
	line := s.text()
	at := r.expr.FindSubmatchIndex(line)
	for i := 1; 2*i < len(at); i++ {
		switch {
		case r.names[i] == "":
		case at[2*i] < 0:
			s.extractAs(r.names[i], nil, false)
		default:
			s.extractAs(r.names[i], line[at[2*i]:at[2*i+1]], false)
		}
	}
	return true
}

// names are labels that a parser makes.
type names []string

// has reports whether a label of that name may be made.
func (n names) has(name string) bool {
	for _, one := range n {
		if one != "" && (one == name || one+extracted == name) {
			return true
		}
	}
	return false
}

// A patternStage makes labels of the captures of a pattern, as far as the line follows it.
type patternStage struct {
	pattern *pattern
	names   []string
}

func newPatternStage(text string) (stage, error) {
	p, err := newPattern(text)
	if err != nil {
		return nil, err
	}
	one := &patternStage{pattern: p}
	for _, part := range p.parts {
		if part.name != "_" {
			one.names = append(one.names, part.name)
		}
	}
	return one, nil
}

func (p *patternStage) changesLine() bool        { return false }
func (p *patternStage) mayFail() bool            { return false }
func (p *patternStage) changes(name string) bool { return names(p.names).has(name) }

func (p *patternStage) before(n *need) step {
	if !n.some(p.changes) {
		return nil
	}
	n.line = true
	return p
}

func (p *patternStage) run(s *state) bool {
	line := s.text()
	parts := p.pattern.parts
	if len(parts) > 0 && parts[0].literal != nil {
		if !bytes.HasPrefix(line, parts[0].literal) {
			return true
		}
		line, parts = line[len(parts[0].literal):], parts[1:]
	}
	for ; len(parts) > 0; parts = parts[min(2, len(parts)):] {
		value, at := line, -1
		if len(parts) > 1 {
			if at = bytes.Index(line, parts[1].literal); at >= 0 {
				value = line[:at]
			}
		}
		if parts[0].name != "_" {
			s.extractAs(parts[0].name, value, false)
		}
		if at < 0 {
			break
		}
		line = line[at+len(parts[1].literal):]
	}
	return true
}
