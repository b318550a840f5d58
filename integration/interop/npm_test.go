package interop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// npm returns a function that reads the version of an installed package of npm.
func npm(name string) func(testing.TB) string {
	return func(t testing.TB) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(shared.root, "integration", "interop", "clients", "node_modules", name, "package.json"))
		if err != nil {
			missing(t, name+" is not installed: run make interop")
		}
		var p struct{ Version string }
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		return p.Version
	}
}

// script returns a ship function that runs a script of clients/.
func script(name string, env ...string) func(*run) map[string]bool {
	return func(r *run) map[string]bool { return r.node(name, env...) }
}

// ms wants the message as it is, and the time in ms.
func ms(s *sent) want {
	return want{msg: s.Msg, level: s.Level, from: s.MS * 1e6, to: s.MS * 1e6, n: true}
}

// exact wants all as it is.
func exact(s *sent) want {
	return want{msg: s.Msg, level: s.Level, from: s.at, to: s.at, n: true}
}

// text wants the message as it is, and the time in ms; there is no field n.
func text(s *sent) want {
	w := ms(s)
	w.n = false
	return w
}

// quoted is a text in JSON, as JavaScript writes it.
func quoted(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string has a form in JSON
	return strings.TrimSpace(b.String())
}

// pinoLine wants the JSON of pino as the message.
func pinoLine(s *sent) want {
	w := text(s)
	w.msg = fmt.Sprintf(`{"level":%d,"time":%d,"mark":"%s","n":%d,"msg":%s}`,
		map[string]int{"debug": 20, "info": 30, "warn": 40, "error": 50}[s.Level], s.MS, s.Mark, s.N, quoted(s.Msg))
	return w
}

// datadogLine wants the JSON of pino-datadog-transport as the message. The level and the time
// come from there.
func datadogLine(s *sent) want {
	level := s.Level
	if level == "warn" {
		level = "warning"
	}
	w := text(s)
	w.msg = fmt.Sprintf(`{"level":"%s","mark":"%s","n":%d,"msg":%s,"date":%d}`, level, s.Mark, s.N, quoted(s.Msg), s.MS)
	return w
}

// gelf wants the levels that the client makes: it sends the numbers of npm's levels, 0 for error
// and 4 for debug, and GELF's are those of syslog.
func gelf(s *sent) want {
	w := ms(s)
	w.level = map[string]string{"error": "critical", "warn": "critical", "info": "critical", "debug": "warn"}[s.Level]
	return w
}

// arrival wants the message as it is, and a time of the run.
func arrival(s *sent) want {
	w := text(s)
	w.from, w.to = 0, time.Now().UnixNano()
	return w
}

// npmClients are the shippers of npm.
func npmClients() []*client {
	const dropped = "the client drops a batch after any error"
	only := map[fault]string{restart: "the client loses what it sends meanwhile", full: "it has no answers", lost: "it has no answers"}
	const unsent = "the client sends nothing again that was refused"
	const gaveUp = "the exporter gives a batch up after its timeout of 10 s"
	return []*client{
		{name: "pino-loki", version: npm("pino-loki"), wire: "Loki JSON, lines of JSON", ship: script("pino-loki.mjs"), want: pinoLine, lossy: dropped},
		{name: "pino-loki, text", version: npm("pino-loki"), wire: "Loki JSON, structured metadata", ship: script("pino-loki-text.mjs"), want: ms, lossy: dropped},
		{name: "winston-loki, JSON", version: npm("winston-loki"), wire: "Loki JSON, structured metadata", ship: script("winston-loki.mjs", "INTEROP_JSON=1"), want: ms,
			twice: "the client sends a failed batch again with newer records in one body"},
		{name: "winston-loki, protobuf", version: npm("winston-loki"), wire: "Loki protobuf, snappy", ship: script("winston-loki.mjs"), want: text, textOnly: true,
			twice: "the client sends a failed batch again with newer records in one body"},
		{name: "OpenTelemetry JS, JSON", version: npm("@opentelemetry/exporter-logs-otlp-http"), wire: "OTLP JSON", ship: script("otel.mjs"), want: exact, lossy: gaveUp},
		{name: "OpenTelemetry JS, protobuf", version: npm("@opentelemetry/exporter-logs-otlp-proto"), wire: "OTLP protobuf, gzip", ship: script("otel.mjs", "INTEROP_PROTO=1"), want: exact, lossy: gaveUp},
		{name: "@elastic/elasticsearch", version: npm("@elastic/elasticsearch"), wire: "`_bulk`",
			ship: script("elasticsearch.mjs"), want: ms},
		{name: "@elastic/elasticsearch, index", version: npm("@elastic/elasticsearch"), wire: "`_doc`",
			ship: script("elasticsearch.mjs", "INTEROP_ONE=1"), want: ms},
		{name: "pino-elasticsearch", version: npm("pino-elasticsearch"), wire: "`_bulk`", ship: script("pino-elasticsearch.mjs"), want: ms},
		{name: "winston-splunk-httplogger", version: npm("winston-splunk-httplogger"), wire: "Splunk HEC", ship: script("splunk.mjs"), want: ms,
			lossy: unsent, twice: "one event alone in a request, at a whole second, sent again"},
		{name: "winston-splunk-httplogger, text", version: npm("winston-splunk-httplogger"), wire: "Splunk HEC, JSON in a text",
			ship: script("splunk.mjs", "INTEROP_TEXT=1"), want: ms,
			lossy: unsent, twice: "one event alone in a request, at a whole second, sent again"},
		{name: "winston-log2gelf", version: npm("winston-log2gelf"), wire: "GELF over HTTP", ship: script("gelf.mjs"), want: gelf,
			lossy: "the client does not look at answers"},
		{name: "pino-datadog-transport", version: npm("pino-datadog-transport"), wire: "Datadog v2, gzip", ship: script("datadog.mjs"), want: datadogLine, slow: true},
		{name: "seq-logging", version: npm("seq-logging"), wire: "Seq", ship: script("seq.mjs"), want: ms, lossy: dropped},
		{name: "winston-syslog", version: npm("winston-syslog"), wire: "syslog, RFC 5424 without line feeds",
			ship: script("syslog.mjs", "INTEROP_TYPE=5424"), want: arrival, raw: true, textOnly: true, oneLine: true, without: only},
		{name: "winston-syslog, BSD", version: npm("winston-syslog"), wire: "syslog, RFC 3164 without line feeds",
			ship: script("syslog.mjs", "INTEROP_TYPE=BSD"), want: arrival, raw: true, textOnly: true, oneLine: true, without: only},
		{name: "pino-socket", version: npm("pino-socket"), wire: "JSON over TCP", ship: script("pino-socket.mjs"), want: ms,
			raw: true, without: only},
		{name: "pino and fetch", version: npm("pino"), wire: "`/ingest`, NDJSON", ship: script("fetch.mjs"), want: ms},
	}
}
