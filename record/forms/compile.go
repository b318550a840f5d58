// Package forms makes fields of texts: of the lines of an access log, of nginx's, HAProxy's and
// PostgreSQL's own logs, or of any text that a pattern describes. The text stays as it is.
//
// A pattern has names in < > with texts between them, as a pattern of LogQL: <ip> - <user> [<_>]. A name
// takes the text up to the next text of the pattern. Between quotes, a quote behind a backslash does not
// end it. A value that is empty or - is no value. <name:kind> wants a value of a kind.
package forms

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// table has a pattern on each line, behind the name of its form. Of several that fit a text, the first
// counts.
//
//go:embed table.txt
var table string

// words are what others write, and what it means here. A variable of nginx that is not among them has its
// own name; a directive of Apache is no field.
const words = ` %COMBINEDAPACHELOG combined %COMMONAPACHELOG common
$remote_addr <ip:word> $http_x_real_ip <ip:word> $remote_user <user> $time_local <_> $time_iso8601 <_> $msec <_>
$request <_:request> $status <status:number> $body_bytes_sent <bytes:number> $bytes_sent <bytes:number> $http_referer <referer>
$http_user_agent <agent> $request_time <duration_ms:seconds> $upstream_response_time <upstream_ms:seconds>
%a <ip:word> %h <ip:word> %u <user> %t [<_>] %r <_:request> %s <status:number> %b <bytes:number> %B <bytes:number> %O <bytes:number>
%D <duration_ms:microseconds> %usT <duration_ms:microseconds> %T <duration_ms:seconds> %sT <duration_ms:seconds>
%msT <duration_ms:number> %v <vhost> %V <vhost> %m <method> %U <path> %H <protocol> %p <port>
%Refereri <referer> %User-Agenti <agent> %User-agenti <agent> `

// kinds are those of values. A time in seconds or microseconds becomes milliseconds.
const kinds = "word, number, digits, seconds, microseconds, request, address, nginx, pairs, csv, klog, priority"

// most bounds a written form, and mostFields the fields of a text.
const most, mostFields = 8192, 100

// A Form is compiled. Any number of goroutines may use it.
type Form struct {
	Text  string    // as it was written
	Stage bool      // json or logfmt: at a read a stage of LogQL makes the fields
	lines [][]place // the first of each has the text before
	names []string
	any   bool      // the names are not known
	pool  sync.Pool // of *match
}

// A place is one for a value.
type place struct {
	name, kind string // the name _ makes no field
	until      []byte // the text behind it
	quoted     bool   // between quotes
}

// Names are those of the forms that have one.
func Names() (names []string) {
	for line := range strings.Lines(table) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	return slices.Compact(names)
}

// Compile makes a form of a name or a pattern, a log_format of nginx or a LogFormat of Apache. Patterns may
// be several, one a line: the first that fits counts.
func Compile(written string) (*Form, error) {
	f, what := &Form{Text: written, Stage: written == "json" || written == "logfmt"}, strings.TrimSpace(written)
	if regexp.MustCompile(`^csv:([A-Za-z_]\w*|,)+$`).MatchString(what) {
		what = strings.ReplaceAll("<"+strings.ReplaceAll(what[len("csv:"):], ",", ":csv>,<")+":csv>", "<:", "<_:")
	} else if !strings.Contains(what, "<") {
		what = translate(what)
	}
	f.pool.New = func() any { return &match{} }
	var patterns []string
	for line := range strings.Lines(table) {
		if pattern, ok := strings.CutPrefix(line, what+" "); ok {
			patterns = append(patterns, strings.TrimSpace(pattern))
		}
	}
	if patterns == nil {
		patterns = strings.FieldsFunc(what, func(r rune) bool { return r == '\r' || r == '\n' })
	}
	for _, pattern := range patterns {
		if err := f.compile(pattern); err != nil {
			return nil, fmt.Errorf("%.60q: %w", pattern, err)
		}
	}
	if len(f.names) > mostFields {
		return nil, fmt.Errorf("%.60q: it has %d names; want at most %d", written, len(f.names), mostFields)
	}
	if len(written) > most || !f.Stage && !f.any && f.names == nil {
		const want = "it must be %s, json, csv:NAMES, " +
			"or a pattern of at most %d bytes such as '<ip> - <user> \"<method> <path>\"'"
		return nil, fmt.Errorf("%.60q: "+want, written, strings.Join(Names(), ", "), most)
	}
	return f, nil
}

// compile adds a pattern.
func (f *Form) compile(pattern string) error {
	at := regexp.MustCompile(`<([A-Za-z_]\w*)(?::(\w+))?>`)
	texts := at.Split(pattern, -1)
	places := []place{{kind: "begin", until: []byte(texts[0])}}
	if odd := regexp.MustCompile(`<[A-Za-z_][\w.:-]*>`).FindString(strings.Join(texts, "\n")); odd != "" {
		return fmt.Errorf("%s is no name: one has letters, digits and _, and perhaps a kind behind a colon", odd)
	}
	for i, found := range at.FindAllStringSubmatch(pattern, -1) {
		p := place{name: found[1], kind: found[2], until: []byte(texts[i+1])}
		p.quoted = strings.HasSuffix(texts[i], `"`) && strings.HasPrefix(texts[i+1], `"`)
		places = append(places, p)
		switch {
		case !slices.Contains(strings.Split(kinds, ", "), p.kind) && p.kind != "":
			return fmt.Errorf("%s: there is no kind %s; there are %s", found[0], p.kind, kinds)
		case i > 0 && texts[i] == "":
			return fmt.Errorf("%s follows another name; put a text between them", found[0])
		case p.kind == "request":
			f.name("method", "path", "protocol", "request")
		case p.name != "_":
			f.name(p.name)
		}
		f.any = f.any || p.kind == "nginx" || p.kind == "pairs"
	}
	f.lines = append(f.lines, places)
	return nil
}

// name adds names of fields that are new.
func (f *Form) name(names ...string) {
	for _, n := range names {
		if !slices.Contains(f.names, n) {
			f.names = append(f.names, n)
		}
	}
}

// translate makes a pattern of a log_format of nginx or a LogFormat of Apache, with the quotes of its
// configuration or without.
func translate(format string) string {
	meant := strings.Fields(words)
	quoted := regexp.MustCompile(`^(?:(?:LogFormat|log_format\s+\w+)\s+)?"((?:[^"\\]|\\.)*)"[\s\w;]*$`)
	if _, in, ok := strings.Cut(format, "'"); ok && strings.Contains(format, "$") {
		format = regexp.MustCompile(`'\s*'|'\s*;?\s*$`).ReplaceAllString(in, "")
	} else if in := quoted.FindStringSubmatch(format); in != nil {
		format = in[1]
	}
	of := regexp.MustCompile(`\$\w+|\$\{\w+\}|%[<>!,\d]*(\{[^}]*\})?\w?`)
	return of.ReplaceAllStringFunc(strings.ReplaceAll(format, `\"`, `"`), func(word string) string {
		word = strings.Join(strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune("{}<>!,", r) }), "")
		if i := slices.Index(meant, word); i >= 0 {
			return meant[i+1]
		} else if word[0] == '$' {
			return "<" + word[1:] + ">"
		}
		return "<_>"
	})
}

// Makes reports whether the form may make a field of a name.
func (f *Form) Makes(name string) bool { return f.any || slices.Contains(f.names, name) }

// A Table is the forms that have a name, compiled.
type Table []*Form

// NewTable compiles them.
func NewTable() (t Table) {
	for _, name := range Names() {
		f, _ := Compile(name) // all of the table can be
		t = append(t, f)
	}
	return t
}

// Fitting is the name of the first form that fits a text; "": none.
func (t Table) Fitting(message []byte) string {
	for _, f := range t {
		if new(match).of(f, message) {
			return f.Text
		}
	}
	return ""
}

// A Rule gives some services a form.
type Rule struct {
	Services []string `json:"services" yaml:"services,omitempty"` // names and globs
	Form     string   `json:"form" yaml:"form"`
	// Store has the ingester store the fields. Without it a read makes them.
	Store bool `json:"-" yaml:"store,omitempty"`
}

// Text is rules as a text, which [Rules] reads; "" for none.
func Text(rules []Rule) string {
	if len(rules) == 0 {
		return ""
	}
	all, _ := json.Marshal(rules) // texts always can
	return string(all)
}

// Rules reads the text of some rules, or of one form, which is for all services.
func Rules(written string) (rules []Rule, err error) {
	if !strings.HasPrefix(written, "[{") {
		return []Rule{{Services: []string{"*", "_*"}, Form: written}}, nil
	}
	err = json.Unmarshal([]byte(written), &rules)
	return rules, err
}
