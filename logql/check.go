package logql

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp/syntax"
	"strconv"
	"strings"
)

// maxExpr is how long an expression may be, in bytes. Each class such as \pL in it has a table of
// kilobytes.
const maxExpr = 32 << 10

// maxProgram is how many instructions the expressions of a query may have in all. Repeats are
// counted as often as they may be: (a{1000}){1000} is a short text.
const maxProgram = 200_000

// checkRegexp ensures that an expression compiles, and is not too large.
func (p *parser) checkRegexp(t token, expr string) *syntax.Regexp {
	if p.err != nil {
		return nil
	}
	if len(expr) > maxExpr {
		p.fail(t, fmt.Sprintf("error parsing regexp: an expression of %d bytes; at most %d are taken", len(expr), maxExpr))
		return nil
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		why := err.Error()
		if e, ok := errors.AsType[*syntax.Error](err); ok && len(e.Expr) > 200 {
			why = "error parsing regexp: " + e.Code.String()
		}
		p.fail(t, why)
		return nil
	}
	if p.programs += program(re); p.programs > maxProgram {
		p.fail(t, "error parsing regexp: the expressions of a query are too large together")
	}
	return re
}

// program is about how many instructions re has.
func program(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += program(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, maxProgram+1)
}

// checkGroups ensures that an expression makes labels.
func (p *parser) checkGroups(t token, expr string) {
	re := p.checkRegexp(t, expr)
	if re == nil {
		return
	}
	named := false
	seen := map[string]bool{}
	for _, name := range re.CapNames() {
		switch {
		case name == "":
			continue
		case !isName(name):
			p.fail(t, "invalid extracted label name '"+name+"'")
		case seen[name]:
			p.fail(t, "duplicate extracted label name '"+name+"'")
		}
		named, seen[name] = true, true
	}
	if !named {
		p.fail(t, "at least one named capture must be supplied, such as (?P<name>…)")
	}
}

func isName(s string) bool {
	if s == "" || !letter(s[0]) {
		return false
	}
	for i := range len(s) {
		if !letter(s[i]) && !digit(s[i]) {
			return false
		}
	}
	return true
}

// A Part is a piece of a pattern: a text, or a place that takes at least one byte.
type Part struct {
	Text string // "" of a place
	Name string // of the place: the label, or "_" for none
}

// Parts splits a pattern, as of [Pattern] and of the operators [Fits] and [FitsNot], into its
// parts.
func Parts(pattern string) []Part {
	var parts []Part
	literal := 0
	for i := 0; i < len(pattern); {
		name := place(pattern[i:])
		if name == "" {
			i++
			continue
		}
		if literal < i {
			parts = append(parts, Part{Text: pattern[literal:i]})
		}
		parts = append(parts, Part{Name: name})
		i += len(name) + 2
		literal = i
	}
	if literal < len(pattern) {
		parts = append(parts, Part{Text: pattern[literal:]})
	}
	return parts
}

// place is the name of the place in front of a pattern; "": there is none.
func place(s string) string {
	if s[0] != '<' {
		return ""
	}
	n := 1
	for n < len(s) && (letter(s[n]) || digit(s[n])) {
		n++
	}
	if n == len(s) || s[n] != '>' || !isName(s[1:n]) {
		return ""
	}
	return s[1:n]
}

// checkNeighbours refuses places without a text between them: where one ends is not known.
func (p *parser) checkNeighbours(t token, parts []Part) {
	for i := 1; i < len(parts); i++ {
		if parts[i].Name != "" && parts[i-1].Name != "" {
			p.fail(t, fmt.Sprintf("found consecutive capture '<%s><%s>' in a pattern", parts[i-1].Name, parts[i].Name))
		}
	}
}

// checkPattern is for patterns that make labels.
func (p *parser) checkPattern(t token, pattern string) {
	parts := Parts(pattern)
	p.checkNeighbours(t, parts)
	seen := map[string]bool{}
	for _, part := range parts {
		if part.Name == "" || part.Name == "_" {
			continue
		}
		if seen[part.Name] {
			p.fail(t, "duplicate capture name '"+part.Name+"' in a pattern")
		}
		seen[part.Name] = true
	}
	if len(seen) == 0 {
		p.fail(t, "at least one capture is required in a pattern, such as <name>")
	}
}

// checkFits is for patterns of line filters.
func (p *parser) checkFits(t token, pattern string) {
	parts := Parts(pattern)
	p.checkNeighbours(t, parts)
	for _, part := range parts {
		if part.Name != "" && part.Name != "_" {
			p.fail(t, "named captures are not allowed in a pattern of a line filter: <"+part.Name+">; write <_>")
		}
	}
}

// checkIP ensures that a text is an address, a network or a range.
func (p *parser) checkIP(t token, s string) {
	if _, _, err := IPRange(s); err != nil && p.err == nil {
		p.fail(t, "ip: "+err.Error())
	}
}

// IPRange is the first and the last address of an address, a network such as 10.0.0.0/8 or a
// range such as 10.0.0.1-10.0.0.9.
func IPRange(s string) (first, last netip.Addr, err error) {
	from, to, isRange := strings.Cut(s, "-")
	switch {
	case isRange:
		first, err = netip.ParseAddr(strings.TrimSpace(from))
		if err == nil {
			last, err = netip.ParseAddr(strings.TrimSpace(to))
		}
		if err == nil && (first.BitLen() != last.BitLen() || last.Less(first)) {
			err = fmt.Errorf("%s ends before it begins", clip(s))
		}
	case strings.Contains(s, "/"):
		var net netip.Prefix
		if net, err = netip.ParsePrefix(s); err == nil {
			first = net.Masked().Addr()
			last = lastOf(net)
		}
	default:
		first, err = netip.ParseAddr(s)
		last = first
	}
	if err != nil {
		return netip.Addr{}, netip.Addr{}, fmt.Errorf("%s is no address, network or range of addresses", clip(s))
	}
	return first, last, nil
}

func lastOf(net netip.Prefix) netip.Addr {
	b := net.Masked().Addr().AsSlice()
	for i := net.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	last, _ := netip.AddrFromSlice(b)
	return last
}

// A Step is a step of a path into JSON: a member by its key, or if Key is "" and Index is not
// negative an element.
type Step struct {
	Key   string
	Index int // -1 of a member
}

// Path splits the path of an [Extract] of [JSON], such as a.b, a["b c"] or a[0].
func Path(path string) ([]Step, error) {
	var steps []Step
	rest := path
	for rest != "" || len(steps) == 0 {
		s, n := pathStep(rest, len(steps) == 0)
		if n == 0 {
			return nil, fmt.Errorf("invalid JSON path %s at %s; paths are such as a.b, a[0] or a[\"b\"]", clip(path), clip(rest))
		}
		steps = append(steps, s)
		rest = rest[n:]
	}
	return steps, nil
}

// pathStep is the step in front of a path and its length; 0: there is none.
func pathStep(s string, first bool) (Step, int) {
	if strings.HasPrefix(s, "[") {
		if quote, err := strconv.QuotedPrefix(s[1:]); err == nil {
			key, _ := strconv.Unquote(quote)
			if strings.HasPrefix(s[1+len(quote):], "]") {
				return Step{Key: key, Index: -1}, len(quote) + 2
			}
			return Step{}, 0
		}
		n := digits(s[1:])
		index, err := strconv.Atoi(s[1 : 1+n])
		if err != nil || !strings.HasPrefix(s[1+n:], "]") {
			return Step{}, 0
		}
		return Step{Index: index}, n + 2
	}
	n := 0
	if !first {
		if !strings.HasPrefix(s, ".") {
			return Step{}, 0
		}
		n = 1
	}
	start := n
	for n < len(s) && (letter(s[n]) || n > start && digit(s[n])) {
		n++
	}
	if n == start {
		return Step{}, 0
	}
	return Step{Key: s[start:n], Index: -1}, n
}

// checkPath ensures that a path is one.
func (p *parser) checkPath(t token, path string) {
	if p.err != nil {
		return
	}
	if _, err := Path(path); err != nil {
		p.fail(t, err.Error())
	}
}

// checkBinary refuses numbers as sides of set operators.
func (p *parser) checkBinary(b *Binary, left, right token) {
	switch b.Op {
	case "or", "and", "unless":
		for _, side := range []struct {
			of Metric
			at token
		}{{b.Left, left}, {b.Right, right}} {
			if side.of != nil && isScalar(side.of) {
				p.fail(side.at, "unexpected literal for a leg of logical/set binary operation ("+b.Op+"); write vector(…)")
			}
		}
	}
}

// isScalar reports whether m is a number, or made of numbers alone.
func isScalar(m Metric) bool {
	switch m := m.(type) {
	case *Number:
		return true
	case *Binary:
		return isScalar(m.Left) && isScalar(m.Right)
	}
	return false
}
