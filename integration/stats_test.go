package integration_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// The requests that --stats tells are those that go out, kind by kind.
func TestStats(t *testing.T) {
	t.Parallel()
	through, direct, p := proxied(t)
	in := start(t, direct, t.TempDir())
	var body strings.Builder
	for i := range 500 {
		fmt.Fprintf(&body, `{"ts":"2026-11-10T%02d:00:00Z","level":"info","msg":"record %d"}`+"\n", i%20, i)
	}
	in.mustPost("/ingest/web", []byte(body.String()))
	in.mustFlush()
	var lists, gets, others atomic.Int64
	count := func(_ http.ResponseWriter, r *http.Request) bool {
		q := r.URL.Query()
		switch {
		case q.Get("comp") == "list":
			lists.Add(1)
		case r.Method == http.MethodGet && q.Get("restype") == "":
			gets.Add(1)
		default:
			others.Add(1)
		}
		return false
	}
	p.refuses.Store(&count)
	for _, args := range []string{"web", "web -n 5", "web --count", "web -F record --count", "hist web", "tail web -n 3", "* --count --live-url " + in.listen} {
		var errs string
		told := func(kind string) (n int64) {
			if m := regexp.MustCompile(`(?m)^requests: .*?([0-9]+) ` + kind + ` \(`).FindStringSubmatch(errs); m != nil {
				n, _ = strconv.ParseInt(m[1], 10, 64)
			}
			return n
		}
		equal := func() bool {
			return told("LIST") == lists.Load() && told("GET") == gets.Load() && told("other") == others.Load()
		}
		// A request that the command gives up may never come to the proxy, so a read has some tries.
		for try := 0; try < 5 && (try == 0 || !equal()); try++ {
			lists.Store(0)
			gets.Store(0)
			others.Store(0)
			code := 0
			if _, errs, code = answered(t, through, append(strings.Fields(args), "--stats")...); code != 0 {
				t.Fatalf("%s: exit %d: %s", args, code, errs)
			}
		}
		if !equal() {
			t.Errorf("%s: went out: %d LIST, %d GET, %d other; said: %s", args, lists.Load(), gets.Load(), others.Load(), errs)
		}
		if lists.Load() == 0 || !regexp.MustCompile(`; 0\.[0-9]+ USD at the prices of `).MatchString(errs) {
			t.Errorf("%s: %d lists; %s", args, lists.Load(), errs)
		}
		if told("live") != 1 || told("table") == 0 { // one ingester holds records
			t.Errorf("%s: %s", args, errs)
		}
	}
}
