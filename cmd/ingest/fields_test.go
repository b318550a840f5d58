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

// fieldDoors are requests with a record that has when, prio, words and team beside the fields of
// the protocol, by door. The path has no query.
func fieldDoors(when, prio, words, team string) map[string]func(query string) (path, form, body string) {
	door := func(path, form, body string) func(string) (string, string, string) {
		return func(query string) (string, string, string) { return path + query, form, body }
	}
	members := fmt.Sprintf(`"when":%q,"Prio":%q,"words":%q,"team":%q`, when, prio, words, team)
	var attributes []string
	for _, a := range [][2]string{{"when", when}, {"Prio", prio}, {"words", words}, {"team", team}} {
		attributes = append(attributes, fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, a[0], a[1]))
	}
	list := strings.Join(attributes, ",")
	const js, nd, stamp = "application/json", "application/x-ndjson", "1795168800000000000"
	otlp := func(record string) string {
		return `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"old"}}]},"scopeLogs":[{"logRecords":[{"timeUnixNano":"` + stamp + `",` + record + `}]}]}]}`
	}
	return map[string]func(string) (string, string, string){
		"JSON":     door("/ingest", nd, `{"ts":"2026-11-20T10:00:00Z","msg":"x","service":"old",`+members+`}`),
		"an array": door("/ingest", js, `[{"timestamp":1795168800,"severity":"error",`+members+`}]`),
		"members":  door("/ingest", js, `{"msg":"x","inner":{`+members+`}}`),
		"_bulk":    door("/_bulk", nd, "{\"create\":{\"_index\":\"old\"}}\n{\"@timestamp\":\"2026-11-20T10:00:00Z\","+members+"}\n"),
		"Loki, labels": door("/loki/api/v1/push", js, fmt.Sprintf(`{"streams":[{"stream":{"app":"old",%s},"values":[["%s","x"]]}]}`,
			members, stamp)),
		"Loki, metadata":   door("/loki/api/v1/push", js, fmt.Sprintf(`{"streams":[{"stream":{"app":"old"},"values":[["%s","ERROR x",{%s}]]}]}`, stamp, members)),
		"OTLP, attributes": door("/v1/logs", js, otlp(`"severityNumber":17,"body":{"stringValue":"x"},"attributes":[`+list+`]`)),
		"OTLP, body":       door("/v1/logs", js, otlp(`"body":{"kvlistValue":{"values":[`+list+`]}}`)),
		"HEC, event":       door("/services/collector", js, `{"time":1795168800,"source":"old","event":{`+members+`}}`),
		"HEC, fields":      door("/services/collector", js, `{"time":1795168800,"event":"x","fields":{`+members+`}}`),
		"Datadog":          door("/api/v2/logs", js, `[{"message":"x","service":"old","status":"error",`+members+`}]`),
		"GELF": door("/gelf", js, fmt.Sprintf(`{"version":"1.1","host":"h","short_message":"x","timestamp":1795168800,"level":3,"_when":%q,"_Prio":%q,"_words":%q,"_team":%q}`,
			when, prio, words, team)),
		"journald": door("/upload", "application/vnd.fdo.journal", fmt.Sprintf("__CURSOR=s=1\n__REALTIME_TIMESTAMP=1795168800257000\n_SYSTEMD_UNIT=old.service\nPRIORITY=3\nMESSAGE=x\nWHEN=%s\nPRIO=%s\nWORDS=%s\nTEAM=%s\n\n",
			when, prio, words, team)),
	}
}

// fieldNames name the four, and the members of an object.
const fieldQuery = "?_time=inner.when,when&_level=inner.prio,prio&_message=inner.words,words&_service=inner.team,team"

func fieldNames(services ...string) config.FieldNames {
	f := config.FieldNames{Services: services, Time: []string{"inner.when", "when"}, Level: []string{"inner.prio", "PRIO"}, Message: []string{"inner.words", "words"}}
	if len(services) == 0 {
		f.Service = []string{"inner.team", "team"}
	}
	return f
}

// throughDoor sends a request to an ingester with fields, and returns the lines that come of it.
func throughDoor(t *testing.T, fields config.Fields, path, form, body string) (lines []string, answer string) {
	t.Helper()
	c := config.Default()
	c.Fields = fields
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	h, err := compile(c)
	if err != nil {
		t.Fatal(err)
	}
	log := &sourcetest.Log{}
	s := httpsource.New(httpsource.Options{Accept: log, Fields: h.fields, Patience: time.Millisecond, Protocols: shippers.Protocols(shipping(c)), Now: sourcetest.Now})
	w := sourcetest.Send(s, "POST", path, strings.NewReader(body), "Content-Type", form)
	log.Valid(t)
	return log.Lines(), fmt.Sprint(w.Code, " ", w.Body)
}

// The fields that the operator or the sender names are the head behind each door, and nothing of
// the record is lost.
func TestFieldsBehindEachDoor(t *testing.T) {
	const head = `{"ts":"2026-11-21T09:00:00.500000000Z","level":"warn","service":"shop","msg":"the words"`
	for door, request := range fieldDoors("2026-11-21 10:00:00,5 +0100", "WRN", "the words", "shop") {
		for name, c := range map[string]struct {
			fields config.Fields
			query  string
		}{
			"configured":   {config.Fields{fieldNames()}, ""},
			"one service":  {config.Fields{{Services: []string{"old"}, Level: []string{"team"}}, fieldNames("sh*"), {Service: []string{"inner.team", "team"}}}, ""},
			"asked":        {nil, fieldQuery},
			"asked before": {config.Fields{{Time: []string{"x"}, Level: []string{"words"}, Message: []string{"team"}, Service: []string{"words"}}}, fieldQuery},
		} {
			path, form, body := request(c.query)
			lines, answer := throughDoor(t, c.fields, path, form, body)
			if len(lines) != 1 || !strings.HasPrefix(lines[0], head) {
				t.Errorf("%s, %s: %s: %q; want %s", door, name, answer, lines, head)
				continue
			}
			plain, _, _ := request("")
			before, _ := throughDoor(t, nil, plain, form, body)
			nothingLost(t, door, before[0], lines[0])
		}
	}
}

// nothingLost wants each value of a line, but those of others than the sender, in another line.
func nothingLost(t *testing.T, door, before, after string) {
	t.Helper()
	values := func(line string) (all []string) {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		for _, v := range fields {
			all = append(all, strings.Trim(string(v), `"`))
		}
		return all
	}
	arrived := string(record.AppendTime(nil, sourcetest.Now().UnixNano()))
	for _, v := range values(before) {
		switch v {
		case "", "unknown", arrived, "2026-11-21 10:00:00,5 +0100", "WRN":
		default:
			derived := v == "error" && strings.Contains(before, `"msg":"ERROR x"`)
			timed := strings.HasPrefix(v, "2026-11-20T10:00:00") && (strings.Contains(after, "1795168800") || strings.Contains(after, v[:19]))
			index := door == "_bulk" && v == "old"      // the name of a record that has none
			whole := strings.HasPrefix(v, `{\"when\":`) // a body without a message is one as a whole
			if !derived && !timed && !index && !whole && !strings.Contains(after, v) {
				t.Errorf("%s: %q of\n%s\nis not in\n%s", door, v, before, after)
			}
		}
	}
}

// A value that cannot be the part is passed over; a time that the sender has named has to be one.
func TestBadFieldsBehindEachDoor(t *testing.T) {
	for door, request := range fieldDoors("soon", "audit", "", "") {
		path, form, body := request("")
		before, _ := throughDoor(t, nil, path, form, body)
		lines, answer := throughDoor(t, config.Fields{fieldNames()}, path, form, body)
		if len(lines) != 1 || lines[0][:len(`{"ts":"2026-11-20T10:00:00.000000000Z"`)] != before[0][:len(`{"ts":"2026-11-20T10:00:00.000000000Z"`)] || !strings.Contains(lines[0], `"soon"`) {
			t.Errorf("%s: %s: %q; without fields %q", door, answer, lines, before)
		}
		path, form, body = request(fieldQuery)
		lines, answer = throughDoor(t, nil, path, form, body)
		if len(lines) != 1 || !strings.Contains(lines[0], `"service":"_rejected"`) || !strings.Contains(lines[0], `the field that _time names is no time: \"soon\"`) {
			t.Errorf("%s: %s: %q; want a dead letter", door, answer, lines)
		}
		if strings.HasPrefix(path, "/ingest") && !strings.Contains(answer, "the field that _time names is no time") {
			t.Errorf("%s: %s", door, answer)
		}
	}
	for door, request := range fieldDoors("2026-11-26T10:00:00Z", "warn", "m", "a") {
		path, form, body := request(fieldQuery)
		if lines, answer := throughDoor(t, nil, path, form, body); len(lines) != 1 || !strings.Contains(lines[0], "is more than 24h ahead") {
			t.Errorf("%s: %s: %q; want a dead letter", door, answer, lines)
		}
	}
}

// Lines of pairs have the level of a name too.
func TestFieldsOfPairs(t *testing.T) {
	fields := config.Fields{{Services: []string{"b"}, Level: []string{"grade"}}, {Level: []string{"prio", "sev"}}}
	for line, want := range map[string]string{
		"prio=warn msg=x":                                    "warn",
		"level=info msg=x Prio=warn":                         "warn",
		`time=2026-11-20T10:00:00Z sev="E" msg="x y"`:        "error",
		"2026-11-20T10:00:00Z sev=debug prio=warn":           "warn",
		"prio=often level=info":                              "info",
		`{"level":"info","inner":{"Prio":"E"},"sev":"warn"}`: "warn",
		`{"a":"prio=warn"}`:                                  "",
		"grade=warn":                                         "",
		"the prio=warn":                                      "",
	} {
		quoted, _ := json.Marshal(line) // a text has a form in JSON
		for door, request := range map[string][3]string{
			"text": {"/ingest/a", "text/plain", line}, "JSON": {"/ingest/a", "application/json", `{"log":` + string(quoted) + `}`},
			"HEC": {"/services/collector/raw", "text/plain", line}, "GELF": {"/gelf", "application/json", `{"host":"h","short_message":` + string(quoted) + `}`},
		} {
			lines, answer := throughDoor(t, fields, request[0], request[1], request[2])
			var got struct{ Level string }
			if len(lines) != 1 || json.Unmarshal([]byte(lines[0]), &got) != nil || got.Level != want {
				t.Errorf("%s: %q: %s %q; want %q", door, line, answer, lines, want)
			}
		}
	}
	if lines, answer := throughDoor(t, fields, "/ingest/b", "text/plain", "grade=error prio=warn"); len(lines) != 1 || record.LineLevel([]byte(lines[0])) != record.Error {
		t.Error(answer, lines)
	}
}
