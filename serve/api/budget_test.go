package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"blobtail/internal/budget"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/door"
	"blobtail/reading/readingtest"
)

// allocated is how many bytes the process has allocated.
func allocated() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// longLines are a house with records of 200 KB.
func longLines(t *testing.T, n int) *readingtest.House {
	h := readingtest.New(t, 1)
	for i := 0; i < n; i += 20 {
		var lines []readingtest.Line
		for j := range 20 {
			lines = append(lines, readingtest.Line{Time: then.Add(time.Duration(i+j) * time.Second), Service: "web", Msg: fmt.Sprint(i+j, " ", strings.Repeat("x", 200_000)), Fields: `"n":1`})
		}
		h.Send(0, lines...)
	}
	h.Flush()
	return h
}

// A request that would make more than it may is refused with both figures, and little memory is
// used.
func TestMadeTooMuch(t *testing.T) {
	testkit.FullOnly(t, "it makes many bytes, and counts them")
	const most = 8 << 20
	h := longLines(t, 60)
	s := serveWithin(t, h, 0, door.ReadsOptions{Made: budget.Limits{Query: most, Sure: 1 << 20}})
	ids, _ := idsOf(s.events("records?service=web&form=events&fields=n&limit=30"))
	fields := strings.TrimSuffix(strings.Repeat("msg,", 1500), ",")
	for _, path := range []string{
		"records?service=web&fields=" + fields, "records?service=web&form=csv&fields=" + fields, "records?service=web&order=desc&fields=" + fields, "records?service=web&form=events&fields=" + fields,
		"context?service=web&before=50&after=50&id=" + ids[0],
		"records?service=web&where=" + url.QueryEscape(`reduce(1..40, #acc + #acc, msg) == "x"`), "count?service=web&where=" + url.QueryEscape(`replace(msg, "", msg) == "x"`),
		"facets?service=web&where=" + url.QueryEscape(`join(split(msg, ""), msg) == "x"`), "histogram?service=web&where=" + url.QueryEscape(`toJSON(map(1..1000, msg + "")) == ""`),
		"count?service=web" + strings.Repeat("&expr="+url.QueryEscape(`^`+strings.Repeat("(", 400)+`[\pL\pN]`+strings.Repeat(")", 400)+`$`), 8),
		"count?logql=" + url.QueryEscape(`{service="web"} | line_format "`+strings.Repeat("{{$a:=repeat 1000000 `x`}}", 50)+`z" |= "q"`),
	} {
		before := allocated()
		a := s.get(path)
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, "limit: 8MiB") {
			t.Errorf("%.80s: %d %.300s", path, a.status, a.body)
		}
		if made := allocated() - before; made > 40*most {
			t.Errorf("%.80s makes %d bytes", path, made)
		}
	}
}

// Long lines come whole, in each order and form, with a budget for few of them.
func TestLongLines(t *testing.T) {
	testkit.FullOnly(t, "it makes many bytes, and counts them")
	const n = 100
	h := longLines(t, n)
	s := serveWithin(t, h, 0, door.ReadsOptions{Made: budget.Limits{Query: 4 << 20, Sure: 1 << 20}})
	for _, path := range []string{"records?service=web&limit=1000", "records?service=web&limit=1000&order=desc", "records?service=web&first=1000", "records?service=web&limit=0", "records?service=web&fields=ts,msg", "records?service=web&form=csv&fields=msg"} {
		a := s.get(path)
		want := n
		if strings.Contains(path, "csv") {
			want++
		}
		if a.status != http.StatusOK || strings.Count(a.body, "\n") != want || a.trailer.Get("Blobtail-Complete") != "1" {
			t.Errorf("%s: %d, %d lines, %v", path, a.status, strings.Count(a.body, "\n"), a.trailer)
		}
	}
	ids, _ := idsOf(s.events("records?service=web&form=events&limit=1000"))
	if len(ids) != n {
		t.Errorf("%d events", len(ids))
	}
	if a := s.get("context?service=web&before=3&after=3&id=" + ids[50]); a.status != http.StatusOK || strings.Count(a.body, "\n") != 8 {
		t.Errorf("context: %d %.200s", a.status, a.body)
	}
}

// A condition and an expression end with the time of their query: by a status of its own, or, once a
// stream has sent its header because a second is over, by a break.
func TestDeadlineOfFilters(t *testing.T) {
	testkit.FullOnly(t, "expressions that work as long as they can")
	h := longLines(t, 20)
	s := serveWithin(t, h, 0, door.ReadsOptions{Deadline: 300 * time.Millisecond})
	for _, path := range []string{
		"count?service=web&where=" + url.QueryEscape(`let r = 1..1000; all(r, all(r, all(r, all(r, # > 0 and n > 0))))`),
		"records?service=web&where=" + url.QueryEscape(`msg matches "`+strings.Repeat("x*", 5000)+`b$"`),
		"count?service=web&expr=" + url.QueryEscape(strings.Repeat("x*", 5000)+"[bc]"),
	} {
		begun := time.Now()
		a := s.get(path)
		ended := a.status == http.StatusGatewayTimeout || a.status == http.StatusOK && a.err != nil
		if took := time.Since(begun); !ended || took > 20*time.Second {
			t.Errorf("%.80s: %d after %v, %.200s", path, a.status, took, a.body)
		}
	}
}
