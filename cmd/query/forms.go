package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"blobtail/internal/budget"
	"blobtail/internal/cli"
	"blobtail/internal/printing"
	"blobtail/reading"
	"blobtail/reading/survey"
	"blobtail/record"
)

// outputFlags select the form of records.
type outputFlags struct {
	Output   string   `short:"o" help:"pretty, json (the stored lines), raw (the messages; of a record without one, the stored line), csv or logfmt." placeholder:"FORM"`
	Fields   []string `help:"Only these fields, in this order." placeholder:"A,B"`
	Template string   `help:"Write each record by a template of Go, such as '{{.ts}} {{.msg}}'." placeholder:"TEXT"`
}

// columnsOfCSV are the fields of csv without --fields. A line cannot get more columns
// than the header before it.
var columnsOfCSV = []string{"ts", "level", "service", "msg"}

// A printer writes lines of records in one form.
type printer struct {
	a     *app
	share *budget.Share                 // for values made of a record
	line  func(dst, line []byte) []byte // nil: lines stay as they are
	buf   []byte
	// emit takes stored lines; print takes those with the labels that a query makes.
	emit func(lines []byte) error
	// people read the form.
	people bool
	// The names of fields that csv has no column for.
	left map[string]bool
	// fields are those of --fields, unseen those that no record has had; printed: there was a record.
	fields, unseen []string
	printed        bool
	// failed counts the records for which the template fails; failure is the first error.
	failed  int
	failure error
}

func (a *app) printer(f outputFlags, ask *reading.Ask) (*printer, error) {
	form, err := a.form(f.Output, "pretty", "json", "raw", "csv", "logfmt")
	if err != nil {
		return nil, err
	}
	for i, name := range f.Fields {
		f.Fields[i] = strings.TrimSpace(name) // --fields 'ts, msg'
	}
	share := a.made.Share()
	p := &printer{a: a, share: &share, people: f.Template == "" && (form == "pretty" || form == "raw"), fields: f.Fields, unseen: slices.Clone(f.Fields)}
	switch {
	case f.Template != "" && (f.Output != "" || len(f.Fields) > 0):
		return nil, cli.Usagef("--template is a form of its own; leave out -o and --fields")
	case f.Template != "":
		p.line, err = p.templated(f.Template)
	case form == "raw" && len(f.Fields) > 0:
		return nil, cli.Usagef("-o raw has the message only; for fields: -o csv or logfmt")
	case form == "raw":
		p.line = a.appendRaw
	case form == "json" && len(f.Fields) > 0:
		p.line = chosen{f.Fields, p.share}.appendJSON
	case form == "logfmt":
		p.line = chosen{f.Fields, p.share}.appendLogfmt
	case form == "csv":
		p.left = map[string]bool{}
		p.line, err = p.csv(f.Fields)
	case form == "pretty":
		pretty := &prettyPrinter{zone: a.now.Location(), color: a.color, of: chosen{f.Fields, p.share}, once: a.env.outTTY}
		if pretty.match, err = ask.Matcher(a.made); err != nil {
			return nil, err
		}
		p.line = pretty.append
	}
	if err == nil && a.env.outTTY && !p.people {
		if p.line == nil { // JSON, as it is stored
			p.line = func(dst, line []byte) []byte { return append(dst, line...) }
		}
		p.line = safely(p.line)
	}
	return p, err
}

// safely makes a form safe for terminals.
func safely(line func(dst, line []byte) []byte) func(dst, line []byte) []byte {
	var text []byte
	return func(dst, of []byte) []byte {
		if text = line(text[:0], of); len(text) == 0 {
			return dst
		}
		return append(cli.AppendSafe(dst, bytes.TrimSuffix(text, []byte("\n")), "\n"), '\n')
	}
}

// print writes lines.
func (p *printer) print(lines []byte) error {
	p.look(lines)
	if p.line != nil {
		return p.form(lines)
	}
	_, err := p.a.out.Write(lines)
	return err
}

// form writes lines in their form, some at a time.
func (p *printer) form(lines []byte) error {
	p.buf = p.buf[:0]
	for line := range bytes.Lines(lines) {
		p.buf = p.line(p.buf, line)
		p.share.Release()
		if err := p.a.made.Err(); err != nil {
			return err
		}
		if len(p.buf) >= outputBuffer {
			if _, err := p.a.out.Write(p.buf); err != nil {
				return err
			}
			p.buf = p.buf[:0]
		}
	}
	_, err := p.a.out.Write(p.buf)
	return err
}

// look crosses the fields that a record has off the unseen ones.
func (p *printer) look(lines []byte) {
	p.printed = p.printed || len(lines) > 0
	for line := range bytes.Lines(lines) {
		if len(p.unseen) == 0 {
			return
		}
		p.unseen = slices.DeleteFunc(p.unseen, func(name string) bool {
			_, ok := record.Lookup(line, name)
			return ok
		})
	}
}

// separate stands between records that are not adjacent, in the forms for people.
func (p *printer) separate() error {
	if !p.people {
		return nil
	}
	_, err := p.a.out.Write([]byte("--\n"))
	return err
}

// problem is the failure of the template, after all records; nil: there is none.
func (p *printer) problem() error {
	if p.failed == 0 {
		return nil
	}
	records := "1 record, which is"
	if p.failed > 1 {
		records = cli.Thousands(p.failed) + " records, which are"
	}
	return fmt.Errorf("--template fails for %s left out: %w", records, p.failure)
}

// fieldsMeant is what was probably meant by names that no record has: several with a sign between them
// that is no comma, one with a sign before it, or all; "": they may be names of other records.
func (p *printer) fieldsMeant() string {
	var right []string
	for _, name := range p.fields {
		words := []string{name}
		if slices.Contains(p.unseen, name) {
			words = strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(" \t;|+", r) })
		}
		for _, word := range words {
			right = append(right, strings.Trim(word, ".${}%"))
		}
	}
	switch list := strings.Join(right, ","); {
	case list == "all" || strings.Contains(strings.Join(p.unseen, ""), "*"):
		return "for all fields leave --fields out; for some name each of them"
	case list != strings.Join(p.fields, ","):
		return "names stand with commas, and have no sign before them: --fields " + cli.ShellWords(list)
	}
	return ""
}

// end says which fields have no column, and which columns have no field. An error is a mistake in the
// names, or of the output.
func (p *printer) end() error {
	if len(p.unseen) > 0 && p.printed {
		if meant := p.fieldsMeant(); meant != "" {
			return cli.Usagef("--fields: none of these records has %s; %s", strings.Join(p.unseen, ", "), meant)
		}
		p.a.Note("--fields: none of these records has %s; logquery fields lists the fields", strings.Join(p.unseen, ", "))
	}
	if len(p.left) == 0 {
		return nil
	}
	const most = 10
	names := slices.Sorted(maps.Keys(p.left))
	more := ""
	if len(names) > most {
		names, more = names[:most], ", ..."
	}
	p.a.Note("the columns are %s; the records also have %s%s: --fields %s", strings.Join(columnsOfCSV, ", "), strings.Join(names, ", "), more,
		cli.ShellWords(strings.Join(slices.Concat(columnsOfCSV, names), ",")))
	return nil
}

// chosen are the fields that a form has, in this order; none: all.
type chosen struct {
	fields []string
	share  *budget.Share
}

// has reports whether a field is shown if a record has it.
func (c chosen) has(name string) bool { return len(c.fields) == 0 || slices.Contains(c.fields, name) }

// each calls yield for each chosen field of a line, as far as the budget allows it: a field may be
// chosen many times.
func (c chosen) each(line []byte, yield func(name, value []byte)) {
	if len(c.fields) == 0 {
		for name, value := range record.Fields(line) {
			yield(record.AppendUnescaped(nil, name), value)
		}
		return
	}
	for _, name := range c.fields {
		value, _ := record.Lookup(line, name)
		if c.share.Take(len(name)+2*len(value)) != nil {
			return
		}
		yield([]byte(name), value)
	}
}

func (c chosen) appendJSON(dst, line []byte) []byte {
	dst = append(dst, '{')
	c.each(line, func(name, value []byte) {
		if value == nil {
			return
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(record.AppendEscaped(append(dst, '"'), name), `":`...)
		dst = append(dst, value...)
	})
	return append(dst, "}\n"...)
}

func (c chosen) appendLogfmt(dst, line []byte) []byte {
	start := len(dst)
	c.each(line, func(name, value []byte) {
		if value == nil {
			return
		}
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		for _, c := range name {
			if c <= ' ' || c == '=' || c == '"' {
				c = '_' // such a key has no form
			}
			dst = append(dst, c)
		}
		dst = append(append(dst, '='), record.Bare(value)...)
	})
	return append(dst, '\n')
}

// csv returns a function that appends a line of RFC 4180, and before the first one the
// header.
func (p *printer) csv(fields []string) (func(dst, line []byte) []byte, error) {
	columns := fields
	if len(fields) == 0 {
		columns = columnsOfCSV
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	row := slices.Clone(columns)
	if err := w.Write(row); err != nil {
		return nil, err
	}
	of := chosen{columns, p.share}
	return func(dst, line []byte) []byte {
		if len(fields) == 0 {
			for name := range record.Fields(line) {
				if !slices.Contains(columns, string(name)) && !p.left[string(name)] {
					p.left[string(name)] = true
				}
			}
		}
		row = row[:0]
		of.each(line, func(_, value []byte) { row = append(row, survey.Plain(value)) })
		_ = w.Write(row) // a buffer takes everything
		w.Flush()
		dst = append(dst, out.Bytes()...)
		out.Reset()
		return dst
	}, nil
}

// escapes makes tabs and newlines of \t and \n outside of actions, as people know them from
// other tools with templates.
func escapes(text string) string {
	var out strings.Builder
	spelt := strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n")
	for {
		plain, action, more := strings.Cut(text, "{{")
		out.WriteString(spelt.Replace(plain))
		if !more {
			return out.String()
		}
		inside, rest, closed := strings.Cut(action, "}}")
		out.WriteString("{{" + inside)
		if !closed {
			return out.String() // the parser reports it
		}
		out.WriteString("}}")
		text = rest
	}
}

// fieldless refuses a template that prints the name of a field in place of its value, as {ts} for
// {{.ts}}, or the same text for each record.
func fieldless(text string) error {
	outside := regexp.MustCompile(`(?s)\{\{.*?\}\}`).ReplaceAllString(text, "")
	if m := regexp.MustCompile(`[$%]?\{\.?([A-Za-z_@][A-Za-z0-9_.@-]*)\}`).FindStringSubmatch(outside); m != nil {
		field := "." + m[1]
		if strings.ContainsAny(m[1], "-@") {
			field = fmt.Sprintf("index . %q", m[1])
		}
		return cli.Usagef("--template: %s is printed as it is; for the field: {{%s}}; for the text: {{%q}}", m[0], field, m[0])
	}
	if !strings.Contains(text, "{{") {
		return cli.Usagef("--template %s: it has no field, so each record would give the same text; a field is {{.ts}}: see logquery fields", cli.ShellWords(text))
	}
	return nil
}

// templateValue decodes a value for a template, with its numbers as [decimal].
func templateValue(value []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	err = d.Decode(&v)
	return decimals(v), err
}

// decimals makes a decimal of each number in a value. An integer that a float64 cannot hold
// stays a text of digits.
func decimals(v any) any {
	switch of := v.(type) {
	case json.Number:
		f, err := of.Float64()
		if err != nil || math.Abs(f) > 1<<53 {
			return of
		}
		return decimal(f)
	case map[string]any:
		for key, value := range of {
			of[key] = decimals(value)
		}
	case []any:
		for i, value := range of {
			of[i] = decimals(value)
		}
	}
	return v
}

// A decimal is a number that a template prints without an exponent, as records have it.
type decimal float64

// String implements [fmt.Stringer].
func (d decimal) String() string { return strconv.FormatFloat(float64(d), 'f', -1, 64) }

// mostText is how long the text that a template makes of a record may be, and each text that a
// function in it makes.
const mostText = 64 << 20

var errText = errors.New("the template makes more than 64 MiB for one record")

// templated returns a function that appends the text that a template makes of a record, and a
// newline. It leaves out a record for which the template fails.
func (p *printer) templated(text string) (func(dst, line []byte) []byte, error) {
	if err := fieldless(text); err != nil {
		return nil, err
	}
	bounds := printing.Bounds{Most: mostText, Err: errText, Take: p.share.Take}
	t, err := template.New("record").Funcs(bounds.Functions()).Parse(escapes(text))
	if err == nil {
		// Other failures depend on the record, such as {{slice .msg 0 9}} of one without msg.
		err = t.Execute(&printing.Output{Bounds: bounds}, map[string]any{})
		if err != nil && !strings.Contains(err.Error(), "not defined") && !strings.Contains(err.Error(), "maximum template depth") {
			err = nil
		}
	}
	if err != nil {
		hint := ""
		if m := regexp.MustCompile(`function "([^"]+)" not defined`).FindStringSubmatch(err.Error()); m != nil {
			hint = "; a field has a point: {{." + m[1] + "}}"
		}
		return nil, cli.Usagef("--template: %s%s", strings.TrimPrefix(err.Error(), "template: "), hint)
	}
	p.share.Release()
	out := printing.Output{Bounds: bounds}
	return func(dst, line []byte) []byte {
		fields := map[string]any{}
		for name, value := range record.Fields(line) {
			if v, err := templateValue(value); err == nil {
				fields[string(record.AppendUnescaped(nil, name))] = v
			}
		}
		out.B = out.B[:0]
		if err := t.Execute(&out, fields); err != nil {
			if p.failed++; p.failed == 1 {
				p.failure = errors.New(strings.TrimPrefix(err.Error(), "template: "))
			}
			return dst
		}
		return append(append(dst, out.B...), '\n')
	}, nil
}
