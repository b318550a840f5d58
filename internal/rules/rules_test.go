package rules_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"blobtail/internal/count"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/rules"
	"blobtail/record"
	"blobtail/record/meaning"
)

// next keeps the request that it accepts.
type next struct {
	got     record.Request
	receipt record.Receipt
	err     error
}

func (n *next) Accept(_ context.Context, r *record.Request) (record.Receipt, error) {
	n.got = *r
	n.got.Lines, n.got.Data = slices.Clone(r.Lines), slices.Clone(r.Data)
	return n.receipt, n.err
}

// lines returns the accepted lines, each behind its index.
func (n *next) lines() (all []string) {
	for i := range n.got.Lines {
		l := &n.got.Lines[i]
		all = append(all, fmt.Sprintf("%d %s", n.got.Index(uint32(i)), n.got.Data[l.Off:l.Off+l.Len]))
	}
	return all
}

const arrival = 1795187045_000000007

// request is that of JSON objects. The second of two records has the place 3, as behind a
// rejected one.
func request(t testing.TB, objects ...string) *record.Request {
	t.Helper()
	r := &record.Request{Origin: record.Origin{1, 2, 3, 4, 5, 6, 7, 8, 9}}
	p := meaning.NewReader()
	for i, object := range objects {
		if _, err := p.Scan([]byte(object)); err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		data, stamp := p.AppendLine(r.Data, &meaning.Defaults{Time: arrival})
		add(r, data, stamp.Service, i)
	}
	return r
}

func add(r *record.Request, data []byte, service string, i int) {
	n := slices.Index(r.Services, service)
	if n < 0 {
		n = len(r.Services)
		r.Services = append(r.Services, service)
	}
	shift := int32(0)
	if i > 0 {
		shift = 2
	}
	r.Lines = append(r.Lines, record.Line{Time: arrival, Off: uint32(len(r.Data)), Len: uint32(len(data) - len(r.Data)), Service: uint32(n), Shift: shift})
	r.Data = data
}

func filter(t testing.TB, n *next, reg *count.Registry, all ...rules.Rule) *rules.Filter {
	t.Helper()
	return rules.NewFilter(must(t, all...), n, reg)
}

func accept(t testing.TB, f *rules.Filter, r *record.Request) record.Receipt {
	t.Helper()
	before := slices.Clone(r.Data)
	receipt, err := f.Accept(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(r.Data) {
		t.Error("the request of the source was changed")
	}
	return receipt
}

func counts(t testing.TB, reg *count.Registry) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for series, n := range count.Read(reg.Page()) {
		labels := strings.Split(series, `"`) // of the action and the rule
		found[labels[3]+" "+labels[1]] = n
	}
	return found
}

// The records that are left keep their indexes, and each rule counts its own.
func TestDrop(t *testing.T) {
	n, reg := &next{}, new(count.Registry)
	f := filter(t, n, reg,
		rules.Rule{Name: "debug", Service: "web-*", Where: `level == "debug"`, Drop: true},
		rules.Rule{Name: "health", Service: "*", Where: `path == "/health"`, Drop: true},
		rules.Rule{Name: "noise", Service: "noise", Drop: true})
	r := request(t, `{"service":"web-1","level":"debug"}`, `{"service":"web-1","msg":"a"}`, `{"service":"noise"}`, `{"service":"db","path":"/health"}`,
		`{"service":"db","level":"debug","msg":"b"}`)
	accept(t, f, r)
	var got []string
	for _, line := range n.lines() {
		place, rest, _ := strings.Cut(line, " ")
		_, msg, _ := strings.Cut(rest, `"msg":"`)
		got = append(got, place+msg[:1])
	}
	if want := []string{"3a", "6b"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if n.got.Origin != r.Origin {
		t.Error("a rule without masks changed the origin")
	}
	want := map[string]float64{"debug drop": 1, "health drop": 1, "noise drop": 1}
	if got := counts(t, reg); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	n.receipt.Duplicate = true
	accept(t, f, r)
	n.receipt.Duplicate, n.err = false, record.ErrFull
	if _, err := f.Accept(t.Context(), r); err != record.ErrFull {
		t.Error(err)
	}
	if got := counts(t, reg); !maps.Equal(got, want) {
		t.Errorf("a repeat and a refused request are counted: %v", got)
	}
}

// A request of services without rules is passed on as it is.
func TestUntouched(t *testing.T) {
	var got *record.Request
	c, err := rules.Compile([]rules.Rule{{Name: "a", Service: "web", Drop: true}})
	if err != nil {
		t.Fatal(err)
	}
	r := request(t, `{"service":"db"}`)
	f := rules.NewFilter(c, acceptFunc(func(r *record.Request) { got = r }), nil)
	accept(t, f, r)
	if got != r {
		t.Error("another request")
	}
	testkit.FullOnly(t, "under the race detector a sync.Pool drops things at random")
	if n := testing.AllocsPerRun(10, func() { _, _ = f.Accept(context.Background(), r) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

type acceptFunc func(r *record.Request)

func (a acceptFunc) Accept(_ context.Context, r *record.Request) (record.Receipt, error) {
	a(r)
	return record.Receipt{}, nil
}

// The filter passes a request on without any records if rules drop all of them, so that a message
// is acknowledged.
func TestNothingLeft(t *testing.T) {
	n := &next{}
	f := filter(t, n, nil, rules.Rule{Name: "a", Service: "*", Drop: true})
	r := request(t, `{"service":"web"}`, `{"service":"db"}`)
	r.Reply = "reply"
	accept(t, f, r)
	if len(n.got.Lines)+len(n.got.Data) > 0 || n.got.Reply != "reply" {
		t.Errorf("%+v", n.got)
	}
}

// A sample keeps its share, also of equal records, and the same ones again.
func TestSample(t *testing.T) {
	const many = 4000
	objects := slices.Repeat([]string{`{"service":"web","level":"info","msg":"GET /"}`}, many)
	for name, origin := range map[string]record.Origin{"with an origin": {7, 7}, "without": {}} {
		n, reg := &next{}, new(count.Registry)
		f := filter(t, n, reg, rules.Rule{Name: "tenth", Service: "web", Sample: 0.1})
		r := request(t, objects...)
		r.Origin = origin
		accept(t, f, r)
		first := n.lines()
		if len(first) < many/10*8/10 || len(first) > many/10*12/10 {
			t.Errorf("%s: %d of %d", name, len(first), many)
		}
		if left := counts(t, reg)["tenth sample"]; int(left) != many-len(first) {
			t.Errorf("%s: %v counted", name, left)
		}
		accept(t, f, r)
		if !slices.Equal(first, n.lines()) {
			t.Errorf("%s: again, and others", name)
		}
		// A larger share has the smaller one in it, and another rule chooses others.
		for _, other := range []rules.Rule{{Name: "tenth", Service: "web", Sample: 0.5}, {Name: "other", Service: "web", Sample: 0.1}} {
			accept(t, filter(t, n, nil, other), r)
			common := 0
			for _, line := range first {
				if slices.Contains(n.lines(), line) {
					common++
				}
			}
			if (common == len(first)) != (other.Sample == 0.5) {
				t.Errorf("%s: %v has %d of %d", name, other, common, len(first))
			}
		}
	}
}

// The masks of a service are a part of the identity, and the caller of a request that came
// before gets the origin that it can use.
func TestOrigin(t *testing.T) {
	card := rules.Rule{Name: "card", Service: "web", Mask: []rules.Mask{{Kind: "card"}}}
	r := request(t, `{"service":"web","msg":"a"}`)
	n := &next{}
	f := filter(t, n, nil, card)
	accept(t, f, r)
	first := n.got.Origin
	if first == r.Origin || string(first[:6]) != string(r.Origin[:6]) || string(first[8:]) != string(r.Origin[8:]) {
		t.Errorf("origin %s of %s", first, r.Origin)
	}
	accept(t, filter(t, n, nil, rules.Rule{Name: "renamed", Service: "web", Mask: card.Mask}, rules.Rule{Name: "d", Service: "db", Mask: card.Mask}), r)
	if n.got.Origin != first {
		t.Error("another name, and a rule of another service, change the origin")
	}
	accept(t, filter(t, n, nil, rules.Rule{Name: "card", Service: "web", Mask: []rules.Mask{{Kind: "card", With: "x"}}}), r)
	if n.got.Origin == first {
		t.Error("another mask has the same origin")
	}
	n.err = &record.EarlierError{Origin: first, DefaultTime: 5}
	_, err := f.Accept(t.Context(), r)
	earlier, ok := err.(*record.EarlierError)
	if !ok || earlier.Origin != r.Origin || earlier.DefaultTime != 5 {
		t.Fatalf("%v", err)
	}
	r.Origin = record.Origin{}
	n.err = nil
	if accept(t, f, r); !n.got.Origin.IsZero() {
		t.Error("a request without an origin got one")
	}
}

func TestMask(t *testing.T) {
	jwt := "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r"
	for _, row := range []struct {
		name        string
		masks       []rules.Mask
		object, out string // of the line, from level on; O: as it was
	}{
		{"msg", []rules.Mask{{Pattern: `pin=\d+`}}, `{"msg":"a pin=1234 b"}`, `{"msg":"a [masked] b"}`},
		{"group", []rules.Mask{{Pattern: `(pin=)\d+`, With: "${1}***"}}, `{"msg":"a pin=1234 b","x":["pin=1",{"y":"pin=2"}]}`, `{"msg":"a pin=*** b","x":["pin=***",{"y":"pin=***"}]}`},
		{"one field", []rules.Mask{{Field: "user.mail", Kind: "email"}}, `{"msg":"a@b.de","user":{"mail":"to a@b.de","x":"a@b.de"},"mail":"a@b.de","user.mail":"a@b.de"}`,
			`{"msg":"a@b.de","user":{"mail":"to [masked]","x":"a@b.de"},"mail":"a@b.de","user.mail":"[masked]"}`},
		{"whole field", []rules.Mask{{Field: "password"}}, `{"password":"x","a":{"password":"x"},"Password":{"a":[1]}}`, `{"password":"[masked]","a":{"password":"x"},"Password":"[masked]"}`},
		{"at any depth", []rules.Mask{{Field: "*pass*"}}, `{"password":null,"a":[{"user_pass":[1,2]}],"p":{"x":true}}`, `{"password":"[masked]","a":[{"user_pass":"[masked]"}],"p":{"x":true}}`},
		{"glob with an end", []rules.Mask{{Field: "*.token"}}, `{"token":"a","a":{"token":"b","tokens":"c"}}`, `{"token":"a","a":{"token":"[masked]","tokens":"c"}}`},
		{"globs", []rules.Mask{{Field: "a*b*c"}, {Field: "*x*"}}, `{"abc":1,"aXbYc":1,"a.b.c":1,"ab":1,"acb":1,"abcd":1,"bc":1,"x":1,"n":{"X":[1]},"aB":{"c":1,"d":1}}`,
			`{"abc":"[masked]","aXbYc":"[masked]","a.b.c":"[masked]","ab":1,"acb":1,"abcd":1,"bc":1,"x":"[masked]","n":{"X":"[masked]"},"aB":{"c":"[masked]","d":1}}`},
		{"below a field", []rules.Mask{{Field: "user", Pattern: "x"}}, `{"user":{"a":"x","b":["x",{"c":"x"}]},"x":"x"}`, `{"user":{"a":"[masked]","b":["[masked]",{"c":"[masked]"}]},"x":"x"}`},
		{"escapes", []rules.Mask{{Pattern: `"secret"\n`}}, `{"msg":"a \"secret\"\n\té","k":"\u0022secret\u0022\u000a"}`, `{"msg":"a [masked]\té","k":"[masked]"}`},
		{"with escapes", []rules.Mask{{Pattern: `x`, With: "\"\\\n"}}, `{"msg":"axb"}`, `{"msg":"a\"\\\nb"}`},
		{"a number", []rules.Mask{{Kind: "card"}}, `{"n":4111111111111111,"m":4111111111111112,"a":[4111111111111111]}`, `{"n":"[masked]","m":4111111111111112,"a":["[masked]"]}`},
		{"a key stays", []rules.Mask{{Pattern: "secret"}}, `{"secret":"a secret"}`, `{"secret":"a [masked]"}`},
		{"service and time stay", []rules.Mask{{Pattern: "web|2026|info"}}, `{"level":"info","msg":"web"}`, `{"level":"info","msg":"[masked]"}`},
		{"a level of its own", []rules.Mask{{Pattern: "secret"}}, `{"level":"secret!","msg":"m"}`, `{"level":"[masked]!","msg":"m"}`},
		{"service.name", []rules.Mask{{Kind: "email"}}, `{"service.name":"a@b.de"}`, `{"service.name":"[masked]"}`},
		{"cards", []rules.Mask{{Kind: "card"}}, `{"msg":"4111 1111 1111 1111, 4111-1111-1111-1111; 378282246310005 30569309025904 6011111111111117 5555555555554444 42"}`,
			`{"msg":"[masked], [masked]; [masked] [masked] [masked] [masked] 42"}`},
		{"behind another number", []rules.Mask{{Kind: "card"}}, `{"msg":"order 1234 4111 1111 1111 1111 7"}`, `{"msg":"order 1234 [masked] 7"}`},
		{"no cards", []rules.Mask{{Kind: "card"}}, `{"msg":"1795187045000000007 1795187045123 4111111111111112 41111111111111110000 2026-11-20 15:04:05"}`, `O`},
		{"jwt", []rules.Mask{{Kind: "jwt"}}, `{"msg":"token ` + jwt + `, eyJ"}`, `{"msg":"token [masked], eyJ"}`},
		{"email", []rules.Mask{{Kind: "email"}}, `{"msg":"<jörg.o'x+y@mail.exämple.com> a@b @c"}`, `{"msg":"<[masked]> a@b @c"}`},
		{"bearer", []rules.Mask{{Kind: "bearer"}}, `{"msg":"Authorization: Bearer abcdef0123456789._-==, bearer authentication"}`, `{"msg":"Authorization: [masked], bearer authentication"}`},
		{"in turn", []rules.Mask{{Pattern: "a", With: "b"}, {Pattern: "b+", With: "c"}}, `{"msg":"aab"}`, `{"msg":"c"}`},
		{"much longer", []rules.Mask{{Pattern: ".", With: strings.Repeat("x", 60)}}, `{"msg":"0123456789"}`, `{"msg":"[masked]"}`},
		{"nothing", []rules.Mask{{Pattern: "x"}, {Field: "y"}, {Kind: "jwt"}}, `{"msg":"a","b":[],"c":{},"d":{"e":1e5},"f":[true,null]}`, `O`},
		{"any order of bytes", []rules.Mask{{Pattern: "é"}}, `{"msg":"\ud83d é"}`, `{"msg":"\\ud83d [masked]"}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := &next{}
			f := filter(t, n, nil, rules.Rule{Name: "r", Service: "*", Mask: row.masks})
			accept(t, f, request(t, row.object, row.object))
			want := row.out
			if want == "O" {
				want = row.object
			}
			accept := &next{}
			if _, err := accept.Accept(t.Context(), request(t, want, want)); err != nil {
				t.Fatal(err)
			}
			wanted := accept.lines()
			if row.name == "service.name" || row.name == "any order of bytes" { // the wanted object means another line
				for i := range wanted {
					wanted[i] = strings.NewReplacer(`"service":"masked"`, `"service":"a-b.de"`).Replace(wanted[i])
				}
			}
			if got := n.lines(); !slices.Equal(got, wanted) {
				t.Errorf("got  %s\nwant %s", got, wanted)
			}
			for _, line := range n.lines() {
				if _, text, _ := strings.Cut(line, " "); !json.Valid([]byte(text)) {
					t.Errorf("not JSON: %s", text)
				}
			}
		})
	}
}

// A very long name costs no more than others, and is masked in doubt.
func TestLongNames(t *testing.T) {
	n := &next{}
	f := filter(t, n, nil, rules.Rule{Name: "r", Service: "*", Mask: []rules.Mask{{Field: "*z*z*y"}, {Field: "long"}}})
	object := `{"` + strings.Repeat("z", 300<<10) + `":{` + strings.Repeat(`"a":1,`, 60_000) + `"b":2},"c":1}`
	begun := time.Now()
	accept(t, f, request(t, object))
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if line := string(n.got.Data); !strings.HasSuffix(line, `z":"[masked]","c":1}`+"\n") {
		t.Errorf("...%s", line[max(0, len(line)-100):])
	}
}

// rejected adds the line of an invalid record to a request.
func rejected(r *record.Request, raw, service string) {
	data := meaning.NewReader().AppendRejected(r.Data, meaning.Rejected{Raw: []byte(raw), Reason: `duplicate key "hunter2"`, Source: "http POST /ingest", Time: arrival, Service: service})
	add(r, data, record.RejectedService, len(r.Lines))
}

// A rule compares levels by their order. It keeps levels without a place in that order.
func TestLevelOrder(t *testing.T) {
	n, reg := &next{}, new(count.Registry)
	f := filter(t, n, reg,
		rules.Rule{Name: "low", Service: "kept", Where: `not (level >= "warning")`, Drop: true},
		rules.Rule{Name: "high", Service: "calm", Where: `level > "info"`, Drop: true})
	var objects []string
	for _, service := range []string{"kept", "calm"} {
		for _, level := range []string{"trace", "DEBUG", "info", "warn", "err", "fatal", "audit", ""} {
			objects = append(objects, fmt.Sprintf(`{"service":%q,"level":%q,"msg":%q}`, service, level, "of "+level))
		}
	}
	accept(t, f, request(t, objects...))
	got := strings.Join(n.lines(), "")
	for level, in := range map[string]string{"trace": "calm", "DEBUG": "calm", "info": "calm", "warn": "kept", "err": "kept", "fatal": "kept", "audit": "kept calm", "": "kept calm"} {
		for _, service := range []string{"kept", "calm"} {
			line := fmt.Sprintf(`"service":%q,"msg":"of %s"`, service, level)
			if strings.Contains(got, line) != strings.Contains(in, service) {
				t.Errorf("%s %q: it is not only in %q: %s", service, level, in, got)
			}
		}
	}
	if got, want := counts(t, reg), map[string]float64{"low drop": 3, "high drop": 3}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// If the filter cannot tell whether a rule is for a record, it masks the record, and does not drop
// it.
func TestUnjudged(t *testing.T) {
	const large = `len(map(1..2000000, # + pin)) > 0`
	for where, want := range map[string]string{large: `{"msg":"a [masked]","pin":1}`, `not (` + large + `)`: `{"msg":"a [masked]","pin":1}`, large + ` and pin == 2`: `{"msg":"a pin=1","pin":1}`} {
		n, wanted := &next{}, &next{}
		f := filter(t, n, nil, rules.Rule{Name: "drop", Service: "*", Where: where, Drop: true}, rules.Rule{Name: "mask", Service: "*", Where: where, Mask: []rules.Mask{{Pattern: `pin=\d+`}}})
		accept(t, f, request(t, `{"msg":"a pin=1","pin":1}`))
		if _, err := wanted.Accept(t.Context(), request(t, want)); err != nil {
			t.Fatal(err)
		}
		if got, want := n.lines(), wanted.lines(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", where, got, want)
		}
	}
}

// The original bytes of an invalid record are masked, in doubt all of them.
func TestRejected(t *testing.T) {
	card := []rules.Mask{{Kind: "card"}}
	for _, row := range []struct {
		name string
		rule rules.Rule
		raw  string
		of   string // service
		want string // the message
	}{
		{"unknown service", rules.Rule{Service: "pay", Mask: card}, `{"n":"4111111111111111"`, "", `{"n":"[masked]"`},
		{"its service", rules.Rule{Service: "pay*", Mask: card}, `{"n":"4111111111111111"`, "pay-1", `{"n":"[masked]"`},
		{"another service", rules.Rule{Service: "pay", Mask: card}, `{"n":"4111111111111111"`, "web", `{"n":"4111111111111111"`},
		{"all of them", rules.Rule{Service: "_rejected", Mask: card}, `{"n":"4111111111111111"`, "web", `{"n":"[masked]"`},
		{"a condition", rules.Rule{Service: "pay", Where: "status == 1", Mask: card}, `{"n":"4111111111111111"`, "pay", `{"n":"[masked]"`},
		{"of a field", rules.Rule{Service: "pay", Mask: []rules.Mask{{Field: "x", Kind: "card"}}}, `{"n":"4111111111111111"`, "pay", `{"n":"[masked]"`},
		{"escaped", rules.Rule{Service: "pay", Mask: card}, `{"n":"\u0034111\u002d1111\u002d1111\u002d1111"`, "pay", `{"n":"[masked]"`},
		{"a whole field", rules.Rule{Service: "pay", Mask: []rules.Mask{{Field: "user.password"}}}, `{"user":{"a":1,"PassWord":"hunter2"}`, "pay", `{"user":{"a":1,"[masked]`},
		{"a whole field, escaped", rules.Rule{Service: "pay", Mask: []rules.Mask{{Field: "*password"}}}, `{"pass\u0077ord":"hunter2"`, "pay", `{"[masked]`},
		{"any field", rules.Rule{Service: "pay", Mask: []rules.Mask{{Field: "*"}}}, `{"a":"hunter2"`, "pay", `[masked]`},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.rule.Name = "r"
			n, reg := &next{}, new(count.Registry)
			f := filter(t, n, reg, row.rule)
			r := request(t, `{"service":"other","msg":"m"}`)
			rejected(r, row.raw, row.of)
			accept(t, f, r)
			line := n.got.Data[n.got.Lines[1].Off:][:n.got.Lines[1].Len]
			var got struct{ Msg string }
			if err := json.Unmarshal(line, &got); err != nil || got.Msg != row.want {
				t.Errorf("%q (%v), want %q", got.Msg, err, row.want)
			}
			if changed := row.raw != row.want; (counts(t, reg)["r mask"] == 1) != changed {
				t.Errorf("counted %v", counts(t, reg))
			}
		})
	}
}

// The reason of a rejection may quote the record, and the cut end may have half of a secret.
func TestRejectedRest(t *testing.T) {
	n := &next{}
	f := filter(t, n, nil, rules.Rule{Name: "p", Service: "pay", Mask: []rules.Mask{{Pattern: "hunter2"}}},
		rules.Rule{Name: "c", Service: "pay", Mask: []rules.Mask{{Kind: "card"}}},
		rules.Rule{Name: "d", Service: "pay", Drop: true})
	r := &record.Request{}
	rejected(r, `{"hunter2":1,"hunter2":2}`, "pay")
	rejected(r, strings.Repeat("x", record.MaxRejected-10)+" 4111111111111111", "pay")
	accept(t, f, r)
	if len(n.got.Lines) != 2 {
		t.Fatal("a rule of another service dropped a rejected record")
	}
	if got := string(n.got.Data); strings.Contains(got, "hunter2") || strings.Contains(got, "4111") {
		t.Errorf("%.300s", got)
	}
	accept(t, filter(t, n, nil, rules.Rule{Name: "d", Service: "_rejected", Drop: true}), r)
	if len(n.got.Lines) != 0 {
		t.Error("a rule of the service did not drop it")
	}
}

// A mistake names the key, the rule, and its place.
func TestMistakes(t *testing.T) {
	mask := func(m rules.Mask) rules.Rule {
		return rules.Rule{Name: "pii", Service: "web", Mask: []rules.Mask{{Kind: "card"}, m}}
	}
	for _, row := range []struct {
		rule rules.Rule
		want string
	}{
		{rules.Rule{Name: "pii", Service: "web", Where: "status >", Drop: true}, `rules[1].where: "status >": column 8: the expression ends before it is whole; want one such as status >= 500 and path startsWith "/api" (rule pii)`},
		{rules.Rule{Name: "low", Service: "web", Where: `not (level >= "high")`, Drop: true}, `column 15: "high" is no word of a level`},
		{mask(rules.Mask{Pattern: "a(b"}), `rules[1].mask[1].pattern: "a(b": column 1: missing closing ): "a(b" (rule pii)`},
		{mask(rules.Mask{Pattern: "ab[z-a]"}), `rules[1].mask[1].pattern: "ab[z-a]": column 4: invalid character class range: "z-a" (rule pii)`},
		{mask(rules.Mask{Pattern: "a*"}), "it matches an empty text"},
		{mask(rules.Mask{Pattern: `\b`}), "it matches an empty text"},
		{mask(rules.Mask{Pattern: "(a)", With: "$1x"}), `the pattern has no group "1x"; write ${1}`},
		{mask(rules.Mask{Pattern: "(a)", With: "$2"}), `the pattern has no group "2"`},
		{mask(rules.Mask{Kind: "iban"}), `rules[1].mask[1].kind: "iban": want one of bearer, card, email, jwt (rule pii)`},
	} {
		_, err := rules.Compile([]rules.Rule{{Name: "first", Service: "a", Drop: true}, row.rule})
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v, want %s", err, row.want)
		}
	}
	if _, err := rules.Compile(slices.Repeat([]rules.Rule{{Name: "a", Service: "a", Drop: true}}, 65)); err == nil {
		t.Error("65 rules are accepted")
	}
	if _, err := rules.Compile(slices.Repeat([]rules.Rule{mask(rules.Mask{Kind: "jwt"})}, 32)); err == nil {
		t.Error("64 masks are accepted")
	}
	if _, err := rules.Compile([]rules.Rule{mask(rules.Mask{Pattern: `(?P<a>x)(y)`, With: "$a${2}$$5$"})}); err != nil {
		t.Error(err)
	}
}

// BenchmarkAccept measures rules over a request of 1,000 records of about 320 bytes.
func BenchmarkAccept(b *testing.B) {
	objects := make([]string, 1000)
	for i := range objects {
		objects[i] = fmt.Sprintf(`{"level":"%s","service":"checkout","host":"node-%02d","msg":"outbound request GET http://node-%d.internal:8080/api/v1/orders/%d attempt=%d timeout=%dms","trace_id":"%032x","span_id":"%016x","user":"user%d","status":%d,"duration_ms":%d.125}`,
			[]string{"debug", "info", "warn", "error"}[i%4], i%40, i%39, i*77, i%5, i%5000, i*1234567, i*7654321, i%9999, 200+i%300, i%1000)
	}
	r := request(b, objects...)
	for _, rule := range []rules.Rule{
		{Name: "another service", Service: "web", Drop: true},
		{Name: "drop debug", Service: "*", Where: `level == "debug"`, Drop: true},
		{Name: "drop by fields", Service: "*", Where: `level == "debug" and status >= 500`, Drop: true},
		{Name: "sample", Service: "*", Sample: 0.1},
		{Name: "cards", Service: "*", Mask: []rules.Mask{{Kind: "card"}}},
		{Name: "all kinds", Service: "*", Mask: []rules.Mask{{Kind: "card"}, {Kind: "jwt"}, {Kind: "email"}, {Kind: "bearer"}}},
		{Name: "a field", Service: "*", Mask: []rules.Mask{{Field: "user"}}},
		{Name: "a pattern", Service: "*", Mask: []rules.Mask{{Pattern: `timeout=\d+`}}},
	} {
		b.Run(rule.Name, func(b *testing.B) {
			f := rules.NewFilter(must(b, rule), acceptFunc(func(*record.Request) {}), nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Accept(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/record")
		})
	}
}

func must(t testing.TB, all ...rules.Rule) *rules.Rules {
	t.Helper()
	c, err := rules.Compile(all)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
