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
}

// rows are tried in their order.
func rows() []row {
	const logsOnly = "an ingester takes logs only; send "
	return []row{
		{paths: "/ingest /ingest/**", owner: Ingester},
		{paths: "/loki/api/v1/push /api/prom/push", owner: Ingester},
		{paths: "/v1/logs /otlp/v1/logs", owner: Ingester},
		{paths: "/_bulk /*/_bulk /elasticsearch/** /insert/elasticsearch/**", owner: Ingester},
		{paths: "/_cluster/** /_template/** /_index_template/** /_component_template/** /_ilm/** /_license /_xpack /_xpack/**", owner: Ingester},
		{paths: "/_nodes /_nodes/** /_cat/** /_alias/** /_aliases /*/_doc /*/_doc/** /*/_create/**", owner: Ingester},
		{paths: "/services/collector /services/collector/event /services/collector/raw /services/collector/health", owner: Ingester},
		{paths: "/services/collector/event/1.0 /services/collector/raw/1.0 /services/collector/health/1.0", owner: Ingester},
		{paths: "/gelf /upload /api/v2/logs /v1/input /api/v1/validate /api/events/raw /live/**", owner: Ingester},
		{paths: "/metrics /healthz /readyz /flush /drain /debug/pprof /debug/pprof/**", owner: Admin},
		{paths: "/api/v1/services /api/v1/records /api/v1/records/** /api/v1/histogram /api/v1/count /api/v1/facets", owner: Reads},
		{paths: "/api/v1/patterns /api/v1/context /api/v1/tail /api/v1/days /api/v1/blobs /api/v1/blobs/** /api/v1/ingesters", owner: Reads},
		{paths: "/api/v1/parse /api/v1/openapi.json /api/v1/whoami /api/v1/login /livez", owner: Reads},
		{paths: "/loki/** /json/** /prometheus/** /api/prom/query /api/prom/label /api/prom/label/** /api/prom/tail /api/prom/series", owner: Reads},

		{paths: "/insert/jsonline /insert/jsonline/** /insert/native /insert/native/** /internal/insert",
			text: "JSON lines of VictoriaLogs are sent to /ingest, by vlagent with -remoteWrite.format=jsonline"},
		{paths: "/insert/journald/**", text: "entries of a journal are sent to /upload"},
		{paths: "/opentelemetry.proto.collector.logs.v1.LogsService/**", text: "send OTLP over HTTP, to /v1/logs (OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf)"},
		{paths: "/v1/traces /otlp/v1/traces /api/v2/spans /api/traces", text: logsOnly + "traces elsewhere (OTEL_TRACES_EXPORTER=none), and logs to /v1/logs"},
		{paths: "/v1/metrics /otlp/v1/metrics /api/v1/write /write", text: logsOnly + "metrics elsewhere (OTEL_METRICS_EXPORTER=none), and logs to /v1/logs"},
	}
}

// Foreign reports whether a header shows a protocol that no path takes.
func Foreign(r *http.Request) bool { return byHeader(r) != "" }

// byHeader tells the meaning of requests that a header shows, with any path.
func byHeader(r *http.Request) string {
	switch {
	case r.Header.Get("X-Amz-Target") != "":
		return "the APIs of AWS, such as CloudWatch Logs, are not taken; have the agent send OTLP to /v1/logs, or JSON"
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
