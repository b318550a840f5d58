package meaning_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"blobtail/record"
	"blobtail/record/meaning"
)

const (
	arrival   = 1795187045_000000007
	arrivalTs = "2026-11-20T15:04:05.000000007Z"
	own       = "2020-01-02T03:04:05.000000000Z"
)

// scanLine is the canonical line of src without its newline.
func scanLine(t *testing.T, src string, d meaning.Defaults) (string, record.Stamp) {
	t.Helper()
	p := meaning.NewReader()
	n, err := p.Scan([]byte(src))
	if err != nil || n != len(src) {
		t.Fatalf("Scan(%s) = %d, %v", src, n, err)
	}
	line, stamp := p.AppendLine([]byte("before"), &d)
	rest, ok := strings.CutPrefix(string(line), "before")
	rest, nl := strings.CutSuffix(rest, "\n")
	if !ok || !nl || strings.Contains(rest, "\n") || !json.Valid([]byte(rest)) {
		t.Fatalf("AppendLine of %s: %q", src, line)
	}
	return rest, stamp
}

func TestAppendLine(t *testing.T) {
	// In want, T stands for the time of arrival and O for the record's own.
	for _, row := range []struct{ name, service, src, want string }{
		{"nothing", "", `{}`, `{"ts":"T","level":"","service":"unknown","msg":""}`},
		{"canonical", "", `{"ts":"O","level":"error","service":"web","msg":"m","a":1}`, `{"ts":"O","level":"error","service":"web","msg":"m","a":1}`},
		{"order", "", `{"a":1,"msg":"m","b":2,"service":"web","level":"error","ts":"O","c":3}`, `{"ts":"O","level":"error","service":"web","msg":"m","a":1,"b":2,"c":3}`},
		{"spaces", "", "{ \"a\" : 1 ,\t\"b\" :\n[ 1 , { \"c\" : \"x y\" } ] , \"d\":2 , \"e\":3,\"f\":4\r\n}", `{"ts":"T","level":"","service":"unknown","msg":"","a":1,"b":[1,{"c":"x y"}],"d":2,"e":3,"f":4}`},
		{"numbers as they are", "", `{"a":1.0,"b":1E+2,"c":-0,"d":123456789012345678901234567890}`, `{"ts":"T","level":"","service":"unknown","msg":"","a":1.0,"b":1E+2,"c":-0,"d":123456789012345678901234567890}`},

		// A repeated key gets a number.
		{"twice", "", `{"a":1,"b":2,"a":3}`, `{"ts":"T","level":"","service":"unknown","msg":"","a":1,"b":2,"a.2":3}`},
		{"three times", "", `{"a":1,"a":2,"a":3}`, `{"ts":"T","level":"","service":"unknown","msg":"","a":1,"a.2":2,"a.3":3}`},
		{"its other name taken", "", `{"a":1,"a":2,"a.2":3,"a.2":4}`, `{"ts":"T","level":"","service":"unknown","msg":"","a":1,"a.3":2,"a.2":3,"a.2.2":4}`},
		{"twice, escaped", "", `{"a":1,"\u0061":2,"\/":3,"/":4,"é":5,"\u00E9":6,"":7,"":8}`, `{"ts":"T","level":"","service":"unknown","msg":"","a":1,"a.2":2,"/":3,"/.2":4,"é":5,"é.2":6,"":7,".2":8}`},
		{"twice, one canonical form", "", "{\"\xff\":1,\"\\\\xff\":2}", `{"ts":"T","level":"","service":"unknown","msg":"","\\xff":1,"\\xff.2":2}`},
		{"twice, long", "", `{"abcdefghij":1,"abcdefghij":2}`, `{"ts":"T","level":"","service":"unknown","msg":"","abcdefghij":1,"abcdefghij.2":2}`},
		{"nested twice", "", `{"a":{"b":1,"b":2}}`, `{"ts":"T","level":"","service":"unknown","msg":"","a":{"b":1,"b.2":2}}`},
		{"nested twice, deeper", "", `{"a":[{"b":{"c" : 1,"c":[2],"\u0063":3,"c.2":4}},{"b":1}]}`, `{"ts":"T","level":"","service":"unknown","msg":"","a":[{"b":{"c":1,"c.3":[2],"c.4":3,"c.2":4}},{"b":1}]}`},
		{"no repeats", "", `{"a":[{"b":1},{"b":2,"c":{"b":3}}]}`, `{"ts":"T","level":"","service":"unknown","msg":"","a":[{"b":1},{"b":2,"c":{"b":3}}]}`},
		{"twice in a message", "", `{"msg":{"b":1,"b":2}}`, `{"ts":"T","level":"","service":"unknown","msg":"{\"b\":1,\"b.2\":2}"}`},
		{"a second time", "", `{"time":"O","level":"error","time":"2026-11-20T10:00:00Z"}`, `{"ts":"O","level":"error","service":"unknown","msg":"","time.2":"2026-11-20T10:00:00Z"}`},
		{"the first that is usable", "", `{"time":"soon","time":"O","level":"","level":"error","msg":null,"msg":"m","service":"","service":"web"}`, `{"ts":"O","level":"error","service":"web","msg":"m","time":"soon"}`},
		{"a word of its own, twice", "", `{"level":"gold","level":"warn"}`, `{"ts":"T","level":"warn","service":"unknown","msg":"","level.original":"gold"}`},
		{"in two cases", "", `{"Level":"gold","level":"warn","LEVEL":"info"}`, `{"ts":"T","level":"warn","service":"unknown","msg":"","Level":"gold","LEVEL":"info"}`},

		// The first name of each list is used, the others stay.
		{"second names", "", `{"time":"O","severity":"warn","message":"m","service.name":"web"}`, `{"ts":"O","level":"warn","service":"web","msg":"m"}`},
		{"third names", "", `{"timestamp":"O","lvl":"warn","log":"m","app":"web"}`, `{"ts":"O","level":"warn","service":"web","msg":"m"}`},
		{"last names", "", `{"@timestamp":"O","log.level":"warn"}`, `{"ts":"O","level":"warn","service":"unknown","msg":""}`},
		{"date", "", `{"date":1577934245.0}`, `{"ts":"O","level":"","service":"unknown","msg":""}`},
		{"all of them", "", `{"date":1,"time":2,"ts":"O","lvl":3,"level":"info","log":4,"message":5,"msg":"m","app":"6","service.name":"7","service":"web","log.level":8}`,
			`{"ts":"O","level":"info","service":"web","msg":"m","date":1,"time":2,"lvl":3,"log":4,"message":5,"app":"6","service.name":"7","log.level":8}`},
		{"names are compared unescaped", "", `{"\u0074s":"O","lev\u0065l":"info","m\u0073g":"m","servic\u0065":"web"}`, `{"ts":"O","level":"info","service":"web","msg":"m"}`},
		{"in any case", "", `{"Level":"info","MSG":"m","TimeStamp":"O"}`, `{"ts":"O","level":"info","service":"unknown","msg":"m"}`},
		{".NET", "", `{"Timestamp":"O","EventId":0,"LogLevel":"Error","Category":"App","Message":"failed"}`, `{"ts":"O","level":"error","service":"unknown","msg":"failed","EventId":0,"Category":"App"}`},
		{"Serilog", "", `{"@t":"O","@mt":"Hello, {n}","@m":"Hello, ann","@l":"Warning","n":"ann"}`, `{"ts":"O","level":"warn","service":"unknown","msg":"Hello, ann","@mt":"Hello, {n}","n":"ann"}`},
		{"Serilog's template", "", `{"@t":"O","@mt":"Hello, {n}","n":"ann"}`, `{"ts":"O","level":"info","service":"unknown","msg":"Hello, {n}","n":"ann"}`},
		{"structlog", "", `{"event":"logged in","level":"info","timestamp":"O"}`, `{"ts":"O","level":"info","service":"unknown","msg":"logged in"}`},
		{"tslog, a transport", "", `{"0":"m","_logMeta":{"date":"O","logLevelId":0,"logLevelName":"SILLY"}}`, `{"ts":"O","level":"trace","service":"unknown","msg":"","0":"m","_logMeta":{"date":"O","logLevelId":0,"logLevelName":"SILLY"}}`},
		{"tslog 4", "", `{"0":"m","_meta":{"date":"O","logLevelName":"WARN"}}`, `{"ts":"O","level":"warn","service":"unknown","msg":"","0":"m","_meta":{"date":"O","logLevelName":"WARN"}}`},
		{"tslog, no time", "", `{"_meta":{"date":"soon"},"_logMeta":{"date":"O"}}`, `{"ts":"O","level":"","service":"unknown","msg":"","_meta":{"date":"soon"},"_logMeta":{"date":"O"}}`},
		{"python-json-logger", "", `{"asctime":"O","levelname":"WARNING","levelno":30,"message":"m"}`, `{"ts":"O","level":"warn","service":"unknown","msg":"m","levelno":30}`},
		{"log4j2", "", `{"timeMillis":1577934245000,"level":"ERROR","message":"m"}`, `{"ts":"O","level":"error","service":"unknown","msg":"m"}`},
		{"PostgreSQL", "", `{"timestamp":"O","error_severity":"FATAL","message":"m"}`, `{"ts":"O","level":"critical","service":"unknown","msg":"m"}`},
		{"VictoriaLogs", "", `{"_time":"O","_msg":"m","level":"error"}`, `{"ts":"O","level":"error","service":"unknown","msg":"m"}`},
		{"Google", "", `{"severity":"ERROR","timestamp":"O","jsonPayload":{"message":"m","a":1}}`, `{"ts":"O","level":"error","service":"unknown","msg":"m","jsonPayload":{"message":"m","a":1}}`},
		{"tracing", "", `{"timestamp":"O","level":"INFO","fields":{"message":"m","a":1}}`, `{"ts":"O","level":"info","service":"unknown","msg":"m","fields":{"message":"m","a":1}}`},
		{"loguru", "", `{"text":"m\n","record":{"level":{"name":"WARNING","no":30},"message":"m"}}`, `{"ts":"T","level":"warn","service":"unknown","msg":"m","text":"m\n","record":{"level":{"name":"WARNING","no":30},"message":"m"}}`},
		{"loguru's time", "", `{"text":"m\n","record":{"message":"m","time":{"repr":"late","timestamp":1795168806.257}}}`, `{"ts":"2026-11-20T10:00:06.257000000Z","level":"","service":"unknown","msg":"m","text":"m\n","record":{"message":"m","time":{"repr":"late","timestamp":1795168806.257}}}`},
		{"words for numbers", "", `{"a":NaN,"b":[-Infinity,{"c":Infinity}],"msg":"NaN"}`, `{"ts":"T","level":"","service":"unknown","msg":"NaN","a":"NaN","b":["-Infinity",{"c":"Infinity"}]}`},
		{"control characters", "", "{\"msg\":\"a\tb\x1b[0m\\\"\x00\"}", `{"ts":"T","level":"","service":"unknown","msg":"a\tb\u001b[0m\"\u0000"}`},
		{"Docker", "", `{"log":"a\n","stream":"stdout"}`, `{"ts":"T","level":"","service":"unknown","msg":"a","stream":"stdout"}`},
		{"a backslash and an n", "", `{"log":"a\\n"}`, `{"ts":"T","level":"","service":"unknown","msg":"a\\n"}`},
		{"Fluent Bit", "", `{"log":"m","kubernetes":{"container_name":"api"}}`, `{"ts":"T","level":"","service":"api","msg":"m","kubernetes":{"container_name":"api"}}`},
		{"hclog", "", `{"@level":"info","@message":"m","@timestamp":"O"}`, `{"ts":"O","level":"info","service":"unknown","msg":"m"}`},
		{"MongoDB", "", `{"s":"W","c":"NETWORK","msg":"m"}`, `{"ts":"T","level":"warn","service":"unknown","msg":"m","s":"W","c":"NETWORK"}`},
		{"numbers by their name", "", `{"levelno":40}`, `{"ts":"T","level":"error","service":"unknown","msg":""}`},
		{"OpenTelemetry's number", "", `{"severity_number":17}`, `{"ts":"T","level":"error","service":"unknown","msg":""}`},
		{"an object is no message", "", `{"message":{"a":1},"event":"e"}`, `{"ts":"T","level":"","service":"unknown","msg":"e","message":{"a":1}}`},
		{"an object is no message, its own name", "", `{"msg":{"a":1},"message":"m"}`, `{"ts":"T","level":"","service":"unknown","msg":"m","msg.original":{"a":1}}`},
		{"an event that is an object", "", `{"event":{"kind":"x"}}`, `{"ts":"T","level":"","service":"unknown","msg":"","event":{"kind":"x"}}`},
		{"a word that is none before one that is", "", `{"level":"gold","severity":"error"}`, `{"ts":"T","level":"error","service":"unknown","msg":"","level.original":"gold"}`},
		{"a number that is none before a word", "", `{"level":300,"level_name":"WARNING"}`, `{"ts":"T","level":"warn","service":"unknown","msg":"","level.original":300}`},
		{"a label is no level", "", `{"label":"api","priority":1,"s":"error"}`, `{"ts":"T","level":"","service":"unknown","msg":"","label":"api","priority":1,"s":"error"}`},
		{"another name for the service stays", "web", `{"application":"A"}`, `{"ts":"T","level":"","service":"web","msg":"","application":"A"}`},
		{"another name for the service", "", `{"application":"A b"}`, `{"ts":"T","level":"","service":"a-b","msg":"","application":"A b"}`},
		{"a count is no time", "", `{"t":0.25,"created":7}`, `{"ts":"T","level":"","service":"unknown","msg":"","t":0.25,"created":7}`},

		// Times.
		{"milliseconds", "", `{"ts":1577934245000}`, `{"ts":"O","level":"","service":"unknown","msg":""}`},
		{"number in a string", "", `{"ts":"1577934245"}`, `{"ts":"O","level":"","service":"unknown","msg":""}`},
		{"escaped", "", `{"ts":"2020-01-02\u005403:04:05\u002e000000000Z"}`, `{"ts":"O","level":"","service":"unknown","msg":""}`},
		{"an unreadable name is passed over", "", `{"time":"soon","timestamp":"O"}`, `{"ts":"O","level":"","service":"unknown","msg":"","time":"soon"}`},
		{"nulls, empties and zeros are passed over", "", `{"time":null,"timestamp":"","@timestamp":0,"date":"O"}`, `{"ts":"O","level":"","service":"unknown","msg":"","time":null,"timestamp":"","@timestamp":0}`},
		{"out of range", "", `{"time":"9999-12-31T00:00:00Z"}`, `{"ts":"T","level":"","service":"unknown","msg":"","time":"9999-12-31T00:00:00Z"}`},
		{"no such day", "", `{"time":"2026-02-30T00:00:00.000000000Z"}`, `{"ts":"T","level":"","service":"unknown","msg":"","time":"2026-02-30T00:00:00.000000000Z"}`},
		{"no such type", "", `{"time":{"seconds":1},"timestamp":[1],"date":true}`, `{"ts":"T","level":"","service":"unknown","msg":"","time":{"seconds":1},"timestamp":[1],"date":true}`},
		{"ts unreadable", "", `{"a":1,"ts":"soon","b":2}`, `{"ts":"T","level":"","service":"unknown","msg":"","a":1,"ts.original":"soon","b":2}`},
		{"ts unreadable, time not", "", `{"ts":{"a": 1},"time":"O"}`, `{"ts":"O","level":"","service":"unknown","msg":"","ts.original":{"a":1}}`},
		{"ts unreadable, its other name taken", "", `{"ts.original":1,"ts":"soon","ts.original.2":2,"ts.original.x":3}`, `{"ts":"T","level":"","service":"unknown","msg":"","ts.original":1,"ts.original.3":"soon","ts.original.2":2,"ts.original.x":3}`},
		{"ts empty", "", `{"ts":"","a":1}`, `{"ts":"T","level":"","service":"unknown","msg":"","a":1}`},
		{"ts null", "", `{"ts":null,"a":1}`, `{"ts":"T","level":"","service":"unknown","msg":"","a":1}`},
		{"ts zero", "", `{"ts":0.0,"a":1}`, `{"ts":"T","level":"","service":"unknown","msg":"","a":1}`},
		{"ts zero in a string", "", `{"ts":"0","time":"O"}`, `{"ts":"O","level":"","service":"unknown","msg":""}`},
		{"1970 is a time", "", `{"ts":"1970-01-01T00:00:00Z"}`, `{"ts":"1970-01-01T00:00:00.000000000Z","level":"","service":"unknown","msg":""}`},
		{"leap second", "", `{"ts":"2016-12-31T23:59:60.000000000Z"}`, `{"ts":"2017-01-01T00:00:00.000000000Z","level":"","service":"unknown","msg":""}`},

		// Levels.
		{"alias", "", `{"level":" WARNING"}`, `{"ts":"T","level":"warn","service":"unknown","msg":""}`},
		{"pino", "", `{"level":30}`, `{"ts":"T","level":"info","service":"unknown","msg":""}`},
		{"syslog in a string", "", `{"level":"3"}`, `{"ts":"T","level":"error","service":"unknown","msg":""}`},
		{"escaped alias", "", `{"level":"\u0069nfo\n"}`, `{"ts":"T","level":"info","service":"unknown","msg":""}`},
		{"another word", "", `{"level":" \u0041udit\/\u00e9"}`, `{"ts":"T","level":" Audit/é","service":"unknown","msg":""}`},
		{"a long word", "", `{"level":"informational-ish"}`, `{"ts":"T","level":"informational-ish","service":"unknown","msg":""}`},
		{"another number", "", `{"level":35}`, `{"ts":"T","level":"","service":"unknown","msg":"","level.original":35}`},
		{"null level", "", `{"level":null,"severity":"info"}`, `{"ts":"T","level":"info","service":"unknown","msg":""}`},
		{"empty level", "", `{"level":"","severity":"info"}`, `{"ts":"T","level":"info","service":"unknown","msg":""}`},
		{"empty level alone", "", `{"level":""}`, `{"ts":"T","level":"","service":"unknown","msg":""}`},
		{"coloured level", "", `{"level":"\u001b[31merror\u001b[39m"}`, `{"ts":"T","level":"error","service":"unknown","msg":""}`},
		{"level with a step", "", `{"level":"DEBUG-4"}`, `{"ts":"T","level":"debug","service":"unknown","msg":""}`},
		{"true", "", `{"level":true}`, `{"ts":"T","level":"","service":"unknown","msg":"","level.original":true}`},
		{"object", "", `{"level":{"a": "b"}}`, `{"ts":"T","level":"","service":"unknown","msg":"","level.original":{"a":"b"}}`},

		// Those of the Elastic Common Schema.
		{"nested", "", `{"log":{"logger":"a","level":"WARN"},"message":"m"}`, `{"ts":"T","level":"warn","service":"unknown","msg":"m","log":{"logger":"a","level":"WARN"}}`},
		{"nested, with spaces", "", `{"log" : { "a" : [ { "level" : 1 } ] , "level" : "error" } }`, `{"ts":"T","level":"error","service":"unknown","msg":"","log":{"a":[{"level":1}],"level":"error"}}`},
		{"nested, escaped", "", `{"log":{"level":"\u0069nfo"}}`, `{"ts":"T","level":"info","service":"unknown","msg":"","log":{"level":"info"}}`},
		{"nested, another word", "", `{"log":{"level":"au\u0064it\/\n"}}`, `{"ts":"T","level":"audit/\n","service":"unknown","msg":"","log":{"level":"audit/\n"}}`},
		{"nested, a number", "", `{"log":{"level":50}}`, `{"ts":"T","level":"error","service":"unknown","msg":"","log":{"level":50}}`},
		{"nested, another number", "", `{"log":{"level":7.25}}`, `{"ts":"T","level":"","service":"unknown","msg":"","log":{"level":7.25}}`},
		{"nested, no word", "", `{"log":{"level":{"a":1}}}`, `{"ts":"T","level":"","service":"unknown","msg":"","log":{"level":{"a":1}}}`},
		{"nested, the first counts", "", `{"log":{"level":"info","level":"error"}}`, `{"ts":"T","level":"info","service":"unknown","msg":"","log":{"level":"info","level.2":"error"}}`},
		{"nested, flat names first", "", `{"log":{"level":"error"},"log.level":"info"}`, `{"ts":"T","level":"info","service":"unknown","msg":"","log":{"level":"error"}}`},
		{"all of that schema", "", `{"@timestamp":"O","log.level":"info","message":"m","ecs":{"version":"8.10.0"},"service":{"name":"web","version":"1"},"event":{"dataset":"web.log"},"error":{"message":"no"}}`,
			`{"ts":"O","level":"info","service":"web","msg":"m","ecs":{"version":"8.10.0"},"service.original":{"name":"web","version":"1"},"event":{"dataset":"web.log"},"error":{"message":"no"}}`},

		// Messages.
		{"null message", "", `{"msg":null}`, `{"ts":"T","level":"","service":"unknown","msg":""}`},
		{"number", "", `{"msg":1.50}`, `{"ts":"T","level":"","service":"unknown","msg":"1.50"}`},
		{"array", "", `{"msg":[1, "a\"b\u00e9",null]}`, `{"ts":"T","level":"","service":"unknown","msg":"[1,\"a\\\"bé\",null]"}`},

		{"object log is no message", "", `{"log":{"file":{"path":"/x"}}}`, `{"ts":"T","level":"","service":"unknown","msg":"","log":{"file":{"path":"/x"}}}`},
		{"array log is one", "", `{"log":[1]}`, `{"ts":"T","level":"","service":"unknown","msg":"[1]"}`},

		// Services.
		{"folded", "", `{"service":"My Web"}`, `{"ts":"T","level":"","service":"my-web","msg":"","service.name":"My Web"}`},
		{"in its place", "", `{"a":1,"service":"Web","b":2}`, `{"ts":"T","level":"","service":"web","msg":"","a":1,"service.name":"Web","b":2}`},
		{"path wins", "web", `{"service":"db"}`, `{"ts":"T","level":"","service":"web","msg":"","service.name":"db"}`},
		{"path says the same", "web", `{"service":"web","app":"x"}`, `{"ts":"T","level":"","service":"web","msg":"","app":"x"}`},
		{"path and another case", "web", `{"service":"WEB"}`, `{"ts":"T","level":"","service":"web","msg":"","service.name":"WEB"}`},
		{"service.name stays where it is", "web", `{"a":1,"service.name":"db","b":2}`, `{"ts":"T","level":"","service":"web","msg":"","a":1,"service.name":"db","b":2}`},
		{"app", "", `{"app":"Web"}`, `{"ts":"T","level":"","service":"web","msg":"","service.name":"Web"}`},
		{"service.name taken", "", `{"service":"Web","service.name":"x"}`, `{"ts":"T","level":"","service":"web","msg":"","service.original":"Web","service.name":"x"}`},
		{"service.original taken too", "", `{"service":"Web","service.name":"x","service.original":"y"}`, `{"ts":"T","level":"","service":"web","msg":"","service.original.2":"Web","service.name":"x","service.original":"y"}`},
		{"system", "", `{"service":"_rejected"}`, `{"ts":"T","level":"","service":"rejected","msg":"","service.name":"_rejected"}`},
		{"empty service", "", `{"service":""}`, `{"ts":"T","level":"","service":"unknown","msg":""}`},
		{"null service", "web", `{"service":null}`, `{"ts":"T","level":"","service":"web","msg":""}`},
		{"number as service", "", `{"service":42}`, `{"ts":"T","level":"","service":"42","msg":""}`},
		{"object as service", "", `{"a":1,"service":{"version":"2","name": "My Web"},"b":2}`, `{"ts":"T","level":"","service":"my-web","msg":"","a":1,"service.original":{"version":"2","name":"My Web"},"b":2}`},
		{"object as service, path wins", "db", `{"service":{"name":"web"}}`, `{"ts":"T","level":"","service":"db","msg":"","service.original":{"name":"web"}}`},
		{"object as service, escaped name", "", `{"service":{"name":"w\u0065b"}}`, `{"ts":"T","level":"","service":"web","msg":"","service.original":{"name":"web"}}`},
		{"object as service, its other name taken", "", `{"service":{"name":"web"},"service.original":1}`, `{"ts":"T","level":"","service":"web","msg":"","service.original.2":{"name":"web"},"service.original":1}`},
		{"object as service, name in an inner object", "", `{"service":{"node":{"name":"n1"}}}`, `{"ts":"T","level":"","service":"unknown","msg":"","service.original":{"node":{"name":"n1"}}}`},
		{"object as service without a name, other names", "", `{"service":{"id":1},"service.name":"x y","app":"z"}`, `{"ts":"T","level":"","service":"x-y","msg":"","service.original":{"id":1},"service.name":"x y","app":"z"}`},
		{"object as service without a name, app", "", `{"service":{},"app":"X"}`, `{"ts":"T","level":"","service":"x","msg":"","service.original":{},"service.name":"X"}`},
		{"object as service, names of no use", "", `{"service":{"name":""}}`, `{"ts":"T","level":"","service":"unknown","msg":"","service.original":{"name":""}}`},
		{"object as service, name a number", "", `{"service":{"name":7}}`, `{"ts":"T","level":"","service":"unknown","msg":"","service.original":{"name":7}}`},
		{"escaped service", "", `{"service":"w\u0065b"}`, `{"ts":"T","level":"","service":"web","msg":""}`},
		{"nothing to fold", "", `{"service":"--"}`, `{"ts":"T","level":"","service":"unknown","msg":"","service.name":"--"}`},

		// Escapes.
		{"decoded", "", `{"\u006b\/":"\u00e9\/\u003c\ud83d\ude00\u007f"}`, "{\"ts\":\"T\",\"level\":\"\",\"service\":\"unknown\",\"msg\":\"\",\"k/\":\"é/<😀\x7f\"}"},
		{"needed", "", `{"a":"\u0022\u005C\u0008\u000C\u000a\u000D\u0009\u0000\u001F"}`, `{"ts":"T","level":"","service":"unknown","msg":"","a":"\"\\\b\f\n\r\t\u0000\u001f"}`},
		{"short ones beside others", "", `{"a":"\/\b\f\n\r\t\"\\"}`, `{"ts":"T","level":"","service":"unknown","msg":"","a":"/\b\f\n\r\t\"\\"}`},
		{"lone surrogates", "", `{"a":"\uD83Dx\uDE00\uD83D\u0041\uD83D"}`, `{"ts":"T","level":"","service":"unknown","msg":"","a":"\\ud83dx\\ude00\\ud83dA\\ud83d"}`},
		{"lone surrogates in names, inside and as words", "", `{"\uDC00":[{"\ud800\ud800":"\ud83d\ude00"}],"level":"\uD83d","msg":"\uD83d\\","service":"\uD83d"}`, `{"ts":"T","level":"\\ud83d","service":"ud83d","msg":"\\ud83d\\","\\udc00":[{"\\ud800\\ud800":"😀"}],"service.name":"\\ud83d"}`},
		{"not UTF-8", "", "{\"a\xff\":\"\xc3(\xe2\x82\xed\xa0\x80é\"}", `{"ts":"T","level":"","service":"unknown","msg":"","a\\xff":"\\xc3(\\xe2\\x82\\xed\\xa0\\x80é"}`},
		{"in msg", "", "{\"msg\":\"\\u00e9\xff\\/\"}", `{"ts":"T","level":"","service":"unknown","msg":"é\\xff/"}`},
		{"deep inside", "", "{\"a\":[{\"\\u0062\":\"\xff\\/\"}]}", `{"ts":"T","level":"","service":"unknown","msg":"","a":[{"b":"\\xff/"}]}`},
		{"between plain ones", "", `{"a":1,"b":2,"c":"\/","d":4,"e":5}`, `{"ts":"T","level":"","service":"unknown","msg":"","a":1,"b":2,"c":"/","d":4,"e":5}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			expand := strings.NewReplacer(`"O"`, `"`+own+`"`, `"T"`, `"`+arrivalTs+`"`)
			d := meaning.Defaults{Service: row.service, Time: arrival}
			want := expand.Replace(row.want)
			got, stamp := scanLine(t, expand.Replace(row.src), d)
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			checkStamp(t, []byte(got+"\n"), stamp)
			if stamp.OwnTime == strings.Contains(got, arrivalTs) {
				t.Errorf("OwnTime = %v: %s", stamp.OwnTime, got)
			}
			if again, _ := scanLine(t, got, d); again != got {
				t.Errorf("the line of the line: %s", again)
			}
		})
	}
}

// If there are more services than a parser remembers, each is still folded correctly.
func TestManyServices(t *testing.T) {
	p := meaning.NewReader()
	for i := range 3000 {
		for _, k := range []int{i, i, i - i%50} {
			name := fmt.Sprintf("Svc %d%s", k, strings.Repeat("x", k%300))
			if k%2 == 0 {
				name = record.FoldService(name)
			}
			want := record.FoldService(name)
			if _, err := p.Scan(fmt.Appendf(nil, `{"service":%q}`, name)); err != nil {
				t.Fatal(err)
			}
			line, stamp := p.AppendLine(nil, &meaning.Defaults{Time: arrival})
			kept := strings.Contains(string(line), `"service.name":"`+name+`"`)
			if stamp.Service != want || kept != (name != want) {
				t.Fatalf("%q: %s, want %s: %s", name, stamp.Service, want, line)
			}
		}
	}
}

// checkStamp compares a line with its stamp.
func checkStamp(t *testing.T, line []byte, s record.Stamp) {
	t.Helper()
	if ns, ok := record.LineTime(line); !ok || ns != s.Time {
		t.Errorf("LineTime = %d, %v; stamp %d", ns, ok, s.Time)
	}
	if l := record.LineLevel(line); l != s.Level {
		t.Errorf("LineLevel = %v; stamp %v", l, s.Level)
	}
	off, ok := record.LineMsg(line)
	head := `","service":"` + s.Service + `","msg":"`
	if !ok || !bytes.HasSuffix(line[:off], []byte(head)) {
		t.Errorf("LineMsg = %d, %v in %s", off, ok, line)
	}
	if service, ok := record.LineService(line); !ok || string(service) != s.Service {
		t.Errorf("LineService = %q, %v in %s", service, ok, line)
	}
	if !record.ValidService(s.Service) {
		t.Errorf("service %q is not valid", s.Service)
	}
}

// textLine appends the line of a record that is only a text.
func textLine(p *meaning.Reader, dst, text []byte, d meaning.Defaults) ([]byte, record.Stamp) {
	line, stamp, err := p.Begin(dst, meaning.Head{Msg: text}, &d).End()
	if err != nil {
		panic(err)
	}
	return line, stamp
}

func TestTextLine(t *testing.T) {
	p := meaning.NewReader()
	for _, row := range [][2]string{
		{"", ""},
		{"plain", "plain"},
		{`say "hi" \o/`, `say \"hi\" \\o/`},
		{"a\tb\x00\x1b[0m\x7f\r\n", `a\tb\u0000\u001b[0m` + "\x7f" + `\r\n`},
		{"é😀\u2028", "é😀\u2028"},
		{"\xff\xc3(\xed\xa0\x80", `\\xff\\xc3(\\xed\\xa0\\x80`},
		{"\ufffd", "\ufffd"},
	} {
		for service, stored := range map[string]string{"": "unknown", "web": "web"} {
			line, s := textLine(p, nil, []byte(row[0]), meaning.Defaults{Service: service, Time: arrival})
			want := `{"ts":"` + arrivalTs + `","level":"","service":"` + stored + `","msg":"` + row[1] + "\"}\n"
			if string(line) != want || s != (record.Stamp{Time: arrival, Level: record.Other, Service: stored}) {
				t.Errorf("the line of text %q = %s%+v, want %s", row[0], line, s, want)
			}
		}
	}
}

func TestAppendRejected(t *testing.T) {
	head := `{"ts":"` + arrivalTs + `","level":"warn","service":"_rejected","msg":"`
	big := strings.Repeat("x", record.MaxRejected-1)
	junk := strings.Repeat("\x80", record.MaxRejected+1)
	for _, row := range []struct {
		name string
		in   meaning.Rejected
		want string
	}{
		{"small", meaning.Rejected{Raw: []byte("{\"a\":\xff"), Reason: `duplicate key "a"`, Source: "/ingest/web", Line: 3, Service: "web"},
			`{\"a\":\\xff","reason":"duplicate key \"a\"","bytes":6,"source":"/ingest/web","line":3,"service.name":"web"}`},
		{"no service", meaning.Rejected{Raw: []byte("a\nb"), Reason: "r", Source: "s"}, `a\nb","reason":"r","bytes":3,"source":"s","line":0}`},
		{"as long as may be", meaning.Rejected{Raw: []byte(big + "x")}, big + `x","reason":"","bytes":262144,"source":"","line":0}`},
		{"cut", meaning.Rejected{Raw: []byte(big + "xy")}, big + `x","reason":"","bytes":262145,"source":"","line":0}`},
		{"cut before a character", meaning.Rejected{Raw: []byte(big + "é")}, big + `","reason":"","bytes":262145,"source":"","line":0}`},
		{"no characters at all", meaning.Rejected{Raw: []byte(junk)}, strings.Repeat(`\\x80`, record.MaxRejected) + `","reason":"","bytes":262145,"source":"","line":0}`},
	} {
		row.in.Time = arrival
		if got := string(meaning.NewReader().AppendRejected(nil, row.in)); got != head+row.want+"\n" {
			t.Errorf("%s: %.300s, want %.300s", row.name, got, head+row.want)
		} else if !json.Valid([]byte(got)) {
			t.Errorf("%s: not JSON", row.name)
		}
	}
}

// Lines that are not canonical are recognised, or at least read without harm.
func TestLineOfOtherThings(t *testing.T) {
	line, _ := textLine(meaning.NewReader(), nil, []byte("m"), meaning.Defaults{Time: arrival})
	for n := range len(line) {
		cut := line[:n]
		if _, ok := record.LineTime(cut); ok && n < 48 {
			t.Errorf("LineTime took %s", cut)
		}
		if off, ok := record.LineMsg(cut); ok && off > n {
			t.Errorf("LineMsg = %d in %s", off, cut)
		}
		if _, ok := record.LineService(cut); ok && !bytes.Contains(cut, []byte(`"msg":"`)) {
			t.Errorf("LineService took %s", cut)
		}
		record.LineLevel(cut)
	}
	for _, other := range []string{"", "{}", strings.Repeat("x", 100), strings.Replace(string(line), `"level"`, `"lexel"`, 1)} {
		if l := record.LineLevel([]byte(other)); l != record.Other {
			t.Errorf("LineLevel(%s) = %v", other, l)
		}
	}
}

// A parser allocates nothing for ordinary records.
func TestNoAllocation(t *testing.T) {
	p := meaning.NewReader()
	data := corpus(50)
	dst := make([]byte, 0, 2*len(data))
	allocs := testing.AllocsPerRun(20, func() {
		dst = dst[:0]
		for rest := data; len(rest) > 0; {
			n, err := p.Scan(rest)
			if err != nil {
				t.Fatal(err)
			}
			dst, _ = p.AppendLine(dst, &meaning.Defaults{})
			rest = rest[n+1:]
		}
	})
	if allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// The level of a line is that of its word alone, and words like it are no levels.
func TestLineLevel(t *testing.T) {
	p := meaning.NewReader()
	for l := range record.Other {
		word := l.String()
		for _, tc := range []struct {
			word string
			want record.Level
		}{{word, l}, {word + "x", record.Other}, {word + " s", record.Other}, {"x" + word, record.Other}, {word[:len(word)-1] + "_", record.Other}, {"", record.Other}, {`\"`, record.Other}, {"\x00", record.Other}} {
			line, stamp, err := p.Begin(nil, meaning.Head{Level: []byte(tc.word)}, &meaning.Defaults{Time: arrival}).End()
			if err != nil {
				t.Fatal(err)
			}
			if got := record.LineLevel(line); got != tc.want || got != stamp.Level {
				t.Errorf("%q: %v, want %v; stamp %v", tc.word, got, tc.want, stamp.Level)
			}
		}
	}
}
