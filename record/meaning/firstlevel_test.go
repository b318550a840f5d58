package meaning_test

import (
	"math/rand/v2"
	"testing"

	"blobtail/record"
	"blobtail/record/meaning"
	"blobtail/record/names"
)

// The level of the first members is that of the whole object.
func TestFirstLevel(t *testing.T) {
	for text, want := range map[string]record.Level{
		`{"level":"error","msg":"x"}`: record.Error, `{ "n" : 1, "ok":true, "level" : "WARN" }`: record.Warn,
		`{"a":"b","level":30,"x":{}}`: record.Info, `{"level":4,"channel":"System","event_id":7}`: record.Info,
		`{"level":20,"levelname":"INFO"}`: record.Other,
		`{"level":99,"msg":"x"}`:          record.Other, `{"level":"error","msg":"cut of`: record.Error,
		`{"level":"loud"}`: record.Other, `{"Level":"error"}`: record.Other, `{"a":{"level":"error"}}`: record.Other,
		`{"a":"level","b":"error"}`: record.Other, `{"\u006cevel":"error"}`: record.Other, `{}`: record.Other, `{"level"`: record.Other,
		`{"level":"error`: record.Other, ``: record.Other, `x`: record.Other, `{"level":null,"severity":"warn"}`: record.Other,
	} {
		l, ok := names.FirstLevel([]byte(text))
		if ok != (want != record.Other) || ok && l != want {
			t.Errorf("%s: %v %v, want %v", text, l, ok, want)
		}
	}
	for _, cut := range []string{`{"level":n`, `{"level":t`, `{"level":f`, `{"level":error`, `{"level":null}`} {
		if l, ok := names.FirstLevel([]byte(cut)); l != record.Other || ok {
			t.Errorf("%s: %v", cut, l)
		}
	}
	if l, ok := names.FirstLevel([]byte(`{"a":"b","level":30,"x":{`)); l != record.Info || ok {
		t.Errorf("an object that was cut: %v %v", l, ok)
	}
	keys := []string{"reqId", "app", "channel", "EventID", "category", "loglevel", "levelno", "priority", "level",
		"Level", "severity", "msg", "a", "lvl", "level"}
	values := []string{`"error"`, `"loud"`, `7`, `null`, `{"level":"warn"}`, `"Info"`, `true`, `""`, `"a\"b"`, `[1]`,
		`30.0`, `4`, `99`, `"20"`, `-4`}
	for range 20_000 {
		src := []byte("{")
		for i := range 1 + rand.IntN(6) {
			if i > 0 {
				src = append(src, ',')
			}
			src = append(src, '"')
			src = append(src, keys[rand.IntN(len(keys))]...)
			src = append(append(src, '"', ':'), values[rand.IntN(len(values))]...)
		}
		src = append(src, '}')
		l, ok := names.FirstLevel(src)
		if !ok {
			continue
		}
		p := meaning.NewReader()
		if _, err := p.Scan(src); err != nil {
			t.Fatal(err)
		}
		if _, s := p.AppendLine(nil, &meaning.Defaults{}); s.Level != l {
			t.Fatalf("%s: %v, want %v", src, l, s.Level)
		}
	}
}
