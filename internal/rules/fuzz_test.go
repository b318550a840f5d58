package rules_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"

	"blobtail/internal/rules"
	"blobtail/record"
	"blobtail/record/meaning"
)

// secret matches the texts that the masks of the fuzz targets find.
func secret() *regexp.Regexp { return regexp.MustCompile(`(?i)s3cr[e3]+t\w`) }

func secretRule() rules.Rule {
	return rules.Rule{Name: "r", Service: "*", Mask: []rules.Mask{{Pattern: secret().String(), With: "*"}, {Kind: "card"}, {Field: "*pass*"}, {Field: "a.b", Pattern: `\d`, With: "#"}}}
}

// A masked line is canonical, has its time and service, and none of its values has a text that the
// masks find.
func FuzzMask(f *testing.F) {
	for _, object := range []string{
		`{"msg":"a s3cret1 b","a":{"b":[1,"2",{"c":"3\n"}]},"password":{"x":1}}`, `{"level":"s3cretx","s3cret1":"\u00733cret1"}`,
		`{"x":[[],{},{"y":{}},-1e5,4111111111111111,"4111 1111 1111 1111"],"a.b":"1"}`, `{"service":"s3crett","time":"2026-01-01T00:00:00Z"}`,
	} {
		f.Add([]byte(object))
	}
	find := secret()
	f.Fuzz(func(t *testing.T, object []byte) {
		p := meaning.NewReader()
		if n, err := p.Scan(object); err != nil || n != len(object) {
			return
		}
		r := &record.Request{}
		data, stamp := p.AppendLine(nil, &meaning.Defaults{Time: arrival})
		add(r, data, stamp.Service, 0)
		n := &next{}
		accept(t, filter(t, n, nil, secretRule()), r)
		line := n.got.Data
		if size, err := p.Scan(line[:len(line)-1]); err != nil || size != len(line)-1 {
			t.Fatalf("%v: %s", err, line)
		}
		again, s := p.AppendLine(nil, &meaning.Defaults{Time: arrival})
		if !bytes.Equal(again, line) || s.Time != stamp.Time || s.Service != stamp.Service || s.Level != stamp.Level {
			t.Fatalf("%s is no canonical line, which is %s", line, again)
		}
		var values any
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber() // one may be too large for a float64
		if err := d.Decode(&values); err != nil {
			t.Fatal(err)
		}
		each(values, func(text string) {
			if find.MatchString(text) {
				t.Errorf("%q is left in %s", text, line)
			}
		})
	})
}

// each calls f for the texts in a value of JSON. The time and the service are no texts.
func each(value any, f func(string)) {
	switch v := value.(type) {
	case string:
		f(v)
	case []any:
		for _, item := range v {
			each(item, f)
		}
	case map[string]any:
		for key, item := range v {
			if key != "ts" && key != "service" {
				each(item, f)
			}
		}
	}
}

// The message of a rejected record has no secret, as it is and with its escapes decoded.
func FuzzRejected(f *testing.F) {
	for _, raw := range []string{`{"a":"s3cret1"`, `{"a":"\u0073\u0033cret1"`, "s3cre\x80t1 \\", `{"passw\u006frd":"x"`, `\\u0073s3cret1`} {
		f.Add([]byte(raw))
	}
	find := secret()
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := &record.Request{}
		rejected(r, string(raw), "web")
		n := &next{}
		accept(t, filter(t, n, nil, secretRule()), r)
		var got struct{ Msg string }
		if err := json.Unmarshal(n.got.Data, &got); err != nil {
			t.Fatalf("%v: %s", err, n.got.Data)
		}
		if find.MatchString(got.Msg) || find.Match(record.AppendUnescaped(nil, []byte(got.Msg))) {
			t.Errorf("%q", got.Msg)
		}
		if bytes.Contains(bytes.ToLower([]byte(got.Msg)), []byte("pass")) {
			t.Errorf("%q has a field's name", got.Msg)
		}
	})
}
