// Package printing has the functions of text/template that make text, with bounds. Those of
// text/template itself make as much as a template asks for: {{printf "%99999999d" 1}}.
package printing

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"text/template"
)

// Bounds are the bounds of one template.
type Bounds struct {
	// Most is the longest text that a function makes, and Err the error for a longer one.
	Most int
	Err  error
	// Take is called with the length of each text that was made, and with 0 before it is. An
	// error ends the function.
	Take func(n int) error
}

// Functions are print, printf, println, html, js and urlquery.
func (b Bounds) Functions() template.FuncMap {
	return template.FuncMap{
		"printf": b.printf, "print": b.joined(fmt.Sprint), "println": b.joined(fmt.Sprintln),
		"html": b.joined(template.HTMLEscaper), "js": b.joined(template.JSEscaper), "urlquery": b.joined(template.URLQueryEscaper),
	}
}

// fits returns a text that is not too long.
func (b Bounds) fits(text string) (string, error) {
	if len(text) > b.Most {
		return "", b.Err
	}
	return text, b.Take(len(text))
}

// joined is a function that joins its arguments, for arguments that are not too long.
func (b Bounds) joined(join func(...any) string) func(...any) (string, error) {
	return func(args ...any) (string, error) {
		if err := b.Take(0); err != nil {
			return "", err
		}
		if SizeOf(args) > b.Most {
			return "", b.Err
		}
		return b.fits(join(args...))
	}
}

// printf is [fmt.Sprintf] for short outputs. Each verb may show the longest argument.
func (b Bounds) printf(format string, args ...any) (string, error) {
	if err := b.Take(0); err != nil {
		return "", err
	}
	longest, verbs, digits := 0, 0, 0
	for _, arg := range args {
		longest = max(longest, SizeOf(arg))
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
	if len(format)+verbs*(longest+1) > 4*b.Most {
		return "", b.Err
	}
	return b.fits(fmt.Sprintf(format, args...))
}

// SizeOf is about how long a value is as a text.
func SizeOf(v any) int {
	n := 2
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		for _, one := range v {
			n += SizeOf(one) + 1
		}
		return n
	case map[string]any:
		for key, one := range v {
			n += len(key) + SizeOf(one) + 2
		}
		return n
	case map[string]string:
		for key, one := range v {
			n += len(key) + len(one) + 2
		}
		return n
	}
	if of := reflect.ValueOf(v); of.Kind() == reflect.String {
		return of.Len()
	}
	return 64
}

// Output is where a template writes. It takes no more than it may.
type Output struct {
	Bounds
	B []byte
}

// Write implements [io.Writer].
func (o *Output) Write(p []byte) (int, error) {
	if len(o.B)+len(p) > o.Most {
		return 0, o.Err
	}
	if err := o.Take(len(p)); err != nil {
		return 0, err
	}
	o.B = append(o.B, p...)
	return len(p), nil
}

// Reason is the error of a template in short, without the place in the template.
func Reason(err error) string {
	text := err.Error()
	if _, reason, ok := strings.Cut(text, ">: "); ok {
		return reason
	}
	return text
}
