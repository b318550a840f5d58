package signpost

import (
	"net/http"
	"strings"
)

// A row has the meaning of some paths.
type row struct {
	// paths are apart by blanks. A * fits one segment of a path, and ** at the end any rest.
	paths string
	// owner answers the paths, if there is no text.
	owner Listener
	// text says what the paths are elsewhere, and what to do here.
	text string
	// to is the path of an ingester that takes the same; the text goes before it.
	to string
}

const (
	logsOnly = "an ingester takes logs only"
	noSearch = "nothing here answers the search API of Elasticsearch; read with logquery, or with Grafana and a data source of type Loki at logquery serve, port " + readsPort + " by default"
)

// rows are tried in their order.
func rows() []row {
	return []row{
		// Ours.
		{paths: "/ingest /ingest/**", owner: Ingester},
		{paths: "/loki/api/v1/push /api/prom/push", owner: Ingester},
		{paths: "/v1/logs /otlp/v1/logs", owner: Ingester},
		{paths: "/_bulk /*/_bulk /elasticsearch/** /insert/elasticsearch/**", owner: Ingester},
		{paths: "/_cluster/** /_template/** /_index_template/** /_component_template/** /_ilm/** /_license /_xpack /_xpack/** /_nodes /_nodes/** /_cat/** /_alias/** /_aliases /*/_doc /*/_doc/** /*/_create/**", owner: Ingester},
		{paths: "/services/collector /services/collector/event /services/collector/raw /services/collector/event/1.0 /services/collector/raw/1.0 /services/collector/health /services/collector/health/1.0", owner: Ingester},
		{paths: "/gelf /upload /api/v2/logs /v1/input /api/v1/validate", owner: Ingester},
		{paths: "/live/**", owner: Ingester},
		{paths: "/metrics /healthz /readyz /flush /drain /debug/pprof /debug/pprof/**", owner: Admin},
		{paths: "/api/v1/services /api/v1/records /api/v1/records/** /api/v1/histogram /api/v1/count /api/v1/facets /api/v1/patterns /api/v1/context /api/v1/tail", owner: Reads},
		{paths: "/api/v1/days /api/v1/blobs /api/v1/blobs/** /api/v1/ingesters /api/v1/openapi.json /api/v1/whoami /api/v1/login /livez", owner: Reads},
		{paths: "/loki/** /json/** /prometheus/** /api/prom/query /api/prom/label /api/prom/label/** /api/prom/tail /api/prom/series", owner: Reads},

		// The same at another path.
		{paths: "/insert/jsonline /insert/jsonline/**", text: "JSON lines of VictoriaLogs are sent to", to: "/ingest"},
		{paths: "/insert/native /insert/native/** /internal/insert", text: "blocks of vlagent are of VictoriaLogs alone; with -remoteWrite.format=jsonline it sends JSON lines to", to: "/ingest"},
		{paths: "/insert/loki/api/v1/push", text: "pushes to Loki are sent to", to: "/loki/api/v1/push"},
		{paths: "/insert/opentelemetry/v1/logs /opentelemetry/v1/logs /api/default/v1/logs /v1/log /logs/v1", text: "logs of OTLP are sent to", to: "/v1/logs"},
		{paths: "/insert/journald/upload", text: "entries of journald are uploaded to", to: "/upload"},
		{paths: "/insert/datadog/api/v2/logs /insert/datadog/api/v1/validate /api/v1/input /v1/input/*", text: "logs of Datadog's clients are sent to", to: "/api/v2/logs"},
		{paths: "/services/collector/event/** /services/collector/raw/** /services/receivers/** /servicesNS/** /collector/**", text: "events of Splunk are sent to", to: "/services/collector/event"},
		{paths: "/gelf/**", text: "messages of GELF are sent to", to: "/gelf"},
		{paths: "/api/*/_json /api/*/_multi /api/*/*/_json /api/*/*/_multi /api/events/raw /inputs/** /bulk/* /log/v1 /api/logs /v2/entries:write /dataCollectionRules/** /receiver/v1/http/**",
			text: "logs of other services' clients are sent as JSON or text to", to: "/ingest/{service}"},

		// Nothing has these.
		{paths: "/services/collector/ack", text: "there are no acknowledgements by channel, since each answer means that the events are stored; switch them off (useACK, or indexer acknowledgement)"},
		{paths: "/v1/traces /otlp/v1/traces /insert/opentelemetry/v1/traces /v1development/** /api/v2/spans /api/v1/spans /api/traces /v0.3/** /v0.4/** /v0.5/** /v0.7/** /api/v0.2/** /trace/v2 /opentelemetry.proto.collector.trace.v1.TraceService/**",
			text: logsOnly + ", no traces; send traces elsewhere (OTEL_TRACES_EXPORTER=none switches them off), and logs to /v1/logs"},
		{paths: "/v1/metrics /otlp/v1/metrics /insert/opentelemetry/v1/metrics /api/v1/write /api/v1/push /api/v1/receive /write /api/v2/write /api/v1/series /api/v2/series /api/v1/import /api/v1/import/** /metric/v1 /metrics/job/** /api/put /opentelemetry.proto.collector.metrics.v1.MetricsService/**",
			text: logsOnly + ", no metrics (Prometheus remote write, InfluxDB lines, OTLP); send metrics elsewhere (OTEL_METRICS_EXPORTER=none switches them off), and logs to /ingest/{service}"},
		{paths: "/opentelemetry.proto.collector.logs.v1.LogsService/**", text: "OTLP over gRPC is not taken; send OTLP over HTTP to /v1/logs (OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf)"},
		{paths: "/ingest/pprof/** /api/*/envelope /api/*/envelope/ /api/*/store /api/*/store/ /intake/** /1/events/** /1/batch/**",
			text: logsOnly + ", no profiles, crash reports or events of other programs; send logs to /ingest/{service}"},
		{paths: "/api/v1/query /api/v1/query_range /api/v1/query_exemplars /api/v1/labels /api/v1/label/** /api/v1/rules /api/v1/alerts /api/v1/targets /api/v1/metadata /api/v1/status/** /federate /graph",
			text: "this is the API of Prometheus, which nothing here answers; add a data source of type Loki to Grafana, at logquery serve, port " + readsPort + " by default; for vmalert write /loki behind the address: -datasource.url=https://.../loki"},
		{paths: "/api/health /api/datasources /api/datasources/** /api/ds/query /api/search /login /d/** /explore",
			text: "this is the API of Grafana, which is a program of its own; there, add a data source of type Loki at logquery serve, port " + readsPort + " by default (docs/GRAFANA.md)"},
		{paths: "/select/**", text: "nothing here answers LogsQL of VictoriaLogs; logquery serve answers LogQL at /loki/api/v1, and its port is " + readsPort + " by default"},
		{paths: "/app /app/** /api/status /api/saved_objects/** /api/index_patterns/** /.kibana /.kibana** /_dashboards/** /_plugin/**", text: noSearch},
		{paths: "/_search /*/_search /_msearch /*/_msearch /_count /*/_count /_sql /_async_search /*/_async_search", text: noSearch},
		{paths: "/services/search/** /services/server/** /services/auth/**", text: "nothing here answers the search API of Splunk; read with logquery, or with LogQL at logquery serve, port " + readsPort + " by default"},
	}
}

// Foreign reports whether a header shows a protocol that no path takes.
func Foreign(r *http.Request) bool { return byHeader(r) != "" }

// byHeader tells the meaning of requests that a header shows, with any path.
func byHeader(r *http.Request) string {
	switch target, _, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "_"); {
	case target == "Logs":
		return "the API of CloudWatch Logs is not taken; have the agent send OTLP to /v1/logs, or JSON"
	case target != "":
		return "the API of AWS is not taken"
	case strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") && rowOf(r.URL.Path) == nil:
		return "gRPC is not taken; send OTLP over HTTP to /v1/logs"
	}
	return ""
}

// rowOf returns the row of a path, nil for none.
func rowOf(path string) *row {
	all := rows()
	for i := range all {
		for pattern := range strings.FieldsSeq(all[i].paths) {
			if fits(pattern, path) {
				return &all[i]
			}
		}
	}
	return nil
}

// fits reports whether a path has a pattern.
func fits(pattern, path string) bool {
	for {
		at := strings.IndexByte(pattern, '*')
		if at < 0 {
			return pattern == path
		}
		if !strings.HasPrefix(path, pattern[:at]) {
			return false
		}
		if strings.HasPrefix(pattern[at:], "**") {
			return true
		}
		pattern, path = pattern[at+1:], path[at:]
		end := strings.IndexByte(path, '/')
		if end < 0 {
			end = len(path)
		}
		if end == 0 {
			return false
		}
		path = path[end:]
	}
}

// known lists the paths of an ingester, for one with typing mistakes.
func known() (paths []string) {
	for _, row := range rows() {
		if row.owner != Ingester || row.text != "" {
			continue
		}
		for path := range strings.FieldsSeq(row.paths) {
			if !strings.Contains(path, "*") {
				paths = append(paths, path)
			}
		}
	}
	return paths
}
