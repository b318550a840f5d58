package search_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"blobtail/internal/dev/testkit"
	"blobtail/reading/search"
)

// truth is what a term says of a record. A comparison that makes no sense is neither true nor false.
type truth int

const (
	no truth = iota
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// A drawn is a search that was drawn: a term with its meaning, or others that are joined.
type drawn struct {
	join    string // "and", "or", "not"; "": it is a term
	sub     []*drawn
	text    string // of a term
	of      func(r *rec) truth
	strings func(r *rec) truth // what NOT of it alone denies: an expression in the message and the texts of fields
	service bool
}

// says evaluates the search without its parser.
func (d *drawn) says(r *rec) truth {
	switch d.join {
	case "not":
		return yes - d.sub[0].says(r)
	case "and", "or":
		all := d.sub[0].says(r)
		for _, s := range d.sub[1:] {
			if d.join == "and" {
				all = min(all, s.says(r))
			} else {
				all = max(all, s.says(r))
			}
		}
		return all
	}
	return d.of(r)
}

// line is the text of the search, in one of the ways to write it. inner says that it stands beside others.
func (d *drawn) line(rng *rand.Rand, inner bool) string {
	var text string
	switch d.join {
	case "":
		return d.text
	case "not":
		text = d.sub[0].line(rng, true)
		if text[0] == '-' { // --a is without the text -a
			return "NOT " + text
		}
		return pick(rng, "NOT ", "NOT  ", "-") + text
	case "and":
		for i, s := range d.sub {
			if i > 0 {
				text += pick(rng, " ", " ", "  ", " AND ", " && ")
			}
			text += s.line(rng, true)
		}
		if inner || rng.IntN(8) == 0 {
			return "(" + text + ")"
		}
		return text
	}
	for i, s := range d.sub {
		if i > 0 {
			text += pick(rng, " OR ", " || ")
		}
		text += s.line(rng, s.join != "and" || rng.IntN(2) == 0) // AND binds tighter
	}
	if inner || rng.IntN(8) == 0 {
		return pick(rng, "(", "( ") + text + pick(rng, ")", " )")
	}
	return text
}

// conjuncts are the terms that all have to hold, and what of them is denied as a whole.
func (d *drawn) conjuncts() []*drawn {
	if d.join == "not" && d.sub[0].join == "not" {
		return d.sub[0].sub[0].conjuncts()
	}
	if d.join != "and" {
		return []*drawn{d}
	}
	var all []*drawn
	for _, s := range d.sub {
		all = append(all, s.conjuncts()...)
	}
	return all
}

// choosesServices reports whether a search is of services alone.
func (d *drawn) choosesServices() bool {
	return d.service || d.join == "or" && !slices.ContainsFunc(d.sub, func(s *drawn) bool { return !s.choosesServices() })
}

// finds reports whether a record is to be found.
func (d *drawn) finds(r *rec) bool {
	for _, c := range d.conjuncts() {
		if c.join == "not" && c.sub[0].strings != nil {
			if c.sub[0].strings(r) == yes {
				return false
			}
		} else if c.says(r) != yes {
			return false
		}
	}
	return true
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// draw draws a search of at most so many levels.
func draw(rng *rand.Rand, depth int, fold bool) *drawn {
	n := rng.IntN(10)
	switch {
	case depth == 0 || n < 3:
		return drawTerm(rng, fold)
	case n < 5:
		return &drawn{join: "not", sub: []*drawn{draw(rng, depth-1, fold)}}
	}
	d := &drawn{join: pick(rng, "and", "or")}
	for range 2 + rng.IntN(2) {
		d.sub = append(d.sub, draw(rng, depth-1, fold))
	}
	return d
}

func drawTerm(rng *rand.Rand, fold bool) *drawn {
	switch n := rng.IntN(20); {
	case n < 6:
		return drawText(rng, fold)
	case n < 8:
		return drawMessage(rng, fold)
	case n < 10:
		return drawLevel(rng)
	case n < 11:
		name := pick(rng, "web", "db", "orders-1", "api")
		return &drawn{text: pick(rng, "service:", "service=", "service == ") + name, service: true, of: func(r *rec) truth {
			return truthOf(r.service == name)
		}}
	case n < 12:
		return &drawn{text: "where:(status == 500 or user == \"ann\")", of: func(r *rec) truth {
			return truthOf(r.get("status") == 500.0 || r.get("user") == "ann")
		}}
	}
	return drawField(rng, fold)
}

// contains is has for a fold.
func (r *rec) contains(text string, fold bool) truth {
	return truthOf(r.has(text) || fold && r.fold(text))
}

func drawText(rng *rand.Rand, fold bool) *drawn {
	word := pick(rng, "timeout", "Timeout", "refused", "GET", "slow", "orders", "a/b/c", "日本", "größe", "200", "it's", "50%", "error",
		"web", "[ok]", "prod", "localhost", "12:30:45", "http://example.com/docs", "std::string", "and", "-0", "x=1",
		"no.where", "f(x)", "\\temp")
	switch rng.IntN(6) {
	case 0:
		word = pick(rng, "two words", `said "two`, `C:\temp`, "a*b", "(a opened", "AND OR", "tab\tand", "f(x OR b)",
			"status:500", "{x}", "user=ann", "in", "-dash", "|b")
		fallthrough
	case 1:
		return &drawn{text: strconv.Quote(word), of: func(r *rec) truth { return r.contains(word, fold) }}
	case 2:
		word := pick(rng, "time*out", "*imeou*", "G*T", "GET*", "*rder*", "a*b", "*.js", "re*sed*")
		re := strings.ReplaceAll(regexp.QuoteMeta(strings.Trim(word, "*")), `\*`, ".*")
		return &drawn{text: word, of: func(r *rec) truth { return truthOf(r.re("(?s" + folding(fold) + ")" + re)) }}
	case 3:
		re := pick(rng, `time(out|d)`, `^GET`, `s$`, `status=50[02]`, `\d{4}`, `a/b`, `"two`, `o.der`)
		d := &drawn{text: "/" + strings.ReplaceAll(re, "/", `\/`) + "/"}
		re = "(?" + folding(fold) + "m)" + re
		if !fold {
			re = re[len("(?m)"):]
		}
		d.of = func(r *rec) truth { return truthOf(r.re(re)) }
		d.strings = func(r *rec) truth {
			for _, v := range r.fields {
				if s, ok := v.(string); ok && regexp.MustCompile(re).MatchString(s) {
					return yes
				}
			}
			return no
		}
		return d
	case 4:
		if word == "x=1" || word == "-0" {
			word = "slow"
		}
		return &drawn{text: pick(rng, "*:", "*", "") + word, of: func(r *rec) truth { return r.contains(word, fold) }}
	}
	if word == "x=1" || word == "-0" {
		return &drawn{text: "*", of: func(*rec) truth { return yes }}
	}
	return &drawn{text: word, of: func(r *rec) truth { return r.contains(word, fold) }}
}

func folding(fold bool) string {
	if fold {
		return "i"
	}
	return ""
}

func drawMessage(rng *rand.Rand, fold bool) *drawn {
	word := pick(rng, "timeout", "GET", "order", "two words", `"two`, "disk", "status:500", "ERR", "x)")
	in := func(r *rec, word string) bool {
		return strings.Contains(r.msg, word) || fold && strings.Contains(strings.ToLower(r.msg), strings.ToLower(word))
	}
	name := pick(rng, "msg:", "message:", "_msg:", "@message:")
	switch rng.IntN(3) {
	case 0:
		return &drawn{text: name + "(timeout OR " + strconv.Quote(word) + ", disk)", of: func(r *rec) truth {
			return truthOf(in(r, "timeout") || in(r, word) || in(r, "disk"))
		}}
	case 1:
		return &drawn{text: name + "o*der*", of: func(r *rec) truth {
			return truthOf(regexp.MustCompile("(?s" + folding(fold) + ")o.*der").MatchString(r.msg))
		}}
	}
	return &drawn{text: name + strconv.Quote(word), of: func(r *rec) truth { return truthOf(in(r, word)) }}
}

func drawLevel(rng *rand.Rand) *drawn {
	names := []string{"trace", "debug", "info", "warn", "error", "critical"}
	at := rng.IntN(len(names))
	word := names[at]
	if rng.IntN(3) == 0 {
		word = strings.ToUpper(word)
	}
	switch rng.IntN(5) {
	case 0:
		return &drawn{text: pick(rng, "level>=", "level >= ", "level:>=", "level:") + word + "+", of: func(r *rec) truth {
			return truthOf(r.rank() >= at)
		}}
	case 1:
		return &drawn{text: pick(rng, "level<", "level < ", "level:<") + word, of: func(r *rec) truth {
			return truthOf(r.rank() >= 0 && r.rank() < at)
		}}
	case 2:
		return &drawn{text: pick(rng, "level!=", "level != ", "-level:") + word, of: func(r *rec) truth { return truthOf(r.rank() != at) }}
	case 3:
		return &drawn{text: pick(rng, "level:(warn OR "+word+")", "level=warn,"+word, "level IN (warn, "+word+")"), of: func(r *rec) truth {
			return truthOf(r.rank() == at || r.rank() == warn)
		}}
	}
	return &drawn{text: pick(rng, "level:", "level=", "level == ") + word, of: func(r *rec) truth { return truthOf(r.rank() == at) }}
}

// compare is a comparison of a field with a number. A field that is missing is no number, and another value
// is neither smaller nor greater.
func (r *rec) compare(name string, is func(x float64) bool) truth {
	x, ok := r.num(name)
	switch {
	case ok:
		return truthOf(is(x))
	case r.get(name) == nil:
		return no
	}
	return unknown
}

func drawField(rng *rand.Rand, fold bool) *drawn {
	name := pick(rng, "status", "status", "user", "took_ms", "port", "ok", "host", "env", "method", "path", "http.status_code",
		"localhost", "user-id", "größe", "kind", "nothing")
	value := pick(rng, "500", "500", "502", "200", "ann", "Ann", "bob", "true", "false", "db-1", "prod", "GET", "/health", "8080",
		"5432", "12", "x", "1.5e1", "404")
	other := pick(rng, "200", "bob", "staging", "POST", "503", "1200")
	number, at := pick(rng, "200", "400", "500", "502", "15", "9.75", "1_000"), 0.0
	at, _ = strconv.ParseFloat(strings.ReplaceAll(number, "_", ""), 64)
	written := name
	if rng.IntN(3) == 0 && name != "nothing" {
		written = "@" + name
	}
	if strings.HasPrefix(written, "@") {
		switch rng.IntN(4) {
		case 0:
			return &drawn{text: written + ":" + value, of: func(r *rec) truth {
				return max(truthOf(r.is(name, value)), r.contains(name+":"+value, fold))
			}}
		case 1:
			return &drawn{text: written + ":*", of: func(r *rec) truth { return truthOf(r.get(name) != nil) }}
		case 2:
			return &drawn{text: written + ":[" + number + " TO 600}", of: func(r *rec) truth {
				return r.compare(name, func(x float64) bool { return x >= at && x < 600 })
			}}
		}
		written = name
	}
	switch rng.IntN(9) {
	case 0:
		return &drawn{text: name + ":" + value, of: func(r *rec) truth {
			return max(truthOf(r.is(name, value)), r.contains(name+":"+value, fold))
		}}
	case 1:
		return &drawn{text: name + pick(rng, "=", "==", " == ", ":=") + value, of: func(r *rec) truth { return truthOf(r.is(name, value)) }}
	case 2:
		return &drawn{text: name + pick(rng, "!=", " != ") + value, of: func(r *rec) truth { return truthOf(!r.is(name, value)) }}
	case 3:
		return &drawn{text: name + pick(rng, "=", " == ", ":=") + strconv.Quote(value), of: func(r *rec) truth {
			return truthOf(r.get(name) == value)
		}}
	case 4:
		sign := pick(rng, ">", ">=", "<", "<=")
		return &drawn{text: name + pick(rng, sign, " "+sign+" ", ":"+sign) + number, of: func(r *rec) truth {
			return r.compare(name, func(x float64) bool {
				return map[string]bool{">": x > at, ">=": x >= at, "<": x < at, "<=": x <= at}[sign]
			})
		}}
	case 5:
		list := pick(rng, ":(%s OR %s)", "=(%s %s)", " in (%s,%s)", " IN ( %s , %s )", ":in(%s, %s)")
		return &drawn{text: name + fmt.Sprintf(list, value, other), of: func(r *rec) truth {
			return truthOf(r.is(name, value) || r.is(name, other))
		}}
	case 6:
		re := pick(rng, "^[45]", "0$", "nn", "^/api", "db-[12]")
		form := pick(rng, "=~%q", " =~ /%s/", "=/%s/", ":~%q", ":/%s/")
		if !strings.Contains(form, "%q") {
			form = strings.ReplaceAll(form, "%s", strings.ReplaceAll(re, "/", `\/`))
		} else {
			form = fmt.Sprintf(form, re)
		}
		return &drawn{text: name + form, of: func(r *rec) truth { return truthOf(r.like(name, re)) }}
	case 7:
		return &drawn{text: name + "=*0", of: func(r *rec) truth { return truthOf(r.like(name, "(?s)^.*0$")) }}
	}
	return pick(rng, &drawn{text: name + "=null", of: func(r *rec) truth { return truthOf(r.get(name) == nil) }},
		&drawn{text: "_exists_:" + name, of: func(r *rec) truth { return truthOf(r.get(name) != nil) }})
}

// Searches that were drawn find what their terms say, and so do their texts as they are printed.
func TestDrawn(t *testing.T) {
	all := corpus(t)
	seed := rand.Uint64()
	if n, err := strconv.ParseUint(os.Getenv("BLOBTAIL_SEARCH_SEED"), 10, 64); err == nil {
		seed = n
	}
	rng := rand.New(rand.NewPCG(seed, 57))
	lines, matched, empty, services := testkit.Portion(20_000, 3000, 300), 0, 0, 0
	for n := range lines {
		fold := rng.IntN(4) == 0
		d := draw(rng, rng.IntN(5), fold)
		for many := true; many; {
			of := slices.DeleteFunc(d.conjuncts(), func(c *drawn) bool { return !c.choosesServices() })
			if many = len(of) > 1; many { // several are a union there
				d = draw(rng, rng.IntN(5), fold)
			}
			services += len(of)
		}
		line := d.line(rng, false)
		q, err := search.Parse(line)
		if err != nil {
			t.Fatalf("seed %d, %d: %s: %v", seed, n, line, err)
		}
		roundTrip(t, line)
		var want []int
		for i, r := range all {
			if d.finds(r) {
				want = append(want, i+1)
			}
		}
		f, err := filterOf(q, fold)
		if err != nil && strings.Contains(err.Error(), "this leaves no level") && want == nil {
			empty++
			continue
		}
		if err != nil {
			t.Fatalf("seed %d, %d: %s: %v", seed, n, line, err)
		}
		var got []int
		for i, r := range all {
			if f.finds(r) {
				got = append(got, i+1)
			}
		}
		if !slices.Equal(got, want) {
			p, _ := q.Parts(fold, nil)
			t.Fatalf("seed %d, %d: %s: records %v, want %v: %+v", seed, n, line, got, want, p)
		}
		if len(want) > 0 && len(want) < len(all) {
			matched++
		}
	}
	t.Logf("%d lines, %d found some records, %d left no level, %d with services; seed %d", lines, matched, empty, services, seed)
	if matched < lines/4 {
		t.Error("too few lines found some of the records")
	}
}
