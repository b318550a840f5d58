package meaning_test

import (
	"fmt"
	"strings"
	"testing"

	"blobtail/record"
	"blobtail/record/meaning"
)

// Each name of the table works, in any case, and before the names behind it.
func TestKnownNames(t *testing.T) {
	names := meaning.KnownNames()
	p := meaning.NewReader()
	line := func(src string) (string, record.Stamp) {
		if n, err := p.Scan([]byte(src)); err != nil || n != len(src) {
			t.Fatalf("Scan(%s) = %d, %v", src, n, err)
		}
		line, stamp := p.AppendLine(nil, &meaning.Defaults{Time: 1})
		return string(line), stamp
	}
	for _, name := range names.Time[:len(names.Time)-1] {
		for _, key := range []string{name, strings.ToUpper(name)} {
			_, stamp := line(fmt.Sprintf(`{"eventtimestamp":"2020-01-01","%s":"2026-11-20"}`, key))
			if want := int64(1795132800e9); stamp.Time != want {
				t.Errorf("time %s: %d", key, stamp.Time)
			}
		}
	}
	for _, name := range names.Level {
		word := map[string]string{
			"levelno": "40", "level_value": "40000", "severity_number": "17", "severitynumber": "17",
			"severitylevel": "3", "eventlevel": "2",
		}[name]
		if word == "" {
			word = `"E"`
		}
		for _, key := range []string{name, strings.ToUpper(name)} {
			if got, stamp := line(fmt.Sprintf(`{"%s":%s}`, key, word)); stamp.Level != record.Error {
				t.Errorf("level %s: %s", key, got)
			}
		}
	}
	for i, name := range names.Message {
		if got, _ := line(fmt.Sprintf(`{"text":"last","%s":"m"}`, strings.ToUpper(name))); !strings.Contains(got, `"msg":"m"`) && i < len(names.Message)-1 {
			t.Errorf("message %s: %s", name, got)
		}
	}
	for i, name := range names.Service {
		if _, stamp := line(fmt.Sprintf(`{"programname":"last","%s":"web"}`, strings.ToUpper(name))); stamp.Service != "web" && i < len(names.Service)-1 {
			t.Errorf("service %s: %s", name, stamp.Service)
		}
	}
}

// A time may be in an array of one, in an object of PHP or of Windows, and in two numbers.
func TestFormsOfTimeInFields(t *testing.T) {
	p := meaning.NewReader()
	for src, want := range map[string]int64{
		`{"@timestamp":["2026-11-20T10:00:06Z"]}`:   1795168806e9,
		`{"ts":[1795168806]}`:                       1795168806e9,
		`{"ts":[ "2026-11-20T10:00:06Z" ]}`:         1795168806e9,
		`{"ts":[{"seconds":1795168806,"nanos":7}]}`: 1795168806e9 + 7,
		`{"ts":["2026-11-20T10:00:06Z","x"]}`:       7,
		`{"ts":[]}`:                                 7,
		`{"ts":[["2026-11-20T10:00:06Z"]]}`:         7,
		`{"datetime":{"date":"2026-11-20 11:00:06.000007","timezone_type":3,"timezone":"Europe/Vienna"}}`: 1795168806e9 + 7000,
		`{"datetime":{"date":"2026-11-20 11:00:06","timezone":"+01:00"}}`:                                 1795168806e9,
		`{"datetime":{"date":"2026-11-20 10:00:06"}}`:                                                     1795168806e9,
		`{"datetime":{"date":"2026-11-20 11:00:06","timezone":"Nowhere/Else"}}`:                           7,
		`{"datetime":{"date":7}}`:                                   7,
		`{"TimeCreated":{"SystemTime":"2026-11-20T10:00:06Z"}}`:     1795168806e9,
		`{"TimeCreated":"/Date(1795168806000)/"}`:                   1795168806e9,
		`{"timestampSeconds":"1795168806","timestampNanos":"257"}`:  1795168806e9 + 257,
		`{"timestampSeconds":1795168806,"timestampNanos":-7}`:       1795168806e9,
		`{"timestampSeconds":42,"timestampNanos":7}`:                7,
		`{"EventTimeString":"2026-11-20T10:00:06Z"}`:                7,
		`{"metadata":{"creationTimestamp":"2026-11-20T10:00:06Z"}}`: 7,
	} {
		if _, err := p.Scan([]byte(src)); err != nil {
			t.Fatal(err)
		}
		if line, s := p.AppendLine(nil, &meaning.Defaults{Time: 7}); s.Time != want {
			t.Errorf("%s: %d, want %d: %s", src, s.Time, want, line)
		}
	}
}
