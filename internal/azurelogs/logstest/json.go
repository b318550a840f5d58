package logstest

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
)

// object is a JSON object. Values are string, *words, json.Number, bool, nil, []any and
// object.
type object []member

type member struct {
	name  string
	value any
}

func (o object) all() map[string]any {
	out := map[string]any{}
	for _, f := range o {
		out[f.name] = decoded(f.value)
	}
	return out
}

func decoded(v any) any {
	switch v := v.(type) {
	case *words:
		return v.want.String()
	case object:
		return v.all()
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, decoded(e))
		}
		return out
	}
	return v
}

// writer writes JSON with the freedoms that it leaves.
type writer struct {
	*maker
	b      strings.Builder
	spaces []string // between tokens; nil: none
	keys   bool     // escapes in names
}

func (w *writer) space() {
	if len(w.spaces) > 0 {
		w.b.WriteString(pick(w.maker, w.spaces))
	}
}

func (w *writer) token(s string) {
	w.space()
	w.b.WriteString(s)
	w.space()
}

// text writes a string with the escapes that it must have.
func (w *writer) text(s string, heavy bool) {
	w.b.WriteByte('"')
	defer w.b.WriteByte('"')
	if special := func(c rune) bool { return c < ' ' || c == '"' || c == '\\' }; !heavy && !strings.ContainsFunc(s, special) {
		w.b.WriteString(s)
		return
	}
	t := w.newText(heavy)
	t.text(s)
	w.b.WriteString(t.raw.String())
}

func (w *writer) value(v any) {
	switch v := v.(type) {
	case object:
		w.token("{")
		for i, f := range v {
			if i > 0 {
				w.token(",")
			}
			w.text(f.name, w.keys)
			w.token(":")
			w.value(f.value)
		}
		w.space()
		w.b.WriteString("}")
	case []any:
		w.token("[")
		for i, e := range v {
			if i > 0 {
				w.token(",")
			}
			w.value(e)
		}
		w.space()
		w.b.WriteString("]")
	case *words:
		w.b.WriteString(`"` + v.raw.String() + `"`)
	case string:
		w.text(v, false)
	case json.Number:
		w.b.WriteString(v.String())
	default:
		fmt.Fprint(&w.b, map[any]string{nil: "null", true: "true", false: "false"}[v])
	}
}

// newText returns an empty text of JSON; a heavy one has escapes without need.
func (m *maker) newText(heavy bool) *words {
	return &words{escape: func(c rune) string {
		if c >= ' ' && c != '"' && c != '\\' && !heavy {
			return ""
		}
		short := short(c)
		switch {
		case short != "" && (!heavy || m.IntN(4) > 0):
			return short
		case c < ' ' || short != "" || heavy && m.IntN(4) == 0:
			return m.unicode(c)
		case c == '/' && heavy:
			return `\/`
		}
		return ""
	}}
}

// short is the short escape of a rune; "" if it has none.
func short(c rune) string {
	const runes, letters = "\"\\\b\f\n\r\t", `"\bfnrt`
	if i := strings.IndexRune(runes, c); i >= 0 {
		return `\` + letters[i:i+1]
	}
	return ""
}

// unicode is a rune by its number: two of them beyond the basic plane.
func (m *maker) unicode(c rune) string {
	form := `\u%04x`
	if m.IntN(2) == 0 {
		form = `\u%04X`
	}
	if a, b := utf16.EncodeRune(c); a != '\uFFFD' {
		return fmt.Sprintf(form+form, a, b)
	}
	return fmt.Sprintf(form, c)
}
