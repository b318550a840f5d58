package loki_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
)

// A result is an answer as Grafana's converter reads it: as a stream, key by key, so that keys
// must come in its order. Anything it does not know, or would crash on, fails the test.
type result struct {
	kind     string // of the result
	flags    []string
	streams  []stream
	series   []series
	warnings []string
}

type stream struct {
	labels map[string]string
	values []value
}

type value struct {
	ns       int64
	line     string
	metadata map[string]string
	parsed   map[string]string
	third    bool
}

type series struct {
	labels map[string]string
	points []point
}

type point struct {
	seconds float64
	value   string
}

// strict reads tokens, and panics with a text if the next one is another than it must be.
type strict struct{ *json.Decoder }

func (d strict) token() json.Token {
	t, err := d.Token()
	if err != nil {
		panic(err.Error())
	}
	return t
}

func (d strict) must(want json.Token) {
	if got := d.token(); got != want {
		panic(fmt.Sprintf("%v where %v must be, at byte %d", got, want, d.InputOffset()))
	}
}

func (d strict) text() string {
	s, ok := d.token().(string)
	if !ok {
		panic(fmt.Sprintf("no string at byte %d", d.InputOffset()))
	}
	return s
}

func (d strict) number() float64 {
	n, ok := d.token().(float64)
	if !ok {
		panic(fmt.Sprintf("no number at byte %d", d.InputOffset()))
	}
	return n
}

// object reads an object, key by key.
func (d strict) object(member func(key string)) {
	d.must(json.Delim('{'))
	for d.More() {
		member(d.text())
	}
	d.must(json.Delim('}'))
}

func (d strict) array(item func()) {
	d.must(json.Delim('['))
	for d.More() {
		item()
	}
	d.must(json.Delim(']'))
}

func (d strict) texts() (all []string) {
	d.array(func() { all = append(all, d.text()) })
	return all
}

func (d strict) labels() map[string]string {
	all := map[string]string{}
	last := ""
	d.object(func(key string) {
		if _, twice := all[key]; twice || key < last {
			panic("the label " + key + " is there twice, or out of order")
		}
		last = key
		all[key] = d.text()
	})
	return all
}

func (d strict) skip() {
	var any json.RawMessage
	if err := d.Decode(&any); err != nil {
		panic(err.Error())
	}
}

// decode reads an answer with the rules of the converter.
func decode(t testing.TB, a answer) (r result) {
	t.Helper()
	defer func() {
		if text, bad := recover().(string); bad {
			t.Fatalf("Grafana cannot read this: %s\n%d %s", text, a.code, a.body)
		}
	}()
	if a.code != 200 || a.kind != "application/json; charset=UTF-8" {
		t.Fatalf("answer %d of the type %q: %s", a.code, a.kind, a.body)
	}
	d := strict{json.NewDecoder(strings.NewReader(a.body))}
	data := false
	d.object(func(key string) {
		switch key {
		case "status":
			d.must("success")
		case "data":
			data = true
			r.data(d)
		case "warnings":
			r.warnings = d.texts()
		default:
			panic("the key " + key)
		}
	})
	if !data {
		t.Fatalf("no data: %s", a.body)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Fatalf("more after the answer: %s", a.body)
	}
	return r
}

func (r *result) data(d strict) {
	done := false
	d.object(func(key string) {
		switch key {
		case "resultType":
			r.kind = d.text()
		case "encodingFlags":
			r.flags = d.texts()
			if done {
				panic("the flags come after the result")
			}
		case "result":
			done = true
			r.result(d)
		case "stats":
			d.skip()
		default:
			panic("the key " + key + " in data")
		}
	})
	if !done {
		panic("no result")
	}
}

func (r *result) result(d strict) {
	switch r.kind {
	case "streams":
		d.array(func() { r.streams = append(r.streams, r.stream(d)) })
	case "matrix":
		d.array(func() { r.series = append(r.series, one(d, "values")) })
	case "vector":
		d.array(func() { r.series = append(r.series, one(d, "value")) })
	case "scalar":
		r.series = append(r.series, series{points: []point{pair(d)}})
	default:
		panic("the result has no type before it, or the type " + r.kind)
	}
}

func (r *result) stream(d strict) (s stream) {
	d.must(json.Delim('{'))
	d.must("stream")
	s.labels = d.labels()
	d.must("values")
	d.array(func() {
		d.must(json.Delim('['))
		ns, err := strconv.ParseInt(d.text(), 10, 64)
		if err != nil {
			panic(err.Error())
		}
		v := value{ns: ns, line: d.text(), metadata: map[string]string{}, parsed: map[string]string{}}
		if d.More() {
			v.third = true
			d.object(func(key string) {
				switch key {
				case "structuredMetadata":
					v.metadata = d.labels()
				case "parsed":
					v.parsed = d.labels()
				default:
					panic("the key " + key + " in a line")
				}
			})
		}
		d.must(json.Delim(']'))
		if sorts := len(r.flags) > 0; sorts != v.third {
			panic("the flags say something else than the number of elements of a value")
		}
		s.values = append(s.values, v)
	})
	d.must(json.Delim('}'))
	return s
}

func one(d strict, key string) (s series) {
	d.must(json.Delim('{'))
	d.must("metric")
	s.labels = d.labels()
	d.must(key)
	if key == "value" {
		s.points = append(s.points, pair(d))
	} else {
		d.array(func() { s.points = append(s.points, pair(d)) })
	}
	d.must(json.Delim('}'))
	return s
}

func pair(d strict) (p point) {
	d.must(json.Delim('['))
	p.seconds, p.value = d.number(), d.text()
	if _, err := strconv.ParseFloat(p.value, 64); err != nil {
		panic(err.Error())
	}
	d.must(json.Delim(']'))
	return p
}
