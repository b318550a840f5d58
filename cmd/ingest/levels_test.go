package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"blobtail/internal/config"
	"blobtail/record"
	"blobtail/source/httpsource"
	"blobtail/source/shippers"
	"blobtail/source/sourcetest"
)

// lineDoors are the requests that carry a line without a level of its own, by protocol.
func lineDoors(line string) map[string]func(s *httpsource.Source) {
	quoted, _ := json.Marshal(line) // a text has a form in JSON
	send := func(path, form, body string) func(s *httpsource.Source) {
		return func(s *httpsource.Source) {
			sourcetest.Send(s, "POST", path, strings.NewReader(body), "Content-Type", form)
		}
	}
	const stamp = "1795168800000000000"
	otlp := func(record string) string {
		return `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"` + stamp + `",` + record + `}]}]}]}`
	}
	const js, nd = "application/json", "application/x-ndjson"
	return map[string]func(s *httpsource.Source){
		"JSON":              send("/ingest/a", nd, fmt.Sprintf(`{"ts":"2026-11-20T10:00:00Z","msg":%s}`, quoted)),
		"Fluent Bit":        send("/ingest/a", js, fmt.Sprintf(`[{"date":1795168800.5,"log":%s,"stream":"stderr"}]`, quoted)),
		"_bulk":             send("/_bulk", nd, fmt.Sprintf("{\"create\":{\"_index\":\"a\"}}\n{\"@timestamp\":\"2026-11-20T10:00:00Z\",\"message\":%s}\n", quoted)),
		"Loki":              send("/loki/api/v1/push", js, fmt.Sprintf(`{"streams":[{"stream":{"app":"a"},"values":[["%s",%s]]}]}`, stamp, quoted)),
		"OTLP":              send("/v1/logs", js, otlp(fmt.Sprintf(`"body":{"stringValue":%s}`, quoted))),
		"OTLP, in a map":    send("/v1/logs", js, otlp(fmt.Sprintf(`"body":{"kvlistValue":{"values":[{"key":"log","value":{"stringValue":%s}}]}}`, quoted))),
		"HEC":               send("/services/collector", js, fmt.Sprintf(`{"time":1795168800,"event":%s}`, quoted)),
		"HEC, in an object": send("/services/collector", js, fmt.Sprintf(`{"time":1795168800,"event":{"message":%s}}`, quoted)),
		"Datadog":           send("/api/v2/logs", js, fmt.Sprintf(`[{"message":%s}]`, quoted)),
		"GELF":              send("/gelf", js, fmt.Sprintf(`{"version":"1.1","host":"h","short_message":%s}`, quoted)),
		"journald":          send("/upload", "application/vnd.fdo.journal", "__REALTIME_TIMESTAMP=1795168800257000\n_SYSTEMD_UNIT=a.service\nMESSAGE="+line+"\n\n"),
	}
}

// A line has the same level behind each door, if nothing beside it names one.
func TestLevelOfALineBehindEachDoor(t *testing.T) {
	for line, want := range map[string]string{
		"2026-11-20T10:00:00Z ERROR disk is full":                     "error",
		"ERROR disk is full":                                          "error",
		"[warn] slow":                                                 "warn",
		"time=2026-11-20T10:00:00Z level=error msg=full":              "error",
		`{"level":"error","msg":"full"}`:                              "error",
		`{"@t":"2026-11-20T10:00:00Z","@l":"Warning","@m":"x"}`:       "warn",
		`{"log":{"level":"error"},"message":"full"}`:                  "error",
		`{"msg":"[error] full"}`:                                      "error",
		"\x1b[31mERROR\x1b[0m full":                                   "error",
		"E1120 10:00:00.257 7 main.go:5] full":                        "error",
		"20-Nov-2026 10:00:00.257 SEVERE [main] org.apache.X full":    "error",
		`2026-11-20T10:00:00.257Z stderr F {"level":"error","m":"x"}`: "error",
		"no error found":                                              "",
		`{"msg":"fine"}`:                                              "",
	} {
		for door, send := range lineDoors(line) {
			log := &sourcetest.Log{}
			s := httpsource.New(httpsource.Options{Accept: log, Patience: time.Millisecond, Protocols: stock(), Now: sourcetest.Now})
			send(s)
			got := log.Lines()
			if len(got) != 1 {
				t.Errorf("%s: %q makes %q", door, line, got)
				continue
			}
			var fields struct{ Level, Msg string }
			split := strings.HasPrefix(door, "HEC") && line[0] == '{' // its message is that of the object
			if err := json.Unmarshal([]byte(got[0]), &fields); err != nil || fields.Level != want || fields.Msg != line && !split {
				t.Errorf("%s: %q is %s (%v); want the level %q", door, line, got[0], err, want)
			}
			if record.LineLevel([]byte(got[0])).String() != fields.Level && fields.Level != "" {
				t.Errorf("%s: %q has a level that is none", door, got[0])
			}
		}
	}
}

// A level beside the line counts, by the same names behind each door.
func TestLevelBesideALine(t *testing.T) {
	for _, c := range []struct{ name, path, body string }{
		{"OTLP, in the map of the body", "/v1/logs", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"kvlistValue":{"values":[{"key":"log","value":{"stringValue":"INFO x"}},{"key":"Level","value":{"stringValue":"error"}}]}}}]}]}]}`},
		{"OTLP, in attributes", "/v1/logs", `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"INFO x"},"attributes":[{"key":"levelname","value":{"stringValue":"ERROR"}}]}]}]}]}`},
		{"GELF", "/gelf", `{"host":"h","short_message":"INFO x","_LogLevel":"Error"}`},
		{"Loki", "/loki/api/v1/push", `{"streams":[{"stream":{"app":"a","detected_level":"unknown","LEVEL":"error"},"values":[["1795168800000000000","INFO x"]]}]}`},
		{"HEC", "/services/collector", `{"event":"INFO x","fields":{"severity":"","log_level":"error"}}`},
		{"Datadog", "/api/v2/logs", `[{"message":"INFO x","levelname":"ERROR"}]`},
	} {
		log := &sourcetest.Log{}
		s := httpsource.New(httpsource.Options{Accept: log, Patience: time.Millisecond, Protocols: stock(), Now: sourcetest.Now})
		sourcetest.Send(s, "POST", c.path, strings.NewReader(c.body), "Content-Type", "application/json")
		if got := log.Lines(); len(got) != 1 || record.LineLevel([]byte(got[0])) != record.Error {
			t.Errorf("%s: %q; want one error", c.name, got)
		}
	}
}

// stock are the protocols of an ingester with the default configuration.
func stock() []httpsource.Protocol { return shippers.Protocols(shipping(config.Default())) }
