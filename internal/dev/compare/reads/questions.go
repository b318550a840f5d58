package reads

import (
	"net/url"
	"strings"
)

// order is the order of records in an answer.
type order int

const (
	anyOrder order = iota
	oldestFirst
	newestFirst
)

// form is the form of an answer of one side.
type form struct {
	theirs  bool
	order   order
	trailer bool // an answer ends with a trailer that says whether it is complete
	// counts reads an answer with numbers. Without it the answer has records.
	counts func([]byte) (numbers, error)
}

// question is what both sides are asked, in variants: the same of another service, time or word.
type question struct {
	id, title, note string
	ours, theirs    side
	variants        []*variant
	// again has clients ask its one variant again and again.
	again bool
	// large answers are hashed as they arrive, and compared with the corpus at the end.
	large bool
	next  int // of variants, for requests to servers
	rows  []*row
}

// side is how a side is asked, and answers.
type side struct {
	form
	route string // below /api/v1/ or /select/logsql/
	// printed reads the numbers that logquery prints, if the answer has numbers.
	printed func([]byte) (numbers, error)
}

// variant is one request, to both sides.
type variant struct {
	args   []string   // of logquery
	ours   url.Values // of /api/v1/
	theirs []string   // of /select/logsql/, as NAME=VALUE
	want   answer
}

func (q *question) form(s *system) *form {
	if s.theirs {
		return &q.theirs.form
	}
	return &q.ours.form
}

// take returns the variants of the next requests. When all were asked, the first ones come again.
func (q *question) take(n int) (asked []*variant) {
	for range n {
		asked = append(asked, q.variants[q.next%len(q.variants)])
		q.next++
	}
	return asked
}

// url is the URL of a variant for a side.
func (q *question) url(s *system, v *variant) string {
	if !s.theirs {
		return s.base + "/api/v1/" + q.ours.route + "?" + v.ours.Encode()
	}
	query := url.Values{}
	for _, part := range v.theirs {
		name, value, _ := strings.Cut(part, "=")
		query.Add(name, value)
	}
	return s.base + "/select/logsql/" + q.theirs.route + "?" + query.Encode()
}

// curl is the command of their documentation.
func (q *question) curl(s *system, v *variant) []string {
	args := []string{"curl", "-sS", "--fail-with-body", s.base + "/select/logsql/" + q.theirs.route}
	for _, part := range v.theirs {
		args = append(args, "--data-urlencode", part)
	}
	return args
}

// command is the request of a side as a reader runs it, on the usual port.
func (q *question) command(s *system, v *variant) string {
	shown := &system{base: s.shown, theirs: s.theirs}
	if s.theirs {
		return shell(q.curl(shown, v))
	}
	return shell([]string{"curl", "-sS", q.url(shown, v)})
}

// shell writes a command as a shell reads it.
func shell(args []string) string {
	var words []string
	for _, a := range args {
		if strings.ContainsAny(a, "*?[]{}() |&;<>'\"$`\\") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// records is a question for records. Those of ours come in order of time. VictoriaLogs promises none
// without a limit, and to sort costs it more.
func records(id, title string, variants []*variant) *question {
	for _, v := range variants {
		if v.ours.Get("limit") == "" {
			v.ours.Set("limit", "0")
		}
	}
	return &question{id: id, title: title, variants: variants,
		ours:   side{form: form{order: oldestFirst, trailer: true}, route: "records"},
		theirs: side{form: form{theirs: true}, route: "query"}}
}

// newest is a question for the newest records.
func newest(id, title string, variants []*variant) *question {
	for _, v := range variants {
		v.args, v.theirs = append(v.args, "-n", "100"), append(v.theirs, "limit=100")
		v.ours.Set("limit", "100")
	}
	q := records(id, title, variants)
	q.theirs.order = newestFirst
	return q
}

// again is a question whose first variant is asked again and again.
func again(of *question) *question {
	q := *of
	q.id, q.again = of.id+"-again", true
	title, _, _ := strings.Cut(of.title, ";")
	q.title = title + "; the same is asked again, as panels do"
	if len(of.variants) > 0 {
		q.variants = of.variants[:1]
	}
	return &q
}

// ask makes the questions, of variants that x has drawn. Their forms in LogsQL are those that
// VictoriaLogs' documentation recommends: one filter of time, one of streams, and words before
// expressions.
func ask(x *index) []*question {
	window := records("window", "two minutes of a service, errors; other minutes and another service each time", x.windows())
	hour := records("hour", "an hour of a service; another hour and service each time", x.hours())
	hour.large = true
	word := records("word", "a token of few records by its words; another token each time", x.byWords())
	token := records("token-text", "a token of few records by its characters; another token each time, or more characters before it", x.needles())
	text := records("text", "an id of 12 hexadecimal digits by its characters; another id each time", x.digits())
	id := records("id", "a record by its request id; another id each time", x.ids())
	expression := records("expression", "an expression with literals, one service; another expression and service each time", x.expressions())
	rare := records("rare", "a seldom word over all hours of a service; another word and service each time", x.words())
	for _, q := range []*question{word, token, text} {
		q.note = "VictoriaLogs searches messages, and blobtail whole records"
	}
	token.note += ". blobtail's index has the token's word, `needle`"
	text.note += ". No index helps: the digits might be a part of a longer id, and they have no word"
	id.note = "VictoriaLogs searches one field, and blobtail whole records"
	for _, q := range []*question{expression, rare} {
		q.note = "VictoriaLogs' streams are services. By service and level it takes about a tenth, because it reads the streams of errors alone: `COMPARE_FLAGS='-streams service,level'`"
	}
	hour.note = "blobtail's answers are in order of time, and VictoriaLogs' in none; its records also have `_stream` and `_stream_id`"
	return []*question{window, hour, word, again(word), token, text, id,
		newest("newest", "the newest 100 of a service; another service each time", x.newestOfServices()),
		newest("newest-all", "the newest 100 of all until a moment; another moment each time", x.newestOfAll()),
		{id: "minutes", title: "per minute and level, everything until a minute; another minute each time", variants: x.minutes(),
			ours:   side{printed: printedMinutes, route: "histogram", form: form{counts: ourMinutes}},
			theirs: side{route: "hits", form: form{theirs: true, counts: theirMinutes}}},
		{id: "services", title: "count of everything by service until a minute; another minute each time", variants: x.services(),
			ours:   side{printed: printedServices, route: "histogram", form: form{counts: ourServices}},
			theirs: side{route: "query", form: form{theirs: true, counts: theirStats("service")}}},
		expression, again(expression), rare, again(rare),
		{id: "facet", title: "the values of a field, in an hour of a service; another hour and service each time", variants: x.facets(),
			note:   "hours of one service share records: each side may use again what it keeps of them",
			ours:   side{printed: printedTop, route: "facets", form: form{counts: ourFacet}},
			theirs: side{route: "query", form: form{theirs: true, counts: theirStats("status")}}},
	}
}
