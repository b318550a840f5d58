package sourcetest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"blobtail/internal/dev/testkit"
	"blobtail/record"
	"blobtail/source/datadog"
	"blobtail/source/elastic"
	"blobtail/source/gelf"
	"blobtail/source/httpsource"
	"blobtail/source/journald"
	"blobtail/source/loki"
	"blobtail/source/otlp"
	"blobtail/source/sourcetest"
	"blobtail/source/splunk"
	"blobtail/source/syslog"
)

// A door is a way in: a body around the inside of a JSON string (%[1]s), which is a name too, and
// the text of it (%[2]s).
type door struct {
	name, path, kind, body string
	protocol               httpsource.Protocol // any, where the path is of none
}

func doors() []door {
	const fields = `"%[1]s":"%[1]s","o":{"%[1]s":["%[1]s",{"%[1]s":1}]}`
	return []door{
		{"NDJSON", "/ingest/a", "application/x-ndjson", `{"msg":"%[1]s",` + fields + `}` + "\n", splunk.New()},
		{"an array", "/ingest/a", "application/json", `[ {"msg":"%[1]s", ` + fields + `} ]`, splunk.New()},
		{"a level and a service", "/ingest", "application/json", `{"level":"%[1]s","service":"%[1]s","msg":"%[1]s","ts":"%[1]s","log":{"level":"%[1]s"}}`, splunk.New()},
		{"JSON in a text", "/ingest/a", "text/plain", `{"msg":"%[1]s",` + fields + `}` + "\n", splunk.New()},
		{"text", "/ingest/a", "text/plain", "%[2]s\n", splunk.New()},
		{"no JSON", "/ingest/a", "application/json", `{"a":"%[1]s",` + "\n" + `{"msg":"%[1]s"}` + "\n", splunk.New()},
		{"_bulk", "/_bulk", "application/x-ndjson", `{"create":{"_index":"a","_id":"%[1]s"}}` + "\n" + `{"message":"%[1]s",` + fields + `}` + "\n", elastic.New(elastic.Options{})},
		{"Loki", "/loki/api/v1/push", "application/json", `{"streams":[{"stream":{"app":"a","x":"%[1]s"},"values":[["1795519265702000000","%[1]s",{"%[1]s":"%[1]s"}]]}]}`, loki.New()},
		{"OTLP", "/v1/logs", "application/json", `{"resourceLogs":[{"resource":{"attributes":[{"key":"%[1]s","value":{"stringValue":"%[1]s"}}]},"scopeLogs":[{"logRecords":[{"severityText":"%[1]s","body":{"stringValue":"%[1]s"},"attributes":[{"key":"%[1]s","value":{"kvlistValue":{"values":[{"key":"%[1]s","value":{"stringValue":"%[1]s"}}]}}}]}]}]}]}`, otlp.New(otlp.Options{})},
		{"HEC", "/services/collector/event", "application/json", `{"event":"%[1]s","host":"%[1]s","fields":{"%[1]s":"%[1]s"}}`, splunk.New()},
		{"HEC, an object", "/services/collector/event", "application/json", `{"event":{"message":"%[1]s",` + fields + `},"source":"%[1]s"}`, splunk.New()},
		{"HEC, raw", "/services/collector/raw", "text/plain", "%[2]s\n", splunk.New()},
		{"Datadog", "/api/v2/logs", "application/json", `[{"message":"%[1]s","ddtags":"%[1]s:%[1]s,%[1]s",` + fields + `}]`, datadog.New()},
		{"GELF", "/gelf", "application/json", `{"version":"1.1","host":"%[1]s","short_message":"%[1]s","_%[1]s":"%[1]s"}`, gelf.New()},
		{"journald", "/upload", "application/vnd.fdo.journal", "__CURSOR=c\n__REALTIME_TIMESTAMP=1795519265702000\nMESSAGE=%[2]s\nX_Y=%[2]s\n\n", journald.New()},
	}
}

// hostile is the inside of a JSON string with halves of surrogate pairs, bytes that are no UTF-8,
// and other parts that readers do not like.
func hostile(rng *rand.Rand) string {
	parts := []string{`\ud83d`, `\uDE00`, `\uD83D\ude00`, `\udbff`, `\ud83d\\ude00`, `\\ud83d`, `\\`, `\"`, `\/`, `\u0000`, `\u007f`, `\n`, `\u001b[0m`, "\xff", "\xed\xa0\xbd", "\xf0\x9f", "😀", `\u2028`,
		"\ufffe", "\ufeff", "a", "level", ".", " ", "=", `{`, `]`, `\u0041`, `\ufffd`, ","}
	var b strings.Builder
	for range 1 + rng.IntN(6) {
		b.WriteString(parts[rng.IntN(len(parts))])
	}
	return b.String() + "x" // a blank text is no record
}

// plain is the text of the inside of a JSON string, for doors that take text in one line.
func plain(inside string) string {
	return strings.NewReplacer("\n", " ", "\x00", " ", "\x1b", " ").Replace(string(record.AppendUnescaped(nil, []byte(inside))))
}

// strict returns the reason why a strict reader of JSON refuses a line, "" if it takes the line.
func strict(line string) string {
	var all map[string]any
	if err := json.Unmarshal([]byte(line), &all); err != nil {
		return err.Error()
	}
	if !utf8.ValidString(line) {
		return "it is not UTF-8"
	}
	for i := 0; i < len(line); i++ {
		if line[i] != '\\' {
			continue
		}
		if i++; line[i] != 'u' {
			continue
		}
		if n, _ := strconv.ParseUint(line[i+1:i+5], 16, 16); n >= 0xd800 && n < 0xe000 {
			return "half a surrogate pair" // canonical lines have whole ones as they are
		}
	}
	return ""
}

// Strict readers of JSON take the lines that any door makes of any body. Half a surrogate pair has
// one form behind all doors.
func TestStrict(t *testing.T) {
	rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
	var blob bytes.Buffer
	for range testkit.Portion(2000, 300, 60) {
		inside := hostile(rng)
		want := ""
		for _, d := range doors() {
			var log sourcetest.Log
			w := sourcetest.Send(log.Source(d.protocol), "POST", d.path, strings.NewReader(fmt.Sprintf(d.body, inside, plain(inside))), "Content-Type", d.kind)
			lines := log.Lines()
			if len(lines) == 0 && w.Code < 400 {
				t.Errorf("%s: %q: %d %s, and nothing is kept", d.name, inside, w.Code, w.Body)
			}
			for _, line := range lines {
				blob.WriteString(line + "\n")
				if bad := strict(line); bad != "" {
					t.Errorf("%s: %q: %s: %s", d.name, inside, bad, line)
				}
			}
			if strings.Contains(d.body, "[2]") || d.name == "no JSON" || len(lines) != 1 || strings.Contains(lines[0], `"_rejected"`) {
				continue
			}
			msg, ok := record.Lookup([]byte(lines[0]), "msg")
			if !ok {
				t.Fatalf("%s: no message: %s", d.name, lines[0])
			}
			if want == "" {
				want = string(msg)
			}
			if string(msg) != want {
				t.Errorf("%s: %q is %s, and %s by another door", d.name, inside, msg, want)
			}
		}
	}
	readByJQ(t, blob.Bytes())
}

// readByJQ reads lines by jq, if there is one.
func readByJQ(t *testing.T, lines []byte) {
	jq, err := exec.LookPath("jq")
	if err != nil {
		t.Log("there is no jq")
		return
	}
	cmd := exec.CommandContext(t.Context(), jq, "-c", ".ts|length")
	cmd.Stdin = bytes.NewReader(lines)
	out, err := cmd.CombinedOutput()
	if n := bytes.Count(lines, []byte("\n")); err != nil || n != strings.Count(string(out), "30\n") {
		t.Errorf("jq reads not all of %d lines: %v; %.300s", n, err, bytes.ReplaceAll(out, []byte("30\n"), nil))
	}
}

// Lines from syslog are strict JSON too.
func TestStrictSyslog(t *testing.T) {
	rng := rand.New(rand.NewPCG(rand.Uint64(), 2))
	var log sourcetest.Log
	s := syslog.New(syslog.Options{Accept: &log, Zone: time.UTC, Now: sourcetest.Now})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(t.Context(), l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const messages = 200
	for range messages {
		text := plain(hostile(rng))
		if _, err := fmt.Fprintf(conn, "<11>1 2026-11-24T11:21:05Z h%s app 1 - [x@1 k=\"%s\"] m %s\n", strings.ReplaceAll(text, " ", ""), text, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); len(log.Lines()) < messages && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	var blob bytes.Buffer
	for _, line := range log.Lines() {
		blob.WriteString(line + "\n")
		if bad := strict(line); bad != "" {
			t.Errorf("%s: %s", bad, line)
		}
	}
	if n := len(log.Lines()); n < messages {
		t.Errorf("%d of %d messages", n, messages)
	}
	readByJQ(t, blob.Bytes())
}
