package metric_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A plain is a stage: its text and its effect. It returns false to drop the record.
type plain struct {
	text string
	run  func(w *work) bool
}

// names are labels that records may have.
func drawName(rng *rand.Rand) string {
	return of(rng, "status", "took", "size", "v", "user", "tags", "http_code", "http_user_agent", "path", "n", "level", "detected_level", "service_name", "none")
}

func drawStages(rng *rand.Rand) []plain {
	var all []plain
	for range rng.IntN(6) / 2 {
		all = append(all, drawStage(rng))
	}
	return all
}

func drawStage(rng *rand.Rand) plain {
	switch rng.IntN(16) {
	case 0, 1:
		return drawLineFilter(rng)
	case 2, 3:
		return drawTextFilter(rng)
	case 4:
		return drawNumberFilter(rng)
	case 5, 6:
		return plain{"| json", parseJSON}
	case 7:
		return plain{"| logfmt", parseLogfmt}
	case 8:
		name := of(rng, "status", "user", "path", "service_name", "none")
		return plain{"| drop " + name + " |= ``", func(w *work) bool { w.drop(name); return true }}
	case 9:
		name, other := of(rng, "status", "user", "path", "service_name"), of(rng, "v", "took", "n")
		return plain{"| keep " + name + ", " + other + " |= ``", func(w *work) bool { w.keep(name, other); return true }}
	case 10:
		from := of(rng, "status", "user", "path", "v", "none")
		return plain{"| label_format made=" + from, func(w *work) bool { w.rename("made", from); return true }}
	}
	return drawMaker(rng)
}

// drawMaker makes a stage that makes the line or single labels.
func drawMaker(rng *rand.Rand) plain {
	switch rng.IntN(5) {
	case 0:
		path := of(rng, []string{"status"}, []string{"http", "code"}, []string{"took"}, []string{"tags"}, []string{"none", "x"})
		return plain{fmt.Sprintf(`| json n="%s"`, strings.Join(path, ".")), func(w *work) bool { w.extract("n", path); return true }}
	case 1:
		return plain{"| pattern `<method> /basket/<n> <_>`", func(w *work) bool {
			method, rest, ok := strings.Cut(w.text, " /basket/")
			w.set("method", method)
			if n, _, _ := strings.Cut(rest, " "); ok {
				w.set("n", n)
			}
			return true
		}}
	case 2:
		re := regexp.MustCompile(`([A-Z]+) /[a-z]+/(\w+)`)
		return plain{"| regexp `(?P<method>[A-Z]+) /[a-z]+/(?P<n>\\w+)`", func(w *work) bool {
			if m := re.FindStringSubmatch(w.text); m != nil {
				w.set("method", m[1])
				w.set("n", m[2])
			}
			return true
		}}
	case 3:
		a, b := of(rng, "status", "path", "user"), of(rng, "level", "none", "v")
		return plain{fmt.Sprintf("| label_format made=`{{.%s}}-{{.%s}}`", a, b), func(w *work) bool {
			v, _ := w.get(a)
			u, _ := w.get(b)
			w.made["made"] = v + "-" + u
			return true
		}}
	}
	name := of(rng, "status", "user", "path", "none")
	return plain{"| line_format `<{{." + name + "}}>`", func(w *work) bool {
		v, _ := w.get(name)
		w.text = "<" + v + ">"
		return true
	}}
}

func drawLineFilter(rng *rand.Rand) plain {
	text := of(rng, "", "", "", "GET", "basket", "2", "u1", "oops", "ü", `"`, "path")
	switch rng.IntN(4) {
	case 0:
		return plain{fmt.Sprintf("|= %q", text), func(w *work) bool { return strings.Contains(w.text, text) }}
	case 1:
		text := of(rng, "GET", "basket", "2", "oops", "path")
		return plain{fmt.Sprintf("!= %q", text), func(w *work) bool { return !strings.Contains(w.text, text) }}
	case 2:
		other := of(rng, "PUT", "1", "zzz")
		return plain{fmt.Sprintf("|= %q or %q", text, other), func(w *work) bool {
			return strings.Contains(w.text, text) || strings.Contains(w.text, other)
		}}
	}
	e := of(rng, "GET|PUT", "^p", "[0-9]{2}", "(?i)get", "a.c", "/b$")
	re := regexp.MustCompile(e)
	if rng.IntN(2) == 0 {
		return plain{"|~ `" + e + "`", func(w *work) bool { return re.MatchString(w.text) }}
	}
	return plain{"!~ `" + e + "`", func(w *work) bool { return !re.MatchString(w.text) }}
}

func drawTextFilter(rng *rand.Rand) plain {
	name := drawName(rng)
	value := of(rng, "", "200", "u1", "u2", "info", "error", "web", "/a", "1")
	switch rng.IntN(6) {
	case 0:
		return plain{fmt.Sprintf("| %s=%q", name, value), func(w *work) bool { v, _ := w.get(name); return v == value }}
	case 1, 2, 3, 4:
		return plain{fmt.Sprintf("| %s!=%q", name, value), func(w *work) bool { v, _ := w.get(name); return v != value }}
	}
	e := of(rng, "u.", "[0-9]+", "info|warn", "w", ".*", ".+")
	re := regexp.MustCompile("^(?s:" + e + ")$")
	return plain{"| " + name + "=~`" + e + "`", func(w *work) bool { v, _ := w.get(name); return re.MatchString(v) }}
}

// drawNumberFilter compares a label with a number, a duration or a size. A label that is missing
// drops the record, and one that is no number keeps it as failed. One that failed is kept.
func drawNumberFilter(rng *rand.Rand) plain {
	name := of(rng, "status", "v", "n", "none", "http_code")
	text, bound, read := of(rng, "200", "404", "1", "-3"), 0.0, readNumber
	switch rng.IntN(4) {
	case 0:
		name, text, read = "took", of(rng, "1s", "20ms", "1m30s"), readDuration
	case 1:
		name, text, read = "size", of(rng, "5KB", "17B", "1MiB"), readSize
	}
	bound, _ = read(text)
	op := of(rng, "==", "!=", ">", ">=", "<", "<=", "=")
	return plain{"| " + name + op + text, func(w *work) bool {
		if w.failed != "" {
			return true
		}
		v, ok := w.get(name)
		if !ok {
			return false
		}
		f, ok := read(v)
		if !ok {
			w.failed = "LabelFilterErr"
			return true
		}
		switch op {
		case ">":
			return f > bound
		case ">=":
			return f >= bound
		case "<":
			return f < bound
		case "<=":
			return f <= bound
		case "!=":
			return f != bound
		}
		return f == bound
	}}
}

func readNumber(s string) (float64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

func readDuration(s string) (float64, bool) {
	d, err := time.ParseDuration(s)
	return d.Seconds(), err == nil
}

var sized = regexp.MustCompile(`^([0-9.]+) ?([kKMi]*)B?$`)

func readSize(s string) (float64, bool) {
	m := sized.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	f, err := strconv.ParseFloat(m[1], 64)
	times := map[string]float64{"": 1, "k": 1000, "K": 1000, "M": 1e6, "Ki": 1 << 10, "Mi": 1 << 20}[m[2]]
	return f * times, err == nil && times > 0
}

// parseJSON makes labels of the members of the line, but of no lists. In the view of messages one
// that is no object makes none.
func parseJSON(w *work) bool {
	text := w.text
	fields, ok := decode(text)
	if !ok {
		if w.lines && w.failed == "" {
			w.failed = "JSONParserErr"
		}
		return true
	}
	flatten("", fields, func(name string, v any) {
		if _, list := v.([]any); !list {
			w.set(name, textOf(v))
		}
	})
	return true
}

// extract makes a label of a member of the line. In the view of messages the record has the
// member, if the line is no object.
func (w *work) extract(name string, path []string) {
	fields, ok := decode(w.text)
	if !ok && w.lines {
		w.failed = "JSONParserErr"
		return
	}
	if !ok {
		fields, _ = decode(w.line)
	}
	var value any = fields
	for _, step := range path {
		members, _ := value.([]field)
		value = nil
		if i := slices.IndexFunc(members, func(f field) bool { return f.name == step }); i >= 0 {
			value = members[i].value
		}
	}
	if value == nil {
		w.set(name, "")
		return
	}
	w.set(name, textOf(value))
}

// The forms of pairs in a line, up to a blank or the end. Anything else is passed over.
var (
	quotedPair = regexp.MustCompile(`^([^\x00- ="]+)=("(?:[^"\\]|\\.)*")(?:[\x00- ]|$)`)
	barePair   = regexp.MustCompile(`^([^\x00- ="]+)=([^\x00- "]*)(?:[\x00- ]|$)`)
)

func parseLogfmt(w *work) bool {
	rest := w.text
	for rest = strings.TrimLeft(rest, " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		var name, value string
		if m := quotedPair.FindStringSubmatch(rest); m != nil {
			name, rest = m[1], rest[len(m[0]):]
			if json.Unmarshal([]byte(m[2]), &value) != nil {
				value = strings.Trim(m[2], `"`)
			}
		} else if m := barePair.FindStringSubmatch(rest); m != nil {
			name, value, rest = m[1], m[2], rest[len(m[0]):]
		} else {
			_, rest, _ = strings.Cut(rest, " ")
		}
		if name = notName.ReplaceAllString(name, "_"); value != "" {
			w.set(name, value)
		}
	}
	return true
}

func (w *work) drop(name string) {
	delete(w.made, name)
	delete(w.spared, name)
	w.gone[name] = true
}

func (w *work) keep(names ...string) {
	spared := map[string]bool{}
	for _, name := range names {
		if _, ok := w.get(name); ok {
			spared[name] = true
		}
	}
	for name := range w.made {
		also := name == "service" && slices.Contains(names, "service_name") // another name of it
		if !slices.Contains(names, name) && !also {
			delete(w.made, name)
		}
	}
	w.spared = spared
	w.gone["*"] = true
	if w.failed != "" {
		w.failed = ""
	}
}

// rename sets a label to the value of another one, which is then gone.
func (w *work) rename(to, from string) {
	v, ok := w.get(from)
	if !ok {
		return
	}
	w.drop(from)
	w.made[to] = v
}
