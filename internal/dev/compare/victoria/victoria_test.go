package victoria_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"blobtail/internal/dev/compare/victoria"
	"blobtail/internal/dev/testkit"
)

// start builds and starts a server. The go command downloads VictoriaLogs if this machine does not
// have it yet.
func start(t *testing.T) *victoria.Server {
	t.Helper()
	testkit.FullOnly(t, "it builds VictoriaLogs")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	path, version, err := victoria.Install(ctx, "../../../..", t.TempDir())
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("VictoriaLogs cannot be built here: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(version, "v1.") {
		t.Errorf("version %q", version)
	}
	s, err := victoria.Start(ctx, path, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A protocol that VictoriaLogs is not sent is an error.
func TestInsertOfNoProtocol(t *testing.T) {
	if path, _, err := (&victoria.Server{}).Insert("smoke"); err == nil || !strings.Contains(err.Error(), "smoke") {
		t.Errorf("the path %q, %v", path, err)
	}
}

func post(t *testing.T, s *victoria.Server, protocol, body string) {
	t.Helper()
	path, header, err := s.Insert(protocol)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode/100 != 2 {
		t.Fatalf("%s: %s: %s", protocol, res.Status, text)
	}
}

// query returns the lines of an answer.
func query(t *testing.T, s *victoria.Server, text string) string {
	t.Helper()
	res, err := http.PostForm(s.URL()+"/select/logsql/query", url.Values{"query": {text}})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res.Status, err, string(body))
	}
	return string(body)
}

// TestServer sends records of a day far from today's, and finds them after a flush and a merge.
func TestServer(t *testing.T) {
	s := start(t)
	const records = 5000
	var lines, bulk strings.Builder
	for i := range records {
		line := fmt.Sprintf(`{"ts":"2001-02-03T04:05:06.%06dZ","level":"info","service":"web","msg":"number %d","status":200}`+"\n", i, i)
		lines.WriteString(line)
		bulk.WriteString("{\"create\":{}}\n" + strings.Replace(line, "web", "bulk", 1))
	}
	post(t, s, "ndjson", lines.String())
	post(t, s, "bulk", bulk.String())
	for _, step := range []func(context.Context) error{s.Flush, s.Merge} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := query(t, s, `{service!=""} level:info | stats by (service) count() n | sort by (service)`),
			fmt.Sprintf(`{"service":"bulk","n":"%d"}`+"\n"+`{"service":"web","n":"%d"}`+"\n", records, records); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if size, err := s.Stored(); err != nil || size < 1000 || size > int64(lines.Len()) {
			t.Errorf("%d bytes of files, %v", size, err)
		}
	}
	if got, want := query(t, s, `{service="web"} "number 77"`),
		`{"_msg":"number 77","_stream":"{service=\"web\"}","_stream_id":"`; !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 1 ||
		!strings.Contains(got, `"_time":"2001-02-03T04:05:06.000077Z"`) || !strings.Contains(got, `"status":"200"`) {
		t.Error(got)
	}
	s.Streams = "service,level"
	post(t, s, "ndjson", `{"ts":"2001-02-03T04:05:07Z","level":"warn","service":"other","msg":"one","status":200}`+"\n")
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := query(t, s, `{service="other",level="warn"} | count() n`), `{"n":"1"}`+"\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if s.PID() == 0 || len(s.Command()) < 3 {
		t.Error(s.PID(), s.Command())
	}
}
