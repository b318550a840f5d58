package integration_test

import (
	"strings"
	"testing"
)

// A body of JSON, text and a stack trace that is sent again to another ingester is shown
// once: from the logs, from blobs, and by level.
func TestMixedBodyTwice(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	one := start(t, at, t.TempDir(), "--lane", "0")
	two := start(t, at, t.TempDir(), "--lane", "1")
	body := []byte(strings.Join([]string{
		"shop 1.4 starts",
		`{"ts":"2026-11-10T15:04:05Z","level":"info","msg":"listening"}`,
		"java.lang.IllegalStateException: no stock",
		"\tat com.shop.Cart.add(Cart.java:7)",
		"\tat com.shop.Main.main(Main.java:3)",
		`{"ts":"2026-11-10T15:04:06Z","level":"info","msg":"goes on"}`,
		"2026-11-10 15:04:07,250 WARN slow",
		"time=2026-11-10T15:04:08Z level=error msg=\"disk full\"", "",
	}, "\n"))
	for _, in := range []*ingester{one, two, one} {
		in.mustPost("/ingest/shop", body)
	}
	const want = `2026-11-10 15:04:05.000 shop 1.4 starts
2026-11-10 15:04:05.000 info listening
2026-11-10 15:04:05.000 error java.lang.IllegalStateException: no stock\n\tat com.shop.Cart.add(Cart.java:7)\n\tat com.shop.Main.main(Main.java:3)
2026-11-10 15:04:06.000 info goes on
2026-11-10 15:04:07.250 warn 2026-11-10 15:04:07,250 WARN slow
2026-11-10 15:04:08.000 error time=2026-11-10T15:04:08Z level=error msg="disk full"
`
	const form = `{{.ts | printf "%.23s"}} {{.level}} {{printf "%q" .msg}}`
	check := func(when string) {
		t.Helper()
		if n := count(t, at, "shop"); n != 6 {
			t.Errorf("%s: %d records", when, n)
		}
		if n := count(t, at, "shop", "--level", "error+"); n != 2 {
			t.Errorf("%s: %d errors", when, n)
		}
		got := string(query(t, at, "shop", "--template", form))
		clean := strings.NewReplacer("T", " ", `"`, "", `\`, "", "  ", " ")
		if clean.Replace(got) != clean.Replace(want) {
			t.Errorf("%s:\n%s", when, got)
		}
	}
	check("in two logs")
	one.mustFlush()
	check("in a blob and a log")
	two.mustFlush()
	check("in two blobs")
}
