package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blobtail/internal/dev/testkit"
)

// mixed are questions of all kinds about the records of the test below.
func mixed() (paths []string) {
	const day = "2026-11-10T"
	add := func(route string, pairs ...string) {
		v := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			v.Add(pairs[i], pairs[i+1])
		}
		paths = append(paths, route+"?"+v.Encode())
	}
	api := func(route string, pairs ...string) { add("/api/v1/"+route, append(pairs, "to", day+"23:00:00Z")...) }
	api("records", "service", "web", "from", day+"12:10:00Z", "level", "error", "limit", "0")
	api("records", "service", "web", "from", day+"12:00:00Z", "limit", "0")
	api("records", "service", "*", "words", "id-4711", "limit", "0")
	api("records", "service", "*", "text", "d-471", "limit", "0")
	api("records", "service", "web", "limit", "100")
	api("records", "service", "*", "limit", "100", "order", "desc")
	api("records", "service", "web", "expr", "took 7[0-9]*ms", "limit", "0")
	api("records", "service", "*", "where", "status >= 500", "limit", "0")
	api("records", "service", "*", "where", "nothing == 1", "limit", "0")
	api("records", "service", "web", "first", "50", "form", "events", "text", "took 7")
	api("records", "service", "*", "fields", "ts,status", "level", "warn+")
	api("count", "service", "*")
	api("count", "service", "web", "text", "took 7")
	api("count", "service", "web", "level", "info", "from", day+"12:10:30.5Z")
	api("histogram", "service", "*", "by", "1m")
	api("histogram", "service", "*", "by", "1m", "text", "took 7")
	api("histogram", "service", "web", "by", "7s", "split", "status")
	api("histogram", "service", "*", "by", "1h", "split", "service")
	api("facets", "service", "*", "fields", "status,level", "sample", "0")
	api("facets", "service", "web", "text", "took 7", "sample", "0")
	api("facets", "service", "*", "fields", "service")
	api("patterns", "service", "*")
	api("days", "service", "*")
	add("/api/v1/services")
	loki := func(route, query string, pairs ...string) {
		add("/loki/api/v1/"+route, append(pairs, "query", query, "start", day+"12:00:00Z", "end", day+"14:00:00Z")...)
	}
	loki("query_range", `{service_name="web"} |= "took 7"`, "limit", "500")
	loki("query_range", `{service_name=~".+"} | json | status >= 500`, "limit", "500")
	loki("query_range", `sum by (level) (count_over_time({service_name=~".+"}[1m]))`, "step", "60")
	loki("query_range", `sum by (level) (count_over_time({service_name="web"} |= "took 7" [1m]))`, "step", "60")
	loki("label/service_name/values", "")
	return paths
}

// enduring is an answer without the parts that tell of the moment and of the work. The number of
// records of higher levels is among them: it is a lower bound, and grows with the records that reads
// share.
func enduring(t testing.TB, body []byte) string {
	var all map[string]any
	lines := bytes.TrimSuffix(body, []byte("\n"))
	last := lines[bytes.LastIndexByte(lines, '\n')+1:]
	if json.Unmarshal(last, &all) != nil || all["ts"] != nil {
		return string(body)
	}
	var strip func(v any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range []string{"cost", "now", "stats", "range", "higher"} {
				delete(v, name)
			}
			for _, of := range v {
				strip(of)
			}
		case []any:
			for _, of := range v {
				strip(of)
			}
		}
	}
	strip(all)
	text, err := json.Marshal(all)
	if err != nil {
		t.Error(err)
	}
	var before strings.Builder
	for line := range bytes.Lines(lines[:len(lines)-len(last)]) {
		if !bytes.HasPrefix(line, []byte(`{"progress":`)) { // of a read that takes long
			before.Write(line)
		}
	}
	return before.String() + string(text)
}

// 32 clients at once ask a server all kinds of questions, some of records that are in no blob yet. Each
// answer is that of a quiet server, or a refusal that says so.
func TestManyClients(t *testing.T) {
	t.Parallel()
	at, _ := dirStore(t)
	p := start(t, at, t.TempDir())
	noon := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	records := testkit.Portion(60_000, 20_000, 6000)
	for part, services := 0, []string{"web", "orders", "auth"}; part < 10; part++ {
		var body strings.Builder
		for i := part * records / 10; i < (part+1)*records/10; i++ {
			level := []string{"info", "debug", "info", "info", "warn", "info", "info", "debug", "error", "info"}[i%10]
			fmt.Fprintf(&body, `{"ts":%q,"level":%q,"service":%q,"msg":"GET /basket/%d id-%d took %dms","status":%d}`+"\n",
				noon.Add(time.Duration(i)*20*time.Millisecond*time.Duration(60_000/records)).Format(time.RFC3339Nano), level, services[i%7%3], i%13, i, i%997, []int{200, 404, 502}[i%17%3])
		}
		p.mustPost("/ingest", []byte(body.String()))
		if part%3 == 2 { // the records of the last part are in no blob
			if code, _, err := p.flush(""); err != nil || code != http.StatusOK {
				t.Fatal(code, err)
			}
		}
	}
	s := serve(t, at)
	paths := mixed()
	want := make([]string, len(paths))
	for i, path := range paths {
		want[i] = enduring(t, s.mustGet(path))
		if again := enduring(t, s.mustGet(path)); again != want[i] {
			t.Fatalf("%s: the second answer of a quiet server is\n%.2000s\nthe first\n%.2000s", path, again, want[i])
		}
	}
	s.restart(true) // with nothing in memory
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	defer client.CloseIdleConnections()
	var clients sync.WaitGroup
	var answered, refused atomic.Int64
	for range 32 {
		clients.Go(func() {
			for _, i := range append(rand.Perm(len(paths)), rand.Perm(len(paths))...) {
				resp, err := client.Get(s.url + paths[i])
				if err != nil {
					t.Errorf("%s: %v", paths[i], err)
					continue
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				switch code := resp.StatusCode; {
				case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
					if refused.Add(1); resp.Header.Get("Retry-After") == "" {
						t.Errorf("%s: %d without Retry-After", paths[i], code)
					}
				case err != nil || code != http.StatusOK || resp.Trailer.Get("Blobtail-Complete") == "0":
					t.Errorf("%s: %d, %v, %v\n%.500s", paths[i], code, err, resp.Trailer, body)
				default:
					answered.Add(1)
					if got := enduring(t, body); got != want[i] {
						t.Errorf("%s: %d bytes\n%.1000s\nwant %d\n%.1000s", paths[i], len(got), got, len(want[i]), want[i])
					}
				}
			}
		})
	}
	clients.Wait()
	t.Logf("%d answers, %d refusals; %d MiB", answered.Load(), refused.Load(), s.memory())
	if answered.Load() < 32*int64(len(paths)) {
		t.Errorf("only %d answers", answered.Load())
	}
}
