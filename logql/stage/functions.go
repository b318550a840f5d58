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

	"blobtail/internal/printing"
)

// functions are those of templates. s has the record that they are about; nil only to compile.
// Those of text/template that make text are replaced, because they have no bound. All that work on
// texts look at the budget of the query, and take the length of their results from it.
func functions(s *state) template.FuncMap {
	all := template.FuncMap{
		"__line__": s.lineText, "__timestamp__": s.lineTime,
	}
	for _, some := range []template.FuncMap{s.printing().Functions(), s.textFunctions(), s.codeFunctions(), s.numberFunctions(), s.fractionFunctions(), s.timeFunctions(), s.exprFunctions()} {
		for name, f := range some {
			all[name] = f
		}
	}
	return all
}

// makes takes bytes that live no longer than the run of a template.
func (s *state) makes(n int) error {
	s.forms.made += n
	return s.share.Take(n)
}

// fits returns a text that a function has made, if it is not too long.
func (s *state) fits(text string) (string, error) {
	if len(text) > maxOutput {
		return "", errOutput
	}
	return text, s.makes(len(text))
}

// looks returns a value for which nothing was made.
func looks[T any](s *state, value T) (T, error) { return value, s.budget.Err() }

// newText is a function that makes a text of another one.
func (s *state) newText(f func(string) string) func(string) (string, error) {
	return func(in string) (string, error) {
		if err := s.budget.Err(); err != nil {
			return "", err
		}
		return s.fits(f(in))
	}
}

// part is a function that returns a part of its first text.
func (s *state) part(f func(text, by string) string) func(text, by string) (string, error) {
	return func(text, by string) (string, error) { return looks(s, f(text, by)) }
}

// partOf is part for a text that comes last.
func (s *state) partOf(f func(text, by string) string) func(by, text string) (string, error) {
	return func(by, text string) (string, error) { return looks(s, f(text, by)) }
}

// found is a function that tells something about a text, which comes last.
func (s *state) found(f func(text, part string) bool) func(part, text string) (bool, error) {
	return func(part, text string) (bool, error) { return looks(s, f(text, part)) }
}

// printing bounds the functions that print values.
func (s *state) printing() printing.Bounds {
	return printing.Bounds{Most: maxOutput, Err: errOutput, Take: func(n int) error {
		if err := s.budget.Err(); err != nil {
			return err
		}
		return s.makes(n)
	}}
}

// textFunctions work on texts. Their arguments have the order of package strings if their names
// do, else the text comes last, so that it may come from a pipeline.
func (s *state) textFunctions() template.FuncMap {
	return template.FuncMap{
		"ToLower": s.newText(strings.ToLower), "lower": s.newText(strings.ToLower),
		"ToUpper": s.newText(strings.ToUpper), "upper": s.newText(strings.ToUpper),
		"title": s.newText(title),
		"Trim":  s.part(strings.Trim), "TrimLeft": s.part(strings.TrimLeft), "TrimRight": s.part(strings.TrimRight),
		"TrimPrefix": s.part(strings.TrimPrefix), "TrimSuffix": s.part(strings.TrimSuffix),
		"TrimSpace": func(text string) (string, error) { return looks(s, strings.TrimSpace(text)) },
		"trim":      func(text string) (string, error) { return looks(s, strings.TrimSpace(text)) },
		"trimAll":   s.partOf(strings.Trim), "trimPrefix": s.partOf(strings.TrimPrefix), "trimSuffix": s.partOf(strings.TrimSuffix),
		"Replace":  s.replace,
		"replace":  func(old, with, text string) (string, error) { return s.replace(text, old, with, -1) },
		"contains": s.found(strings.Contains), "hasPrefix": s.found(strings.HasPrefix), "hasSuffix": s.found(strings.HasSuffix),
		"substr": func(from, to int, text string) (string, error) { return looks(s, substr(from, to, text)) },
		"trunc":  func(n int, text string) (string, error) { return looks(s, trunc(n, text)) },
		"repeat": s.repeat,
		"indent": s.indent,
		"nindent": func(n int, text string) (string, error) {
			text, err := s.indent(n, text)
			if err != nil {
				return "", err
			}
			return s.fits("\n" + text)
		},
		"alignLeft": func(n int, text string) (string, error) {
			return s.align(n, text, func(pad string, length int) string { return text[:offset(text, min(n, length))] + pad })
		},
		"alignRight": func(n int, text string) (string, error) {
			return s.align(n, text, func(pad string, length int) string { return pad + text[offset(text, max(0, length-n)):] })
		},
		"default": orDefault,
	}
}

// codeFunctions read and write texts in other forms.
func (s *state) codeFunctions() template.FuncMap {
	return template.FuncMap{
		"fromJson":  s.fromJSON,
		"urlencode": s.newText(url.QueryEscape),
		"urldecode": func(text string) (string, error) {
			out, err := url.QueryUnescape(text)
			if err != nil {
				return "", err
			}
			return s.fits(out)
		},
		"b64enc": s.newText(func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }),
		"b64dec": func(text string) (string, error) {
			b, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return "", err
			}
			return s.fits(string(b))
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

func (s *state) replace(text, old, with string, n int) (string, error) {
	if err := s.budget.Err(); err != nil {
		return "", err
	}
	times := strings.Count(text, old)
	if n >= 0 {
		times = min(times, n)
	}
	if times > 0 && len(text)+times*len(with) > maxOutput {
		return "", errOutput
	}
	return s.fits(strings.Replace(text, old, with, n))
}

// offset is where a character of a text begins; its end, if there are not so many.
func offset(text string, n int) int {
	for i := range text {
		if n--; n < 0 {
			return i
		}
	}
	return len(text)
}

// substr is the text from one character to another; without end if that is negative.
func substr(from, to int, text string) string {
	if to >= 0 {
		text = text[:offset(text, to)]
	}
	return text[offset(text, max(from, 0)):]
}

// trunc keeps the first characters, or if n is negative the last.
func trunc(n int, text string) string {
	if n >= 0 {
		return text[:offset(text, n)]
	}
	return text[offset(text, max(0, utf8.RuneCountInString(text)+n)):]
}

func (s *state) repeat(n int, text string) (string, error) {
	if n <= 0 || text == "" {
		return "", nil
	}
	if n > maxOutput/len(text) {
		return "", errOutput
	}
	if err := s.makes(n * len(text)); err != nil {
		return "", err
	}
	return strings.Repeat(text, n), nil
}

func (s *state) indent(n int, text string) (string, error) {
	pad, err := s.repeat(n, " ")
	if err != nil {
		return "", err
	}
	text, err = s.replace(text, "\n", "\n"+pad, -1)
	if err != nil {
		return "", err
	}
	return s.fits(pad + text)
}

// align pads or cuts a text to n characters.
func (s *state) align(n int, text string, join func(pad string, length int) string) (string, error) {
	if n < 0 {
		return text, nil
	}
	length := utf8.RuneCountInString(text)
	pad, err := s.repeat(n-length, " ")
	if err != nil {
		return "", err
	}
	return s.fits(join(pad, length))
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

// jsonBytes is how many bytes a byte of JSON becomes at most: a "[]," is a list.
const jsonBytes = 32

func (s *state) fromJSON(text string) (v any, err error) {
	if len(text) > maxOutput {
		return nil, errOutput
	}
	used := s.share.Used()
	if err := s.share.Take(jsonBytes * len(text)); err != nil {
		return nil, err
	}
	err = json.Unmarshal([]byte(text), &v)
	s.share.Back(used)
	if err != nil {
		return nil, err
	}
	return v, s.makes(weight(v))
}

// weight is about how many bytes a value of JSON takes.
func weight(v any) int {
	n := 32
	switch v := v.(type) {
	case string:
		n += len(v)
	case []any:
		for _, one := range v {
			n += weight(one)
		}
	case map[string]any:
		n += 48
		for key, one := range v {
			n += 48 + len(key) + weight(one)
		}
	}
	return n
}

// numberFunctions count in whole numbers.
func (s *state) numberFunctions() template.FuncMap {
	toInt := s.toInt
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
func (s *state) fractionFunctions() template.FuncMap {
	toFloat := s.toFloat
	return template.FuncMap{
		"float64": toFloat,
		"bytes":   s.number(size),
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
		"round": func(v any, places int, on ...float64) float64 { return round(toFloat(v), places, on...) },
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
func round(f float64, places int, on ...float64) float64 {
	half := 0.5
	if len(on) > 0 {
		half = on[0]
	}
	times := math.Pow10(places)
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
func (s *state) toInt(v any) int64 {
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
	return int64(s.toFloat(v))
}

// toFloat is the number of a value; 0 for a text that is none. A text may be long. The panic of a
// function is the error of its template.
func (s *state) toFloat(v any) float64 {
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
		if err := s.budget.Err(); err != nil {
			panic(err)
		}
		f, _ := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return f
	}
	return 0
}

// timeFunctions work on times and durations.
func (s *state) timeFunctions() template.FuncMap {
	return template.FuncMap{
		"now":              time.Now,
		"date":             func(layout string, t time.Time) (string, error) { return s.fits(t.Format(layout)) },
		"toDate":           func(layout, text string) (time.Time, error) { t, _ := time.Parse(layout, text); return looks(s, t) },
		"toDateInZone":     s.inZone,
		"unixEpoch":        func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) },
		"unixEpochMillis":  func(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) },
		"unixEpochNanos":   func(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) },
		"unixToTime":       unixToTime,
		"duration":         s.number(seconds),
		"duration_seconds": s.number(seconds),
	}
}

// number is a function that reads a number of a text, which may be long.
func (s *state) number(f func([]byte) (float64, error)) func(string) (float64, error) {
	return func(text string) (float64, error) {
		if err := s.budget.Err(); err != nil {
			return 0, err
		}
		return f([]byte(text))
	}
}

func (s *state) inZone(layout, zone, text string) (time.Time, error) {
	place, err := time.LoadLocation(zone)
	if err != nil {
		return time.Time{}, err
	}
	t, _ := time.ParseInLocation(layout, text, place)
	return looks(s, t)
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
