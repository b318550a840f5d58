package meaning_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"blobtail/record"
)

// members are the fields of an object, in order.
func members(t *testing.T, src []byte) (all []member) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			t.Fatal(err)
		}
		value := json.NewDecoder(bytes.NewReader(raw))
		value.UseNumber()
		m := member{Key: key.(string)}
		if err := value.Decode(&m.Value); err != nil {
			t.Fatal(err)
		}
		switch m.Value.(type) {
		case []any, map[string]any:
			m.text = compactText(t, raw)
		}
		all = append(all, m)
	}
	return all
}

// compactText is the compact JSON of a value. encoding/json would sort the keys and
// change the escapes, so strings are re-encoded one by one.
func compactText(t *testing.T, raw []byte) string {
	t.Helper()
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; c {
		case ' ', '\t', '\r', '\n':
		case '"':
			end := i + 1
			for ; raw[end] != '"'; end++ {
				if raw[end] == '\\' {
					end++
				}
			}
			var s string
			if err := json.Unmarshal(raw[i:end+1], &s); err != nil {
				t.Fatal(err)
			}
			b.WriteString(quote(s))
			i = end
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// quote escapes a valid text like a canonical line.
func quote(s string) string {
	var b strings.Builder
	for _, r := range s {
		if short := strings.IndexRune("\"\\\b\f\n\r\t", r); short >= 0 {
			b.WriteString(`\` + `"\bfnrt`[short:short+1])
		} else if r < ' ' {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}

// plain keeps only keys and values.
func plain(in []member) (out [][2]any) {
	for _, m := range in {
		out = append(out, [2]any{m.Key, m.Value})
	}
	return out
}

// repeatsWithin reports whether an object within a record has a key twice.
func repeatsWithin(in []member) bool {
	for _, m := range in {
		if m.text == "" {
			continue
		}
		dec := json.NewDecoder(strings.NewReader(m.text))
		var open []map[string]bool // nil for an array
		key := false
		for {
			token, err := dec.Token()
			if err != nil {
				break
			}
			top := len(open) - 1
			switch token {
			case json.Delim('{'):
				open, key = append(open, map[string]bool{}), true
				continue
			case json.Delim('['):
				open, key = append(open, nil), false
				continue
			case json.Delim('}'), json.Delim(']'):
				open = open[:top]
				key = top > 0 && open[top-1] != nil
				continue
			}
			if name, ok := token.(string); ok && key {
				if open[top][name] {
					return true
				}
				open[top][name] = true
				key = false
				continue
			}
			key = top >= 0 && open[top] != nil
		}
	}
	return false
}

// unrepeated gives the second of two fields with one key another one. was keeps the first.
func unrepeated(in []member) (out []member, was []string) {
	seen := map[string]bool{}
	out = slices.Clone(in)
	for i := range out {
		was = append(was, out[i].Key)
		if seen[out[i].Key] {
			out[i].Key = free(out, out[i].Key)
		}
		seen[was[i]] = true
	}
	return out, was
}

// candidates are the fields with names, in the order of these.
func candidates(was, names []string) (all []int) {
	for _, name := range names {
		for i := range was {
			if lowerASCII(was[i]) == name {
				all = append(all, i)
			}
		}
	}
	return all
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// first is the first candidate that is usable, or -1.
func first(all []int, usable func(i int) bool) int {
	if n := slices.IndexFunc(all, usable); n >= 0 {
		return all[n]
	}
	return -1
}

// path is the text of a string, or with numbers of a number, in objects; "" if there is none.
func path(in []member, was []string, numbers bool, names ...string) string {
	i := first(candidates(was, names[:1]), func(int) bool { return true })
	if i < 0 || !isObject(in[i]) {
		return ""
	}
	m := in[i]
	for _, key := range names[1 : len(names)-1] {
		var inner map[string]json.RawMessage
		if json.Unmarshal([]byte(m.text), &inner) != nil || len(inner[key]) == 0 || inner[key][0] != '{' {
			return ""
		}
		m.text = string(inner[key])
	}
	return inside(m, names[len(names)-1], numbers)
}

// levelIn is the level of a field by the vocabulary of its name.
func levelIn(m member, name string) record.Level {
	text, isText := m.Value.(string)
	if number, ok := m.Value.(json.Number); ok && number[0] != '-' && !slices.Contains([]string{"priority", "label", "s"}, name) {
		text = number.String()
	} else if !isText {
		return record.Other
	}
	n, err := strconv.Atoi(text)
	switch name {
	case "levelno", "level_value", "severity_number", "severitynumber":
		if err != nil || n < 1 {
			return record.Other
		}
		return min(record.Level(min(map[string]int{"levelno": n / 10, "level_value": n / 10000}[name]+map[bool]int{true: (n - 1) / 4}[name[0] == 's'], 6)), record.Other)
	case "s":
		if text == "" || text[0] < 'A' || text[0] > 'Z' || len(text) > 2 {
			return record.Other
		}
	}
	return record.ParseLevel([]byte(text))
}
