package reading_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"blobtail/reading"
	"blobtail/reading/readingtest"
)

// Fields that a question makes of messages count in its condition, and come with the lines.
func TestParse(t *testing.T) {
	h := readingtest.New(t, 1)
	send := func() {
		h.Send(0,
			readingtest.Line{Service: "web", Msg: `{"status":502,"http":{"path":"/a"},"who":"ann","level":"odd"}`, Fields: `"who":"own"`},
			readingtest.Line{Service: "web", Msg: `status=404 path=/b text="a b" version=007`},
			readingtest.Line{Service: "web", Msg: `10.0.0.1 - GET /c 503`},
			readingtest.Line{Service: "web", Msg: `nothing`})
	}
	send()
	h.Flush()
	send()
	s := h.Reader().For(nil)
	for _, row := range []struct {
		parse, where string
		records      int
		line         string // part of the first
	}{
		{"json", `status >= 500`, 2, `"status":502`},
		{"json", `level_extracted == "odd" and level == "info"`, 2, ``},
		{"json", `http_path == "/a"`, 2, `"http_path":"/a"`},
		{"json", `who == "own"`, 2, `"who_extracted":"ann"`},
		{"json", ``, 8, ``},
		{"logfmt", `status == 404 and text == "a b"`, 2, `"version":"007"`},
		{"logfmt", `status > 404`, 0, ``},
		{`<ip> - <method> <path> <status>`, `status == 503 and ip startsWith "10."`, 2, `"path":"/c","status":503,"level_extracted":"error"}`},
		{"", `status >= 500`, 0, ``},
	} {
		t.Run(row.parse+" "+row.where, func(t *testing.T) {
			a := reading.Ask{Services: []string{"web"}, Range: reading.Always(), Parse: row.parse, Where: row.where}
			got, out, err := lines(t.Context(), s, a)
			if err != nil || !out.Complete() || len(got) != row.records || !strings.Contains(strings.Join(got, ""), row.line) {
				t.Errorf("%d records, %v, complete %v: %q", len(got), err, out.Complete(), got)
			}
			for _, line := range got {
				var v map[string]any
				if err := json.Unmarshal([]byte(line), &v); err != nil {
					t.Errorf("%s: %v", line, err)
				}
			}
			if out, err := s.Count(t.Context(), a); err != nil || out.Records != int64(row.records) {
				t.Errorf("count: %d, %v", out.Records, err)
			}
		})
	}
	for _, bad := range []string{"xml", "<a><b>", "json | status"} {
		_, _, err := lines(t.Context(), s, reading.Ask{Services: []string{"web"}, Range: reading.Always(), Parse: bad})
		var mistake *reading.AskError
		if !errors.As(err, &mistake) || mistake.Key != "parse" {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Levels that are not wanted are left out of those that are.
func TestNotLevels(t *testing.T) {
	h := readingtest.New(t, 1)
	for _, level := range []string{"debug", "info", "error", "odd"} {
		h.Send(0, readingtest.Line{Service: "web", Msg: level, Level: level})
	}
	h.Flush()
	h.Send(0, readingtest.Line{Service: "web", Msg: "info", Level: "info"})
	s := h.Reader().For(nil)
	for _, row := range []struct {
		levels, not string
		want        int64
	}{{"", "info", 3}, {"info+", "error", 2}, {"", "trace+,other", 0}, {"error", "error", 0}, {"", "debug,other", 3}} {
		a := reading.Ask{Services: []string{"web"}, Range: reading.Always()}
		if row.levels != "" {
			a.Levels, _ = reading.ParseLevels(row.levels)
		}
		a.NotLevels, _ = reading.ParseLevels(row.not)
		got, _, err := lines(t.Context(), s, a)
		out, cerr := s.Count(t.Context(), a)
		if err != nil || cerr != nil || int64(len(got)) != row.want || out.Records != row.want {
			t.Errorf("%s without %s: %d records, %d counted, want %d: %v %v", row.levels, row.not, len(got), out.Records, row.want, err, cerr)
		}
	}
}

// The text form of a question is read as the same question.
func TestText(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 5, time.UTC)
	some, _ := reading.ParseLevels("warn+")
	other, _ := reading.ParseLevels("other")
	for _, a := range []reading.Ask{
		{Services: []string{"web"}, Range: reading.Always()},
		{Services: []string{"_rejected", "api", "w*"}, Range: reading.Range{From: now.UnixNano(), To: reading.Newest}, Levels: some, NotLevels: other},
		{Services: []string{"a"}, Range: reading.Range{From: reading.Oldest, To: now.UnixNano()}, Texts: []string{"a&b", "+ ", "ü"}, Words: []string{"x"}, Exprs: []string{"^a|b$"}, Where: `a == "b"`, Parse: "json", Not: true, Fold: true, Live: reading.Off},
		{LogQL: `{service_name="web"} |= "a"`, Range: reading.Always(), Live: reading.Only},
	} {
		p, err := url.ParseQuery(a.Values().Encode())
		if err != nil {
			t.Fatal(err)
		}
		got, err := reading.ParseAsk(reading.Params(p), now)
		if err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("%v is read as %+v, want %+v: %v", p, got, a, err)
		}
		for key := range p {
			if bytes.IndexByte([]byte(key), ' ') >= 0 {
				t.Error(key)
			}
		}
	}
}

// The labels and the line that the stages of a query make are fields beside those of the record.
func TestLabelled(t *testing.T) {
	h := readingtest.New(t, 1)
	h.Send(0, readingtest.Line{Service: "web", Msg: `{"status":502,"who":"ann"}`, Fields: `"who":"own"`})
	for query, row := range map[string]struct{ made, fields string }{
		`{service="web"}`:        {"", `"who":"own"}`},
		`{service="web"} | json`: {"", `"who":"own","status":502,"who_extracted":"ann"}`},
		`{service="web"} | json | line_format "{{.status}} \"a\""`: {"__line__", `"who_extracted":"ann","__line__":"502 \"a\""}`},
		`{service="web"} | unpack | line_format "x"`:               {"__line__", `"__line__":"x"}`},
	} {
		a := reading.Ask{LogQL: query, Range: reading.Always()}
		if _, err := a.Matcher(nil); err != nil {
			t.Fatal(err)
		}
		var got []byte
		emit, made := a.Labelled(func(lines []byte) error { got = append(got, lines...); return nil })
		_, err := h.Reader().For(nil).Records(t.Context(), a, emit)
		if err != nil || made != row.made || !strings.HasSuffix(string(got), row.fields+"\n") || !json.Valid(got) {
			t.Errorf("%s: %q, %s, %v", query, made, got, err)
		}
	}
}
