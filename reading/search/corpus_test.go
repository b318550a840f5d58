package search_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"blobtail/internal/where"
	"blobtail/reading/blobs"
	"blobtail/reading/search"
	"blobtail/record"
	"blobtail/record/meaning"
)

// A rec is a record of testdata/records.jsonl. Its number is that of its line, from 1.
type rec struct {
	line                string
	fields              map[string]any
	level, service, msg string
	texts               []string // those that a text filter looks at
}

// corpus are the records of the table.
func corpus(t testing.TB) (all []*rec) {
	t.Helper()
	text, err := os.ReadFile("testdata/records.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	p := meaning.NewReader()
	for line := range strings.Lines(string(text)) {
		if _, err := p.Scan([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if stored, _ := p.AppendLine(nil, &meaning.Defaults{}); string(stored) != line {
			t.Fatalf("%q is stored as %q", line, stored)
		}
		r := &rec{line: strings.TrimSuffix(line, "\n")}
		if err := json.Unmarshal([]byte(line), &r.fields); err != nil {
			t.Fatal(err)
		}
		r.level, r.service, r.msg = r.fields["level"].(string), r.fields["service"].(string), r.fields["msg"].(string)
		for name, value := range record.Fields([]byte(r.line)) {
			if s, ok := r.fields[string(name)].(string); ok {
				r.texts = append(r.texts, s)
			}
			if !slices.Contains([]string{"ts", "level", "service", "msg"}, string(name)) {
				r.texts = append(r.texts, string(name)+"="+string(record.Bare(value)))
			}
		}
		_, rest, _ := strings.Cut(r.line, `"msg":`)
		r.texts = append(r.texts, rest)
		all = append(all, r)
	}
	return all
}

// has reports whether a text of the record has s.
func (r *rec) has(s string) bool {
	return slices.ContainsFunc(r.texts, func(text string) bool { return strings.Contains(text, s) })
}

// fold is has for upper and lower case.
func (r *rec) fold(s string) bool {
	return slices.ContainsFunc(r.texts, func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(s)) })
}

// re reports whether an expression matches a text of the record.
func (r *rec) re(expr string) bool {
	return slices.ContainsFunc(r.texts, regexp.MustCompile(expr).MatchString)
}

// get is the value of a field, or of one in an object; nil: there is none.
func (r *rec) get(name string) any {
	if v, ok := r.fields[name]; ok {
		return v
	}
	var v any = r.fields
	for part := range strings.SplitSeq(name, ".") {
		object, _ := v.(map[string]any)
		v = object[part]
	}
	return v
}

// is reports whether a field is this number, word or text.
func (r *rec) is(name, value string) bool {
	switch v := r.get(name).(type) {
	case string:
		return v == value
	case float64:
		x, err := strconv.ParseFloat(value, 64)
		return err == nil && x == v
	case bool:
		return strconv.FormatBool(v) == value
	}
	return false
}

// either is is, or the text name:value.
func (r *rec) either(name, value string) bool { return r.is(name, value) || r.has(name+":"+value) }

// num is the number of a field, also of the text of one.
func (r *rec) num(name string) (x float64, ok bool) {
	switch v := r.get(name).(type) {
	case string:
		x, err := strconv.ParseFloat(v, 64)
		return x, err == nil
	case float64:
		return v, true
	}
	return 0, false
}

// within reports whether a field is a number from a to b.
func (r *rec) within(name string, a, b float64) bool {
	x, ok := r.num(name)
	return ok && a <= x && x <= b
}

// like reports whether an expression matches the value of a field as a text.
func (r *rec) like(name, expr string) bool {
	v := r.get(name)
	if v == nil {
		return false
	}
	s, ok := v.(string)
	if !ok {
		b, _ := json.Marshal(v)
		s = string(b)
	}
	return regexp.MustCompile(expr).MatchString(s)
}

// rank is the place of the level in their order; -1: it is another word.
func (r *rec) rank() int {
	return slices.Index([]string{"trace", "debug", "info", "warn", "error", "critical"}, r.level)
}

// A filter is a line as a question about records: its services and its other parts.
type filter struct {
	services []string
	match    *blobs.Matcher
}

// filterOf is the filter of a line, as a reader makes it of the parts.
func filterOf(q *search.Query, fold bool) (f filter, err error) {
	p, err := q.Parts(fold, nil)
	if err != nil {
		return f, err
	}
	of := blobs.Filter{Levels: p.Levels, Texts: p.Texts, Without: p.Without, Exprs: p.Exprs, Fold: fold}
	if p.Where != "" {
		if of.Where, err = where.Parse(nil, p.Where, fold); err != nil {
			return f, err
		}
	}
	f.services = p.Services
	f.match, err = of.Matcher(nil)
	return f, err
}

// finds reports whether the filter selects a record.
func (f *filter) finds(r *rec) bool {
	wanted := f.services == nil || slices.ContainsFunc(f.services, func(s string) bool { return record.MatchService(s, r.service) })
	return wanted && f.match.Line([]byte(r.line+"\n"))
}
