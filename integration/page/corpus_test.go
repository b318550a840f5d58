package page_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// shop makes records of the services of a shop, always the same but for their times.
type shop struct {
	lines bytes.Buffer
	from  time.Time
	step  time.Duration
	left  int
	made  int // by next
	all   int
	rand  *rand.Rand

	byService, byLevel, byStatus map[string]int
}

func newShop(records int, from time.Time, over time.Duration) *shop {
	return &shop{from: from, step: over / time.Duration(records), left: records, rand: rand.New(rand.NewPCG(1, 2)),
		byService: map[string]int{}, byLevel: map[string]int{}, byStatus: map[string]int{}}
}

// next adds a record. Four neighbours are of one request.
func (s *shop) next() bool {
	if s.left == 0 {
		return false
	}
	n := s.made
	s.left, s.made = s.left-1, s.made+1
	at := s.from.Add(time.Duration(n) * s.step)
	service, level, status := "web", "info", 200
	switch k := s.rand.IntN(20); {
	case k < 4:
		service = "orders"
	case k < 7:
		service = "db"
	case k < 9:
		service = "auth"
	case k < 10:
		service = "cron"
	}
	switch k := s.rand.IntN(100); {
	case k < 1:
		level, status = "critical", 503
	case k < 4:
		level, status = "error", 502
	case k < 10:
		level, status = "warn", 404
	case k < 20:
		level = "debug"
	}
	s.byStatus[fmt.Sprint(status)]++
	s.add(at, level, service, fmt.Sprintf(`"msg":"%s","status":%d,"path":"/%s","user":"u%d","took_ms":%d.5,"trace":"t%08x"`,
		s.message(service, n), status, []string{"basket", "login", "health", "search"}[s.rand.IntN(4)], s.rand.IntN(500), s.rand.IntN(900), n/4))
	return true
}

// add adds a record with further fields, and counts it.
func (s *shop) add(at time.Time, level, service, fields string) {
	s.all++
	s.byService[service]++
	s.byLevel[level]++
	fmt.Fprintf(&s.lines, `{"ts":"%s","level":"%s","service":"%s",%s}`+"\n", stamp(at), level, service, fields)
}

func (s *shop) message(service string, n int) string {
	switch service {
	case "orders":
		return fmt.Sprintf("order %d of customer %d is paid", n, s.rand.IntN(1000))
	case "db":
		return fmt.Sprintf("query took %d ms for %d rows", s.rand.IntN(300), s.rand.IntN(50))
	case "auth":
		return fmt.Sprintf("session %08x of 10.0.%d.%d begins", s.rand.Uint32(), s.rand.IntN(256), s.rand.IntN(256))
	case "cron":
		return fmt.Sprintf("job cleanup-%d has finished", s.rand.IntN(9))
	default:
		return fmt.Sprintf("GET /basket/%d answered in %d ms", n, s.rand.IntN(900))
	}
}

// tell adds what the records are to the facts of a world.
func (s *shop) tell(facts map[string]any) {
	facts["records"], facts["services"], facts["levels"], facts["status"] = s.all, s.byService, s.byLevel, s.byStatus
}

// hostileWorld has records that try to be more than text, or too much of it.
func hostileWorld(w *world) error {
	if err := w.ingest("--flush-size", "64MiB"); err != nil {
		return err
	}
	if err := w.serve(); err != nil {
		return err
	}
	now := time.Now().Add(-time.Minute)
	var lines bytes.Buffer
	n := 0
	add := func(service, rest string) {
		n++
		fmt.Fprintf(&lines, `{"ts":"%s","level":"info","service":"%s",%s}`+"\n", stamp(now.Add(time.Duration(n)*time.Millisecond)), service, rest)
	}
	for _, text := range []string{
		`<img src=x onerror=\"window.hacked=1\">`,
		`</script><script>window.hacked=1</script>`,
		`javascript:window.hacked=1`,
		`<a href=\"javascript:window.hacked=1\">click</a> http://127.0.0.1:1/x https://evil.example/?q=<b>`,
		`{{constructor.constructor('window.hacked=1')()}} ${window.hacked=1}`,
		`<style>*{display:none}</style><link rel=stylesheet href=//evil.example/x.css>`,
		`<svg/onload=window.hacked=1><iframe srcdoc=\"<script>parent.hacked=1</script>\">`,
		`user \u202Egnp.exe\u202C is \u2066here\u2069`,
		`nul \u0000 bell \u0007 del \u007f lone \ufffd end`,
		`\u001b[31mred\u001b[0m \u001b]8;;http://evil.example\u0007link\u001b]8;;\u0007 \u001b[2J\u001b[1;1H`,
		`line one\nline two\r\nline three\ttab`,
		`e` + strings.Repeat(`\u0301`, 20_000),
	} {
		add("markup", `"msg":"`+text+`"`)
		add("markup", `"msg":"in a field","<b onclick=\"window.hacked=1\">":1,"value":"`+text+`"`)
	}
	for i := range 10 {
		add("long", fmt.Sprintf(`"msg":"%s","n":%d`, strings.Repeat(fmt.Sprintf("a long line %d ", i), 900<<10/14), i))
	}
	var wide strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&wide, `,"field_%d":"value %d"`, i, i)
	}
	add("wide", `"msg":"ten thousand fields"`+wide.String())
	add("big", `"msg":"a field of nearly one MiB","big":"`+strings.Repeat("0123456789abcdef", 65_500)+`"`) // a line may have 1 MiB
	w.span(now.Add(-time.Minute), now.Add(time.Minute))
	w.facts["markup"] = 24
	if err := w.ingesters[0].send(lines.Bytes()); err != nil {
		return err
	}
	if _, err := post(w.ingesters[0].listen+"/ingest/bytes", []byte("not UTF-8: \xff\xfe\x80 end\n"), ""); err != nil {
		return err
	}
	return w.ingesters[0].flush()
}
