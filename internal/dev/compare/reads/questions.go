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

// kept reports whether answers are kept until a burst is over, and then read again. Those with many
// records are hashed instead, as they arrive. Records of one ns may come in any order if the newest
// are first, so that equal answers need not have equal bytes.
func (f *form) kept() bool { return f.counts != nil || f.order == newestFirst }

// question is what both sides are asked.
type question struct {
	id, title, note string
	ours            ours
	theirs          theirs
	want            answer
}

// ours is a question to blobtail.
type ours struct {
	form
	args  []string // of logquery
	route string   // below /api/v1/
	query url.Values
	// printed reads the numbers that logquery prints, if the answer has numbers.
	printed func([]byte) (numbers, error)
}

// theirs is a question to VictoriaLogs.
type theirs struct {
	form
	route string // below /select/logsql/
	query []string
}

func (q *question) form(s *system) *form {
	if s.theirs {
		return &q.theirs.form
	}
	return &q.ours.form
}

// url is the URL of a question for a side.
func (q *question) url(s *system) string {
	if !s.theirs {
		return s.base + "/api/v1/" + q.ours.route + "?" + q.ours.query.Encode()
	}
	query := url.Values{}
	for _, part := range q.theirs.query {
		name, value, _ := strings.Cut(part, "=")
		query.Add(name, value)
	}
	return s.base + "/select/logsql/" + q.theirs.route + "?" + query.Encode()
}

// curl is the command of their documentation.
func (q *question) curl(s *system) []string {
	args := []string{"curl", "-sS", "--fail-with-body", s.base + "/select/logsql/" + q.theirs.route}
	for _, part := range q.theirs.query {
		args = append(args, "--data-urlencode", part)
	}
	return args
}

// command is the request of a side as a reader runs it, on the usual port.
func (q *question) command(s *system) string {
	shown := *s
	shown.base = s.shown
	if s.theirs {
		return shell(q.curl(&shown))
	}
	return shell([]string{"curl", "-sS", q.url(&shown)})
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
func records(id, title string, args []string, query url.Values, theirQuery ...string) *question {
	query.Set("limit", "0")
	return &question{id: id, title: title,
		ours:   ours{form: form{order: oldestFirst, trailer: true}, args: args, route: "records", query: query},
		theirs: theirs{form: form{theirs: true}, route: "query", query: theirQuery}}
}

// newest is a question for the newest records.
func newest(id, title, service, selector string) *question {
	q := records(id, title, []string{service, "-n", "100"}, url.Values{"service": {service}}, "query="+selector, "limit=100")
	q.ours.query.Set("limit", "100")
	q.theirs.order = newestFirst
	return q
}

// asked has the parts of questions that depend on the corpus.
type asked struct {
	service                            string
	from2m, to2m, from1h, to1h         string
	needle, request, regex, searched   string
	literal                            string // with which all matches of regex begin
	windowOf, hourOf, expression, word *question
	all                                []*question
}

// seldom is a word of one kind of errors of the generator.
const seldom = "mailbox"

// ask makes the questions. Their forms in LogsQL are those that VictoriaLogs' documentation
// recommends: one filter of time, one of streams, and words before expressions.
func (a *asked) ask() {
	errors := url.Values{"service": {a.service}, "from": {a.from2m}, "to": {a.to2m}, "level": {"error,critical"}}
	hour := url.Values{"service": {a.service}, "from": {a.from1h}, "to": {a.to1h}}
	everything := func(name, value string) url.Values { return url.Values{"service": {"*"}, name: {value}} }
	stream := func(service string) string { return `{service="` + service + `"}` }
	theirHour := "_time:[" + a.from1h + ", " + a.to1h + ") " + stream(a.service)

	a.windowOf = records("window", "two minutes of a service, errors",
		[]string{a.service, "--from", a.from2m, "--to", a.to2m, "--level", "error,critical"}, errors,
		"query=_time:["+a.from2m+", "+a.to2m+`) {service="`+a.service+`",level in ("error","critical")}`)
	a.hourOf = records("hour", "an hour of a service", []string{a.service, "--from", a.from1h, "--to", a.to1h}, hour, "query="+theirHour)
	byWord := records("word", "a token of three records by its words", []string{"*", "-w", a.needle}, everything("words", a.needle), `query="`+a.needle+`"`)
	byText := records("text", "the same token by its characters", []string{"*", "-F", a.needle}, everything("text", a.needle), `query=*"`+a.needle+`"*`)
	byID := records("id", "a record by its request id", []string{"*", "-w", a.request}, everything("words", a.request), `query=request_id:="`+a.request+`"`)
	for _, q := range []*question{byWord, byText} {
		q.note = "VictoriaLogs searches messages, and blobtail whole records"
	}
	byID.note = "VictoriaLogs searches one field, and blobtail whole records"
	a.word = records("rare", "a seldom word over all hours of a service", []string{a.searched, "-w", seldom},
		url.Values{"service": {a.searched}, "words": {seldom}}, "query="+stream(a.searched)+" "+seldom)
	a.expression = records("expression", "an expression with literals, one service", []string{a.searched, "-g", a.regex},
		url.Values{"service": {a.searched}, "expr": {a.regex}}, "query="+stream(a.searched)+` "`+strings.TrimSpace(a.literal)+`" ~"`+a.regex+`"`)
	for _, q := range []*question{a.windowOf, a.expression, a.word} {
		q.note = "VictoriaLogs has a stream for each service and level, so that it reads those of errors alone"
	}
	a.all = []*question{a.windowOf, a.hourOf, byWord, byText, byID,
		newest("newest", "the newest 100 of a service", a.service, stream(a.service)), newest("newest-all", "the newest 100 of all", "*", "*"),
		{id: "minutes", title: "per minute and level, everything",
			ours: ours{args: []string{"hist", "*", "--by", "1m"}, printed: printedMinutes, route: "histogram",
				query: url.Values{"service": {"*"}, "by": {"1m"}}, form: form{counts: ourMinutes}},
			theirs: theirs{route: "hits", query: []string{"query=*", "step=1m", "field=level"}, form: form{theirs: true, counts: theirMinutes}}},
		{id: "services", title: "count of everything by service",
			ours: ours{args: []string{"hist", "*", "--by", "1d", "--by-field", "service", "--top", "50"}, printed: printedServices, route: "histogram",
				query: url.Values{"service": {"*"}, "by": {"1d"}, "split": {"service"}}, form: form{counts: ourServices}},
			theirs: theirs{route: "query", query: []string{"query=* | stats by (service) count() records"}, form: form{theirs: true, counts: theirStats("service")}}},
		a.expression, a.word,
		{id: "facet", title: "the values of a field, in an hour of a service",
			ours: ours{args: []string{"top", "status", a.service, "--from", a.from1h, "--to", a.to1h, "-n", "50"}, printed: printedTop, route: "facets",
				query: url.Values{"service": {a.service}, "from": {a.from1h}, "to": {a.to1h}, "fields": {"status"}, "sample": {"0"}, "top": {"50"}}, form: form{counts: ourFacet}},
			theirs: theirs{route: "query", query: []string{"query=" + theirHour + " | top 50 by (status) hits as records"}, form: form{theirs: true, counts: theirStats("status")}}},
	}
}
