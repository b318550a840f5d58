package meaning_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"blobtail/record"
	"blobtail/record/meaning"
)

// A Walker goes through objects and arrays of any depth, with and without white space.
func TestWalker(t *testing.T) {
	for _, text := range []string{
		`{"a":1,"b":{"c":[],"d":{}},"e":[[1,"x"],{"f":null}],"g\"h":"i\\"}`,
		" { \"a\" : 1 ,\n\"b\" : { \"c\" : [ ] , \"d\" : { } } , \"e\" : [ [ 1 , \"x\" ] , { \"f\" : null } ] ,\t\"g\\\"h\" : \"i\\\\\" } ",
	} {
		start := bytes.IndexByte([]byte(text), '{')
		w := record.Walk([]byte(text)[start:])
		var out bytes.Buffer
		walked(&w, &out)
		if want := `{a:1;b:{c:[];d:{};};e:[[1;"x";];{f:null;};];g\"h:"i\\";}`; out.String() != want || !w.Done() {
			t.Errorf("%s, done: %v, want %s", out.String(), w.Done(), want)
		}
	}
	w := record.Walk([]byte(`,"a":1,"b":2}`)) // the rest of a line
	if key, value, ok := w.Member(); string(key) != "a" || string(value) != "1" || !ok {
		t.Errorf("%s, %s, %v", key, value, ok)
	}
	if w.Done() || w.Leave() {
		t.Error("left before the end")
	}
}

// walked writes the parts that a Walker enters.
func walked(w *record.Walker, out *bytes.Buffer) {
	at := 0
	switch first := w.First(at); first {
	case '{':
		walkedObject(w, out)
	case '[':
		walkedArray(w, out)
	}
}

func walkedObject(w *record.Walker, out *bytes.Buffer) {
	out.WriteByte('{')
	for {
		key, at := w.Key()
		if at < 0 {
			break
		}
		out.Write(key)
		out.WriteByte(':')
		if !walkedValue(w, at, out) {
			return
		}
		out.WriteByte(';')
	}
	if w.Leave() {
		out.WriteByte('}')
	}
}

func walkedArray(w *record.Walker, out *bytes.Buffer) {
	out.WriteByte('[')
	for {
		at := w.Item()
		if at < 0 {
			break
		}
		if !walkedValue(w, at, out) {
			return
		}
		out.WriteByte(';')
	}
	if w.Leave() {
		out.WriteByte(']')
	}
}

// walkedValue reports whether the value has an end.
func walkedValue(w *record.Walker, at int, out *bytes.Buffer) bool {
	switch w.First(at) {
	case '{':
		w.Enter(at)
		walkedObject(w, out)
	case '[':
		w.Enter(at)
		walkedArray(w, out)
	default:
		value, ok := w.Value(at)
		out.Write(value)
		return ok
	}
	return true
}

// Where a text ends too early, or is no JSON, a Walker ends.
func TestWalkerStops(t *testing.T) {
	for _, text := range []string{
		"", "{", "[", "x", `{"a"`, `{"a":`, `{"a" 1}`, `{"a":"`, `{"a":"\"`, `{"a":{"b":1`, `{"a":[1`, `{a:1}`, `{"a":}`, `["a":1]`, `[,1]`, `]`, `}`, `,`,
	} {
		w := record.Walk([]byte(text))
		if key, value, ok := w.Member(); ok {
			t.Errorf("%q has the member %s: %s", text, key, value)
		}
		w = record.Walk([]byte(text))
		for range 3 {
			w.Element()
		}
		if w.Done() && len(text) > 0 && w.Leave() {
			t.Errorf("%q: left", text)
		}
	}
}

// FuzzWalker compares all readers of a canonical line with encoding/json.
func FuzzWalker(f *testing.F) {
	for _, object := range []string{
		`{"a":1,"a.b":[2,{"c":"\u0000\"\\"}],"b":{"c":{},"d":[],"c":"x"},"":null,"x,\"y\":":"{["}`,
		`{"ts":"2026-11-20T15:04:05Z","level":"warn","service":"web","msg":"m\\","é":"\ud800","n":-1.5e-3}`,
	} {
		f.Add([]byte(object))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		walkAny(text)
		p := meaning.NewReader()
		if n, err := p.Scan(text); err != nil || n != len(text) {
			return
		}
		line, _ := p.AppendLine(nil, &meaning.Defaults{Time: 1, Service: "web"})
		line = bytes.TrimSuffix(line, []byte("\n"))
		compareObject(t, line, line)
		for key, value := range record.Fields(line) {
			got, ok := record.Lookup(line, string(record.AppendUnescaped(nil, key)))
			if !ok || !bytes.Equal(got, value) {
				t.Errorf("%s of %s: %s, %v", key, line, got, ok)
			}
		}
		msg, ok := record.LineMsg(line)
		if end := record.StringEnd(line, msg); !ok || end < 0 || record.ValueLen(line[msg-1:]) != end-msg+1 {
			t.Errorf("msg ends at %d of %s", end, line)
		}
	})
}

// walkAny walks any text, which ends.
func walkAny(text []byte) {
	for w := record.Walk(text); ; {
		if _, _, ok := w.Member(); !ok {
			break
		}
	}
	for w := record.Walk(text); ; {
		if _, ok := w.Element(); !ok {
			break
		}
	}
	w := record.Walk(text)
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') && bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) < 1000 {
		walked(&w, new(bytes.Buffer))
	}
	record.Lookup(text, "a.b.c")
}

// compareObject compares the members of an object, and the parts in them, with encoding/json.
func compareObject(t *testing.T, object, line []byte) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	w := record.Walk(object)
	for d.More() {
		at, err := d.Token()
		var want json.RawMessage
		if err != nil || d.Decode(&want) != nil {
			t.Fatalf("%v in %s", err, line)
		}
		key, value, ok := w.Member()
		var name string
		if err := json.Unmarshal(append(append([]byte{'"'}, key...), '"'), &name); err != nil || name != at || !ok || !bytes.Equal(value, want) {
			t.Fatalf("%q: %s, %v, want %q: %s in %s", key, value, ok, at, want, line)
		}
		compareValue(t, value, line)
	}
	if key, _, ok := w.Member(); ok || !w.Leave() || !w.Done() {
		t.Fatalf("%s behind the end of %s in %s", key, object, line)
	}
}

func compareValue(t *testing.T, value, line []byte) {
	switch value[0] {
	case '{':
		compareObject(t, value, line)
	case '[':
		var want []json.RawMessage
		if err := json.Unmarshal(value, &want); err != nil {
			t.Fatal(err)
		}
		w := record.Walk(value)
		for i := range want {
			got, ok := w.Element()
			if !ok || !bytes.Equal(got, want[i]) {
				t.Fatalf("%s, want %s in %s", got, want[i], line)
			}
			compareValue(t, got, line)
		}
		if got, ok := w.Element(); ok || !w.Leave() || !w.Done() {
			t.Fatalf("%s behind the end of %s in %s", got, value, line)
		}
	}
}
