package reading

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobtail/reading/search"
	"blobtail/record"
)

// A row is a field of an [Ask] in its text form.
type row struct {
	key    string
	many   bool                        // it may be given more than once
	filter bool                        // LogQL takes its place
	write  func() []string             // the values of the field; none: it is left out
	read   func(values []string) error // sets the field by values that are not empty
}

// texts is a row of texts that are as they are.
func texts(key string, field *[]string) row {
	return row{key: key, many: true, filter: true,
		write: func() []string {
			return slices.DeleteFunc(slices.Clone(*field), func(s string) bool { return s == "" })
		}, // "" matches everything
		read: func(values []string) error { *field = values; return nil },
	}
}

// text is a row of one text.
func text(key string, field *string) row {
	return row{key: key,
		write: func() []string { return some(*field) },
		read:  func(values []string) error { *field = values[0]; return nil },
	}
}

// flag is a row of a field that is true or false.
func flag(key string, field *bool) row {
	return row{key: key, filter: true,
		write: func() []string {
			if *field {
				return []string{"1"}
			}
			return nil
		},
		read: func(values []string) (err error) {
			*field, err = Params{key: values}.Flag(key)
			return err
		},
	}
}

// some is a text, or none if it is empty.
func some(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// of makes a row one of filters, which LogQL takes the place of.
func (r row) of() row { r.filter = true; return r }

// rows is the text form of a question: a row for each key. The range has keys of its own
// ([Params.Span]).
func (a *Ask) rows() []row {
	return []row{
		{key: "service", many: true, filter: true, write: func() []string { return a.Services }, read: a.readServices},
		text("logql", &a.LogQL),
		levels("level", &a.Levels),
		levels("notlevel", &a.NotLevels),
		texts("text", &a.Texts),
		texts("words", &a.Words),
		texts("expr", &a.Exprs),
		texts("without", &a.Without),
		text("where", &a.Where).of(),
		text("parse", &a.Parse),
		flag("not", &a.Not),
		flag("fold", &a.Fold),
		{key: "q", many: true, filter: true, write: a.remarked, read: func(values []string) error { return a.Search(values...) }},
		{key: "live", write: func() []string { return some(liveWord(a.Live)) }, read: a.readLive},
	}
}

// Keys are the parameters of a question about records: its rows, and those of its range.
func Keys() (keys []string) {
	for _, r := range new(Ask).rows() {
		keys = append(keys, r.key)
	}
	return append(SpanKeys(), keys...)
}

// SpanKeys are the parameters of a range, which [Params.Span] reads, and of its zone.
func SpanKeys() []string { return []string{"from", "to", "since", "day", "timezone"} }

// Repeats reports whether a parameter may be given more than once.
func Repeats(key string) bool {
	return key == "fields" || slices.ContainsFunc(new(Ask).rows(), func(r row) bool { return r.key == key && r.many })
}

// Values is the text form of a question, but for its order, number and fields ([Ask.Order]).
func (a *Ask) Values() url.Values {
	p := url.Values{}
	for _, r := range a.rows() {
		if values := r.write(); len(values) > 0 && !(r.filter && a.LogQL != "") {
			p[r.key] = values
		}
	}
	for _, end := range []struct {
		key      string
		ns, open int64
	}{{"from", a.Range.From, Oldest}, {"to", a.Range.To, Newest}} {
		if end.ns != end.open {
			p.Set(end.key, time.Unix(0, end.ns).UTC().Format(time.RFC3339Nano))
		}
	}
	if a.Here.Part != nil {
		p.Set("part", a.Here.Part.String())
	}
	return p
}

// ParseAsk reads the text form of a question. Times are relative to now and in its zone. It needs
// services, or LogQL. Mistakes are a [*ParamError] or an [*AskError].
func ParseAsk(p Params, now time.Time) (Ask, error) {
	var a Ask
	var err error
	if a.Range, err = p.Span(now); err != nil {
		return a, err
	}
	if text := p.Get("part"); text != "" {
		if a.Here.Part, err = parsePart(text); err != nil {
			return a, err
		}
	}
	chosen := p.Get("logql") != ""
	for _, r := range a.rows() {
		values := p[r.key]
		if len(values) == 0 {
			continue
		}
		if chosen && r.filter {
			return a, badParam(r.key, "logql selects services and records by itself; leave out %s, or logql", r.key)
		}
		if err := r.read(values); err != nil {
			return a, err
		}
	}
	if !chosen && len(a.Services) == 0 {
		return a, &NoNameError{}
	}
	return a, nil
}

// Search adds the filters of search lines (package search), which all count, to those of the question.
// It says before whether it folds, and among which services. The error is an [*AskError] with the
// key q, of a [*search.Mistake] if it is in a line.
func (a *Ask) Search(lines ...string) error {
	var all []*search.Query
	for _, line := range lines {
		q, err := search.Parse(line)
		if err != nil {
			return &AskError{"q", err}
		}
		all = append(all, q)
	}
	q, within := search.Join(all...), a.Services
	if slices.Contains(within, "*") {
		within = nil
	}
	p, err := q.Parts(a.Fold, within)
	switch {
	case err != nil:
	case a.Not:
		err = errors.New("it has NOT of its own: leave out the filter that turns texts round")
	case a.Levels != 0 && p.Levels != 0 && a.Levels&p.Levels == 0:
		err = errors.New("no level is in it and in the filter of levels")
	}
	if err != nil {
		return &AskError{"q", err}
	}
	if len(p.Services) > 0 {
		a.Services = p.Services
	}
	if p.Levels != 0 {
		if a.Levels == 0 {
			a.Levels = p.Levels
		}
		a.Levels &= p.Levels
	}
	a.Texts, a.Without, a.Exprs = slices.Concat(a.Texts, p.Texts), slices.Concat(a.Without, p.Without), slices.Concat(a.Exprs, p.Exprs)
	a.Where = search.And(a.Where, p.Where)
	a.searched, a.queries = append(a.searched, lines...), append(a.queries, q)
	return nil
}

// Searched is the query of the lines that [Ask.Search] has added.
func (a *Ask) Searched() *search.Query { return search.Join(a.queries...) }

// remarked are the lines of the search if they have notes, which a server makes of them. It gets their
// filters twice.
func (a *Ask) remarked() []string {
	if len(a.remarks(true)) == 0 {
		return nil
	}
	return a.searched
}

// NoNameError says that a question names no service. Text is the value that does not; "": there is
// none.
type NoNameError struct{ Text string }

// Error implements error.
func (e *NoNameError) Error() string {
	if e.Text != "" {
		return fmt.Sprintf("service=%.100s names no service", e.Text)
	}
	return "which service? Add service=NAME, or service=* for all"
}

func (a *Ask) readServices(values []string) error {
	for _, value := range values {
		if len(ParseServices([]string{value})) == 0 {
			return &NoNameError{value}
		}
	}
	a.Services = ParseServices(values)
	return nil
}

// levels is a row of a set of levels.
func levels(key string, field *LevelSet) row {
	return row{key: key, filter: true,
		write: func() []string { return some(levelNames(*field)) },
		read: func(values []string) error {
			value, err := typedLevels(values[0])
			if err == nil {
				*field, err = ParseLevels(value)
			}
			if err != nil {
				return &AskError{key, err}
			}
			return nil
		},
	}
}

// typedLevels is a list of levels as it was typed. A blank at its end was the + of warn+, which
// is a blank in a URL. One before a comma may have been that, or be there for no reason.
func typedLevels(text string) (string, error) {
	if strings.Contains(text, " ,") {
		return "", fmt.Errorf("%q has two readings, because a + in a URL is a blank: write %%2B for a +, and no blank before a comma", text)
	}
	if level, typed := strings.CutSuffix(text, " "); typed && !strings.HasSuffix(level, "+") {
		return level + "+", nil
	}
	return text, nil
}

// liveWord is the word of a mode. That of Auto is left out.
func liveWord(mode Mode) string {
	switch mode {
	case Off:
		return "off"
	case Only:
		return "only"
	}
	return ""
}

// ParseMode reads the word of a mode.
func ParseMode(word string) (Mode, error) {
	switch word {
	case "auto":
		return Auto, nil
	case "off":
		return Off, nil
	case "only":
		return Only, nil
	}
	return 0, errors.New("it must be auto, off or only")
}

func (a *Ask) readLive(values []string) (err error) {
	if a.Live, err = ParseMode(values[0]); err != nil {
		return badParam("live", "live=%.60s: %w", values[0], err)
	}
	return nil
}

// Listable reports whether names stay the same in a list with commas between them ([Params.List]).
func Listable(names []string) bool {
	return slices.Equal(Params{"": {strings.Join(names, ",")}}.List(""), names)
}

// Order is the text form of the number and the order of the records of a question, of the places
// next to them, and of their fields.
func (a *Ask) Order() url.Values {
	p := url.Values{}
	if a.First > 0 {
		p.Set("first", strconv.Itoa(a.First))
	} else {
		p.Set("limit", strconv.Itoa(a.Limit))
	}
	if a.Reverse {
		p.Set("order", "desc")
	}
	if len(a.Fields) > 0 && Listable(a.Fields) { // else the answer has the others too
		p.Set("fields", strings.Join(a.Fields, ","))
	}
	for _, r := range a.edges() {
		if values := r.write(); values != nil {
			p[r.key] = values
		}
	}
	return p
}

// ReadOrder reads the number and the order of the records, the places next to them, and their
// fields. Without a number the newest so many are wanted.
func (a *Ask) ReadOrder(p Params, newest int) error {
	if p.Get("limit") != "" && p.Get("first") != "" {
		return badParam("first", "limit is of the newest records and first of the oldest ones; leave one out")
	}
	order, err := p.Word("order", "asc", "desc")
	if err != nil {
		return err
	}
	a.Reverse = order == "desc"
	const most = int(^uint(0) >> 1)
	if a.First, err = p.Number("first", 0, 0, most); err != nil {
		return err
	}
	if p.Get("first") != "" {
		newest = 0
	}
	if a.Limit, err = p.Number("limit", newest, 0, most); err != nil {
		return err
	}
	a.Fields = p.List("fields")
	for _, r := range a.edges() {
		if values := p[r.key]; len(values) > 0 {
			if err := r.read(values); err != nil {
				return err
			}
		}
	}
	if e := &a.Edges; e.After != nil && e.Before != nil && e.Before.Compare(e.After) <= 0 {
		return badParam("before", "no record is before %s and after %s: before wants the later one of two records", p.Get("before"), p.Get("after"))
	}
	return nil
}

// edge is a row of a place next to the wanted records, by the id of its record.
func edge(key string, field **record.Key) row {
	return row{key: key,
		write: func() []string {
			if *field == nil {
				return nil
			}
			return []string{string((*field).Append(nil))}
		},
		read: func(values []string) error {
			*field = &record.Key{}
			if err := (*field).UnmarshalText([]byte(values[0])); err != nil {
				return badParam(key, "%s: %w", key, err)
			}
			return nil
		},
	}
}

// edges are the rows of the edges.
func (a *Ask) edges() []row {
	return []row{edge("after", &a.Edges.After), edge("before", &a.Edges.Before)}
}
