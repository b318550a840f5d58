package meaning_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"blobtail/record"
	"blobtail/record/meaning"
)

// part is one field of a record, as a Go value and as JSON.
type part struct {
	key  string
	add  func(b *meaning.Parts, key string)
	json string
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// randomPart makes a field of any kind.
func randomPart(r *rand.Rand, key string) part {
	if r.IntN(3) == 0 {
		n := int64(r.Uint64()) >> r.IntN(64)
		return part{key, func(b *meaning.Parts, key string) { b.Int(key, n) }, fmt.Sprint(n)}
	}
	s := randomText(r)
	return part{key, func(b *meaning.Parts, key string) { b.Text(key, []byte(s)) }, quoted(s)}
}

func randomText(r *rand.Rand) string {
	pieces := []string{"a", "plain text ", "é", "😀", `"`, `\`, "/", "\n", "\t", "\x00", "\x1f", "\u2028", "\ufffd", "<&>", "ts", "7"}
	var b strings.Builder
	for range r.IntN(6) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// A record by parts has the same line as its JSON object, for any default service,
// and after any other records.
func TestPartsAreAsJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	p, reference := meaning.NewReader(), meaning.NewReader()
	keys := []string{"a", "b c", `d"`, "é", "time", "severity", "message", "app", "service.name", "service.original", "service.original.2", "log.level", "ts.original", "x"}
	for i := range 20_000 {
		h := meaning.Head{}
		var object []string
		if r.IntN(5) > 0 {
			h.Time = r.Int64N(3e18) - 1e18
			object = append(object, `"ts":"`+string(record.AppendTime(nil, h.Time))+`"`)
		}
		level := []string{"", "WARN", "30", "audit " + randomText(r)}[r.IntN(4)]
		msg := randomText(r)
		h.Level, h.Msg = []byte(level), []byte(msg)
		object = append(object, `"level":`+quoted(level), `"msg":`+quoted(msg))
		var parts []part
		r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		service := []string{"", "web", "Web Shop", "unknown", randomText(r)}[r.IntN(5)]
		// An object without a part of the head has it under these names.
		lacks := map[string]bool{"time": h.Time == 0, "message": msg == "", "app": service == "", "service.name": service == "",
			"severity": record.ParseLevel([]byte(level)) == record.Other, "log.level": record.ParseLevel([]byte(level)) == record.Other}
		for _, key := range keys[:r.IntN(len(keys)+1)] {
			if lacks[key] {
				continue
			}
			parts = append(parts, randomPart(r, key))
		}
		if i%50 == 0 { // many fields
			for n := range 100 {
				parts = append(parts, randomPart(r, fmt.Sprint("k", n)))
			}
		}
		for _, f := range parts {
			object = append(object, quoted(f.key)+":"+f.json)
		}
		h.Service = []byte(service)
		object = append(object, `"service":`+quoted(service))
		src := "{" + strings.Join(object, ",") + "}"
		d := meaning.Defaults{Time: arrival, Service: []string{"", "web", "shop"}[r.IntN(3)]}
		if n, err := reference.Scan([]byte(src)); err != nil || n != len(src) {
			t.Fatalf("Scan(%s) = %d, %v", src, n, err)
		}
		want, wantStamp := reference.AppendLine([]byte("before"), &d)
		b := p.Begin([]byte("before"), h, &d)
		for _, f := range parts {
			f.add(b, f.key)
		}
		got, stamp, err := b.End()
		if err != nil || !bytes.Equal(got, want) || stamp != wantStamp {
			t.Fatalf("%s\nby parts %s%+v, %v\nas JSON  %s%+v", src, got, stamp, err, want, wantStamp)
		}
		if !json.Valid(got[len("before"):]) || !utf8.Valid(got) {
			t.Fatalf("%q is no line", got)
		}
	}
}

func TestParts(t *testing.T) {
	big := strings.Repeat("x", record.MaxRecord/2)
	for _, row := range []struct {
		name string
		add  func(b *meaning.Parts)
		want string // of the fields, or a reason
	}{
		{"nothing", func(*meaning.Parts) {}, ``},
		{"names of the head", func(b *meaning.Parts) {
			b.Text("ts", []byte("1"))
			b.Int("level", 2)
			b.Int("service", 3)
			b.Text("msg", nil)
		},
			`,"ts.original":"1","level.original":2,"service.original":3,"msg.original":""`},
		{"no UTF-8", func(b *meaning.Parts) { b.Text("\xff", []byte("\xfe")) }, `,"\\xff":"\\xfe"`},
		{"twice", func(b *meaning.Parts) { b.Int("a", 1); b.Text("b", nil); b.Int("a", 1) }, `duplicate key "a"`},
		{"twice, once escaped", func(b *meaning.Parts) { b.Int("\xff", 1); b.Int(`\xff`, 1) }, `duplicate key`},
		{"twice of the head", func(b *meaning.Parts) { b.Int("msg.original", 1); b.Int("msg", 1) }, `duplicate key "msg.original"`},
		{"twice among many", func(b *meaning.Parts) {
			for n := range 1000 {
				b.Int(fmt.Sprint(n%999), 1)
			}
		}, `duplicate key "0"`},
		{"too long", func(b *meaning.Parts) { b.Text("a", []byte(big)); b.Text("b", []byte(big)); b.Int("c", 1) }, `longer than 1 MiB`},
	} {
		p := meaning.NewReader()
		for range 2 { // a rejected record leaves no trace
			b := p.Begin(nil, meaning.Head{Time: arrival}, &meaning.Defaults{Service: "web"})
			row.add(b)
			line, stamp, err := b.End()
			var reject *record.RejectError
			switch {
			case row.want != "" && row.want[0] != ',':
				if !errors.As(err, &reject) || !strings.Contains(reject.Reason, row.want) {
					t.Errorf("%s: %v, want %s", row.name, err, row.want)
				}
			case err != nil || string(line) != `{"ts":"`+arrivalTs+`","level":"","service":"web","msg":""`+row.want+"}\n":
				t.Errorf("%s: %s, %v, want %s", row.name, line, err, row.want)
			case stamp != record.Stamp{Time: arrival, OwnTime: true, Level: record.Other, Service: "web"}:
				t.Errorf("%s: %+v", row.name, stamp)
			}
		}
	}
	// A message that is too long is not even copied.
	b := meaning.NewReader().Begin(nil, meaning.Head{Msg: make([]byte, record.MaxRecord+1)}, &meaning.Defaults{})
	if line, _, err := b.End(); err == nil || cap(line) > 4096 {
		t.Errorf("%d bytes, %v", cap(line), err)
	}
}

// FuzzParts checks that any parts become one line, or are rejected.
func FuzzParts(f *testing.F) {
	f.Add([]byte("error"), []byte("web"), []byte("msg"), "key", []byte(`{"a":1}`))
	f.Add([]byte("\xff"), []byte("\x00"), []byte("\n"), "service.name", []byte(`"\ud800"`))
	f.Fuzz(func(t *testing.T, level, service, msg []byte, key string, text []byte) {
		p := meaning.NewReader()
		b := p.Begin(nil, meaning.Head{Level: level, Service: service, Msg: msg}, &meaning.Defaults{Time: arrival})
		b.Text(key, text)
		b.Int(key+"2", int64(len(text)))
		line, stamp, err := b.End()
		if err != nil {
			if len(level)+len(service)+len(msg)+2*len(key)+len(text) < record.MaxRecord/2 {
				t.Fatalf("rejected: %v", err)
			}
			return
		}
		if bytes.Count(line, []byte("\n")) != 1 || line[len(line)-1] != '\n' || !json.Valid(line) || !utf8.Valid(line) {
			t.Fatalf("%q is no line", line)
		}
		checkStamp(t, line, stamp)
		if len(line) <= record.MaxRecord {
			checkAgain(t, line, stamp.Service)
		}
	})
}

func BenchmarkParts(b *testing.B) {
	p := meaning.NewReader()
	var dst []byte
	trace, user := []byte("b804e39ecd23069ab804e39ecd23069a"), []byte("u102030")
	h := meaning.Head{Level: []byte("info"), Service: []byte("api-gateway"),
		Msg: []byte("acquired connection from pool pool=primary idle=3 inuse=17 wait=1.53ms")}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		h.Time = 1794312000000000000 + int64(i)
		r := p.Begin(dst[:0], h, &meaning.Defaults{})
		r.Text("trace_id", trace)
		r.Text("user_id", user)
		r.Int("status", 200)
		dst, _, _ = r.End()
	}
}

// Fields from several places may have the same names, and values of any kind.
func TestPartsKinds(t *testing.T) {
	p := meaning.NewReader()
	b := p.Begin(nil, meaning.Head{Time: 1, Msg: []byte("m"), Renames: true}, &meaning.Defaults{Fallback: "web"})
	b.Text("a", []byte("1"))
	b.Text("a", []byte("2"))
	b.Text("a.2", []byte("3"))
	b.Text("a", []byte("4"))
	b.Float("f", 1.5)
	b.Float("nan", math.NaN())
	b.Bool("yes", true)
	b.JSON("o", []byte(`{ "x" : [1, "é\/"] }`))
	line, stamp, err := b.End()
	const want = `{"ts":"1970-01-01T00:00:00.000000001Z","level":"","service":"web","msg":"m","a":"1","a.2":"2","a.2.2":"3","a.3":"4",` +
		`"f":1.5,"nan":"NaN","yes":true,"o":{"x":[1,"é/"]}}` + "\n"
	if err != nil || string(line) != want || stamp.Service != "web" {
		t.Errorf("%s %+v %v\nwant %s", line, stamp, err, want)
	}
	for name, add := range map[string]func(b *meaning.Parts){
		"no JSON":       func(b *meaning.Parts) { b.JSON("o", []byte(`{"x":}`)) },
		"text after it": func(b *meaning.Parts) { b.JSON("o", []byte(`1 2`)) },
		"too deep":      func(b *meaning.Parts) { b.JSON("o", []byte(strings.Repeat("[", 70)+strings.Repeat("]", 70))) },
		"too many": func(b *meaning.Parts) {
			for range record.MaxFields + 1 {
				b.Text("k", nil)
			}
		},
	} {
		b := p.Begin(nil, meaning.Head{Renames: true}, &meaning.Defaults{})
		add(b)
		if _, _, err := b.End(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// The members of an object are those of the source, and a record without a service of its
// own has the fallback.
func TestMembers(t *testing.T) {
	p := meaning.NewReader()
	if _, err := p.Scan([]byte(`{ "a\/b" : [1, 2], "msg": "x" }`)); err != nil {
		t.Fatal(err)
	}
	got := ""
	for key, value := range p.Members() {
		got += string(key) + "=" + string(value) + ";"
	}
	if want := `a/b=[1, 2];msg="x";`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, row := range []struct{ src, want string }{{`{}`, "web"}, {`{"app":"Own"}`, "own"}} {
		if _, err := p.Scan([]byte(row.src)); err != nil {
			t.Fatal(err)
		}
		if _, stamp := p.AppendLine(nil, &meaning.Defaults{Fallback: "web"}); stamp.Service != row.want {
			t.Errorf("%s: %s", row.src, stamp.Service)
		}
	}
}

// The head of a record by parts has the level and the service of nested objects, which stay
// members.
func TestHeadOfNested(t *testing.T) {
	for _, row := range []struct{ name, src, level, service, msg, rest string }{
		{"flat", `{"level":"warn","service":"a","message":"m","x":1}`, "warn", "a", "m", "x"},
		{"nested", `{"log":{"level":"warn"},"service":{"name":"w\u0065b"},"message":"m"}`, "warn", "web", "m", "log service"},
		{"no name", `{"log":{"a":1},"service":{"id":1},"app":"b"}`, "", "b", "", "log service"},
		{"flat level first", `{"log":{"level":"warn"},"lvl":"info"}`, "info", "", "", "log"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := meaning.NewReader()
			if _, err := p.Scan([]byte(row.src)); err != nil {
				t.Fatal(err)
			}
			h, members := p.Head(&meaning.Defaults{})
			var keys []string
			for key := range members {
				keys = append(keys, string(key))
			}
			if rest := strings.Join(keys, " "); string(h.Level) != row.level || string(h.Service) != row.service || string(h.Msg) != row.msg || rest != row.rest {
				t.Errorf("level %q, service %q, msg %q, rest %q", h.Level, h.Service, h.Msg, rest)
			}
		})
	}
}
