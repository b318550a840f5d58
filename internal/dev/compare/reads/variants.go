package reads

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// How many variants a question has at most: more than a row asks for, if the corpus has them.
const (
	mostIDs     = 2048
	mostTokens  = 1024
	mostWindows = 64 // of each service
	mostHours   = 4  // of each service; each answer is compared once more at the end
	mostFacets  = 32 // of each service
	mostMoments = 256
)

// newestRecords is the number of records in answers with the newest.
const newestRecords = 100

func stream(service string) string { return `{service="` + service + `"}` }

// inTurn takes a variant of each service in turn, so that the requests of a burst have all services
// alike. The service of the generator's answers is the first.
func (x *index) inTurn(of func(service string) []*variant) (all []*variant) {
	var lists [][]*variant
	most := 0
	for _, service := range x.order {
		list := of(service)
		lists = append(lists, list)
		most = max(most, len(list))
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

// span is a time of a service.
type span struct {
	service  string
	from, to time.Time
}

func (s span) bounds() (from, to string) {
	return s.from.Format(time.RFC3339), s.to.Format(time.RFC3339)
}

func (s span) args() []string {
	from, to := s.bounds()
	return []string{s.service, "--from", from, "--to", to}
}

func (s span) ours() url.Values {
	from, to := s.bounds()
	return url.Values{"service": {s.service}, "from": {from}, "to": {to}}
}

func (s span) theirs() string { return s.theirTime() + " " + stream(s.service) }

// theirTime is a query for a time of all services.
func (s span) theirTime() string {
	from, to := s.bounds()
	return "query=_time:[" + from + ", " + to + ")"
}

// spans draws times of a service that begin with any minute. The generator's own is the first one
// of its service.
func (x *index) spans(service, generators string, length time.Duration, most int, wanted func(span) bool) (all []span) {
	if w, ok := x.known[generators]; ok && service == x.order[0] {
		all = append(all, span{service, w[0], w[1]})
	}
	last := int(x.to.Sub(x.from)-length) / int(time.Minute)
	for _, minute := range x.random.Perm(max(0, last+1)) {
		from := x.from.Add(time.Duration(minute) * time.Minute)
		s := span{service, from, from.Add(length)}
		if len(all) > 0 && all[0].from.Equal(from) || !wanted(s) {
			continue
		}
		if all = append(all, s); len(all) == most {
			break
		}
	}
	return all
}

// windows are two minutes each, with some errors.
func (x *index) windows() []*variant {
	const least = 3
	return x.inTurn(func(service string) (all []*variant) {
		of := x.errors[service]
		some := func(s span) bool { return len(within(of, s)) >= least }
		for _, s := range x.spans(service, "2m", 2*time.Minute, mostWindows, some) {
			v := &variant{args: append(s.args(), "--level", "error,critical"), ours: s.ours(), theirs: []string{s.theirs() + ` level:in("error","critical")`}}
			v.ours.Set("level", "error,critical")
			v.want.records = within(of, s)
			all = append(all, v)
		}
		return all
	})
}

func (x *index) hours() []*variant {
	return x.inTurn(func(service string) (all []*variant) {
		some := func(s span) bool { return len(within(x.all[service], s)) > 0 }
		for _, s := range x.spans(service, "1h", time.Hour, mostHours, some) {
			v := &variant{args: s.args(), ours: s.ours(), theirs: []string{s.theirs()}}
			v.want.records = within(x.all[service], s)
			all = append(all, v)
		}
		return all
	})
}

func (x *index) facets() []*variant {
	return x.inTurn(func(service string) (all []*variant) {
		some := func(s span) bool { return len(within(x.all[service], s)) > 0 }
		for _, s := range x.spans(service, "1h", time.Hour, mostFacets, some) {
			v := &variant{args: append([]string{"top", "status"}, append(s.args(), "-n", "50")...), ours: s.ours(),
				theirs: []string{s.theirs() + " | top 50 by (status) hits as records"}}
			for name, value := range map[string]string{"fields": "status", "sample": "0", "top": "50"} {
				v.ours.Set(name, value)
			}
			v.want.count = func() numbers {
				got := numbers{}
				for c, n := range x.status {
					if c.service == service && c.minute >= s.from.Unix()/60 && c.minute < s.to.Unix()/60 {
						got[c.value] += n
					}
				}
				return got
			}
			all = append(all, v)
		}
		return all
	})
}

// everywhere are variants that search all services, for one of some texts.
func (x *index) everywhere(texts []string, name, flag, theirs string) (all []*variant) {
	for _, text := range texts {
		v := &variant{args: []string{"*", flag, text}, ours: url.Values{"service": {"*"}, name: {text}}, theirs: []string{fmt.Sprintf(theirs, text)}}
		v.want.records = x.found[finding{text: text}]
		all = append(all, v)
	}
	return all
}

// byWords are the generator's needles, and ids in messages.
func (x *index) byWords() []*variant {
	return x.everywhere(slices.Concat(x.drawn.needles, x.drawn.tokens[:len(x.drawn.tokens)/2]), "words", "-w", `query="%s"`)
}

// byCharacters searches for texts by their characters.
func (x *index) byCharacters(texts []string) []*variant {
	return x.everywhere(texts, "text", "-F", `query=*"%s"*`)
}

// digits are ids in messages, other ones than those of words. Their records have them as whole ids,
// but a search by characters would also find them inside longer ones.
func (x *index) digits() []*variant {
	return x.byCharacters(x.drawn.tokens[len(x.drawn.tokens)/2:])
}

// mostBefore is the number of characters before a needle that a text has at most.
const mostBefore = 15

// needles are the generator's needles, each alone at first, and then with more and more characters of
// its message before it: there are few needles, and a request for a text that was asked before would
// be answered from memory.
func (x *index) needles() []*variant {
	texts := []string{}
	for before := range mostBefore + 1 {
		for _, p := range x.plants {
			text := p.before[max(0, len(p.before)-before):] + p.needle
			if slices.Contains(texts, text) || strings.ContainsAny(text, `"\`) {
				continue
			}
			texts = append(texts, text)
			var records []one
			for _, other := range x.plants {
				if strings.HasSuffix(other.before+other.needle, text) {
					records = append(records, other.record)
				}
			}
			x.found[finding{text: text}] = records
		}
	}
	return x.byCharacters(texts)
}

func (x *index) ids() []*variant {
	return x.everywhere(x.drawn.requests, "words", "-w", "query=request_id:=%q")
}

// newestOfServices have the time of the corpus on both sides: VictoriaLogs halves the time of a query
// until it has few records, and without a beginning it would halve centuries.
func (x *index) newestOfServices() []*variant {
	return x.inTurn(func(service string) []*variant {
		s := span{service, x.from, x.to}
		v := &variant{args: s.args(), ours: s.ours(), theirs: []string{s.theirs()}}
		v.want.records = x.newest(x.to, service)
		return []*variant{v}
	})
}

// until draws moments: the end of the corpus, and others before it.
func (x *index) until(step time.Duration, most int) (all []time.Time) {
	for i := range int(x.to.Sub(x.from)/step) / 2 {
		all = append(all, x.to.Add(-time.Duration(i)*step))
	}
	if len(all) > 1 {
		x.random.Shuffle(len(all)-1, func(i, j int) { all[i+1], all[j+1] = all[j+1], all[i+1] })
	}
	return all[:min(most, len(all))]
}

func (x *index) newestOfAll() (all []*variant) {
	for _, at := range x.until(7*time.Second, mostMoments) {
		s := span{"*", x.from, at}
		v := &variant{args: s.args(), ours: s.ours(), theirs: []string{s.theirTime()}}
		v.want.records = x.newest(at, x.order...)
		all = append(all, v)
	}
	return all
}

// counts are variants that count everything until a minute.
func (x *index) counts(args []string, ours url.Values, theirs string, more []string, key func(cell) string) (all []*variant) {
	for _, at := range x.until(time.Minute, mostMoments) {
		to := at.Format(time.RFC3339)
		query := url.Values{"service": {"*"}, "to": {to}}
		for name, values := range ours {
			query[name] = values
		}
		v := &variant{args: slices.Concat([]string{"hist", "*", "--to", to}, args), ours: query, theirs: append([]string{"query=_time:<" + to + theirs}, more...)}
		v.want.count = func() numbers {
			got := numbers{}
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

func (x *index) minutes() []*variant {
	return x.counts([]string{"--by", "1m"}, url.Values{"by": {"1m"}}, "", []string{"step=1m", "field=level"},
		func(c cell) string { return at9(c.minute*int64(time.Minute)) + " " + c.value })
}

func (x *index) services() []*variant {
	return x.counts([]string{"--by", "1d", "--by-field", "service", "--top", "50"}, url.Values{"by": {"1d"}, "split": {"service"}},
		" | stats by (service) count() records", nil, func(c cell) string { return c.service })
}

// searched are variants that search all hours of a service, for texts that it has.
func (x *index) searched(texts []string, name, flag string, theirs func(text string) string) []*variant {
	return x.inTurn(func(service string) (all []*variant) {
		of := slices.Clone(texts)
		rest := of
		if service == x.order[0] { // its first one is the generator's
			rest = of[min(1, len(of)):]
		}
		x.random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
		for _, text := range of {
			records := x.found[finding{service, text}]
			if len(records) == 0 {
				continue
			}
			v := &variant{args: []string{service, flag, text}, ours: url.Values{"service": {service}, name: {text}}, theirs: []string{"query=" + stream(service) + " " + theirs(text)}}
			v.want.records = records
			all = append(all, v)
		}
		return all
	})
}

func (x *index) words() []*variant {
	return x.searched(x.drawn.words, "words", "-w", func(word string) string { return `"` + word + `"` })
}

func (x *index) expressions() []*variant {
	var all []string
	literal := map[string]string{}
	for _, e := range x.drawn.expressions {
		all = append(all, e.String())
		literal[e.String()] = e.literal
	}
	return x.searched(all, "expr", "-g", func(e string) string { return `"` + strings.TrimSpace(literal[e]) + `" ~"` + e + `"` })
}
