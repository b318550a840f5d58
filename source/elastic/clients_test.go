package elastic_test

import (
	"strings"
	"testing"

	"blobtail/source/sourcetest"
)

const (
	filebeatPath = "/_bulk?filter_path=errors%2Citems.%2A.error%2Citems.%2A.status"
	short        = `{"errors":false,"items":[{"create":{"status":201}}]}`
)

// TestClients sends bodies as clients send them: those of rsyslog and of the JavaScript
// client were recorded, the others follow their sources.
func TestClients(t *testing.T) {
	for _, row := range []struct {
		name, path, body string
		header           []string
		service, level   string
		msg, contentType string
		answer           string // "" for an item with an index and an id
	}{
		{"rsyslog omelasticsearch", "/_bulk", `{"index":{"_index": "logs"}}
{"@timestamp":"2026-11-24T10:00:00.123456+00:00","host":"node-1","severity":"warning","facility":"daemon","syslogtag":"sshd[7]:","message":" Failed password"}
`, []string{"Content-Type: application/json; charset=utf-8"}, "logs", "warn", " Failed password", "application/json", ""},
		{"pino-elasticsearch 9", "/_bulk", `{"index":{"_index":"pino"}}
{"level":50,"time":"2026-11-24T10:00:00.123Z","pid":7,"hostname":"node-1","msg":"no disk"}
`, []string{"Content-Type: application/vnd.elasticsearch+x-ndjson; compatible-with=9", "Accept: application/vnd.elasticsearch+json; compatible-with=9"},
			"pino", "error", "no disk", "application/vnd.elasticsearch+json;compatible-with=9", ""},
		{"pino-elasticsearch in the schema", "/_bulk", `{"create":{"_index":"ecs-web"}}
{"@timestamp":"2026-11-24T10:00:00.123Z","log.level":"info","message":"up","ecs":{"version":"8.10.0"},"service":{"name":"web","version":"1"},"process":{"pid":7}}
`, []string{"Content-Type: application/vnd.elasticsearch+x-ndjson; compatible-with=8", "Accept: application/vnd.elasticsearch+json; compatible-with=8"},
			"web", "info", "up", "application/vnd.elasticsearch+json;compatible-with=8", ""},
		{"Fluent Bit es", "/_bulk", `{"create":{"_index":"fluent-bit"}}
{"@timestamp":"2026-11-24T10:00:00.123Z","stream":"stdout","log":"GET /basket","level":"info"}
`, []string{"Content-Type: application/x-ndjson", "User-Agent: Fluent-Bit"}, "fluent-bit", "info", "GET /basket", "application/json", ""},
		{"Fluent Bit es with Logstash_Format and Generate_ID", "/_bulk/?pipeline=x", `{"create":{"_index":"logstash-2026.11.24","_id":"7f3b2a10-1"}}
{"@timestamp":"2026-11-24T10:00:00.123Z","log":"GET /basket"}
`, []string{"Content-Type: application/x-ndjson"}, "logstash", "", "GET /basket", "application/json", ""},
		{"Vector", "/_bulk?timeout=60s", `{"create":{"_index":"logs-nginx.access-default"}}
{"@timestamp":"2026-11-24T10:00:00.123Z","data_stream":{"dataset":"nginx.access","namespace":"default","type":"logs"},"host":"node-1","message":"GET /"}
`, []string{"Content-Type: application/x-ndjson"}, "nginx.access", "", "GET /", "application/json", ""},
		{"Filebeat", filebeatPath, `{"create":{"_index":"filebeat-8.15.0"}}
{"@timestamp":"2026-11-24T10:00:00.123Z","log":{"offset":77,"file":{"path":"/var/log/web.log"}},"message":"GET /","input":{"type":"filestream"},"ecs":{"version":"8.0.0"},"host":{"name":"node-1"},"agent":{"type":"filebeat","version":"8.15.0"}}
`, []string{"Content-Type: application/json; charset=UTF-8", "Accept: application/json", "X-Elastic-Product-Origin: beats"}, "filebeat", "", "GET /", "application/json", short},
		{"Filebeat with the service of the schema", filebeatPath, `{"create":{"_index":".ds-filebeat-8.15.0-2026.11.24-000001"}}
{"@timestamp":"2026-11-24T10:00:00.123Z","log":{"level":"Error","file":{"path":"/var/log/web.log"}},"service":{"name":"Shop"},"message":"no"}
`, []string{"Content-Type: application/json"}, "shop", "error", "no", "application/json", short},
		{"Logstash", "/_bulk?filter_path=errors,items.*.error,items.*.status", `{"create":{"_index":"logs-generic-default"}}
{"@timestamp":"2026-11-24T10:00:00.123456Z","@version":"1","event":{"original":"GET /"},"message":"GET /","host":{"name":"node-1"}}
`, []string{"Content-Type: application/json"}, "generic", "", "GET /", "application/json", short},
		{"Logstash with an index", "/_bulk", `{"index":{"_id":null,"_index":"logstash-2026.11.24","routing":null}}
{"@timestamp":"2026-11-24T10:00:00.123Z","@version":"1","message":"GET /","log":{"level":"WARN"}}
`, []string{"Content-Type: application/json"}, "logstash", "warn", "GET /", "application/json", ""},
		{"go-elasticsearch esutil", "/shop/_bulk", `{"index":{"_id":"41"}}
{"@timestamp":"2026-11-24T10:00:00.123Z","message":"GET /","level":"info"}
`, []string{"Content-Type: application/vnd.elasticsearch+json;compatible-with=8", "Accept: application/vnd.elasticsearch+json;compatible-with=8"},
			"shop", "info", "GET /", "application/vnd.elasticsearch+json;compatible-with=8", ""},
		{"OpenTelemetry Collector in the mapping ecs", "/_bulk?filter_path=items.*.error,items.*.status", `{"create":{"_index":"logs-generic-default"}}
{"@timestamp":"1795514400123.000000","agent":{"name":"otlp"},"log":{"level":"INFO"},"service":{"name":"shop"},"message":"GET /"}
`, []string{"Content-Type: application/vnd.elasticsearch+json;compatible-with=8"}, "shop", "info", "GET /",
			"application/vnd.elasticsearch+json;compatible-with=8", `{"items":[{"create":{"status":201}}]}`},
		{"Fluentd before version 7", "/logs/_doc/_bulk", `{"index":{"_index":"app-2026.11.24","_type":"_doc"}}
{"@timestamp":"2026-11-24T10:00:00.123000000+00:00","message":"GET /"}
`, []string{"Content-Type: application/x-ndjson"}, "app", "", "GET /", "application/json", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, prefix := range []string{"", "/elasticsearch", "/insert/elasticsearch"} {
				m := &sourcetest.Log{}
				w := do(t, source(m), "POST", prefix+row.path, row.body, row.header...)
				if got := w.Header().Get("Content-Type"); got != row.contentType {
					t.Errorf("Content-Type: %s", got)
				}
				if row.answer != "" {
					if w.Code != 200 || w.Body.String() != row.answer {
						t.Errorf("answer %d %s", w.Code, w.Body)
					}
				} else if items := itemsOf(t, w); len(items) != 1 || items[0].Status != 201 || items[0].ID == "" || !strings.Contains(row.path+row.body, items[0].Index) {
					t.Errorf("items %+v", items)
				}
				lines := stored(t, m)
				if len(lines) != 1 {
					t.Fatalf("%d lines", len(lines))
				}
				got := lines[0]
				if got["service"] != row.service || got["level"] != row.level || got["msg"] != row.msg || !strings.HasPrefix(got["ts"].(string), "2026-11-24T10:00:00.123") {
					t.Errorf("stored %v", got)
				}
				if m.Origins()[0].IsZero() {
					t.Error("a copy of the body would be stored again")
				}
			}
		})
	}
}
