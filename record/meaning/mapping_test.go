package meaning_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/record"
	"blobtail/record/meaning"
)

// mappedLine makes the line of an object with a mapping, and of the reason for which it is refused.
func mappedLine(t *testing.T, p *meaning.Reader, src string, d meaning.Defaults) (string, record.Stamp, string) {
	t.Helper()
	if n, err := p.Scan([]byte(src)); err != nil || n != len(src) {
		t.Fatalf("Scan(%s) = %d, %v", src, n, err)
	}
	first, _ := p.AppendLine(nil, &d) // a second call has the same result
	line, stamp := p.AppendLine(nil, &d)
	if string(first) != string(line) {
		t.Fatalf("%s\nthen\n%s", first, line)
	}
	if d.Mapping == nil {
		return strings.TrimSpace(string(line)), stamp, ""
	}
	return strings.TrimSpace(string(line)), stamp, p.Refused()
}

func TestMapping(t *testing.T) {
	const head = `{"ts":"2026-11-18T10:00:00.000000000Z","level":"warn","service":"shop","msg":"m"`
	mapping := meaning.NewMapping([]meaning.Naming{
		{Names: meaning.Names{Time: []string{"when"}, Level: []string{"special"}}, Services: []string{"special-*"}},
		{Names: meaning.Names{
			Time: []string{"meta.at", "when", "day", "clock"}, Level: []string{"Prio", "meta.log.level"}, Message: []string{"text.de", "body"}, Service: []string{"team", "meta.team.name"},
		}},
	})
	p := meaning.NewReader()
	for _, c := range []struct{ src, want string }{
		{`{"when":"2026-11-18T10:00:00Z","PRIO":"W","body":"m","team":"shop"}`, head + `}`},
		{`{"when":"2026-11-18T10:00:00Z","prio":"W","body":"m","team":"shop","ts":"2026-11-17","level":"info","msg":"x","service":"y"}`,
			head + `,"ts.original":"2026-11-17","level.original":"info","msg.original":"x","service.original":"y"}`},
		{`{"timestamp":"2026-11-17","severity":"info","when":1794996000,"prio":"W","body":"m","team":"Shop","app":"z"}`,
			head + `,"timestamp":"2026-11-17","severity":"info","team":"Shop","app":"z"}`},
		{`{"meta":{"at":"2026-11-18T10:00:00Z","LOG":{"level":"w\u0061rn"},"team":{"name":"shop"}},"text":{"de":"m"}}`,
			head + `,"meta":{"at":"2026-11-18T10:00:00Z","LOG":{"level":"warn"},"team":{"name":"shop"}},"text":{"de":"m"}}`},
		{`{ "meta" : { "x" : [ ] , "at" : { "$date" : "2026-11-18T10:00:00Z" } , "log.level":"warn" , "team" : { "name" : "Shop" } }, "body":"m"}`,
			head + `,"meta":{"x":[],"at":{"$date":"2026-11-18T10:00:00Z"},"log.level":"warn","team":{"name":"Shop"}}}`},
		{`{"meta.at":"2026-11-18T10:00:00Z","meta":{"at":"2026-11-23"},"prio":"audit","level":"warn","body":"","msg":"m","team":null,"app":"shop"}`,
			head + `,"meta":{"at":"2026-11-23"},"prio":"audit","body":"","team":null}`},
		{`{"day":"2026-11-18","clock":"10:00:00","prio":40,"body":{"x":1},"message":"m","team":{},"service":"shop"}`,
			head + `,"day":"2026-11-18","clock":"10:00:00","body":{"x":1},"team":{}}`},
		{`{"when":"soon","time":"2026-11-18T10:00:00Z","prio":true,"level":"warn","msg":"m","service":"shop"}`,
			head + `,"when":"soon","prio":true}`},
		{`{"when":"2026-11-24","time":"2026-11-18T10:00:00Z","prio":"warn","msg":"m","service":"shop"}`,
			head + `,"when":"2026-11-24"}`},
		{`{"when":"2026-11-18T10:00:00Z","prio":"E","special":"error","service":"special-1","body":"m"}`,
			`{"ts":"2026-11-18T10:00:00.000000000Z","level":"error","service":"special-1","msg":"m","prio":"E"}`},
		{`{"when":"2026-11-18T10:00:00Z","prio":"E","special":"error","service":"a","team":"special-1","body":"m"}`,
			`{"ts":"2026-11-18T10:00:00.000000000Z","level":"error","service":"special-1","msg":"m","prio":"E","service.original":"a"}`},
	} {
		got, _, refused := mappedLine(t, p, c.src, meaning.Defaults{Time: arrival, Arrived: arrival, Mapping: mapping})
		if got != c.want || refused != "" {
			t.Errorf("%s\n%s %s\nwant\n%s", c.src, got, refused, c.want)
		}
	}
	// Without the mapping nothing of it is left.
	if got, _, _ := mappedLine(t, p, `{"prio":"E","team":"x"}`, meaning.Defaults{Time: arrival}); !strings.Contains(got, `"level":"","service":"unknown","msg":"","prio":"E","team":"x"`) {
		t.Error(got)
	}
	// The service of the path comes before.
	if got, _, _ := mappedLine(t, p, `{"prio":"E","team":"x"}`, meaning.Defaults{Time: arrival, Service: "web", Mapping: mapping}); !strings.Contains(got, `"level":"error","service":"web","msg":"","team":"x"}`) {
		t.Error(got)
	}
}

// A field that the sender has named for the time has to be one.
func TestMappingOfSender(t *testing.T) {
	p := meaning.NewReader()
	m := meaning.NewMapping([]meaning.Naming{{Names: meaning.Names{Time: []string{"at"}, Level: []string{"prio"}}}})
	d := meaning.Defaults{Time: arrival, Arrived: arrival, Mapping: m.With(meaning.Names{Time: []string{"when", "x.then"}})}
	for _, c := range []struct{ src, refused string }{
		{`{"when":"2026-11-20T10:00:00Z"}`, ""},
		{`{"when":"","time":"2026-11-17"}`, ""},
		{`{"when":null}`, ""},
		{`{"at":"soon"}`, ""},
		{`{"x":{"then":""}}`, ""},
		{`{"x":{"then":17}}`, "the field that _time names is no time: 17"},
		{`{"when":"soon","time":"2026-11-17"}`, `the field that _time names is no time: "soon"`},
		{`{"when":"10:00:00"}`, `the field that _time names is no time: "10:00:00"`},
		{`{"when":"10:00:00","date":"2026-11-17"}`, ""},
		{`{"when":{"a":1}}`, `the field that _time names is no time: {"a":1}`},
		{`{"when":"2027-01-01","x":{"then":"2026-11-17"}}`, "the time 2027-01-01T00:00:00.000000000Z of the field that _time names is more than 24h ahead"},
	} {
		if got, _, refused := mappedLine(t, p, c.src, d); refused != c.refused {
			t.Errorf("%s\n%s\n%s; want %s", c.src, got, refused, c.refused)
		}
	}
	if got, stamp, _ := mappedLine(t, p, `{"prio":"E"}`, d); stamp.Level != record.Error {
		t.Error("the names of the operator do not count for other parts:", got)
	}
}

// A mapping acts as a renaming: a record with the mapped names has the same head as one with the
// first known names in their place.
func TestMappingIsRenaming(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	values := []string{`"2026-11-20T10:00:00Z"`, `1794996000`, `"warn"`, `"E"`, `"audit"`, `""`, `null`, `30`, `7`, `{}`, `{"a":1}`, `[1, 2]`, `true`, `"a b"`, `"\u0061\n"`, `"10:00:00"`, `"2026-11-17"`, `"2027-11-20"`, `-1`, `0`}
	known := meaning.KnownNames()
	of := [][]string{known.Time, known.Level, known.Message, known.Service}
	first := []string{"ts", "level", "msg", "service"}
	mapping := meaning.NewMapping([]meaning.Naming{{Names: meaning.Names{Time: []string{"my ts"}, Level: []string{"my level"}, Message: []string{"my msg"}, Service: []string{"my service"}}}})
	p, plain := meaning.NewReader(), meaning.NewReader()
	for range 20_000 {
		var own, same []string
		for part, names := range of {
			if r.IntN(2) == 0 {
				v := values[r.IntN(len(values))]
				if first[part] == "msg" && v[0] == '{' || first[part] == "service" && v[0] == '{' {
					v = `"x"` // an object is a message under the known names
				}
				own, same = append(own, fmt.Sprintf(`"My %s":%s`, first[part], v)), append(same, fmt.Sprintf(`"%s":%s`, first[part], v))
			}
			for n := r.IntN(3); n > 0; n-- {
				if first[part] == "level" && slices.ContainsFunc(same, func(f string) bool {
					return strings.HasPrefix(f, `"level":`) && strings.Trim(f[len(`"level":`):], "-0123456789") == ""
				}) {
					break // a word under another name would come before a number, unless that is mapped
				}
				f := fmt.Sprintf(`"%s":%s`, names[1+r.IntN(len(names)-1)], values[r.IntN(len(values))])
				if !strings.Contains(strings.Join(own, ","), f[:strings.IndexByte(f, ':')+1]) {
					own, same = append(own, f), append(same, f)
				}
			}
		}
		d := meaning.Defaults{Time: arrival, Arrived: arrival}
		if r.IntN(3) == 0 {
			d.Service = "web"
		}
		want, stamp, _ := mappedLine(t, plain, "{"+strings.Join(same, ",")+"}", d)
		d.Mapping = mapping
		got, s, refused := mappedLine(t, p, "{"+strings.Join(own, ",")+"}", d)
		off, _ := record.LineMsg([]byte(got))
		if refused != "" || s != stamp || got[:off] != want[:off] || record.ValueLen([]byte(got[off-1:])) != record.ValueLen([]byte(want[off-1:])) {
			t.Fatalf("{%s}\n%+v %s\nwant\n%+v %s", strings.Join(own, ","), s, got, stamp, want)
		}
	}
}

// White space within the object of a time makes no difference.
func TestTimeInSpacedObject(t *testing.T) {
	p := meaning.NewReader()
	for _, v := range []string{`{"$date": "2026-11-20T10:00:00Z"}`, `{ "$date" : { "$numberLong" : "1795168800000" } }`, `{"seconds": 1795168800, "nanos": 0}`} {
		_, stamp, _ := mappedLine(t, p, `{"time": `+v+`}`, meaning.Defaults{Time: 1, Arrived: arrival})
		ns, ok := meaning.ReadTime([]byte(v), arrival)
		if stamp.Time != 1795168800e9 || ns != stamp.Time || !ok {
			t.Errorf("%s: %d, %d", v, stamp.Time, ns)
		}
	}
}

// What the mapping finds in an object in the message leaves the text in it as it is.
func TestMappingWithin(t *testing.T) {
	p := meaning.NewReader()
	m := meaning.NewMapping([]meaning.Naming{{Names: meaning.Names{Level: []string{"pri"}}}})
	d := meaning.Defaults{Time: arrival, Arrived: arrival, Seeks: true, Mapping: m}
	src := `{"msg":"{\"pri\":\"\\u0065rror\",\"level\":\"info\",\"message\":\"2026-11-19T10:00:06Z x \\\"b\\\" c\"}"}`
	if _, err := p.Scan([]byte(src)); err != nil {
		t.Fatal(err)
	}
	line, s := p.AppendLine(nil, &d)
	if at := time.Unix(0, s.Time).UTC().Format(time.RFC3339); at != "2026-11-19T10:00:06Z" || s.Level != record.Error {
		t.Errorf("%s: %s %v", line, at, s.Level)
	}
}

// With any names a line is canonical, and a second parser makes the same one.
func FuzzMapping(f *testing.F) {
	f.Add([]byte(`{"a":{"b":"2026-11-20","B.c":{"d":1}},"A.b":"warn","service":"x"}`), "a.b,b", "a.b.c.d,a.b", "a..b,.", "a", false)
	f.Add([]byte(`{"ts":1,"level":"x","msg":null,"service":{"name":"s"},"\u0061":"\ud83d"}`), "ts,service", "msg", "level,service.name", "service.name,\"", true)
	f.Fuzz(func(t *testing.T, src []byte, times, levels, messages, services string, sender bool) {
		p, q := meaning.NewReader(), meaning.NewReader()
		if n, err := p.Scan(src); err != nil || n != len(src) {
			return
		}
		names := meaning.Names{Time: strings.Split(times, ","), Level: strings.Split(levels, ","), Message: strings.Split(messages, ","), Service: strings.Split(services, ",")}
		m := meaning.NewMapping([]meaning.Naming{{Names: meaning.Names{Time: names.Time, Level: names.Level}, Services: []string{"*a*"}}, {Names: names}})
		if sender {
			m = m.With(names)
		}
		d := meaning.Defaults{Time: arrival, Arrived: arrival, Mapping: m, Seeks: true}
		line, stamp := p.AppendLine(nil, &d)
		checkMapped(t, line, stamp)
		if _, err := q.Scan(src); err != nil {
			t.Fatal(err)
		}
		if again, s := q.AppendLine(nil, &d); string(again) != string(line) || s != stamp || p.Refused() != q.Refused() {
			t.Fatalf("%s\nthen\n%s", line, again)
		}
		// The same as a record by parts.
		if _, err := q.Scan(src); err != nil {
			t.Fatal(err)
		}
		b := p.Begin(nil, meaning.Head{Time: arrival / 2, Level: []byte("info"), Service: []byte("Web"), Msg: []byte("m"), Renames: true}, &d)
		for key, value := range q.Members() {
			b.Member(key, value, "")
		}
		if mapped, s, err := b.End(); err == nil {
			checkMapped(t, mapped, s)
		}
	})
}

// checkMapped checks a line, and that its stamp says the same.
func checkMapped(t *testing.T, line []byte, s record.Stamp) {
	t.Helper()
	p := meaning.NewReader()
	if len(line) > record.MaxRecord {
		return
	}
	if n, err := p.Scan(line); err != nil || n != len(line)-1 {
		t.Fatalf("%s: %v", line, err)
	}
	again, stamp := p.AppendLine(nil, &meaning.Defaults{})
	service, _ := record.LineService(line)
	if string(again) != string(line) || stamp.Time != s.Time || stamp.Level != s.Level || string(service) != s.Service {
		t.Fatalf("%s %+v\nis read as\n%s %+v", line, s, again, stamp)
	}
}
