package record_test

import (
	"testing"

	"blobtail/record"
)

func TestLookup(t *testing.T) {
	line := []byte(`{"ts":"2026","a":1,"a.b":2,"c":{"d":3,"e.f":4,"g":{"h":5}},"i\"j":6,"k":[{"l":7}],"m":{"n":9,"n":10,"o":{"p":11},"o":{"p":12}}}`)
	for name, want := range map[string]string{
		"ts": `"2026"`, "a": "1", "a.b": "2", "c.d": "3", "c.e.f": "4", "c.g.h": "5", "c.g": `{"h":5}`, `i"j`: "6",
		"": "", "x": "", "c.x": "", "k.l": "", "m.n": "10", "m.o.p": "12", "a.c": "", ".": "", "c.": "",
	} {
		got, ok := record.Lookup(line, name)
		if string(got) != want || ok != (want != "") {
			t.Errorf("%q: %s, %v", name, got, ok)
		}
	}
	for _, bad := range []string{"", "{", `{"a"`, `{"a":`, `{"a":1`, "nonsense"} {
		if _, ok := record.Lookup([]byte(bad), "b.c"); ok {
			t.Errorf("%s has it", bad)
		}
	}
}
