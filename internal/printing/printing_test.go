package printing_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"text/template"

	"blobtail/internal/printing"
)

var (
	errLong = errors.New("too long")
	errOver = errors.New("too much")
)

// Each function has the output of text/template for short values, an error for long ones, and
// reports the length of its output.
func TestFunctions(t *testing.T) {
	for text, want := range map[string]string{
		`{{printf "%s-%05.1f" .text .number}}`:                  "",
		`{{print .text .number .list}}`:                         "",
		`{{println .text}}`:                                     "",
		`{{html "<a>"}}{{js "'"}}`:                              "",
		`{{urlquery "a b" .number}}`:                            "",
		`{{printf "%1000d" 1}}`:                                 "a width of more than 999",
		`{{printf "%*d" 5 1}}`:                                  "* is not allowed",
		`{{printf "%s%s%s%s%s" .long .long .long .long .long}}`: errLong.Error(),
		`{{print .long .long}}`:                                 errLong.Error(),
		`{{html .long "<<<<<<<<<<<<<<<<<<<<<<<<<<"}}`:           errLong.Error(),
		`{{print .digits}}`:                                     errLong.Error(),
		`{{$a := print .half}}{{$b := print .half}}{{$c := print .half}}{{$d := print .half}}`: errOver.Error(),
	} {
		data := map[string]any{"text": "x", "number": 1.5, "list": []any{"a", 1}, "long": strings.Repeat("x", 900), "half": strings.Repeat("x", 500), "digits": json.Number(strings.Repeat("1", 2000))}
		made := 0
		b := printing.Bounds{Most: 1000, Err: errLong, Take: func(n int) error {
			if made += n; made > 1999 {
				return errOver
			}
			return nil
		}}
		out := printing.Output{Bounds: b}
		err := template.Must(template.New("").Funcs(b.Functions()).Parse(text)).Execute(&out, data)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", text, err, want)
			}
			continue
		}
		var plain strings.Builder
		if werr := template.Must(template.New("").Parse(text)).Execute(&plain, data); err != nil || werr != nil || string(out.B) != plain.String() || made < len(out.B) {
			t.Errorf("%s: %q, %v; want %q, %v", text, out.B, err, plain.String(), werr)
		}
	}
}

// An output takes no more than it may.
func TestOutput(t *testing.T) {
	out := printing.Output{Bounds: printing.Bounds{Most: 10, Err: errLong, Take: func(int) error { return nil }}}
	if _, err := out.Write(make([]byte, 10)); err != nil {
		t.Error(err)
	}
	if _, err := out.Write(make([]byte, 1)); err != errLong {
		t.Error(err)
	}
}
