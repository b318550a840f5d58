package loki_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the answers of recorded requests anew")

// recorded is the world that recorded requests are about.
func recorded(t testing.TB) *world {
	w := newWorld(t)
	levels := []string{"info", "error", "warn", "debug", ""}
	for i := range int64(12) {
		at := noon - 50*(i+1)*second
		msg := []string{
			fmt.Sprintf("GET /basket took %dms", 10*i), fmt.Sprintf("PUT /pay/%d", i),
			fmt.Sprintf(`{"user":"u%d","http":{"status":%d}}`, i, 200+i), fmt.Sprintf("user=u%d cached=true basket", i),
		}[i%4]
		fields := fmt.Sprintf(`"status":%d,"path":"/%c","took_ms":%d.5`, []int64{200, 502}[i%2], 'a'+rune(i%3), i)
		w.log("web", levels[i%5], at, msg, fields)
	}
	w.log("orders", "error", noon-minute, "no stock", "")
	w.log("_rejected", "", noon-minute, "no JSON", "")
	return w
}

// The requests of real clients, as they were recorded, have the answers that stand next to
// them. Those with a result obey the rules of Grafana's converter. To change answers: run with
// -update, and read the differences.
func TestRecordedRequests(t *testing.T) {
	w := recorded(t)
	files, err := filepath.Glob("testdata/*/*.http")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		rec := httptest.NewRecorder()
		w.api.ServeHTTP(rec, r)
		a := answer{rec.Code, rec.Header().Get("Content-Type"), rec.Body.String()}
		if strings.Contains(a.body, `"resultType"`) {
			decode(t, a)
		}
		got := fmt.Sprintf("%d %s\n%s", a.code, a.kind, withoutStats(a).body)
		got = regexp.MustCompile(regexp.QuoteMeta(runtime.Version())).ReplaceAllString(got, "go")
		wanted := strings.TrimSuffix(file, ".http") + ".answer"
		if *update {
			if err := os.WriteFile(wanted, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(wanted)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s has the answer\n%s\nwant\n%s", file, got, want)
		}
	}
}
