package interop_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The snippets of docs/send use the clients as the scripts do that send here: with the
// same packages, names and options.
func TestSnippets(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("..", "..", "docs", "send", "*.md"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%d pages, %v", len(names), err)
	}
	var pages []string
	for _, name := range names {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, string(page))
	}
	for file, parts := range map[string][]string{
		"clients/pino-loki.mjs":              {"import { pinoLoki } from 'pino-loki'", "pinoLoki({ host: ", "service_name: ", "silenceErrors: false"},
		"clients/winston-loki.mjs":           {"import LokiTransport from 'winston-loki'", "new LokiTransport({", "replaceTimestamp: false", "service_name: "},
		"clients/otel.mjs":                   {"new BatchLogRecordProcessor({ exporter", "resourceFromAttributes({ 'service.name': ", "/v1/logs", "from '@opentelemetry/exporter-logs-otlp-proto'"},
		"clients/elasticsearch.mjs":          {"await client.helpers.bulk({", "new Client({ node: ", "onDocument: () => ({"},
		"clients/pino-elasticsearch.mjs":     {"import pinoElastic from 'pino-elasticsearch'", "pinoElastic({", ".on('error'"},
		"clients/splunk.mjs":                 {"import SplunkStreamEvent from 'winston-splunk-httplogger'", "new SplunkStreamEvent({", "splunk: {"},
		"clients/datadog.mjs":                {"import datadog from 'pino-datadog-transport'", "authMethods: { apiKeyAuth: ", "baseServer: new client.BaseServerConfiguration("},
		"clients/gelf.mjs":                   {"import Log2gelf from 'winston-log2gelf'", "new Log2gelf({ host", "protocol: 'http'"},
		"configs/rsyslog-elasticsearch.conf": {`module(load="omelasticsearch")`, `bulkmode="on"`, `searchType=""`, `property(outname="@timestamp" name="timereported" dateFormat="rfc3339" format="jsonf")`},
		"configs/rsyslog-imfile.conf":        {`template(name="json" type="string" string="%msg%")`, `module(load="imfile")`, `reopenOnTruncate="on"`, `freshStartTail="off"`, `queue.saveOnShutdown="on"`, `action.resumeRetryCount="-1"`},
		"configs/rsyslog-omfwd.conf":         {`template="RSYSLOG_SyslogProtocol23Format"`, `TCP_Framing="octet-counted"`, `action.resumeRetryCount="-1"`},
	} {
		script, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// One page has all parts of a client. If none has, the page with the first part tells.
		page := strings.Join(pages, "")
		if i := slices.IndexFunc(pages, func(page string) bool { return strings.Contains(page, parts[0]) }); i >= 0 {
			page = pages[i]
		}
		for _, part := range parts {
			bare := strings.NewReplacer("'", `"`, " ", "", "\t", "", "\n", "").Replace // prettier lays out one of the two
			if !strings.Contains(page, part) || !strings.Contains(bare(string(script)), bare(part)) {
				t.Errorf("%q is not in both of a page of docs/send and %s", part, file)
			}
		}
	}
}
