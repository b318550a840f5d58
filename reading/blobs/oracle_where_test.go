package blobs_test

import (
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"blobtail/record"
)

// truth is the result of a condition. A condition that makes no sense for a record, such as
// a text that is compared with a number by <, is neither true nor false.
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

// A cond is a condition on the fields of a record: an operator and conditions, or a field,
// an operator, and values or another field.
type cond struct {
	op     string
	subs   []*cond
	field  string
	other  string // a field
	values []any
	is     func(text string) bool // of has, for a text of the record
}

// String is the condition in the language of --where.
func (c *cond) String() string {
	switch c.op {
	case "and", "or":
		return "(" + c.subs[0].String() + " " + c.op + " " + c.subs[1].String() + ")"
	case "not":
		return "not (" + c.subs[0].String() + ")"
	case "has":
		return c.values[0].(string)
	case "in":
		var all []string
		for _, v := range c.values {
			all = append(all, literal(v))
		}
		return c.field + " in [" + strings.Join(all, ", ") + "]"
	}
	if c.other != "" {
		return c.field + " " + c.op + " " + c.other
	}
	return c.field + " " + c.op + " " + literal(c.values[0])
}

func literal(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case string:
		return strconv.Quote(v)
	case bool:
		return strconv.FormatBool(v)
	}
	number := v.(float64)
	if number >= 1<<63 {
		return strconv.FormatFloat(number, 'e', -1, 64) // whole numbers have 63 bits there
	}
	return strconv.FormatFloat(number, 'f', -1, 64)
}

// of evaluates the condition. The fields are those of encoding/json.
func (c *cond) of(s *seen) truth {
	fields := s.fields
	switch c.op {
	case "and":
		return min(c.subs[0].of(s), c.subs[1].of(s))
	case "or":
		return max(c.subs[0].of(s), c.subs[1].of(s))
	case "not":
		return yes - c.subs[0].of(s)
	case "has":
		return truthOf(slices.ContainsFunc(s.texts, c.is))
	}
	value, _ := fieldOf(fields, c.field)
	if c.field == "level" || c.other == "level" {
		return c.ofLevel(fields, value)
	}
	return c.ofValue(fields, value)
}

// ranks are the levels in rising order.
var ranks = []string{"trace", "debug", "info", "warn", "error", "critical"}

// ofLevel evaluates the condition beside the level of the record: it has an order, and its words
// have others for them.
func (c *cond) ofLevel(fields map[string]any, value any) truth {
	if strings.Contains("< <= > >=", c.op) {
		other := c.values
		if c.other != "" {
			v, _ := fieldOf(fields, c.other)
			other = []any{v}
		}
		a, b := slices.Index(ranks, levelWord(value)), slices.Index(ranks, levelWord(other[0]))
		if a < 0 || b < 0 {
			return unknown
		}
		return truthOf(map[string]bool{"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[c.op])
	}
	folded := *c
	if c.op == "==" || c.op == "!=" || c.op == "in" {
		folded.values = slices.Clone(c.values)
		for i, v := range c.values {
			if word := levelWord(v); slices.Contains(ranks, word) {
				folded.values[i] = word
			}
		}
	}
	return folded.ofValue(fields, value)
}

// levelWord is the word that records have for a text that names a level.
func levelWord(v any) string {
	text, _ := v.(string)
	return record.ParseLevel([]byte(text)).String()
}

// ofValue evaluates the condition for the value of its field.
func (c *cond) ofValue(fields map[string]any, value any) truth {
	if c.op == "in" {
		return truthOf(slices.ContainsFunc(c.values, func(v any) bool { return v == value }))
	}
	var other any
	if c.other != "" {
		other, _ = fieldOf(fields, c.other)
	} else {
		other = c.values[0]
	}
	switch c.op {
	case "==":
		return truthOf(reflect.DeepEqual(value, other))
	case "!=":
		return truthOf(!reflect.DeepEqual(value, other))
	}
	if a, ok := value.(string); ok {
		if b, ok := other.(string); ok {
			return truthOf(texts(c.op, a, b))
		}
	}
	if strings.Contains("contains startsWith endsWith matches", c.op) {
		if value == nil || other == nil {
			return no
		}
		return unknown
	}
	a, ok1 := value.(float64)
	b, ok2 := other.(float64)
	if !ok1 || !ok2 {
		return unknown
	}
	return truthOf(map[string]bool{"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[c.op])
}

func texts(op, a, b string) bool {
	switch op {
	case "contains":
		return strings.Contains(a, b)
	case "startsWith":
		return strings.HasPrefix(a, b)
	case "endsWith":
		return strings.HasSuffix(a, b)
	case "matches":
		return regexp.MustCompile(b).MatchString(a)
	}
	return map[string]bool{"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
}

// fieldOf finds a field by its name, or b in the object a for a.b.
func fieldOf(fields map[string]any, name string) (any, bool) {
	if v, ok := fields[name]; ok {
		return v, true
	}
	for i, c := range name {
		if c != '.' {
			continue
		}
		if inner, ok := fields[name[:i]].(map[string]any); ok {
			if v, ok := fieldOf(inner, name[i+1:]); ok {
				return v, true
			}
		}
	}
	return nil, false
}

// whereFields are names that --where can write as they are. Some are functions of its
// language too.
var whereFields = []string{"ts", "level", "service", "msg", "status", "path", "http.status", "http.method", "http.a.b", "none", "missing", "ok",
	"count", "duration", "type", "len", "n", "pid", "component", "größe", "big"}

// drawCond makes a condition that some records may meet.
func drawCond(rng *rand.Rand, all []*seen, depth int, fold bool) *cond {
	if depth > 0 {
		switch rng.IntN(6) {
		case 0:
			return &cond{op: "not", subs: []*cond{drawCond(rng, all, depth-1, fold)}}
		case 1, 2:
			return &cond{op: "and", subs: []*cond{drawCond(rng, all, depth-1, fold), drawCond(rng, all, depth-1, fold)}}
		case 3:
			return &cond{op: "or", subs: []*cond{drawCond(rng, all, depth-1, fold), drawCond(rng, all, depth-1, fold)}}
		}
	}
	if rng.IntN(3) == 0 {
		return drawHas(rng, all, fold)
	}
	c := &cond{field: whereFields[rng.IntN(len(whereFields))]}
	c.op = []string{"==", "!=", "<", "<=", ">", ">=", "in", "contains", "startsWith", "endsWith", "matches"}[rng.IntN(11)]
	if rng.IntN(12) == 0 && c.op != "in" && c.op != "matches" {
		c.other = whereFields[rng.IntN(len(whereFields))]
		return c
	}
	for range 1 + rng.IntN(3) {
		c.values = append(c.values, drawValue(rng, all, c))
	}
	return c
}

// drawHas makes a condition on the texts of a record.
func drawHas(rng *rand.Rand, all []*seen, fold bool) *cond {
	if rng.IntN(3) == 0 {
		e := expression(rng, all)
		text := "has(/" + strings.ReplaceAll(e, "/", `\/`) + "/)"
		if fold {
			e = "(?i)" + e
		}
		return &cond{op: "has", values: []any{text}, is: regexp.MustCompile(e).MatchString}
	}
	text := part(rng, all)
	return &cond{op: "has", values: []any{"has(" + strconv.Quote(text) + ")"}, is: func(s string) bool {
		return strings.Contains(s, text) || fold && strings.Contains(foldASCII(s), foldASCII(text))
	}}
}

// drawValue is a value to compare a field with: often one that a record has there.
func drawValue(rng *rand.Rand, all []*seen, c *cond) any {
	if c.field == "level" && strings.Contains("< <= > >=", c.op) {
		return []string{"trace", "dbg", "Info", "warn", "warning", "ERROR", "fatal"}[rng.IntN(7)]
	}
	v, _ := fieldOf(all[rng.IntN(len(all))].fields, c.field)
	text, isText := v.(string)
	switch c.op {
	case "contains", "startsWith", "endsWith", "matches":
		if runes := []rune(text); len(runes) > 0 && rng.IntN(4) > 0 {
			from := rng.IntN(len(runes))
			text = string(runes[from : from+rng.IntN(len(runes)-from)])
		} else if !isText {
			text = part(rng, all)
		}
		if c.op == "matches" {
			text = []string{"", "^", "(?i)"}[rng.IntN(3)] + regexp.QuoteMeta(text) + []string{"", "$", ".*"}[rng.IntN(3)]
		}
		return text
	}
	if number, ok := v.(float64); rng.IntN(3) > 0 && (ok && number >= 0 || isText) {
		return v
	}
	// <, <=, > and >= have no meaning for other constants.
	return []any{float64(rng.IntN(600)), rng.Float64(), "error", "", part(rng, all), nil, true}[rng.IntN(map[bool]int{true: 5, false: 7}[c.op[0] == '<' || c.op[0] == '>'])]
}
