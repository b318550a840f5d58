package answers

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Question is for both sides, in variants: the same of another service, time or word.
type Question struct {
	ID, Title, Note string
	Ours, Theirs    Asked
	// Printed is the form in which logquery prints the answer.
	Printed  Format
	Variants []*Variant
	// Again has clients ask its one variant again and again.
	Again bool
}

// Asked is how a server is asked, and answers.
type Asked struct {
	Route string // below /api/v1/ or /select/logsql/
	Format
}

// Variant is one request, to both sides.
type Variant struct {
	Args   []string   // of logquery
	Ours   url.Values // of /api/v1/
	Theirs []string   // of /select/logsql/, as NAME=VALUE
	Want   Answer
}

// How many variants a question has at most: more than a row asks for, if the corpus has them.
const (
	mostTexts   = 1024
	mostWindows = 64 // of each service
	mostFacets  = 32 // of each service
	mostMoments = 256
)

func stream(service string) string { return `{service="` + service + `"}` }

// values are parameters of a request, as names and values in turn.
func values(pairs ...string) url.Values {
	v := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		v.Set(pair[0], pair[1])
	}
	return v
}

// inTurn takes a variant of each service in turn, so that the requests of a burst have all services
// alike. The service of the generator's answers is the first.
func (x *Index) inTurn(of func(service string) []*Variant) (all []*Variant) {
	lists := make([][]*Variant, len(x.services))
	most := 0
	for i, service := range x.services {
		lists[i] = of(service)
		most = max(most, len(lists[i]))
	}
	for i := range most {
		for _, list := range lists {
			if i < len(list) {
				all = append(all, list[i])
			}
		}
	}
	return all
}

// span is a variant for a time of a service, or of all with the service *.
func (x *Index) span(service string, from, to time.Time, records []Record) *Variant {
	a, b := from.Format(time.RFC3339), to.Format(time.RFC3339)
	v := &Variant{Args: []string{service, "--from", a, "--to", b}, Ours: values("service", service, "from", a, "to", b),
		Theirs: []string{"query=_time:[" + a + ", " + b + ")"}, Want: AnswerOf(records)}
	if service != "*" {
		v.Theirs[0] += " " + stream(service)
	}
	return v
}

// spans draws times of services that begin with any minute and have some records. The generator's own
// is the first one of its service.
func (x *Index) spans(window, most, least int, of map[string][]Record, finish func(*Variant, time.Time, time.Time, []Record)) []*Variant {
	w := x.corpus.Windows[window]
	length := w.To.Sub(w.From)
	return x.inTurn(func(service string) (all []*Variant) {
		add := func(from time.Time) {
			to := from.Add(length)
			if records := within(of[service], from, to); len(records) >= least && len(all) < most {
				v := x.span(service, from, to, nil)
				finish(v, from, to, records)
				all = append(all, v)
			}
		}
		if service == x.services[0] {
			add(w.From)
		}
		for _, minute := range x.random.Perm(max(0, int(x.corpus.To.Sub(x.corpus.From)-length)/int(time.Minute)+1)) {
			if from := x.corpus.From.Add(time.Duration(minute) * time.Minute); !from.Equal(w.From) || service != x.services[0] {
				add(from)
			}
		}
		return all
	})
}

func (x *Index) windows() []*Variant {
	return x.spans(0, mostWindows, 3, x.errors, func(v *Variant, _, _ time.Time, of []Record) {
		v.Want = AnswerOf(of)
		v.Args, v.Theirs[0] = append(v.Args, "--level", "error,critical"), v.Theirs[0]+` level:in("error","critical")`
		v.Ours.Set("level", "error,critical")
	})
}

func (x *Index) hours() []*Variant {
	const most = 4 // of each service
	return x.spans(1, most, 1, x.all, func(v *Variant, _, _ time.Time, of []Record) { v.Want = AnswerOf(of) })
}

func (x *Index) facets() []*Variant {
	return x.spans(1, mostFacets, 1, x.all, func(v *Variant, from, to time.Time, _ []Record) {
		service := v.Args[0]
		v.Args = append([]string{"top", "status"}, append(v.Args, "-n", "50")...)
		for name, value := range map[string]string{"fields": "status", "sample": "0", "top": "50"} {
			v.Ours.Set(name, value)
		}
		v.Theirs[0] += " | top 50 by (status) hits as records"
		v.Want = Answer{count: func() Numbers {
			got := Numbers{}
			for c, n := range x.status {
				if c.service == service && c.minute >= from.Unix()/60 && c.minute < to.Unix()/60 {
					got[c.value] += n
				}
			}
			return got
		}}
	})
}

// searching is a variant that searches a service, or all with *, for a text.
func (x *Index) searching(service, flag, text, theirs string) *Variant {
	name := map[string]string{"-w": "words", "-F": "text", "-g": "expr"}[flag]
	f := finding{service, text}
	if service == "*" {
		f.service = ""
	}
	ours := values("service", service, name, text)
	return &Variant{[]string{service, flag, text}, ours, []string{"query=" + theirs}, AnswerOf(x.found[f])}
}

// everywhere are variants that search all services, for one of some texts.
func (x *Index) everywhere(texts []string, flag, theirs string) (all []*Variant) {
	for _, text := range texts[:min(len(texts), mostTexts)] {
		all = append(all, x.searching("*", flag, text, fmt.Sprintf(theirs, text)))
	}
	return all
}

// needles are the generator's, the first in most records.
func (x *Index) needles() (texts []string) {
	for _, n := range x.corpus.Needles {
		texts = append(texts, n.Token)
	}
	slices.SortStableFunc(texts, func(a, b string) int {
		most := func(text string) int { return map[bool]int{true: 0, false: 1}[len(x.found[finding{text: text}]) >= 3] }
		return cmp.Compare(most(a), most(b))
	})
	return texts
}

// inMessages are the generator's needles, each alone at first, and then with more and more characters
// of its message before it: there are few needles, and a request for a text that was asked before would
// be answered from memory.
func (x *Index) inMessages() []*Variant {
	var texts []string
	for before := range 16 {
		for _, p := range x.plants {
			text := p.before[max(0, len(p.before)-before):] + p.needle
			if slices.Contains(texts, text) || strings.ContainsAny(text, `"\`) {
				continue
			}
			texts = append(texts, text)
			x.found[finding{text: text}] = nil
			for _, other := range x.plants {
				if strings.HasSuffix(other.before+other.needle, text) {
					x.add(finding{text: text}, other.record)
				}
			}
		}
	}
	return x.everywhere(texts, "-F", `*"%s"*`)
}

// newestOfServices have the time of the corpus on both sides: VictoriaLogs halves the time of a query
// until it has few records, and without a beginning it would halve centuries.
func (x *Index) newestOfServices() []*Variant {
	return x.inTurn(func(service string) []*Variant {
		return []*Variant{x.span(service, x.corpus.From, x.corpus.To, x.newest(x.corpus.To, service))}
	})
}

// until draws moments: the end of the corpus, and others before it.
func (x *Index) until(step time.Duration) (all []time.Time) {
	for i := range int(x.corpus.To.Sub(x.corpus.From)/step) / 2 {
		all = append(all, x.corpus.To.Add(-time.Duration(i)*step))
	}
	rest := all[min(1, len(all)):]
	x.random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	return all[:min(mostMoments, len(all))]
}

func (x *Index) newestOfAll() (all []*Variant) {
	for _, at := range x.until(7 * time.Second) {
		all = append(all, x.span("*", x.corpus.From, at, x.newest(at, x.services...)))
	}
	return all
}

// counts are variants that count everything until a minute.
func (x *Index) counts(args []string, ours url.Values, theirs string, more []string, key func(cell) string) (all []*Variant) {
	for _, at := range x.until(time.Minute) {
		to := at.Format(time.RFC3339)
		query := values("service", "*", "to", to)
		for name := range ours {
			query.Set(name, ours.Get(name))
		}
		v := &Variant{Args: append([]string{"hist", "*", "--to", to}, args...), Ours: query}
		v.Theirs = append([]string{"query=_time:<" + to + theirs}, more...)
		v.Want.count = func() Numbers {
			got := Numbers{}
			for c, n := range x.levels {
				if c.minute < at.Unix()/60 {
					got[key(c)] += n
				}
			}
			return got
		}
		all = append(all, v)
	}
	return all
}

// inService are variants that search all hours of a service, for those of some texts that it has. The
// first text is the first one of the first service.
func (x *Index) inService(texts []string, flag string, theirs func(text string) string) []*Variant {
	return x.inTurn(func(service string) (all []*Variant) {
		of := slices.Clone(texts)
		rest := of
		if service == x.services[0] {
			rest = of[1:]
		}
		x.random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
		for _, text := range of {
			if v := x.searching(service, flag, text, stream(service)+" "+theirs(text)); v.Want.Len() > 0 {
				all = append(all, v)
			}
		}
		return all
	})
}

func (x *Index) expressions() []*Variant {
	return x.inService(append([]string{x.corpus.Regex}, expressions()...), "-g", func(text string) string {
		return `"` + literalOf(regexp.MustCompile(text)) + `" ~"` + text + `"`
	})
}

// records is a question for records. Those of ours come in order of time. VictoriaLogs promises none
// without a limit, and to sort costs it more.
func (x *Index) records(id, title, note string, variants []*Variant) *Question {
	variants = slices.DeleteFunc(variants, func(v *Variant) bool { return v.Want.Len() == 0 })
	for _, v := range variants {
		v.Ours.Set("limit", "0")
	}
	ours := Format{Form: x.Form, Order: OldestFirst}
	return &Question{ID: id, Title: title, Note: note, Variants: variants, Printed: ours,
		Ours: Asked{"records", ours}, Theirs: Asked{"query", Format{}}}
}

// newestFirst is a question for the newest records.
func (x *Index) newestFirst(id, title string, variants []*Variant) *Question {
	q := x.records(id, title, "", variants)
	for _, v := range q.Variants {
		v.Args, v.Theirs = append(v.Args, "-n", "100"), append(v.Theirs, "limit=100")
		v.Ours.Set("limit", "100")
	}
	q.Theirs.Order = NewestFirst
	return q
}

// numbers is how a server is asked for numbers.
func numbers(route string, read reader) Asked { return Asked{route, Format{Counts: read}} }

// again is a question with one variant, the first, which clients ask again and again.
func again(of *Question) *Question {
	q := *of
	title, _, _ := strings.Cut(of.Title, ";")
	q.ID, q.Again, q.Title = of.ID+"-again", true, title+"; the same is asked again, as panels do"
	q.Variants = of.Variants[:min(1, len(of.Variants))]
	return &q
}

// Questions makes the questions. Their forms in LogsQL are those that VictoriaLogs' documentation
// recommends: one filter of time, one of streams, and words before expressions. theirs is the form of
// its records.
func (x *Index) Questions(theirs Form) ([]*Question, error) {
	const messages = "VictoriaLogs searches messages, and blobtail whole records"
	const streams = "VictoriaLogs' streams are services. By service and level it takes about a tenth, " +
		"because it reads the streams of errors alone: `COMPARE_FLAGS='-streams service,level'`"
	half := len(x.tokens) / 2
	word := x.records("word", "a token of few records by its words; another token each time", messages,
		x.everywhere(slices.Concat(x.needles(), x.tokens[:half]), "-w", `"%s"`))
	expression := x.records("expression", "an expression with literals, one service; another expression and service each time",
		streams, x.expressions())
	rare := x.records("rare", "a seldom word over all hours of a service; another word and service each time", streams,
		x.inService(strings.Fields(seldom), "-w", func(word string) string { return `"` + word + `"` }))
	all := []*Question{
		x.records("window", "two minutes of a service, errors; other minutes and another service each time", "", x.windows()),
		x.records("hour", "an hour of a service; another hour and service each time",
			"blobtail's answers are in order of time, and VictoriaLogs' in none; its records also have `_stream` and `_stream_id`",
			x.hours()),
		word, again(word),
		x.records("token-text", "a token of few records by its characters; another token each time, or more characters before it",
			messages+". blobtail's index has the token's word, `needle`", x.inMessages()),
		x.records("text", "an id of 12 hexadecimal digits by its characters; another id each time",
			messages+". No index helps: the digits might be a part of a longer id, and they have no word",
			x.everywhere(x.tokens[half:], "-F", `*"%s"*`)),
		x.records("id", "a record by its request id; another id each time", "VictoriaLogs searches one field, and blobtail whole records",
			x.everywhere(x.requests, "-w", "request_id:=%q")),
		x.newestFirst("newest", "the newest 100 of a service; another service each time", x.newestOfServices()),
		x.newestFirst("newest-all", "the newest 100 of all until a moment; another moment each time", x.newestOfAll()),
		{ID: "minutes", Title: "per minute and level, everything until a minute; another minute each time",
			Variants: x.counts([]string{"--by", "1m"}, values("by", "1m"), "", []string{"step=1m", "field=level"}, minute),
			Printed:  Format{Counts: lines(byMinute)}, Ours: numbers("histogram", served(byMinute)), Theirs: numbers("hits", read(byHit))},
		{ID: "services", Title: "count of everything by service until a minute; another minute each time",
			Variants: x.counts([]string{"--by", "1d", "--by-field", "service", "--top", "50"}, values("by", "1d", "split", "service"),
				" | stats by (service) count() records", nil, func(c cell) string { return c.service }),
			Printed: Format{Counts: lines(byService)},
			Ours:    numbers("histogram", served(byService)), Theirs: numbers("query", byField("service"))},
		expression, again(expression), rare, again(rare),
		{ID: "facet", Title: "the values of a field, in an hour of a service; another hour and service each time",
			Note:     "hours of one service share records: each side may use again what it keeps of them",
			Variants: x.facets(), Printed: Format{Counts: lines(byValue)},
			Ours: numbers("facets", read(byFacet)), Theirs: numbers("query", byField("status"))},
	}
	for _, q := range all {
		q.Theirs.Form = theirs
		if len(q.Variants) == 0 {
			return nil, fmt.Errorf("%s: the corpus has no record that answers it; take a larger one", q.Title)
		}
	}
	return all, nil
}

// absent is a word that no record has. A histogram of everything would count one that has it.
const absent = "quagmire"

// Table are the variants for the rows of `make bench`, by their IDs. The windows of i and ii are the
// generator's own, and so are the words and the expression.
func (x *Index) Table() map[string]*Variant {
	first := x.services[0]
	newest := AnswerOf(x.newest(x.corpus.To, first))
	needle := x.needles()[:1]
	return map[string]*Variant{
		"i": x.windows()[0], "ii": x.hours()[0], "vi": x.expressions()[0],
		"iii-w": x.everywhere(needle, "-w", "")[0], "iii-F": x.everywhere(needle, "-F", "")[0],
		"iii-F-id": x.everywhere(x.requests[:1], "-F", "")[0],
		"absent-w": {Args: []string{"*", "-w", absent}}, "absent-F": {Args: []string{"*", "-F", absent}},
		"iv":         {Args: []string{first, "-n", "100"}, Want: newest},
		"tail":       {Args: []string{"tail", first, "-n", "100"}, Want: newest},
		"v":          {Args: []string{"hist", "*", "--by", "1m"}, Want: MinutesOf(x.corpus)},
		"everything": {Args: []string{"*"}, Want: AnswerOf(slices.Concat(slices.Collect(maps.Values(x.all))...))},
	}
}

// Printed is the form in which logquery prints the answer to a variant of the table.
func (x *Index) Printed(v *Variant) Format {
	if v.Want.count != nil {
		return Format{Counts: lines(byMinute)}
	}
	return Format{Form: x.Form, Order: OldestFirst}
}
