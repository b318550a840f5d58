package where

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/file"
)

// example is the form of an expression, for mistakes without a fix.
const example = `want one such as status >= 500 and path startsWith "/api"`

const noField = "it names no field"

// ofTypes tells how values get other types.
const ofTypes = `float(x) makes a number of a text, string(x) a text of a number`

// A Mistake is a part of an expression that cannot be read.
type Mistake struct {
	Place string // such as column 8
	What  string // is wrong, in one line
	Hint  string // what to write; "": What says it
	Line  string // the search that was probably meant, which this package does not know; "": none
}

// Error implements error. A search is that of the API.
func (m *Mistake) Error() string {
	switch text := m.Place + ": " + m.What; {
	case m.Line != "":
		return text + "; as a search: q=" + m.Line
	case m.Hint != "":
		return text + "; " + m.Hint
	default:
		return text
	}
}

// A mistake is a Mistake before its place is in words.
type mistake struct {
	at         int // its character in the expression
	what, hint string
}

// Error implements error.
func (m *mistake) Error() string { return m.what }

// explained is an error of [parse] in the words of the writer of an expression.
func explained(text string, err error) *Mistake {
	m, known := errors.AsType[*mistake](err)
	if !known {
		m = &mistake{what: err.Error()}
		if of, ok := errors.AsType[*file.Error](err); ok {
			m.at, m.what = of.From, of.Message
		}
		m.what, m.hint = plain(m.what)
	}
	if m.hint == example && regexp.MustCompile(`^(?:ts|@timestamp)\b`).MatchString(text) {
		m.hint = "times are chosen by --since 1h, or --from and --to (from= and to= in the API)"
	}
	before := []rune(text)
	before = before[:min(m.at, len(before))]
	place, column := "column ", len(before)+1
	if lines := strings.Split(string(before), "\n"); len(lines) > 1 {
		place = fmt.Sprintf("line %d, column ", len(lines))
		column = utf8.RuneCountInString(lines[len(lines)-1]) + 1
	}
	return &Mistake{Place: fmt.Sprint(place, column), What: m.what, Hint: m.hint}
}

// wording is a message of the language, and the one for the writer of an expression. $1 and so on
// are its groups; types of Go among them become words. Behind a semicolon is the hint.
type wording struct{ message, text string }

func wordings() []wording {
	return []wording{
		{`^unexpected token EOF$|^unexpected end of expression$`, `the expression ends before it is whole; ` + example},
		{`^unexpected token \w+\((".*")\)$`, `$1 has no place here; ` + example},
		{`^unrecognized character: U\+\w+ '(.*)'$`, `"$1" has no meaning here; ` + example},
		{`^bad number syntax: (".*")$`, `$1 is no number, and a text needs quotes`},
		{`^(?:integer|float) literal is too large$|^invalid \w+ literal: .*$`, `this number is too large, or none; a text needs quotes`},
		{`^literal not terminated$`, `the text that begins here has no quote at its end`},
		{`^unclosed comment$`, `the comment that begins here has no */ at its end`},
		{`^(?:invalid char escape|unable to unescape string.*)$`, `a \ in a text is written \\, and \" is a quote`},
		{`^expected name$`, `a name is missing here; ` + example},
		{`^wrap predicate with brackets.*$`, `the condition in the brackets is missing, as in any(tags, # == "a")`},
		{`^a map key must be .*$`, `names in { } need quotes, as in {"a": 1}`},
		{`^Operator \(.*\) and coalesce expressions.*$`, `put what belongs to ?? into ( )`},
		{`^compilation failed: expression exceeds maximum allowed nodes$`, `the expression is too long`},
		{`^expected bool, but got (.*)$`, `a condition is missing: this is $1; compare it, as in status >= 500 or len(msg) > 100`},
		{`^bool\((.*)\)$|^invalid operation: bool\((.*)\)$`, `a condition is missing: this is $1$2; compare it, as in status >= 500 or len(msg) > 100`},
		{`^invalid operation: (\S+) \(mismatched types (.*) and (.*)\)$`, `$1 has no meaning between $2 and $3; ` + ofTypes},
		{`^invalid operation: (\S+) \(mismatched type (.*)\)$`, `$1 has no meaning for $2`},
		{`^invalid operation: (?:int|int64|float)\((.*)\)$`, `$1 is no number`},
		{`^invalid operation: - (.*)$`, `- has no meaning for $1`},
		{`^invalid operation: (\S+|\S+ \{\}|\S+ interface \{\}) ([<>=!+*/%-]+) (.*)$`, `$2 has no meaning between $1 and $3; ` + ofTypes},
		{`^invalid operation: cannot call .*$|^(.*) is not callable$|^unknown (?:function|method) .*$`, `there is no such function; msg contains "text" and len(msg) > 100 are right`},
		{`^interface conversion: interface \{\} is (.*), not (.*)$`, `this is $1, and $2 is wanted; ` + ofTypes},
		{`^operator "in" not defined on (.*)$`, `behind in a list is wanted, as in status in [502, 504], and this is $1`},
		{`^invalid number of arguments(?: for \w+)?:? \(?expected (.*), got (\d+)\)?$`, `the function wants $1 values in its brackets, and there are $2`},
		{`^expected at least (\d+) arguments$`, `the function wants $1 values in its brackets, as in any(tags, # == "a")`},
		{`^(?:not enough|too many) arguments to call (.*)$`, `$1 wants another number of values in its brackets`},
		{`^invalid argument for (\w+) \(type (.*)\)$`, `$1 has no meaning for $2`},
		{`^cannot use (.*) as argument \(type (\w+)\).*$`, `this is $1, and $2 is wanted`},
		{`^cannot (?:take|get|reverse|concat|flatten|uniq|transform|slice)(?: first| last)?(?: element| elements| keys| values)? ?(?:from )?(.*?)(?: elements| to pairs| from pairs)?$`, `a list or an object is wanted, and this is $1`},
		{`^cannot (?:fetch|get) (.*) from (.*)$`, `$2 has no part $1`},
		{`^predicate should return boolean \(got .*\)$`, `a condition is wanted here, in which # is the element: any(tags, # == "a")`},
		{`^index out of range: (.*) \(array length is (.*)\)$`, `the list has $2 elements, and so no [$1]`},
		{`^reflect: call of .*$`, `a list is wanted, and this is none; an expression is about one record: top, hist and --logql count records`},
		{`^reflect: slice index out of range$|^reduce of empty array.*$`, `the list is empty`},
		{`^time: (?:invalid|unknown|missing).*duration (".*")$`, `$1 is no duration; one is 1.5s or 2h30m`},
		{`^time: .*$|^parsing time .*$|^(?:invalid date|cannot parse) (.*)$`, `it is no time that date() can read; the time of a record is a text too: ts >= "2026-11-25"`},
		{`^strconv\.\w+: parsing (".*"): .*$`, `$1 is no number`},
		{`^invalid character .*$|^unexpected end of JSON input$`, `the text is no JSON`},
		{`^illegal base64 .*$`, `the text is no base64`},
		{`^error parsing regexp: missing argument to repetition operator: (.*)$`, `a regular expression cannot begin with $1: .* is any text, and contains is for a part of a text as it is`},
		{`^error parsing regexp: (.*)$`, `the regular expression is wrong: $1; contains is for a part of a text as it is`},
		{`^integer divide by zero$|^runtime error: integer divide by zero$`, `it divides by 0`},
	}
}

// plain is a message of the language in plain words, and its hint.
func plain(message string) (what, hint string) {
	message = strings.ReplaceAll(message, "\n", " ")
	for _, w := range wordings() {
		expr := regexp.MustCompile(w.message)
		groups := expr.FindStringSubmatch(message)
		if groups == nil {
			continue
		}
		pairs := make([]string, 0, 2*len(groups))
		for i, group := range groups {
			if !strings.HasPrefix(group, `"`) { // not one of the writer's words
				group = typeWords(group)
			}
			pairs = append(pairs, fmt.Sprintf("$%d", i), group)
		}
		out := strings.NewReplacer(pairs...).Replace(w.text)
		if strings.Contains(out, "a time") {
			out = strings.Replace(out, ofTypes, `date(x) makes a time of a text, as in date(ts) > now() - duration("1h")`, 1)
		}
		what, hint, _ = strings.Cut(out, "; ")
		return what, hint
	}
	if text := typeWords(message); !regexp.MustCompile(`interface|reflect|runtime|token|nil pointer|goroutine|<nil>|\bvm\.|\bast\.`).MatchString(text) {
		return text, ""
	}
	return "this part has no meaning here", example
}

// typeWords replaces types of Go by words for them.
func typeWords(text string) string {
	for _, w := range []struct{ expr, word string }{
		{`map\[(?:string|interface \{\})\](?:\[\])?interface \{\}`, "an object"}, {`\[\](?:interface \{\}|any|string)|\barray\b|\bslice\b`, "a list"}, {`interface \{\}|\bunknown\b|\bany\b`, "a field"},
		{`\b(?:float|int|uint)(?:8|16|32|64)?\b|\binteger\b`, "a number"}, {`\bstring\b`, "a text"}, {`\bbool\b`, "true or false"}, {`<nil>|\bnil\b`, "nothing"},
		{`\btime\.Time\b|\*?time\.Location`, "a time"}, {`\btime\.Duration\b`, "a duration"},
	} {
		text = regexp.MustCompile(w.expr).ReplaceAllString(text, w.word)
	}
	return text
}
