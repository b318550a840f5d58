package reading

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"blobtail/internal/budget"
	"blobtail/internal/globset"
	"blobtail/logql"
	"blobtail/logql/stage"
	"blobtail/reading/blobs"
	"blobtail/reading/survey"
	"blobtail/record"
	"blobtail/record/forms"
)

// madeLine is the field of the line that the stages of a query make of a record.
const madeLine = "__line__"

// stages is the [Ask.Parse] of a question in LogQL: the fields that its stages make.
const stages = "stages"

// A maker makes fields of a message: a form, or stages of LogQL. Several goroutines may use it at once.
type maker interface {
	// Append appends a line with the fields, or as it is if the message has none.
	Append(dst, line []byte, store bool) (_ []byte, has bool)
}

// A parser has the makers of a question. Several goroutines may use it at once.
type parser struct {
	makers []maker
	set    *globset.Set // of the makers; nil: the first is for all services, and messages are counted

	read, made atomic.Int64 // messages, and those that have the form
	other      atomic.Pointer[string]
}

// note tells that no message has the form; "": some have.
func (p *parser) note() string {
	message := p.other.Load()
	if message == nil || p.made.Load() > 0 {
		return ""
	}
	form, name := "a pattern has the text of a message around names in < >", forms.NewTable().Fitting([]byte(*message))
	switch text := *message; {
	case name != "":
	case strings.HasPrefix(text, "{"):
		name = "json"
	case regexp.MustCompile(`(^| )[A-Za-z_][\w.]*=[^= ]`).MatchString(text):
		name = "logfmt"
	}
	if name != "" {
		form = fmt.Sprintf("write --parse %s (parse=%[1]s in the API)", name)
	}
	return fmt.Sprintf("parse: none of %d messages has that form, and one is %.60q; %s", p.read.Load(), *message, form)
}

// count counts a message.
func (p *parser) count(line []byte, has bool) {
	if p.set != nil || p.made.Load() > 0 {
		return
	}
	if p.read.Add(1); has {
		p.made.Add(1)
	} else if p.other.Load() == nil {
		value, _ := record.Lookup(line, "msg")
		text := survey.Plain(value)
		p.other.Store(&text)
	}
}

// newParser returns the parser of [Ask.Parse]; nil if it makes no field of the services.
func (a *Ask) newParser(b *budget.Budget) (*parser, error) {
	p := &parser{}
	switch {
	case (a.Parse == stages) != (a.pipe != nil):
		return nil, &AskError{"parse", errors.New("parse=stages is for logql, and the only one beside it")}
	case a.Parse == stages:
		p.makers = []maker{&staged{pipe: a.pipe}}
		return p, nil
	case a.Parse == "none":
		return nil, nil
	}
	rules, err := forms.Rules(a.Parse)
	var globs []string
	for _, r := range rules {
		form, bad := forms.Compile(r.Form)
		of := maker(form)
		if bad == nil && form.Stage {
			tree, _ := logql.Parse(`{service_name=~"_.*|.*"} | ` + r.Form) // can be read
			s := &staged{}
			s.pipe, bad = stage.View{Budget: b}.Compile(tree.(*logql.LogExpr))
			of = s
		}
		err = errors.Join(err, bad)
		for _, glob := range r.Services {
			globs, p.makers = append(globs, glob), append(p.makers, of)
		}
	}
	if err != nil {
		return nil, &AskError{"parse", err}
	}
	if !strings.HasPrefix(a.Parse, "[{") {
		return p, nil
	}
	p.set = globset.New(globs)
	if !slices.ContainsFunc(a.Services, func(s string) bool { return !record.ValidStored(s) || len(p.set.Match(s)) > 0 }) {
		return nil, nil // others than those that have forms
	}
	return p, nil
}

// makes reports whether the parser may make a field of a name.
func (p *parser) makes(name string) bool {
	return strings.HasSuffix(name, "_extracted") || slices.ContainsFunc(p.makers, func(m maker) bool {
		form, ok := m.(*forms.Form)
		return !ok || form.Makes(name)
	})
}

// append appends lines with the fields of their messages.
func (p *parser) append(dst, lines []byte) []byte {
	for line := range bytes.Lines(lines) {
		of := p.makers[0]
		if p.set != nil {
			service, _ := record.LineService(line)
			n := p.set.Match(string(service))
			if len(n) == 0 {
				dst = append(dst, line...)
				continue
			}
			of = p.makers[n[0]]
		}
		var has bool
		dst, has = of.Append(dst, line, false)
		p.count(line, has)
	}
	return dst
}

// folds reports whether a read may fold its blocks, and keep what comes of them: nobody counts the
// messages without a form.
func (a *Ask) folds() bool { return a.parser == nil || a.parser.set != nil }

// fold is a fold of lines that get the fields of their messages.
func (a *Ask) fold(f blobs.Fold) blobs.Fold {
	p, of := a.parser, f.Of
	if p == nil {
		return f
	}
	if f.ID != "" {
		f.ID += " " + a.Parse
	}
	f.Of = func(lines []byte) (any, int64, error) { return of(p.append(make([]byte, 0, 2*len(lines)), lines)) }
	return f
}

// staged makes the fields of the stages of a query.
type staged struct {
	pipe  *stage.Pipeline
	whole bool      // errors of stages are fields, and so is the line that they make
	pool  sync.Pool // of *stage.Entry
}

// Append implements [maker].
func (s *staged) Append(dst, line []byte, _ bool) (_ []byte, has bool) {
	e, ok := s.pool.Get().(*stage.Entry)
	if !ok {
		e = &stage.Entry{}
	}
	defer s.pool.Put(e)
	object := bytes.TrimSuffix(line, []byte("\n"))
	if !s.pipe.Entry(line, e) || len(object) < 2 {
		return append(dst, line...), false
	}
	dst = append(dst, object[:len(object)-1]...)
	for _, l := range e.Parsed {
		bad := strings.HasPrefix(l.Name, "__error")
		if has = has || !bad; !bad || s.whole {
			dst = forms.AppendValue(appendName(dst, line, l.Name), []byte(l.Value))
		}
	}
	if s.whole && s.pipe.ChangesLine() {
		dst = append(record.AppendEscaped(append(appendName(dst, line, madeLine), '"'), e.Line), '"')
	}
	return append(dst, "}\n"...), has
}

// appendName appends the name of a further field of a line.
func appendName(dst, line []byte, name string) []byte {
	dst = record.AppendEscaped(append(dst, ',', '"'), []byte(name))
	if _, own := record.Lookup(line, name); own {
		dst = append(dst, "_extracted"...) // as Loki names what a label has already
	}
	return append(dst, '"', ':')
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
	return (&parser{makers: []maker{&staged{pipe: a.pipe, whole: true}}}).each(emit), made
}

// each returns emit for lines to which the parser adds fields.
func (p *parser) each(emit func(lines []byte) error) func(lines []byte) error {
	var out []byte
	return func(lines []byte) error {
		out = p.append(out[:0], lines)
		return emit(out)
	}
}

// parsedEntry is parsed for records with their identity.
func (a *Ask) parsedEntry(visit func(*record.Entry) error) func(*record.Entry) error {
	if a.parser == nil {
		return visit
	}
	return func(e *record.Entry) error {
		of := *e
		of.Line = a.parser.append(nil, e.Line)
		return visit(&of)
	}
}
