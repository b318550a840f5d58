package where

import (
	"errors"
	"math"
	"reflect"
	"strings"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/vm"
	"github.com/expr-lang/expr/vm/runtime"

	"blobtail/internal/budget"
	"blobtail/internal/grep"
	"blobtail/internal/regex"
)

// The functions that stand in an expression in place of its own parts. No expression can write
// their names.
const (
	callStep     = "\x00step"
	callMade     = "\x00made"
	callPlus     = "\x00plus"
	callRest     = "\x00rest"
	callEqual    = "\x00equal"
	callIn       = "\x00in"
	callContains = "\x00contains"
	callMatches  = "\x00matches"
	callOf       = "\x00of " // and the name of a function of the language
)

// mostMade is how many bytes an expression makes of one record at most, if its query has no
// budget.
const mostMade = 64 << 20

var errMade = errors.New("the expression makes more than 64 MiB of one record")

// A run is the evaluation of an expression for one record.
type run struct {
	vm     vm.VM
	budget *budget.Budget
	share  budget.Share
	env    map[string]any

	// raw is the line, which line has once split says so, and env once loaded does.
	of            *Expr
	raw, low      []byte
	full, made    []byte // the line with made fields, once loaded, and memory for it
	line          grep.Line
	split, loaded bool

	// expr is the expression of a text that is no constant: the last one.
	text string
	expr *regex.Regex
}

// take takes bytes for the record.
func (r *run) take(n int) error {
	if err := r.share.Take(n); err != nil {
		return err
	}
	if r.budget == nil && r.share.Used() > mostMade {
		return errMade
	}
	return nil
}

// end forgets the record.
func (r *run) end() {
	clear(r.env)
	r.raw, r.full, r.split, r.loaded = nil, nil, false, false
	clear(r.vm.Stack)
	clear(r.vm.Variables)
	r.share.Release()
}

// The memory of values beside their texts.
const (
	itemBytes  = 16 // of an element of a list
	entryBytes = 64 // of a field of an object
)

// charge takes the bytes of a value, with each part as often as the value has it: code that shows
// or compares a value works through all of that.
func (r *run) charge(v any) error {
	n := 0
	switch v := v.(type) {
	case nil, bool, int, float64:
		return nil
	case string:
		return r.take(len(v))
	case []any:
		if err := r.take(itemBytes * len(v)); err != nil {
			return err
		}
		for _, one := range v {
			if text, ok := one.(string); ok {
				n += len(text)
			} else if err := r.charge(one); err != nil {
				return err
			}
		}
	case []string:
		for _, text := range v {
			n += itemBytes + len(text)
		}
	case map[string]any:
		for key, one := range v {
			if err := r.take(entryBytes + len(key)); err != nil {
				return err
			}
			if err := r.charge(one); err != nil {
				return err
			}
		}
	case map[any][]any:
		for key, list := range v {
			if err := errors.Join(r.take(entryBytes), r.charge(key), r.charge(list)); err != nil {
				return err
			}
		}
	default:
		if of := reflect.ValueOf(v); of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			n = entryBytes * of.Len() // of numbers, or of pairs after their parts were charged
		}
	}
	return r.take(n)
}

// made is for values that an expression makes of others.
func made(r *run, args []any) (any, error) { return args[0], r.charge(args[0]) }

func plus(r *run, args []any) (any, error) {
	if a, ok := args[0].(string); ok {
		if b, ok := args[1].(string); ok {
			if err := r.take(len(a) + len(b)); err != nil {
				return nil, err
			}
			return a + b, nil
		}
	}
	return runtime.Add(args[0], args[1]), nil
}

// rest is what a division leaves. The language has it for its whole numbers alone, and those of
// JSON are none to it.
func rest(_ *run, args []any) (any, error) {
	left, isNumber := args[0].(float64)
	right, both := args[1].(float64)
	switch {
	case isNumber && !both:
		n, whole := args[1].(int)
		right, both = float64(n), whole
	case both && !isNumber:
		n, whole := args[0].(int)
		left, isNumber = float64(n), whole
	}
	if !isNumber || !both {
		return runtime.Modulo(args[0], args[1]), nil
	}
	if right == 0 {
		return nil, errors.New("% 0 has no result")
	}
	return math.Mod(left, right), nil
}

func equal(_ *run, args []any) (any, error) { return runtime.Equal(args[0], args[1]), nil }

func in(_ *run, args []any) (any, error) { return runtime.In(args[0], args[1]), nil }

func contains(_ *run, args []any) (any, error) {
	if runtime.IsNil(args[0]) || runtime.IsNil(args[1]) {
		return false, nil
	}
	return strings.Contains(args[0].(string), args[1].(string)), nil
}

// matches is for expressions that are constants, and for others.
func matches(r *run, args []any) (any, error) {
	if runtime.IsNil(args[0]) || runtime.IsNil(args[1]) {
		return false, nil
	}
	re, fixed := args[1].(*regex.Regex)
	if !fixed {
		text := args[1].(string)
		if r.expr == nil || r.text != text {
			if r.expr != nil {
				r.expr.Close()
			}
			var err error
			if r.expr, err = regex.Compile(r.budget, text); err != nil {
				return nil, err
			}
			r.text = text
		}
		re = r.expr
	}
	return re.MatchString(args[0].(string)), nil
}

// uniq is that of the language, which looks at all pairs of elements.
func uniq(r *run, args []any) (any, error) {
	if len(args) != 1 {
		return builtinOf("uniq", args)
	}
	list := reflect.ValueOf(args[0])
	if list.Kind() != reflect.Slice && list.Kind() != reflect.Array {
		return builtinOf("uniq", args)
	}
	out := []any{}
	for i := range list.Len() {
		if err := r.budget.Err(); err != nil {
			return nil, err
		}
		one, known := list.Index(i).Interface(), false
		for _, other := range out {
			if known = runtime.Equal(one, other); known {
				break
			}
		}
		if !known {
			out = append(out, one)
		}
	}
	return out, nil
}

// builtinOf calls a function of the language.
func builtinOf(name string, args []any) (any, error) {
	f := builtin.Builtins[builtin.Index[name]]
	switch {
	case f.Fast != nil:
		return f.Fast(args[0]), nil
	case f.Safe != nil:
		out, _, err := f.Safe(args...)
		return out, err
	}
	return f.Func(args...)
}

// costs are the functions of the language that work on texts, lists and objects, with the bytes
// that each makes at most; nil: it makes nothing.
func costs() map[string]func(args []any) int {
	return map[string]func(args []any) int{
		"len": nil, "int": nil, "float": nil, "indexOf": nil, "lastIndexOf": nil, "hasPrefix": nil, "hasSuffix": nil,
		"trim": nil, "trimPrefix": nil, "trimSuffix": nil, "max": nil, "min": nil, "mean": nil,
		"string":     weigh,
		"upper":      func(args []any) int { return 3 * size(args, 0) },
		"lower":      func(args []any) int { return 3 * size(args, 0) },
		"split":      func(args []any) int { return size(args, 0) + itemBytes*(1+times(args)) },
		"splitAfter": func(args []any) int { return size(args, 0) + itemBytes*(1+times(args)) },
		"replace":    func(args []any) int { return size(args, 0) + times(args)*size(args, 2) },
		"repeat":     repeated,
		"join":       joined,
		"toJSON":     func(args []any) int { return 2 * indented(args, 0) },
		"fromJSON":   func(args []any) int { return jsonBytes * size(args, 0) },
		"toBase64":   func(args []any) int { return 2 * size(args, 0) },
		"fromBase64": func(args []any) int { return size(args, 0) },
		"keys":       copied, "values": copied, "toPairs": copied, "fromPairs": copied, "reverse": copied,
		"uniq": copied, "concat": copied, "flatten": copied, "sort": copied, "median": copied,
	}
}

// jsonBytes is how many bytes a byte of JSON becomes at most: a "[]," is a list.
const jsonBytes = 32

// size is the length of an argument that is a text.
func size(args []any, i int) int {
	if i < len(args) {
		if text, ok := args[i].(string); ok {
			return len(text)
		}
	}
	return 0
}

// times is how often the first argument has the second.
func times(args []any) int {
	if len(args) < 2 {
		return 0
	}
	text, ok := args[0].(string)
	part, both := args[1].(string)
	if !ok || !both {
		return 0
	}
	return strings.Count(text, part)
}

func repeated(args []any) int {
	const most = 1_000_000 // the language refuses more
	if len(args) < 2 {
		return 0
	}
	n := runtime.ToInt(args[1])
	if n < 0 || n > most {
		return 0
	}
	return n * size(args, 0)
}

func joined(args []any) int {
	list := reflect.ValueOf(args[0])
	if list.Kind() != reflect.Slice {
		return 0
	}
	return weigh(args[:1]) + list.Len()*size(args, 1)
}

// copied is for functions that make lists and objects of the parts of others.
func copied(args []any) int { return 4 * weigh(args) }

// weigh is about how many bytes values have as texts.
func weigh(args []any) (n int) {
	for _, v := range args {
		switch v := v.(type) {
		case string:
			n += itemBytes + len(v)
		case []any:
			n += itemBytes + weigh(v)
		case []string:
			for _, text := range v {
				n += itemBytes + len(text)
			}
		case map[string]any:
			for key, one := range v {
				n += entryBytes + len(key) + weigh([]any{one})
			}
		case map[any][]any:
			for key, list := range v {
				n += entryBytes + weigh([]any{key}) + weigh(list)
			}
		default:
			n += itemBytes + entryBytes
			if of := reflect.ValueOf(v); of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
				n += entryBytes * of.Len()
			}
		}
	}
	return n
}

// indented is about how many bytes values have as JSON with indentation: each element of a list
// or an object is a line.
func indented(args []any, depth int) (n int) {
	line := 2*depth + itemBytes
	for _, v := range args {
		n += line
		switch v := v.(type) {
		case []any:
			n += line + indented(v, depth+1)
		case map[string]any:
			n += line
			for key, one := range v {
				n += 6*len(key) + indented([]any{one}, depth+1)
			}
		default:
			n += 6 * weigh([]any{v})
			if of := reflect.ValueOf(v); of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
				n += (2*depth + entryBytes) * of.Len()
			}
		}
	}
	return n
}
