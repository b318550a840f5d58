package reading

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"blobtail/internal/budget"
	"blobtail/logql"
	"blobtail/logql/stage"
	"blobtail/reading/survey"
	"blobtail/record"
)

// madeLine is the field of the line that the stages of a query make of a record.
const madeLine = "__line__"

// A parser makes fields of the message of a record, by the stages of LogQL. Several goroutines may
// use it at once.
type parser struct {
	pipe  *stage.Pipeline
	whole bool      // errors of stages are fields, and so is the line that they make
	pool  sync.Pool // of *parsing

	fields     int          // of a message that has the form, at least
	read, made atomic.Int64 // messages, and those that have it
	other      atomic.Pointer[string]
}

// note tells that no message has the form; "": some have.
func (p *parser) note() string {
	message := p.other.Load()
	if message == nil || p.made.Load() > 0 {
		return ""
	}
	form := "a pattern has the text of a message around names in < >"
	switch text := *message; {
	case strings.HasPrefix(text, "{"):
		form = "write --parse json (parse=json in the API)"
	case regexp.MustCompile(`(^| )[A-Za-z_][\w.]*=[^= ]`).MatchString(text):
		form = "write --parse logfmt (parse=logfmt in the API)"
	}
	return fmt.Sprintf("parse: none of %d messages has that form, and one is %.60q; %s", p.read.Load(), *message, form)
}

// count counts a message.
func (p *parser) count(line []byte, parsed []stage.Label) {
	if p.made.Load() > 0 {
		return
	}
	p.read.Add(1)
	parsed = slices.DeleteFunc(slices.Clone(parsed), func(l stage.Label) bool { return strings.HasPrefix(l.Name, "__error") })
	if len(parsed) >= p.fields {
		p.made.Add(1)
	} else if p.other.Load() == nil {
		value, _ := record.Lookup(line, "msg")
		text := survey.Plain(value)
		p.other.Store(&text)
	}
}

// parsing is the memory of one call.
type parsing struct {
	entry stage.Entry
	line  []byte
}

// newParser returns the parser of [Ask.Parse].
func newParser(text string, b *budget.Budget) (*parser, error) {
	what := text
	switch {
	case text == "json", text == "logfmt":
	case !strings.Contains(text, "<"):
		return nil, &AskError{"parse", fmt.Errorf("%.60q: it must be json, logfmt, or a pattern such as '<ip> - <user> \"<method> <path>\"'", text)}
	default:
		what = "pattern " + strconv.Quote(text)
	}
	tree, err := logql.Parse(`{service_name=~"_.*|.*"} | ` + what)
	if err != nil {
		return nil, &AskError{"parse", err}
	}
	lines, ok := tree.(*logql.LogExpr)
	if !ok {
		return nil, &AskError{"parse", errors.New("it is no stage")}
	}
	pipe, err := stage.View{Budget: b}.Compile(lines)
	if err != nil {
		return nil, &AskError{"parse", err}
	}
	return &parser{pipe: pipe, fields: max(1, len(regexp.MustCompile(`<[A-Za-z]\w*>`).FindAllString(text, -1)))}, nil
}

// with calls f with a line that has the fields of its message too. The line is valid during the
// call.
func (p *parser) with(line []byte, f func(line []byte) error) error {
	m, ok := p.pool.Get().(*parsing)
	if !ok {
		m = &parsing{}
	}
	defer p.pool.Put(m)
	m.line = p.append(m.line[:0], line, &m.entry)
	return f(m.line)
}

// append appends a line with the fields of its message. Text that the parser cannot read stays as
// it is. The text of a field that looks like a number is a number, as LogQL compares it.
func (p *parser) append(dst, line []byte, e *stage.Entry) []byte {
	object := bytes.TrimSuffix(line, []byte("\n"))
	if !p.pipe.Entry(line, e) || len(object) < 2 {
		return append(dst, line...)
	}
	p.count(line, e.Parsed)
	dst = append(dst, object[:len(object)-1]...)
	for _, l := range e.Parsed {
		if strings.HasPrefix(l.Name, "__error") && !p.whole {
			continue
		}
		dst = appendName(dst, line, l.Name)
		if isNumber(l.Value) {
			dst = append(dst, l.Value...)
			continue
		}
		dst = append(record.AppendEscaped(append(dst, '"'), []byte(l.Value)), '"')
	}
	if p.whole && p.pipe.ChangesLine() {
		dst = append(record.AppendEscaped(append(appendName(dst, line, madeLine), '"'), e.Line), '"')
	}
	return append(dst, "}\n"...)
}

// appendName appends the name of a further field of a line.
func appendName(dst, line []byte, name string) []byte {
	dst = record.AppendEscaped(append(dst, ',', '"'), []byte(name))
	if _, own := record.Lookup(line, name); own {
		dst = append(dst, "_extracted"...) // as Loki names what a label has already
	}
	return append(dst, '"', ':')
}

// isNumber reports whether a text is a number of JSON.
func isNumber(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || digits[0] < '0' || digits[0] > '9' || len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' ||
		strings.HasSuffix(digits, ".") || strings.Trim(digits, "0123456789.eE+-") != "" {
		return false
	}
	_, err := strconv.ParseFloat(text, 64)
	return err == nil && !strings.Contains(digits, ".e") && !strings.Contains(digits, ".E")
}

// Parsed returns emit for stored lines, which it gets with the fields that the question makes of
// their messages. The question must be compiled ([Ask.Matcher]).
func (a *Ask) Parsed(emit func(lines []byte) error) func(lines []byte) error {
	if a.parser == nil {
		return emit
	}
	return a.parser.each(emit)
}

// Labelled is Parsed for the labels that the stages of [Ask.LogQL] make. A source gives the records
// of a query as they are stored, and a front that shows them calls it. made is the field of the lines
// that the stages make; "": they change none.
func (a *Ask) Labelled(emit func(lines []byte) error) (labelled func(lines []byte) error, made string) {
	if a.LogQL == "" || a.pipe == nil {
		return emit, ""
	}
	if a.pipe.ChangesLine() {
		made = madeLine
	}
	return (&parser{pipe: a.pipe, whole: true}).each(emit), made
}

// each returns emit for lines to which the parser adds fields.
func (p *parser) each(emit func(lines []byte) error) func(lines []byte) error {
	var out []byte
	var e stage.Entry
	return func(lines []byte) error {
		out = out[:0]
		for line := range bytes.Lines(lines) {
			out = p.append(out, line, &e)
		}
		return emit(out)
	}
}

// parsedEntry is parsed for records with their identity.
func (a *Ask) parsedEntry(visit func(*record.Entry) error) func(*record.Entry) error {
	if a.parser == nil {
		return visit
	}
	return func(e *record.Entry) error {
		return a.parser.with(e.Line, func(line []byte) error {
			of := *e
			of.Line = line
			return visit(&of)
		})
	}
}
