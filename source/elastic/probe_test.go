package elastic_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"blobtail/source/elastic"
	"blobtail/source/httpsource"
	"blobtail/source/sourcetest"
)

// TestProbes sends the requests that clients send before documents.
func TestProbes(t *testing.T) {
	template := `{"index_patterns":["filebeat-*"],"template":{"mappings":{"x":"` + strings.Repeat("x", 600<<10) + `"}}}`
	for _, row := range []struct{ client, method, path, body, want string }{
		{"all", "GET", "/", "", `"number":"8.9.0"`},
		{"official ones", "GET", "/", "", `"tagline":"You Know, for Search"`},
		{"Logstash, Telegraf", "HEAD", "/", "", ""},
		{"Vector", "GET", "/_cluster/health", "", `"status":"green"`},
		{"rsyslog", "HEAD", "/_cat/health", "", ""},
		{"rsyslog", "GET", "/_cat/health", "", "green"},
		{"Filebeat", "GET", "/_license?human=false", "", `"status":"active"`},
		{"Filebeat before 7", "GET", "/_xpack/license", "", `"type":"basic"`},
		{"Filebeat", "GET", "/_xpack", "", `"ilm":{"available":true`},
		{"Filebeat", "HEAD", "/_index_template/filebeat-8.15.0", "", ""},
		{"Filebeat", "GET", "/_index_template/filebeat-8.15.0", "", "{}"},
		{"Filebeat", "PUT", "/_index_template/filebeat-8.15.0", template, `{"acknowledged":true`},
		{"Filebeat 7", "HEAD", "/_template/filebeat-7.17.0", "", ""},
		{"Filebeat 7", "PUT", "/_template/filebeat-7.17.0", template, `{"acknowledged":true`},
		{"Filebeat", "GET", "/_ilm/policy/filebeat", "", "{}"},
		{"Filebeat", "PUT", "/_ilm/policy/filebeat", "{}", `{"acknowledged":true`},
		{"Filebeat", "PUT", "/_ingest/pipeline/filebeat-8.15.0-nginx-access-pipeline", "{}", `{"acknowledged":true`},
		{"Filebeat", "HEAD", "/_alias/filebeat-8.15.0", "", ""},
		{"Filebeat", "PUT", "/_data_stream/filebeat-8.15.0", "", `{"acknowledged":true`},
		{"Logstash", "GET", "/_nodes/http", "", `"publish_address":"example.com"`},
		{"Logstash", "HEAD", "/logstash", "", ""},
		{"Logstash", "PUT", "/%3Clogstash-%7Bnow%2Fd%7D-000001%3E", `{"aliases":{}}`, `{"acknowledged":true`},
		{"Logstash", "GET", "/_logstash/pipeline", "", "{}"},
		{"pino-elasticsearch", "POST", "/pino/_refresh", "", `"_shards":{"total":1,"successful":1,"failed":0}`},
		{"applications", "PUT", "/app/_mapping", `{"properties":{}}`, `{"acknowledged":true`},
		{"Telegraf", "GET", "/_cluster/settings", "", `{"persistent":{},"transient":{}}`},
	} {
		t.Run(row.client+" "+row.method+" "+row.path, func(t *testing.T) {
			for _, prefix := range []string{"", "/elasticsearch", "/insert/elasticsearch"} {
				m := &sourcetest.Log{}
				w := do(t, source(m), row.method, prefix+row.path, row.body, "Accept: application/vnd.elasticsearch+json; compatible-with=9")
				text := w.Body.String()
				if w.Code != 200 || !strings.Contains(text, row.want) || len(m.Lines()) > 0 {
					t.Errorf("%s: %d %s", prefix, w.Code, text)
				}
				if got := w.Header().Get("Content-Type"); got == "application/vnd.elasticsearch+json;compatible-with=9" && !json.Valid(w.Body.Bytes()) {
					t.Errorf("%s: %s", got, text)
				}
			}
		})
	}
	for _, path := range []string{"/elasticsearch", "/elasticsearch/", "/insert/elasticsearch", "/elasticsearch/some-index"} {
		if w := do(t, source(&sourcetest.Log{}), "HEAD", path, ""); w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestVersion(t *testing.T) {
	s := httpsource.New(httpsource.Options{Accept: &sourcetest.Log{}, Protocols: []httpsource.Protocol{elastic.New(elastic.Options{Version: "7.17.9"})}})
	for path, want := range map[string]string{"/": `"number":"7.17.9"`, "/_nodes/http": `"version":"7.17.9"`} {
		if w := do(t, s, "GET", path, ""); !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}

// The paths of others stay theirs.
func TestOtherPaths(t *testing.T) {
	for _, row := range []struct {
		method, path string
		status       int
	}{
		{"POST", "/ingest/web", 200},
		{"POST", "/ingest/_bulk", 200}, // the service is called bulk
		{"POST", "/ingest", 200},
		{"GET", "/metrics", 404},
		{"PUT", "/web", 404},
		{"POST", "/loki/api/v1/push", 404},
		{"PUT", "/elasticsearchx", 404},
		{"POST", "/a/b/c/_bulk", 404},
	} {
		m := &sourcetest.Log{}
		r := httptest.NewRequest(row.method, row.path, strings.NewReader(`{"msg":"m"}`))
		w := httptest.NewRecorder()
		source(m).ServeHTTP(w, r)
		if w.Code != row.status || w.Header().Get("X-Elastic-Product") != "" {
			t.Errorf("%s %s: %d %s", row.method, row.path, w.Code, w.Body)
		}
	}
}

func TestService(t *testing.T) {
	for index, want := range map[string]string{
		"logs":                                "logs",
		"logs-2026.11.24":                     "logs",
		"logs-2026.11.24-000012":              "logs",
		"logs-2026.11":                        "logs",
		"logs-2026":                           "logs",
		"logs-2026-11-24":                     "logs",
		"logs_20261124":                       "logs",
		"logs-202611":                         "logs",
		"logs.2026.11.24.15":                  "logs",
		"logs-2026.w48":                       "logs",
		"logs-000001":                         "logs",
		"web-1":                               "web-1",
		"web-2":                               "web-2",
		"web-12345":                           "web-12345",
		"v2":                                  "v2",
		"2026.11.24":                          "2026.11.24",
		"filebeat-8.15.0-2026.11.24":          "filebeat",
		"filebeat-8.15.0":                     "filebeat",
		"logs-nginx.access-default":           "nginx.access",
		"logs-web-production":                 "web",
		"logs-web-2026.11.24":                 "logs-web",
		".ds-logs-web-prod-2026.11.24-000001": "web",
		"metrics-system.cpu-default":          "system.cpu",
		"other-web-default":                   "other-web-default",
		"logs--default":                       "logs--default",
		"<logs-{now/d}-000001>":               "logs",
		"<logs-{now/d{yyyy.MM|+01:00}}>":      "logs",
		"My_App":                              "my_app",
		"":                                    "unknown",
		"_all":                                "all",
	} {
		m := &sourcetest.Log{}
		body, _ := json.Marshal(map[string]any{"create": map[string]string{"_index": index}})
		itemsOf(t, do(t, source(m), http.MethodPost, "/_bulk", string(body)+"\n"+doc))
		if got := brief(stored(t, m)); len(got) != 1 || got[0] != want+" m" {
			t.Errorf("%s: %s, want %s", index, got, want)
		}
	}
}
