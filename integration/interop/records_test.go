package interop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// A sent is a record that a client has to send. Clients read them as NDJSON.
type sent struct {
	// Mark names the record. Nothing else in any record looks like it.
	Mark string `json:"mark"`
	// N is its number, from 0.
	N int `json:"n"`
	// Nano is its time in ns of Unix time, as text: JavaScript has no such integers.
	Nano string `json:"nano"`
	// MS is its time in ms of Unix time, rounded down.
	MS int64 `json:"ms"`
	// Level is debug, info, warn or error.
	Level string `json:"level"`
	// Msg is its message.
	Msg string `json:"msg"`

	at int64 // ns of Unix time
}

// long is the length of the longest message, in bytes.
const long = 100 << 10

// records makes n records that end at a time. They are 13.001 ms apart, so that each has
// its own millisecond.
func records(n int, end time.Time, c *client) []sent {
	const apart = 13_001_000
	first := end.UnixNano() - int64(n)*apart
	out := make([]sent, n)
	for i := range out {
		r := &out[i]
		r.Mark, r.N = fmt.Sprintf("mark-%06d", i), i
		r.at = first/1e6*1e6 + int64(i)*apart + 7*int64(i%50)
		r.Nano, r.MS = fmt.Sprint(r.at), r.at/1e6
		r.Level = [...]string{"info", "debug", "warn", "error", "info"}[i%5]
		r.Msg = message(i, n)
		if c.oneLine {
			r.Msg = strings.NewReplacer("\n", " ", "\t", " ").Replace(r.Msg)
		}
		if c.maxLen > 0 && len(r.Msg) > c.maxLen {
			r.Msg = r.Msg[:c.maxLen]
		}
		if c.textOnly {
			r.Msg = strings.TrimSpace(r.Mark + " " + r.Msg)
		}
	}
	return out
}

// message returns the text of a record. Every fiftieth is one of those that clients and
// servers get wrong.
func message(i, n int) string {
	if i == n/2 {
		return strings.Repeat("0123456789abcdef", long/16)
	}
	switch i % 50 {
	case 3:
		return "Grüße an die Welt, 世界, 👋🏽, e\u0301"
	case 8:
		return `{"level":"fatal","msg":"not a record of its own","a":[1,2]}`
	case 13:
		return `he said "no", 'maybe' and <b>&amp;</b>`
	case 18:
		return "  two spaces, and \x1b[31mred\x1b[0m  "
	case 23:
		return "java.lang.IllegalStateException: no\n\tat com.shop.Cart.add(Cart.java:7)\nCaused by: nothing"
	case 33:
		return `C:\new\table \\server \u0041 %d $(x) {} {{a}}`
	case 43:
		return ""
	}
	return fmt.Sprintf("GET /basket/%d answered 200 in %d ms", i*7, i%90)
}

// markPattern finds the marks in a text.
func markPattern() *regexp.Regexp { return regexp.MustCompile(`mark-\d{6}`) }

// marksIn returns the marks in a text, each once.
func marksIn(text []byte) map[string]bool {
	found := map[string]bool{}
	for _, m := range markPattern().FindAll(text, -1) {
		found[string(m)] = true
	}
	return found
}

// ndjson returns the records in the form that clients read.
func ndjson(rs []sent) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for _, r := range rs {
		_ = e.Encode(r) // strings and numbers have a form in JSON
	}
	return b.Bytes()
}
