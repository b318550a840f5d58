package elastic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"blobtail/record"
	"blobtail/source/sourcetest"
)

const doc = `{"@timestamp":"2026-11-24T10:00:00.5Z","message":"m"}` + "\n"

// brief is a line as service, message, and whether it is a dead letter with a reason.
func brief(lines []map[string]any) (all []string) {
	for _, l := range lines {
		if l["service"] == record.RejectedService {
			all = append(all, fmt.Sprintf("rejected %s: %s", l["msg"], l["reason"]))
		} else {
			all = append(all, fmt.Sprintf("%s %s", l["service"], l["msg"]))
		}
	}
	return all
}

// briefItems are items as action, index, id and status.
func briefItems(items []item) (all []string) {
	for _, i := range items {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s %d", i.action, i.Index, i.ID, i.Status)))
	}
	return all
}

// TestActions sends bodies of any kind. The id of an item that the sender gave none is left
// out of want.
func TestActions(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`
	const noAction = `no action: want a line such as {"create":{}} or {"index":{}} before each document`
	for _, row := range []struct {
		name, path, body string
		items, lines     []string
	}{
		{"all kinds", "/a/_bulk", `{"index":{"_id":"1"}}` + "\n" + doc + `{"delete":{"_index":"b","_id":"2"}}` + "\n" + `{"create":{"_index":"c","_id":"3"}}` + "\n" + doc +
			`{"update":{"_id":"4"}}` + "\n" + `{"doc":{"@timestamp":"2026-11-24T10:00:00Z","message":"new"},"doc_as_upsert":true}` + "\n",
			[]string{"index a 1 201", "delete b 2 200", "create c 3 201", "update a 4 201"}, []string{"a m", "c m", "a new"}},
		{"update with an upsert", "/a/_bulk", `{"update":{"_id":"4"}}` + "\n" + `{"script":{"source":"x"},"upsert":{"message":"up"}}` + "\n",
			[]string{"update a 4 201"}, []string{"a up"}},
		{"doc comes before upsert", "/a/_bulk", `{"update":{"_id":"4"}}` + "\n" + `{"upsert":{"message":"up"},"doc":{"message":"new"}}` + "\n",
			[]string{"update a 4 201"}, []string{"a new"}},
		{"update by a script", "/a/_bulk", `{"update":{"_id":"4"}}` + "\n" + `{"script":"x"}` + "\n",
			[]string{"update a 4 201"}, []string{`rejected {"script":"x"}: no document in an update: want {"doc":{...}} or {"upsert":{...}}`}},
		{"update with a document that is none", "/a/_bulk", `{"update":{"_id":"4"}}` + "\n" + `{"doc":[1]}` + "\n",
			[]string{"update a 4 201"}, []string{`rejected {"doc":[1]}: at byte 0: not valid JSON: character '[' at the beginning of an object`}},
		{"no index at all", "/_bulk", `{"create":{}}` + "\n" + doc, []string{"create   201"}, []string{"unknown m"}},
		{"the document's service", "/a/_bulk", `{"create":{}}` + "\n" + `{"service":"S","message":"m"}` + "\n" + `{"create":{}}` + "\n" + doc,
			[]string{"create a  201", "create a  201"}, []string{"s m", "a m"}},
		{"empty lines and carriage returns", "/a/_bulk", "\n\r\n" + `{"create":{}}` + "\r\n\r\n \t\n" + strings.TrimSpace(doc) + "\r\n\n  " + `{"create":{}}` + "  \n" + doc,
			[]string{"create a  201", "create a  201"}, []string{"a m", "a m"}},
		{"a byte order mark, and no line feed at the end", "/a/_bulk", "\xef\xbb\xbf" + `{"create":{}}` + "\n" + strings.TrimSpace(doc), []string{"create a  201"}, []string{"a m"}},
		{"spaces and escapes", "/a/_bulk", ` { "cr\u0065ate" : { "_ind\u0065x" : "\u0062" , "_id" : "x\"y" , "routing": null, "dynamic_templates":{"_id":"z"} } } ` + "\n" + doc,
			[]string{`create b x"y 201`}, []string{"b m"}},
		{"a number as id", "/a/_bulk", `{"create":{"_id":17}}` + "\n" + doc, []string{"create a 17 201"}, []string{"a m"}},
		{"other ids", "/a/_bulk", `{"create":{"_id":null}}` + "\n" + doc + `{"create":{"_id":{"a":1}}}` + "\n" + doc + `{"create":{"_id":""}}` + "\n" + doc +
			`{"create":{"_id":"` + strings.Repeat("x", 513) + `"}}` + "\n" + doc,
			[]string{"create a  201", "create a  201", "create a  201", "create a  201"}, []string{"a m", "a m", "a m", "a m"}},
		{"ids that follow a form", "/a/_bulk", `{"index":{"_id":"1","_index":"b"}}` + "\n" + doc + `{"index":{"_id":"22","_index":"b"}}` + "\n" + doc +
			`{"index":{"_id":"3","_index":"c"}}` + "\n" + doc + `{"index":{"_id":"\u0034","_index":"b"}}` + "\n" + doc + `{"index":{"_id":"","_index":"b"}}` + "\n" + doc +
			`{"index":{"_id":"5","_id":"6","_index":"b"}}` + "\n" + doc + `{"index":{"_id":"1","_index":"b"}}` + "\n" + doc,
			[]string{"index b 1 201", "index b 22 201", "index c 3 201", "index b 4 201", "index b  201", "index b 5 201", "index b 1 201"},
			[]string{"b m", "b m", "c m", "b m", "b m", "b m", "b m"}},
		{"repeated keys in an action", "/a/_bulk", `{"create":{"_index":"b","_index":"c"}}` + "\n" + doc, []string{"create b  201"}, []string{"b m"}},

		{"no document at the end", "/a/_bulk", `{"create":{}}` + "\n" + doc + `{"index":{"_id":"9"}}` + "\n\n",
			[]string{"create a  201", "index a 9 201"}, []string{"a m", `rejected {"index":{"_id":"9"}}: the body ends before the document of this action`}},
		{"a document without an action", "/a/_bulk", `{"create":{}}` + "\n" + doc + `{"message":"lost"}` + "\n" + `{"create":{}}` + "\n" + doc,
			[]string{"create a  201", "create a  201"}, []string{"a m", "a m", `rejected {"message":"lost"}: ` + noAction}},
		{"an unknown action", "/a/_bulk", `{"upsert":{}}` + "\n" + `{"create":{}}` + "\n" + doc, []string{"create a  201"}, []string{"a m", `rejected {"upsert":{}}: ` + noAction}},
		{"two actions in a line", "/a/_bulk", `{"create":{},"index":{}}` + "\n" + `{"create":{}}` + "\n" + doc, []string{"create a  201"}, []string{"a m", `rejected {"create":{},"index":{}}: ` + noAction}},
		{"one action twice in a line", "/a/_bulk", `{"create":{},"create":{}}` + "\n" + `{"create":{}}` + "\n" + doc,
			[]string{"create a  201"}, []string{"a m", `rejected {"create":{},"create":{}}: ` + noAction}},
		{"members behind an action", "/a/_bulk", `{"index":{"_index":"b","pipeline":null},"attempts":3}` + "\n" + doc + `{"index":{"_index":"b","pipeline":null},"attempts":4}` + "\n" + doc,
			[]string{"index b  201", "index b  201"}, []string{"b m", "b m"}},
		{"members before an action", "/a/_bulk", `{"attempts":3,"index":{}}` + "\n" + `{"create":{}}` + "\n" + doc,
			[]string{"create a  201"}, []string{"a m", `rejected {"attempts":3,"index":{}}: ` + noAction}},
		{"no object in an action", "/a/_bulk", `{"create":null}` + "\n" + `{"create":{}}` + "\n" + doc, []string{"create a  201"}, []string{"a m", `rejected {"create":null}: ` + noAction}},
		{"text after an action", "/a/_bulk", `{"create":{}} x` + "\n" + `{"create":{}}` + "\n" + doc, []string{"create a  201"}, []string{"a m", `rejected {"create":{}} x: no action: at byte 13: text after it`}},
		{"broken documents", "/a/_bulk", `{"create":{}}` + "\n" + `{"message":"cut` + "\n" + `{"create":{}}` + "\n" + `[1]` + "\n" + `{"create":{}}` + "\n" + deep + "\n" + `{"create":{}}` + "\n" + `{} {}` + "\n",
			[]string{"create a  201", "create a  201", "create a  201", "create a  201"},
			[]string{`rejected {"message":"cut: at byte 15: not valid JSON: it ends too early`, `rejected [1]: at byte 0: not valid JSON: character '[' at the beginning of an object`,
				`rejected ` + deep + `: at byte 68: nested deeper than 64`, `rejected {} {}: text after the document; send one on a line`}},
		{"only deletes", "/a/_bulk", `{"delete":{"_id":"1"}}` + "\n" + `{"delete":{"_id":"2"}}` + "\n", []string{"delete a 1 200", "delete a 2 200"}, nil},
		{"deletes and noise", "/a/_bulk", `{"delete":{"_id":"1"}}` + "\nnoise\n", []string{"delete a 1 200"},
			[]string{"rejected noise: no action: at byte 0: not valid JSON: character 'n' at the beginning of an object"}},
		{"empty", "/a/_bulk", "", nil, nil},
		{"empty lines", "/a/_bulk", "\n\n", nil, nil},

		{"an index from elsewhere", "/_bulk", `{"create":{"_index":"../..//etc"}}` + "\n" + doc, []string{"create ../..//etc  201"}, []string{"etc m"}},
		{"control characters and quotes", "/_bulk", `{"create":{"_index":"a\u0000\"b\r\n\u001b[31m"}}` + "\n" + doc, []string{"create a\x00\"b\r\n\x1b[31m  201"}, []string{"a-b-31m m"}},
		{"not UTF-8", "/_bulk", "{\"create\":{\"_index\":\"a\xff\",\"_id\":\"\xfe\"}}\n" + doc, []string{`create a\xff \xfe 201`}, []string{"a m"}},
		{"a long index", "/_bulk", `{"create":{"_index":"` + strings.Repeat("x", 300) + `"}}` + "\n" + doc, []string{"create " + strings.Repeat("x", 255) + "  201"}, []string{strings.Repeat("x", 63) + " m"}},
		{"an escaped index in the path", "/%3Clogs-%7Bnow%2Fd%7D%3E/_bulk", `{"create":{}}` + "\n" + doc, []string{"create <logs-{now/d}>  201"}, []string{"logs m"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := &sourcetest.Log{}
			items := itemsOf(t, do(t, source(m), http.MethodPost, row.path, row.body))
			for i := range items {
				if items[i].ID == "" {
					t.Errorf("no id: %+v", items[i])
				}
				if !strings.Contains(row.body, items[i].ID) && !strings.ContainsAny(items[i].ID, `"\4`) || strings.Contains(items[i].ID, "-") {
					items[i].ID = ""
				}
			}
			if got := briefItems(items); !reflect.DeepEqual(got, row.items) {
				t.Errorf("items\n%q, want\n%q", got, row.items)
			}
			if got := brief(stored(t, m)); !reflect.DeepEqual(got, row.lines) {
				t.Errorf("lines\n%q, want\n%q", got, row.lines)
			}
		})
	}
}

func TestNothingReadable(t *testing.T) {
	for _, row := range []struct{ name, body string }{
		{"NDJSON without actions", `{"message":"a"}` + "\n" + `{"message":"b"}` + "\n"},
		{"text", "hello\nworld\n"},
		{"an array", `[{"message":"a"}]`},
		{"a long line", `{"create":{"_index":"` + strings.Repeat("x", 1<<20) + `"}}` + "\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := &sourcetest.Log{}
			w := do(t, source(m), http.MethodPost, "/a/_bulk", row.body)
			if e := errorOf(t, w.Body.Bytes()); w.Code != 400 || e.Status != 400 || e.Error.Type != "illegal_argument_exception" ||
				!strings.Contains(e.Error.Reason, "no action: ") || !strings.Contains(e.Error.Reason, "_rejected") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if n := strings.Count(strings.TrimSpace(row.body), "\n") + 1; len(m.Lines()) != n {
				t.Errorf("%d dead letters of %d lines", len(m.Lines()), n)
			}
		})
	}
}

type failure struct {
	Status int
	Error  struct {
		Type, Reason string
		RootCause    []struct{ Type, Reason string } `json:"root_cause"`
	}
}

// errorOf reads an error in the form of Elasticsearch.
func errorOf(t *testing.T, text []byte) (f failure) {
	t.Helper()
	if err := json.Unmarshal(text, &f); err != nil || len(f.Error.RootCause) != 1 || f.Error.RootCause[0].Reason != f.Error.Reason || f.Error.RootCause[0].Type != f.Error.Type {
		t.Fatalf("%v: %s", err, text)
	}
	return f
}

func TestRefusals(t *testing.T) {
	pair := `{"create":{}}` + "\n" + doc
	for _, row := range []struct {
		name, method, path, body, header string
		status                           int
		kind, allow                      string
	}{
		{"reading", "GET", "/_bulk", "", "", 405, "method_not_allowed_exception", "POST, PUT"},
		{"another charset", "POST", "/_bulk", pair, "Content-Type: application/json; charset=latin1", 415, "media_type_header_exception", ""},
		{"binary", "POST", "/_bulk", pair, "Content-Type: application/vnd.elasticsearch+cbor; compatible-with=8", 415, "media_type_header_exception", ""},
		{"unknown encoding", "POST", "/_bulk", pair, "Content-Encoding: br", 415, "media_type_header_exception", ""},
		{"broken encoding", "POST", "/_bulk", pair, "Content-Encoding: gzip", 400, "illegal_argument_exception", ""},
		{"too many lines", "POST", "/_bulk", strings.Repeat("{\"delete\":{}}\n", 2_000_001), "", 413, "content_too_long_exception", ""},
		{"search", "POST", "/logs/_search", "", "", 404, "resource_not_found_exception", ""},
		{"search everywhere", "GET", "/_search", "", "", 404, "resource_not_found_exception", ""},
		{"reading a document", "GET", "/logs/_doc/1", "", "", 404, "resource_not_found_exception", ""},
		{"no document", "POST", "/logs/_doc", "", "", 400, "illegal_argument_exception", ""},
		{"binary document", "POST", "/logs/_doc", "{}", "Content-Type: application/cbor", 415, "media_type_header_exception", ""},
		{"the root", "POST", "/", "{}", "", 405, "method_not_allowed_exception", "POST, PUT"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := &sourcetest.Log{}
			w := do(t, source(m), row.method, row.path, row.body, row.header)
			if e := errorOf(t, w.Body.Bytes()); w.Code != row.status || e.Status != row.status || e.Error.Type != row.kind || e.Error.Reason == "" {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if len(m.Lines()) > 0 {
				t.Errorf("stored %s", m.Lines())
			}
		})
	}
}

// rsyslog drops its records after any answer in JSON that has no items, and the official
// clients after 429.
func TestSendAgain(t *testing.T) {
	for _, why := range []error{record.ErrFull, record.ErrUnheld} {
		m := &sourcetest.Log{Err: why}
		w := do(t, source(m), "POST", "/_bulk", `{"create":{}}`+"\n"+doc, "")
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || w.Body.Len() == 0 || json.Valid(w.Body.Bytes()) {
			t.Errorf("%v: %d %v %s", why, w.Code, w.Header(), w.Body)
		}
	}
}

func TestEncodings(t *testing.T) {
	plain := `{"create":{"_index":"a"}}` + "\n" + doc
	for _, encoding := range []string{"", "gzip", "deflate", "snappy", "zstd"} {
		t.Run(encoding, func(t *testing.T) {
			m := &sourcetest.Log{}
			body := string(sourcetest.Encode(t, encoding, []byte(plain)))
			if got := briefItems(itemsOf(t, do(t, source(m), http.MethodPut, "/_bulk", body, "Content-Encoding: "+encoding))); len(got) != 1 {
				t.Errorf("items %q", got)
			}
			if got := brief(stored(t, m)); !reflect.DeepEqual(got, []string{"a m"}) {
				t.Errorf("lines %q", got)
			}
		})
	}
}

// A client that gets no answer sends the same body again.
func TestRepeat(t *testing.T) {
	m := &sourcetest.Log{}
	s := source(m)
	body := `{"create":{"_index":"a"}}` + "\n" + doc + "noise\n" + `{"index":{"_id":"1"}}` + "\n" + doc
	for range 2 {
		itemsOf(t, do(t, s, http.MethodPost, "/_bulk", body))
	}
	if n := m.Identities(); n != 3 || len(m.Lines()) != 6 {
		t.Errorf("%d records in %d lines", n, len(m.Lines()))
	}
	itemsOf(t, do(t, s, http.MethodPost, "/b/_bulk", body))
	if o := m.Origins(); len(o) != 3 || o[0] != o[1] || o[0].IsZero() || o[2] == o[0] {
		t.Errorf("origins %v", o)
	}
}

func TestFilterPath(t *testing.T) {
	body := `{"create":{"_index":"a","_id":"1"}}` + "\n" + doc + `{"delete":{"_index":"a","_id":"2"}}` + "\n"
	const items = `"items":[{"create":{"_index":"a","_id":"1","status":201}},{"delete":{"_index":"a","_id":"2","status":200}}]`
	const took = `"took":0`
	for _, row := range []struct{ filter, want string }{
		{"", `{` + took + `,"errors":false,` + items + `}`},
		{"errors,items.*.error,items.*.status", `{"errors":false,"items":[{"create":{"status":201}},{"delete":{"status":200}}]}`},
		{"errors,items.index.status,items.index.error,items.create.status,items.create.error", `{"errors":false,"items":[{"create":{"status":201}}]}`},
		{"items.*.error,took", `{` + took + `}`},
		{"errors", `{"errors":false}`},
		{"items.*.error", `{}`},
		{"items", `{` + items + `}`},
		{"items.*", `{` + items + `}`},
		{"items.**", `{` + items + `}`},
		{"**.status", `{"items":[{"create":{"status":201}},{"delete":{"status":200}}]}`},
		{"items.*._i*", `{"items":[{"create":{"_index":"a","_id":"1"}},{"delete":{"_index":"a","_id":"2"}}]}`},
		{"-items", `{` + took + `,"errors":false}`},
		{"items,-items.*._id,-items.delete", `{"items":[{"create":{"_index":"a","status":201}}]}`},
		{"t*,er*", `{` + took + `,"errors":false}`},
		{"took.x,errors.y,items.create.status.z", `{}`},
		{" errors , ,", `{"errors":false}`},
		{"[,items.*.[", `{}`},
		{strings.Repeat("**.", 9) + "status", `{` + took + `,"errors":false,` + items + `}`},
		{strings.Repeat("x,", 70), `{` + took + `,"errors":false,` + items + `}`},
	} {
		t.Run(row.filter, func(t *testing.T) {
			r := strings.NewReplacer("*", "%2A", " ", "+", "[", "%5B")
			w := do(t, source(&sourcetest.Log{}), http.MethodPost, "/_bulk?filter_path="+r.Replace(row.filter), body)
			got := w.Body.String()
			if i := strings.Index(got, `"took":`); i >= 0 { // milliseconds
				n := i + len(`"took":`)
				for n < len(got) && got[n] >= '0' && got[n] <= '9' {
					n++
				}
				got = got[:i] + took + got[n:]
			}
			if w.Code != 200 || got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// One document in a request is one record, as those of the official client of Node.
func TestDocuments(t *testing.T) {
	const header = "Content-Type: application/vnd.elasticsearch+json; compatible-with=9"
	const document = "{\"@timestamp\":\"2026-11-24T11:21:05.702Z\",\n\"level\":\"error\",\"message\":\"hello\"}\n"
	const answer = `{"_id":%q,"_index":"shop-2026.11.24","_primary_term":1,"_seq_no":0,` +
		`"_shards":{"failed":0,"successful":1,"total":1},"_version":1,"result":"created"}`
	for _, c := range []struct{ method, path, id string }{
		{"POST", "/shop-2026.11.24/_doc", ""},
		{"PUT", "/shop-2026.11.24/_doc/a%2F1", "a/1"},
		{"PUT", "/elasticsearch/shop-2026.11.24/_create/2", "2"},
	} {
		m := &sourcetest.Log{}
		w := do(t, source(m), c.method, c.path, document, header)
		var got struct {
			ID string `json:"_id"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 201 || w.Body.String() != fmt.Sprintf(answer, got.ID) ||
			got.ID == "" || c.id != "" && got.ID != c.id || w.Header().Get("X-Elastic-Product") == "" {
			t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
		want := `{"ts":"2026-11-24T11:21:05.702000000Z","level":"error","service":"shop","msg":"hello"}`
		if lines := m.Lines(); len(lines) != 1 || lines[0] != want {
			t.Errorf("%s %s: %s", c.method, c.path, lines)
		}
	}
	for _, c := range []struct{ name, document, reason string }{
		{"half a document", `{"a":1`, "it ends too early; nothing in the body could be read; its lines are kept in the service _rejected"},
		{"null", "null", "not a JSON object; it is kept in the service _rejected"},
		{"a long one", `{"message":"` + strings.Repeat("x", 1<<20) + `"}`, "longer than 1 MiB; it is kept in the service _rejected"},
	} {
		m := &sourcetest.Log{}
		s := source(m)
		for range 2 {
			w := do(t, s, "POST", "/shop/_doc", c.document, header)
			if e := errorOf(t, w.Body.Bytes()).Error; w.Code != 400 || !strings.HasSuffix(e.Reason, c.reason) {
				t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
			}
		}
		if m.Rejected() != 2 || len(m.Lines()) != 2 {
			t.Errorf("%s: %d records, %d rejected", c.name, len(m.Lines()), m.Rejected())
		}
	}
}
