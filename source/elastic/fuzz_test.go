package elastic_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"blobtail/source/elastic"
	"blobtail/source/sourcetest"
)

// FuzzBulk sends any body. The answer is JSON. Each line that is not empty is an action with
// an item, or a document, or a dead letter.
func FuzzBulk(f *testing.F) {
	for _, s := range []string{
		"{\"index\":{\"_index\":\"a\",\"_id\":\"1\"}}\n{\"a\":1}\r\n\n{\"index\":{\"_index\":\"a\",\"_id\":\"2\"}}\n{\"b\":",
		"{\"delete\":{\"_id\":7}}\n{\"update\":{}}\n{\"doc\":{\"service\":{\"name\":\"x\"},\"log\":{\"level\":\"error\"}}}\n{\"create\":{}}",
		"\xef\xbb\xbf{\"create\":{\"_index\":\"\\u0000\\\"\xff\"}}\n[1]\n{\"x\":{}}\n \t\r\n{\"create\":{\"_id\":\"1\",\"_id\":\"2\"}}\n{}{}",
	} {
		f.Add([]byte(s), "errors,items.*.status")
		f.Add([]byte(s), "")
	}
	p := elastic.New(elastic.Options{})
	f.Fuzz(func(t *testing.T, body []byte, filter string) {
		m := &sourcetest.Log{}
		s := m.Source(p)
		w := do(t, s, http.MethodPost, "/logs/_bulk", string(body))
		if !json.Valid(w.Body.Bytes()) || !utf8.Valid(w.Body.Bytes()) {
			t.Fatalf("answer %q", w.Body)
		}
		lines := 0
		for _, line := range strings.Split(strings.TrimPrefix(string(body), "\xef\xbb\xbf"), "\n") {
			if strings.Trim(line, " \t\r") != "" {
				lines++
			}
		}
		switch w.Code {
		case http.StatusOK:
			items := itemsOf(t, w)
			// A last action without a document is one line, one item and one dead letter.
			if n := len(items) + len(m.Lines()); n != lines && n != lines+1 {
				t.Fatalf("%d items and %d lines of %d lines", len(items), len(m.Lines()), lines)
			}
		case http.StatusBadRequest:
			if len(m.Lines()) != lines {
				t.Fatalf("%d dead letters of %d lines", len(m.Lines()), lines)
			}
		default:
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		again := &sourcetest.Log{}
		r := do(t, again.Source(p), http.MethodPost, "/logs/_bulk?filter_path="+escape(filter), string(body))
		if r.Code != w.Code || !json.Valid(r.Body.Bytes()) || !slices.Equal(m.Lines(), again.Lines()) {
			t.Fatalf("filtered %d %s", r.Code, r.Body)
		}
	})
}

// escape escapes a parameter.
func escape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteString("%" + string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]))
	}
	return b.String()
}
