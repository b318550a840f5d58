package stage

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"
)

// functions are those of templates. s has the record that they are about; nil only to compile.
// Those of text/template that make text are replaced, because they have no bound.
func functions(s *state) template.FuncMap {
	all := template.FuncMap{
		"__line__": s.lineText, "__timestamp__": s.lineTime,
		"printf": printf, "print": bounded(fmt.Sprint), "println": bounded(fmt.Sprintln),
		"html": bounded(template.HTMLEscaper), "js": bounded(template.JSEscaper), "urlquery": bounded(template.URLQueryEscaper),
	}
	for _, some := range []template.FuncMap{textFunctions(), numberFunctions(), fractionFunctions(), timeFunctions(), s.exprFunctions()} {
		for name, f := range some {
			all[name] = f
		}
	}
	return all
}

// fits returns a text that is not too long.
func fits(text string) (string, error) {
	if len(text) > maxOutput {
		return "", errOutput
	}
	return text, nil
}

// sizeOf is about how long a value is as a text.
func sizeOf(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		n := 2
		for _, one := range v {
			n += sizeOf(one) + 1
		}
		return n
	case map[string]any:
		n := 2
		for key, one := range v {
			n += len(key) + sizeOf(one) + 2
		}
		return n
	case map[string]string:
		n := 2
		for key, one := range v {
			n += len(key) + len(one) + 2
		}
		return n
	}
	return 64
}

// bounded is a function that joins its arguments, for arguments that are not too long.
func bounded(join func(...any) string) func(...any) (string, error) {
	return func(args ...any) (string, error) {
		if n := sizeOf(args); n > maxOutput {
			return "", errOutput
		}
		return fits(join(args...))
	}
}

// printf is [fmt.Sprintf] for short outputs. Each verb may show the longest argument.
func printf(format string, args ...any) (string, error) {
	longest, verbs, digits := 0, 0, 0
	for _, arg := range args {
		longest = max(longest, sizeOf(arg))
	}
	for i := range len(format) {
		switch c := format[i]; {
		case c == '%':
			verbs++
			digits = 0
		case c-'0' < 10:
			if digits++; digits > 3 && verbs > 0 {
				return "", errors.New("printf: a width of more than 999")
			}
		case c == '*':
			if verbs > 0 {
				return "", errors.New("printf: * is not allowed; write the width")
			}
		default:
			digits = 0
		}
	}
	if len(format)+verbs*(longest+1) > 4*maxOutput {
		return "", errOutput
	}
	return fits(fmt.Sprintf(format, args...))
}

// textFunctions work on texts. Their arguments have the order of package strings if their names
// do, else the text comes last, so that it may come from a pipeline.
func textFunctions() template.FuncMap {
	return template.FuncMap{
		"ToLower": strings.ToLower, "lower": strings.ToLower,
		"ToUpper": strings.ToUpper, "upper": strings.ToUpper,
		"title": title,
		"Trim":  strings.Trim, "TrimLeft": strings.TrimLeft, "TrimRight": strings.TrimRight,
		"TrimPrefix": strings.TrimPrefix, "TrimSuffix": strings.TrimSuffix, "TrimSpace": strings.TrimSpace,
		"trim":       strings.TrimSpace,
		"trimAll":    func(cut, s string) string { return strings.Trim(s, cut) },
		"trimPrefix": func(prefix, s string) string { return strings.TrimPrefix(s, prefix) },
		"trimSuffix": func(suffix, s string) string { return strings.TrimSuffix(s, suffix) },
		"Replace":    replace,
		"replace":    func(old, with, s string) (string, error) { return replace(s, old, with, -1) },
		"contains":   func(part, s string) bool { return strings.Contains(s, part) },
		"hasPrefix":  func(prefix, s string) bool { return strings.HasPrefix(s, prefix) },
		"hasSuffix":  func(suffix, s string) bool { return strings.HasSuffix(s, suffix) },
		"substr":     substr, "trunc": trunc,
		"repeat": repeat,
		"indent": indent,
		"nindent": func(n int, s string) (string, error) {
			text, err := indent(n, s)
			return "\n" + text, err
		},
		"alignLeft": func(n int, s string) (string, error) {
			return align(n, s, func(pad string, runes []rune) string { return string(runes[:min(n, len(runes))]) + pad })
		},
		"alignRight": func(n int, s string) (string, error) {
			return align(n, s, func(pad string, runes []rune) string { return pad + string(runes[max(0, len(runes)-n):]) })
		},
		"default":   orDefault,
		"fromJson":  fromJSON,
		"urlencode": func(s string) (string, error) { return fits(url.QueryEscape(s)) }, "urldecode": url.QueryUnescape,
		"b64enc": func(s string) (string, error) { return fits(base64.StdEncoding.EncodeToString([]byte(s))) },
		"b64dec": func(s string) (string, error) {
			b, err := base64.StdEncoding.DecodeString(s)
			return string(b), err
		},
	}
}

// title makes the first letter of each word upper case.
func title(s string) string {
	before := ' '
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(before) && !unicode.IsDigit(before) && before != '_' && before != '\'' {
			before = r
			return unicode.ToTitle(r)
		}
		before = r
		return r
	}, s)
}

func replace(s, old, with string, n int) (string, error) {
	times := strings.Count(s, old)
	if n >= 0 {
		times = min(times, n)
	}
	if times > 0 && len(s)+times*len(with) > maxOutput {
		return "", errOutput
	}
	return strings.Replace(s, old, with, n), nil
}

// substr is the text from one character to another; without end if that is negative.
func substr(from, to int, s string) string {
	runes := []rune(s)
	if to < 0 || to > len(runes) {
		to = len(runes)
	}
	from = min(max(from, 0), to)
	return string(runes[from:to])
}

// trunc keeps the first characters, or if n is negative the last.
func trunc(n int, s string) string {
	runes := []rune(s)
	if n >= 0 {
		return string(runes[:min(n, len(runes))])
	}
	return string(runes[max(0, len(runes)+max(n, -len(runes))):])
}

func repeat(n int, s string) (string, error) {
	if n <= 0 || s == "" {
		return "", nil
	}
	if n > maxOutput/len(s) {
		return "", errOutput
	}
	return strings.Repeat(s, n), nil
}

func indent(n int, s string) (string, error) {
	pad, err := repeat(n, " ")
	if err != nil {
		return "", err
	}
	text, err := replace(s, "\n", "\n"+pad, -1)
	if err != nil {
		return "", err
	}
	return fits(pad + text)
}

// align pads or cuts a text to n characters.
func align(n int, s string, join func(pad string, runes []rune) string) (string, error) {
	if n < 0 {
		return s, nil
	}
	pad, err := repeat(n-utf8.RuneCountInString(s), " ")
	if err != nil {
		return "", err
	}
	return fits(join(pad, []rune(s)))
}

// orDefault is a value, or if that is empty the other one.
func orDefault(other any, values ...any) any {
	if len(values) == 0 {
		return other
	}
	if truth, _ := template.IsTrue(values[0]); !truth {
		return other
	}
	return values[0]
}

func fromJSON(s string) (any, error) {
	if len(s) > maxOutput {
		return nil, errOutput
	}
	var v any
	err := json.Unmarshal([]byte(s), &v)
	return v, err
}

// numberFunctions count in whole numbers.
func numberFunctions() template.FuncMap {
	return template.FuncMap{
		"int": func(v any) int { return int(toInt(v)) },
		"add": func(all ...any) (sum int64) {
			for _, v := range all {
				sum += toInt(v)
			}
			return sum
		},
		"sub": func(a, b any) int64 { return toInt(a) - toInt(b) },
		"mul": func(a any, all ...any) int64 {
			product := toInt(a)
			for _, v := range all {
				product *= toInt(v)
			}
			return product
		},
		"div": func(a, b any) (int64, error) { return divide(toInt(a), toInt(b), false) },
		"mod": func(a, b any) (int64, error) { return divide(toInt(a), toInt(b), true) },
		"max": func(a any, all ...any) int64 {
			return best(toInt, toInt(a), all, func(x, y int64) bool { return x > y })
		},
		"min": func(a any, all ...any) int64 {
			return best(toInt, toInt(a), all, func(x, y int64) bool { return x < y })
		},
	}
}

// fractionFunctions count in fractions.
func fractionFunctions() template.FuncMap {
	return template.FuncMap{
		"float64": toFloat,
		"bytes":   func(s string) (float64, error) { return size([]byte(s)) },
		"addf": func(all ...any) (sum float64) {
			for _, v := range all {
				sum += toFloat(v)
			}
			return sum
		},
		"subf": func(a any, all ...any) float64 {
			rest := toFloat(a)
			for _, v := range all {
				rest -= toFloat(v)
			}
			return rest
		},
		"mulf": func(a any, all ...any) float64 {
			product := toFloat(a)
			for _, v := range all {
				product *= toFloat(v)
			}
			return product
		},
		"divf": func(a any, all ...any) float64 {
			quotient := toFloat(a)
			for _, v := range all {
				quotient /= toFloat(v)
			}
			return quotient
		},
		"maxf": func(a any, all ...any) float64 {
			return best(toFloat, toFloat(a), all, func(x, y float64) bool { return x > y })
		},
		"minf": func(a any, all ...any) float64 {
			return best(toFloat, toFloat(a), all, func(x, y float64) bool { return x < y })
		},
		"ceil": func(v any) float64 { return math.Ceil(toFloat(v)) }, "floor": func(v any) float64 { return math.Floor(toFloat(v)) },
		"round": round,
	}
}

func best[T any](read func(any) T, first T, all []any, better func(x, y T) bool) T {
	for _, v := range all {
		if one := read(v); better(one, first) {
			first = one
		}
	}
	return first
}

func divide(a, b int64, rest bool) (int64, error) {
	switch {
	case b == 0:
		return 0, errors.New("division by 0")
	case b == -1: // the least number has no counterpart
		if rest {
			return 0, nil
		}
		return -a, nil
	case rest:
		return a % b, nil
	}
	return a / b, nil
}

// round rounds to a number of decimal places, and up from on; 0.5 if that is left out.
func round(v any, places int, on ...float64) float64 {
	half := 0.5
	if len(on) > 0 {
		half = on[0]
	}
	f, times := toFloat(v), math.Pow10(places)
	whole, part := math.Modf(f * times)
	switch {
	case part >= half:
		whole++
	case part <= -half:
		whole--
	}
	return whole / times
}

// toInt is the whole number of a value; 0 for a text that is none.
func toInt(v any) int64 {
	switch v := v.(type) {
	case int:
		return int64(v)
	case int64:
		return v
	case time.Duration:
		return int64(v)
	case string:
		if n, err := strconv.ParseInt(strings.TrimSpace(v), 0, 64); err == nil {
			return n
		}
	}
	return int64(toFloat(v))
}

// toFloat is the number of a value; 0 for a text that is none.
func toFloat(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case bool:
		if v {
			return 1
		}
	case string:
		f, _ := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return f
	}
	return 0
}

// timeFunctions work on times and durations.
func timeFunctions() template.FuncMap {
	return template.FuncMap{
		"now":             time.Now,
		"date":            func(layout string, t time.Time) (string, error) { return fits(t.Format(layout)) },
		"toDate":          func(layout, s string) time.Time { t, _ := time.Parse(layout, s); return t },
		"toDateInZone":    inZone,
		"unixEpoch":       func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) },
		"unixEpochMillis": func(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) },
		"unixEpochNanos":  func(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) },
		"unixToTime":      unixToTime,
		"duration":        func(s string) (float64, error) { return seconds([]byte(s)) },
		"duration_seconds": func(s string) (float64, error) {
			return seconds([]byte(s))
		},
	}
}

func inZone(layout, zone, s string) (time.Time, error) {
	place, err := time.LoadLocation(zone)
	if err != nil {
		return time.Time{}, err
	}
	t, _ := time.ParseInLocation(layout, s, place)
	return t, nil
}

// unixToTime reads seconds, milliseconds, microseconds or nanoseconds, or days of five digits.
func unixToTime(s string) (time.Time, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is no Unix time", cut([]byte(s)))
	}
	switch len(s) {
	case 5:
		return time.Unix(n*86400, 0).UTC(), nil
	case 10:
		return time.Unix(n, 0).UTC(), nil
	case 13:
		return time.UnixMilli(n).UTC(), nil
	case 16:
		return time.UnixMicro(n).UTC(), nil
	case 19:
		return time.Unix(0, n).UTC(), nil
	}
	return time.Time{}, fmt.Errorf("%q is no Unix time; it has 10, 13, 16 or 19 digits", cut([]byte(s)))
}
