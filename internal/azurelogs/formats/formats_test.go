package formats_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"blobtail/internal/azurelogs/formats"
	"blobtail/record"
)

// The samples of the documentation of Storage Analytics.
const (
	sample2 = `2.0;2022-01-03T20:34:54.4617505Z;PutBlob;SASSuccess;201;7;7;sas;;logsamples;blob;https://logsamples.blob.core.windows.net/container1/1.txt?se=2022-02-02T20:34:54Z&amp;sig=XXXXX&amp;sp=rwl&amp;sr=c&amp;sv=2020-04-08&amp;timeout=901;"/logsamples/container1/1.txt";xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxx;0;71.197.193.44:53371;2019-12-12;654;13;337;0;13;"xxxxxxxxxxxxxxxxxxxxx==";"xxxxxxxxxxxxxxxxxxxxx==";"&quot;0x8D9CEF88004E296&quot;";Monday, 03-Jan-22 20:34:54 GMT;;"Microsoft Azure Storage Explorer, 1.20.1, win32, azcopy-node, 2.0.0, win32,  AzCopy/10.11.0 Azure-Storage/0.13 (go1.15; Windows_NT)";;"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxx";;;;;;;;`
	sample1 = `1.0;2022-01-03T20:35:13.0719766Z;CreateTable;Success;204;30;30;authenticated;logsamples;logsamples;table;https://logsamples.table.core.windows.net/Tables;"/logsamples/Table1";xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxx;0;71.197.193.44:53389;2018-03-28;601;22;339;0;22;;;;;;"Microsoft Azure Storage Explorer, 1.20.1, win32, Azure-Storage/2.10.3 (NODE-VERSION v12.16.3; Windows_NT 10.0.22000)";;"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxx"`
)

// entry is an entry of a blob: its line, or the reason why it has none.
type entry struct {
	line   int
	text   string // the canonical line
	reason string
	id     formats.ID
	hasID  bool
}

// read reads a whole blob, and checks that each line is canonical.
func read(t testing.TB, kind formats.Kind, blob []byte) (out []entry, unfinished bool) {
	t.Helper()
	s, tr := formats.NewSplitter(kind), formats.NewTranslator(kind, "svc", time.Time{})
	scanner := bufio.NewScanner(bytes.NewReader(blob))
	scanner.Buffer(make([]byte, 64), formats.MaxBuffer)
	scanner.Split(s.Split)
	for scanner.Scan() {
		line, stamp, err := tr.Append(nil, scanner.Bytes())
		e := entry{line: s.Line, text: string(line)}
		if err != nil {
			e.reason = err.Error()
		} else {
			check(t, line, stamp)
			e.id, e.hasID = tr.ID()
		}
		out = append(out, e)
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return out, s.Unfinished > 0
}

func check(t testing.TB, line []byte, stamp record.Stamp) {
	t.Helper()
	ns, ok := record.LineTime(line)
	service, whole := record.LineService(line)
	if !ok || !whole || ns != stamp.Time || string(service) != "svc" || record.LineLevel(line) != stamp.Level {
		t.Fatalf("no canonical line: %q", line)
	}
	if bytes.IndexByte(line, '\n') != len(line)-1 || !json.Valid(line) {
		t.Fatalf("not one line of JSON: %q", line)
	}
}

// fields decodes a line.
func fields(t testing.TB, line string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("%v: %q", err, line)
	}
	return m
}

// The samples have 38 and 30 fields, and all are in the line.
func TestSamples(t *testing.T) {
	got, _ := read(t, formats.Classic, []byte(sample2+"\n"+sample1+"\n"))
	if len(got) != 2 || got[0].reason != "" || got[1].reason != "" {
		t.Fatalf("%+v", got)
	}
	for i, want := range []map[string]any{
		{"ts": "2022-01-03T20:34:54.461750500Z", "level": "info", "msg": "PutBlob 201 /container1/1.txt 7ms", "etag-identifier": `"0x8D9CEF88004E296"`,
			"request-url":    "https://logsamples.blob.core.windows.net/container1/1.txt?se=2022-02-02T20:34:54Z&sig=XXXXX&sp=rwl&sr=c&sv=2020-04-08&timeout=901",
			"version-number": "2.0", "http-status-code": 201.0, "requester-account-name": "", "authorization-detail": "", "response-packet-size": 0.0},
		{"ts": "2022-01-03T20:35:13.071976600Z", "level": "info", "msg": "CreateTable 204 /Table1 30ms", "version-number": "1.0",
			"client-request-id": "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxx", "service-type": "table", "request-version": "2018-03-28"},
	} {
		m := fields(t, got[i].text)
		for k, v := range want {
			if m[k] != v {
				t.Errorf("sample %d: %s is %v, want %v", i, k, m[k], v)
			}
		}
		if n := len(m) - len("tlsm"); n != []int{38, 30}[i] {
			t.Errorf("sample %d has %d fields", i, n)
		}
	}
}

// classic is a line of version 1.0 with some fields replaced.
func classic(replace map[int]string) string {
	f := strings.Split(strings.Repeat(";", 29), ";")
	f[0], f[1], f[2], f[3], f[4], f[5], f[9], f[12], f[13], f[14] = "1.0", "2022-01-03T20:35:13.07Z", "GetBlob", "Success", "200", "9", "acct", `"/acct/c/x"`, "id1", "0"
	for i, text := range replace {
		f[i] = text
	}
	return strings.Join(f, ";") + "\n"
}

// A field keeps its text, with any separators and escapes.
func TestClassicFields(t *testing.T) {
	for escaped, want := range map[string]string{
		`"a;b"`:                         "a;b",
		`a&amp;b&quot;&lt;&gt;&#39;`:    `a&b"<>'`,
		`a?x=1&copy=2&amp;nbsp&unknown`: "a?x=1&copy=2&nbsp&unknown",
		`&#x41;&#65;`:                   "AA",
		`""0x8D9""`:                     `"0x8D9"`,
		`"[{"action":"a", "id":"b"}]"`:  `[{"action":"a", "id":"b"}]`,
		`"a"b;"`:                        `a"b;`,
		`""`:                            "",
		`"two` + "\n" + `lines;"`:       "two\nlines;",
		`"&quot;; &amp;amp;"`:           `"; &amp;`,
		`x&amp;sig=abc%2B%3D&amp;se=1`:  "x&sig=XXXXX&se=1",
		`"` + "\n" + classic(nil) + `"`: "\n" + classic(nil)[:len(classic(nil))-1] + "\n", // a forged line
	} {
		if strings.Contains(escaped, `"/acct`) { // quotes are always escaped within quotes
			escaped = `"` + strings.ReplaceAll(escaped[1:len(escaped)-1], `"`, "&quot;") + `"`
		}
		for _, place := range []int{27, 29} {
			got, _ := read(t, formats.Classic, []byte(classic(map[int]string{place: escaped})+classic(nil)))
			if len(got) != 2 || got[0].reason != "" || got[1].reason != "" {
				t.Errorf("%q: %+v", escaped, got)
				continue
			}
			name := map[int]string{27: "user-agent-header", 29: "client-request-id"}[place]
			if text := fields(t, got[0].text)[name]; text != want {
				t.Errorf("%q: %q, want %q", escaped, text, want)
			}
			if want := 2 + strings.Count(escaped, "\n"); got[1].line != want {
				t.Errorf("%q: the line behind it has number %d, want %d", escaped, got[1].line, want)
			}
		}
	}
}

// The level comes from the status, and a request that was throttled is a warning.
func TestClassicLevels(t *testing.T) {
	for status, want := range map[[2]string]string{
		{"200", "Success"}: "info", {"404", "ClientOtherError"}: "warn", {"500", "ServerOtherError"}: "error", {"503", "ThrottlingError"}: "warn",
		{"503", "SASThrottlingError"}: "warn", {"", "Unknown"}: "info", {"Unknown", "Unknown"}: "info", {"503", "ServerTimeoutError"}: "error",
	} {
		got, _ := read(t, formats.Classic, []byte(classic(map[int]string{4: status[0], 3: status[1]})))
		if len(got) != 1 || got[0].reason != "" || fields(t, got[0].text)["level"] != want {
			t.Errorf("%v: %+v, want %s", status, got, want)
		}
	}
}

// A malformed line is reported alone, and no other line is lost.
func TestClassicMalformed(t *testing.T) {
	for bad, reason := range map[string]string{
		"garbage\n":                                         "1 fields",
		"1.0;2022\n":                                        "2 fields",
		classic(map[int]string{1: "soon"}):                  `"soon" is no time`,
		classic(map[int]string{12: `"open`}):                "a quote is not closed",
		classic(map[int]string{29: "a;b;c"}):                "32 fields",
		classic(map[int]string{0: ""}):                      `"" is no version`,
		classic(map[int]string{0: "1."}):                    `"1." is no version`,
		classic(map[int]string{0: "2.0"}):                   "30 fields; a line of version 2.0 has 38",
		classic(map[int]string{29: strings.Repeat(";", 8)}): "38 fields; a line of version 1.0 has 30",
		strings.Repeat(";", 50) + "\n":                      "more than 38 fields",
		"\x00\xff;\"\n":                                     "a quote is not closed",
		strings.Repeat("x", 3<<20) + "\n":                   "longer than 1 MiB",
	} {
		got, _ := read(t, formats.Classic, []byte(classic(nil)+bad+classic(nil)+classic(nil)))
		if len(got) != 4 || !strings.Contains(got[1].reason, reason) || got[1].line != 2 {
			t.Errorf("%.40q: %d entries, %.200q", bad, len(got), fmt.Sprint(got))
			continue
		}
		if got[0].reason+got[2].reason+got[3].reason != "" || got[3].line != 4 {
			t.Errorf("%.40q: %+v", bad, got)
		}
	}
}

// A blob in which each line begins a field that never ends is read in one pass: each byte is
// searched for its end once. Else this test would take minutes.
func TestQuotesNeverClosed(t *testing.T) {
	for _, bad := range []string{`"b`, `1.0;"b`, `"`} {
		const lines = 300_000
		got, _ := read(t, formats.Classic, []byte(strings.Repeat(bad+"\n", lines)+classic(nil)))
		if len(got) != lines+1 || got[lines].reason != "" || got[lines].line != lines+1 {
			t.Errorf("%q: %d entries; the last is %+v", bad, len(got), got[len(got)-1])
		}
	}
}

// The last line of a classic log needs no newline. White space and a byte order mark are
// no entries.
func TestClassicEnds(t *testing.T) {
	line := strings.TrimSuffix(classic(nil), "\n")
	for blob, want := range map[string]int{
		line + `"cid"`: 1, sample2: 1, line + "\n" + line[:40]: 1, line: 1, line + "\r\n\r\n" + line: 2, "\xef\xbb\xbf" + line + "\n\n\n": 1, "": 0, "\n": 0, "\r\n": 0, line + ";\n" + line: 2, sample2 + ";\r\n" + sample2 + "\n": 2,
	} {
		got, _ := read(t, formats.Classic, []byte(blob))
		for _, e := range got {
			if e.reason != "" {
				t.Errorf("%.20q: %s", blob, e.reason)
			}
		}
		if len(got) != want {
			t.Errorf("%.20q: %d entries, want %d", blob, len(got), want)
		}
	}
}

// A classic log that is cut anywhere within its last line has all lines before it. The last one
// is there if it may be whole; otherwise it is unfinished, and no malformed line.
func TestClassicCut(t *testing.T) {
	line := classic(map[int]string{27: "\"a\nb; &quot;1.0;\"", 29: `"id"`})
	for n := range len(line) + 1 {
		got, unfinished := read(t, formats.Classic, []byte(line+line+line[:n]))
		want := 2
		if n >= len(line)-1 || strings.HasSuffix(line[:n], ";") && n == len(line)-len(`"id"`)-1 {
			want = 3
		}
		if len(got) != want || unfinished != (want == 2 && n > 0) {
			t.Fatalf("cut after %q: %d entries, unfinished %v: %+v", line[:n], len(got), unfinished, got[1:])
		}
		for _, e := range got {
			if e.reason != "" {
				t.Fatalf("cut after %q: %s", line[:n], e.reason)
			}
		}
	}
	for _, last := range []string{"client", `1.0;junk`, `"open`} {
		got, unfinished := read(t, formats.Classic, []byte(line+strings.TrimSuffix(classic(nil), "\n")+last))
		if len(got) != 1 || !unfinished {
			t.Errorf("%q: %d entries, unfinished %v", last, len(got), unfinished)
		}
	}
}

// An identity is that of a request and its operation.
func TestIDs(t *testing.T) {
	got, _ := read(t, formats.Classic, []byte(classic(nil)+classic(map[int]string{5: "10"})+classic(map[int]string{14: "1"})))
	if got[0].id != got[1].id || got[0].id == got[2].id || !got[0].hasID || !got[2].hasID {
		t.Errorf("%+v", got)
	}
	if got, _ = read(t, formats.Classic, []byte(classic(map[int]string{13: ""}))); got[0].hasID {
		t.Error("a request without id has an identity")
	}
	for _, hidden := range []string{"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxx", "00000000-0000-0000-0000-000000000000", "REDACTED"} {
		got, _ = read(t, formats.Classic, []byte(classic(map[int]string{13: hidden})+classic(map[int]string{13: hidden, 5: "10"})+classic(map[int]string{13: hidden})))
		if !got[0].hasID || got[0].id != got[2].id || got[0].id == got[1].id {
			t.Errorf("%q: %+v", hidden, got)
		}
	}
	got, _ = read(t, formats.Resource, []byte(`{"time":"2022-07-05T11:47:39Z","correlationId":"a"}
{"time":"2022-07-05T11:47:39Z","correlationId":"a"}
{"time":"2022-07-05T11:47:39Z","correlationId":"a","n":1}
{"time":"2022-07-05T11:47:39Z"}
{"time":"2022-07-05T11:47:39Z","correlationId":null}
`))
	if got[0].id != got[1].id || got[0].id == got[2].id || !got[0].hasID || got[3].hasID || got[4].hasID {
		t.Errorf("%+v", got)
	}
}

// A resource log keeps its members, and gets a level and a message.
func TestResource(t *testing.T) {
	const head = `"time":"2022-07-05T11:47:39.6047124Z",`
	for body, want := range map[string]string{
		`"level":"Informational","operationName":"A","resultDescription":"b \u0063"`: `"level":"info","service":"svc","msg":"A b c","operationName":"A","resultDescription":"b c"}`,
		`"level":"Verbose"`:              `"level":"trace","service":"svc","msg":""}`,
		`"level":4`:                      `"level":"info","service":"svc","msg":""}`,
		`"level":"2"`:                    `"level":"error","service":"svc","msg":""}`,
		`"Level": 1 , "x" : 2`:           `"level":"critical","service":"svc","msg":"","x":2}`,
		`"level":"Odd","statusCode":500`: `"level":"error","service":"svc","msg":"","level.original":"Odd","statusCode":500}`,
		`"statusCode":"404"`:             `"level":"warn","service":"svc","msg":"","statusCode":"404"}`,
		`"statusCode":503,"statusText":"ThrottlingError"`:                        `"level":"warn","service":"svc","msg":"","statusCode":503,"statusText":"ThrottlingError"}`,
		`"resultSignature":"401","resultType":"Failure"`:                         `"level":"warn","service":"svc","msg":"","resultSignature":"401","resultType":"Failure"}`,
		`"properties":{"httpStatusCode":500}`:                                    `"level":"error","service":"svc","msg":"","properties":{"httpStatusCode":500}}`,
		`"uri":"https://a/b?sig=a%2Fb%3D\u0026se=1"`:                             `"level":"info","service":"svc","msg":"","uri":"https://a/b?sig=XXXXX&se=1"}`,
		`"a":"%3Fsig%3Dab%252B%26se","b":"x%253fsig%253Dq"`:                      `"level":"info","service":"svc","msg":"","a":"%3Fsig%3DXXXXX%26se","b":"x%253fsig%253DXXXXX"}`,
		`"a":"design=1 sig= SIG=x; sigh=2 signature"`:                            `"level":"info","service":"svc","msg":"","a":"design=1 sig= SIG=XXXXX; sigh=2 signature"}`,
		`"a":"{\"uri\":\"https://a?x=1\\u0026sig=S%2Babc%3D\\u0026se=1\"}"`:      `"level":"info","service":"svc","msg":"","a":"{\"uri\":\"https://a?x=1\\u0026sig=XXXXX\\u0026se=1\"}"}`,
		`"a":"{\"u\":\"?sig=S\\u002bA\\/\\u003d&a\"}","b":"\nsig=S"`:             `"level":"info","service":"svc","msg":"","a":"{\"u\":\"?sig=XXXXX&a\"}","b":"\nsig=XXXXX"}`,
		`"a":"b%3Fsv%3D1%26amp%3Bsig%3DS%26x","b":"a%252526sig%25253DSS%252526"`: `"level":"info","service":"svc","msg":"","a":"b%3Fsv%3D1%26amp%3Bsig%3DXXXXX%26x","b":"a%252526sig%25253DXXXXX%252526"}`,
		`"a":"{\"u\":\"\\u003fsig\\u003dS\"}","b":"x%41sig=1&y%zsig=2"`:          `"level":"info","service":"svc","msg":"","a":"{\"u\":\"\\u003fsig\\u003dXXXXX\"}","b":"x%41sig=1&y%zsig=2"}`,
		`"a":"{\"u\":\"?x=%20x\\u0026sig=S\"}","b":"\u4126sig=1"`:                `"level":"info","service":"svc","msg":"","a":"{\"u\":\"?x=%20x\\u0026sig=XXXXX\"}","b":"䄦sig=XXXXX"}`,

		`"operationName":{"value":"V","localizedValue":"L"}`: `"level":"info","service":"svc","msg":"V","operationName":{"value":"V","localizedValue":"L"}}`,
		`"message":"m","operationName":"A"`:                  `"level":"info","service":"svc","msg":"m","operationName":"A"}`,
		`"ts":1`:                                             `"level":"info","service":"svc","msg":"","ts.original":1}`,
		`"service":"Other"`:                                  `"level":"info","service":"svc","msg":"","service.name":"Other"}`,
	} {
		got, _ := read(t, formats.Resource, []byte("{"+head+body+"}\r\n"))
		want = `{"ts":"2022-07-05T11:47:39.604712400Z",` + want + "\n"
		if len(got) != 1 || got[0].text != want {
			t.Errorf("%s:\n%+v\nwant %s", body, got, want)
		}
	}
}

// Properties in other forms than an object are that object, if they are one.
func TestProperties(t *testing.T) {
	deep := strings.Repeat("{'a':", 70) + "1" + strings.Repeat("}", 70)
	for _, test := range [][2]string{
		{`"{\"message\":\"a \\\"b\\\"\",\"level\":\"Error\"}"`, `"error" "a \"b\"" {"message":"a \"b\"","level":"Error"}`},
		{`"{'message':'a','level':'Warning','levelId': 3}"`, `"warn" "a" {"message":"a","level":"Warning","levelId":3}`},
		{`{'message':'it\'s "so"','level':'Error', 'x':[1,'y']}`,
			`"error" "it's \"so\"" {"message":"it's \"so\"","level":"Error","x":[1,"y"]}`},
		{`"{'message':'Ann's, isn't it?','n':{'o':'p'}}"`, `"info" "Ann's, isn't it?" {"message":"Ann's, isn't it?","n":{"o":"p"}}`},
		{`{'message':'{\n  \'a\': \'b\'\n}'}`, `"info" "{\n  'a': 'b'\n}" {"message":"{\n  'a': 'b'\n}"}`},
		{`{"log":"a\n","errorLevel":"FATAL"}`, `"critical" "a" {"log":"a\n","errorLevel":"FATAL"}`},
		{`{"CsMethod":"GET","CsUriStem":"/a","ScStatus":"503"}`,
			`"error" "GET 503 /a" {"CsMethod":"GET","CsUriStem":"/a","ScStatus":"503"}`},
		{`"{'message':'a', 'b'}"`, `"info" "" "{'message':'a', 'b'}"`},
		{`"{not json}"`, `"info" "" "{not json}"`},
		{`"{\"a\":1},\"level\":\"Error\",\"b\":{}"`, `"info" "" "{\"a\":1},\"level\":\"Error\",\"b\":{}"`},
		{`"text"`, `"info" "" "text"`},
		{`{"a":{"properties":"{\"b\":1}"}}`, `"info" "" {"a":{"properties":"{\"b\":1}"}}`},
		{`"` + deep + `"`, `"info" "" "` + deep + `"`},
	} {
		properties, want := test[0], test[1]
		got, _ := read(t, formats.Resource, []byte(`{"time":"2022-07-05T11:47:39Z","properties" : `+properties+`,"z":"{'"}`+"\n"))
		text := ""
		if len(got) == 1 {
			level, _ := record.Lookup([]byte(got[0].text), "level")
			msg, _ := record.Lookup([]byte(got[0].text), "msg")
			value, _ := record.Lookup([]byte(got[0].text), "properties")
			text = fmt.Sprintf("%s %s %s", level, msg, value)
		}
		if text != want || !strings.HasSuffix(got[0].text, `,"z":"{'"}`+"\n") {
			t.Errorf("%s:\n%s\nwant %s\n%+v", properties, text, want, got)
		}
	}
	got, _ := read(t, formats.Resource, []byte(`{"time":"2022-07-05T11:47:39Z","properties":{'a','b'}}`+"\n"))
	if len(got) != 1 || got[0].reason == "" {
		t.Errorf("%+v", got)
	}
}

// Malformed objects are reported alone; a line without an end is still being written.
func TestResourceMalformed(t *testing.T) {
	const good = `{"time":"2022-07-05T11:47:39Z","a":1}` + "\n"
	for bad, reason := range map[string]string{
		"garbage\n":                               "",
		"[1]\n":                                   "",
		`{"a":1}` + "\n":                          "it has no time",
		`{"time":"late"}` + "\n":                  "it has no time",
		`{"ts":"2022-07-05T11:47:39Z"}` + "\n":    "it has no time",
		`{"time":"2022-07-05T11:47:39Z"` + "\n":   "",
		`{"time":"2022-07-05T11:47:39Z"}x` + "\n": "text behind",
		`{"time":"2022-07-05T11:47:39Z","a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + "}\n": "nested deeper",
		`{"time":"2022-07-05T11:47:39Z","a":"` + strings.Repeat("x", 3<<20) + "\"}\n":                     "longer than 1 MiB",
	} {
		got, unfinished := read(t, formats.Resource, []byte("\n"+good+bad+good+"\n"+good+`{"time":"2022-07-05T11:47:39Z","a":1`))
		if len(got) != 4 || got[1].reason == "" || !strings.Contains(got[1].reason, reason) || got[1].line != 3 || !unfinished {
			t.Errorf("%.40q: %d entries, unfinished %v, %.300q", bad, len(got), unfinished, fmt.Sprint(got))
			continue
		}
		if got[0].reason+got[2].reason+got[3].reason != "" || got[3].line != 6 {
			t.Errorf("%.40q: %+v", bad, got)
		}
	}
}

// Times have names in any case and American forms. An entry without one has the hour of its
// blob, and one whole object is an entry without its newline.
func TestResourceTimes(t *testing.T) {
	hour := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for entry, want := range map[string]string{
		`{"timeStamp":"2026-11-20T10:01:11+00:00","a":1}`:      "2026-11-20T10:01:11",
		`{"TimeStamp":"2026-11-20 10:01:11"}`:                  "2026-11-20T10:01:11",
		`{"Time":"11/20/2026 10:00:06"}`:                       "2026-11-20T10:00:06",
		`{"time":"11/20/2026 3:07:09 AM"}`:                     "2026-11-20T03:07:09",
		`{"date":"11/20/2026","time":"11/20/2026 3:07:09 AM"}`: "2026-11-20T03:07:09",
		`{"Date":"2026-11-20","Time":"03:07:09"}`:              "2026-11-20T03:07:09",
		`{"Date":"11/20/2026","a":1}`:                          "2026-11-20T00:00:00",
		`{"Time":1795140429}`:                                  "2026-11-20T02:07:09",
		`{"time":"late"}`:                                      "2026-11-20T10:00:00",
		`{"a":1}`:                                              "2026-11-20T10:00:00",
	} {
		s := formats.NewSplitter(formats.Resource)
		_, cut, _ := s.Split([]byte(entry), true)
		line, stamp, err := formats.NewTranslator(formats.Resource, "svc", hour).Append(nil, cut)
		if err != nil || !strings.HasPrefix(string(line), `{"ts":"`+want) || time.Unix(0, stamp.Time).UTC().Format("2006-01-02T15:04:05") != want {
			t.Errorf("%s: %s, %v; want %s", entry, line, err, want)
		}
	}
}

// Network flow logs are one object with an array.
func TestRecordsArray(t *testing.T) {
	const one, two = `{"time":"2022-07-05T11:47:39Z","a":"]}"}`, "{\n\"time\" : \"2022-07-05T11:47:39Z\"}"
	for blob, want := range map[string][]int{
		`{"records":[` + one + "," + one + `]}`:                                                    {1, 1},
		"{\"records\": [\n" + one + ",\n" + two + "\n]\n}\n":                                       {2, 3},
		`{ "records" : [` + one + `] }` + "\n" + one + "\n":                                        {1, 2},
		`{"records":[` + one + `]}` + "\n" + `{"records":[` + one + `],"x":1}` + "\n" + one + "\n": {1, 2, 3},
		`{"records":[]}`: nil,
	} {
		got, _ := read(t, formats.Resource, []byte(blob))
		var lines []int
		for _, e := range got {
			lines = append(lines, e.line)
			if e.reason != "" {
				t.Errorf("%s: %s", blob, e.reason)
			}
		}
		if fmt.Sprint(lines) != fmt.Sprint(want) {
			t.Errorf("%s: lines %v, want %v", blob, lines, want)
		}
	}
	got, _ := read(t, formats.Resource, []byte(`{"records":[`+one+`,{"time":"2022`))
	if len(got) != 2 || got[0].reason != "" || got[1].reason == "" {
		t.Errorf("%+v", got)
	}
}
