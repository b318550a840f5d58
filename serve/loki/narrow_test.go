package loki_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"blobtail/internal/access"
	"blobtail/internal/dev/testkit"
	"blobtail/internal/door"
	"blobtail/reading/readingtest"
)

// guarded puts the doors in front of a world. Tokens have the secret "secret"; each entry is an
// id and its globs.
func (w *world) guarded(entries ...string) {
	path := filepath.Join(w.t.TempDir(), "tokens.yaml")
	file := "tokens:\n"
	sum := sha256.Sum256([]byte("secret"))
	for _, e := range entries {
		id, globs, _ := strings.Cut(e, " ")
		file += fmt.Sprintf("  - {id: %s, sha256: [%s], read: [%s]}\n", id, hex.EncodeToString(sum[:]), globs)
	}
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		w.t.Fatal(err)
	}
	tokens, err := access.Open(path, zerolog.Nop())
	if err != nil {
		w.t.Fatal(err)
	}
	w.api = door.NewReads(door.ReadsOptions{
		Guard: door.New(door.Options{Tokens: tokens, Hosts: []string{"example.com"}, Log: zerolog.Nop()}),
		Route: func(string) door.Route { return door.Route{Name: "loki"} },
	}).Wrap(w.api)
}

// as are the headers of a client with a token.
func as(id string, header http.Header) http.Header {
	header = header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Authorization", "Bearer "+id+".secret")
	return header
}

// No byte of any answer tells a token of services that it may not read: of those in blobs, in
// logs, in damaged blobs, and of an ingester that is away.
func TestNarrow(t *testing.T) {
	h := readingtest.New(t, 2)
	for range 2 {
		for _, service := range []string{"web", "hidden-vault", "_rejected"} {
			h.Send(0, readingtest.Line{Service: strings.TrimPrefix(service, "_"), Msg: "hello of " + service, Fields: `"n":1`})
		}
		h.Flush()
	}
	h.Send(0, readingtest.Line{Service: "hidden-log", Msg: "hello"}, readingtest.Line{Service: "web", Msg: "held"})
	w := inhabited(t, h)
	w.guarded(`reader "web", "absent"`, `all "*", "_*"`, `none "nothing"`)
	ask := func() (bytes int) {
		for _, q := range append(questions(),
			question{path: "query_range", params: []string{"query", `{service_name="hidden-vault"}`}},
			question{path: "query_range", params: []string{"query", `{service_name=~"hidden-vault|web|hidden-log"}`}},
			question{path: "query_range", params: []string{"query", `{service_name!="web"}`}},
			question{path: "query_range", params: []string{"query", `{service_name="hidden-vaul"}`}}, // a name that is near
			question{path: "query", params: []string{"query", `sum by (service_name) (count_over_time({}[1h]))`}},
			question{path: "index/volume", params: []string{"query", `{service_name=~".+"}`}},
			question{path: "index/stats", params: []string{"query", `{service_name="hidden-vault"}`}},
			question{path: "label/service_name/values", params: nil},
			question{path: "label/service_name/values", params: []string{"query", `{service_name=~"hidden.*"}`}},
			question{path: "series", params: nil},
			question{path: "detected_labels", params: nil},
			question{path: "detected_fields", params: []string{"query", `{}`}},
		) {
			for _, prefix := range []string{"/loki/api/v1/", "/json/loki/api/v1/"} {
				for _, header := range []http.Header{nil, grafana()} {
					for _, id := range []string{"reader", "none"} {
						a := w.ask(http.MethodGet, prefix+q.path, as(id, header), q.params...)
						if a.code == 401 || a.code == 404 {
							t.Fatalf("%s: %d %s", q.path, a.code, a.body)
						}
						told := a.body
						for _, text := range q.params {
							told = strings.ReplaceAll(told, text, "") // the client's own words
						}
						if strings.Contains(told, "hidden") || id == "none" && strings.Contains(told, `"web"`) {
							t.Errorf("%s %q tells %s: %s", q.path, q.params, id, a.body)
						}
						bytes += len(told)
					}
				}
			}
		}
		return bytes
	}
	if ask() < 1000 {
		t.Error("there is nothing to read")
	}
	if a := w.ask(http.MethodGet, "/loki/api/v1/label/service_name/values", as("all", nil)); !strings.Contains(a.body, "hidden-log") || !strings.Contains(a.body, "hidden-vault") {
		t.Errorf("a token for everything gets %s", a.body)
	}
	if a := w.ask(http.MethodGet, queryRange, as("reader", nil), "query", `{}`); !strings.Contains(a.body, "hello of web") || !strings.Contains(a.body, "held") {
		t.Errorf("a token for web gets %s", a.body)
	}
	h.Damage(h.Blobs("hidden-vault")[0])
	ask()
	h.Kill(0)
	ask()
}

// Without a token there is nothing.
func TestWithoutToken(t *testing.T) {
	w := inhabited(t, readingtest.New(t, 1))
	w.guarded(`reader "web"`)
	for _, q := range questions() {
		if a := w.get("/loki/api/v1/"+q.path, q.params...); a.code != 401 {
			t.Errorf("%s: %d %s", q.path, a.code, a.body)
		}
	}
}

// A tail of a token has only its services, also those that come later.
func TestTailNarrow(t *testing.T) {
	tails(t, 1, func(t *testing.T, h *readingtest.House, p *testkit.Pipes) {
		l := listen(t, p, "query", `{service_name=~".+"}`, "as", "reader")
		defer l.close()
		h.Send(0, readingtest.Line{Service: "hidden", Msg: "no"}, readingtest.Line{Service: "web", Msg: "yes"})
		time.Sleep(time.Second)
		h.Send(0, readingtest.Line{Service: "hidden", Msg: "no"}, readingtest.Line{Service: "web-2", Msg: "yes"})
		time.Sleep(time.Second)
		h.Send(0, readingtest.Line{Service: "web", Msg: "end"})
		if got := l.lines(3); got[0] != "yes" || got[1] != "yes" || got[2] != "end" {
			t.Errorf("shown are %q", got)
		}
	}, `reader "web*"`)
}
