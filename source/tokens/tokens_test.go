package tokens_test

import (
	"encoding/json"
	"strings"
	"testing"

	"blobtail/source/tokens"
)

// The cursor finds the members and elements of a value, and skips a value whole.
func TestWalk(t *testing.T) {
	c := &tokens.Cursor{Src: []byte(` { "a\"b" : [ 1 , "x\\" , {"y":[{}]} ] , "n" : null, "e":{}, "t":true } tail`)}
	var got []string
	has, wrong := c.Enter('{')
	for ; has; has = c.More('{') {
		key := string(c.Key())
		if key == "n" || key == "e" || key == "t" {
			got = append(got, key+"="+string(c.Skip()))
			continue
		}
		got = append(got, key)
		elements, _ := c.Enter('[')
		for ; elements; elements = c.More('[') {
			got = append(got, string(c.Skip()))
		}
	}
	want := `a\"b 1 "x\\" {"y":[{}]} n=null e={} t=true`
	if text := strings.Join(got, " "); wrong || c.Fault != "" || text != want || c.Next() != 't' {
		t.Errorf("%s, fault %q at %d; want %s", text, c.Fault, c.At, want)
	}
}

// A fault ends the reading, and names the byte.
func TestFaults(t *testing.T) {
	for src, want := range map[string]string{
		`{"a" 1}`:       "not valid JSON: byte 0x31 where a colon should be",
		`{"a":1 "b":2}`: "not valid JSON: byte 0x22 where a comma or the end should be",
		`{1:2}`:         "not valid JSON: byte 0x31 where a string should be",
		`{"a":`:         "not valid JSON: it ends too early",
		`{"a":"x`:       "not valid JSON: it ends too early",
		`{"a":[[}`:      "not valid JSON: it ends too early",
		`{"a":,}`:       "not valid JSON: byte 0x2c where a value should be",
	} {
		c := &tokens.Cursor{Src: []byte(src)}
		has, _ := c.Enter('{')
		for ; has; has = c.More('{') {
			c.Key()
			c.Skip()
		}
		if c.Fault != want || c.At != len(src) || c.Next() != 0 {
			t.Errorf("%s: %q at %d", src, c.Fault, c.At)
		}
		if c.Stop("another reason"); c.Fault != want {
			t.Errorf("%s: the first reason is gone", src)
		}
	}
}

// Skip goes over each valid value whole, and ends on any bytes.
func FuzzSkip(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"c\"]"}],"d":null}`, `"x\\"`, `-1.5e+3 x`, `[[[`, "\"\xff", `{"a":tru`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		c := &tokens.Cursor{Src: src}
		value := c.Skip()
		if json.Valid(src) && (c.Fault != "" || strings.TrimSpace(string(src)) != string(value)) {
			t.Errorf("%q: %q, fault %q", src, value, c.Fault)
		}
		if c.At > len(src) {
			t.Errorf("%q: at %d", src, c.At)
		}
	})
}
