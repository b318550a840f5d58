package interop_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"blobtail/internal/dev/testenv"
)

// collector returns a ship function that runs the Collector. It gets the records as OTLP.
func collector(compression, encoding string) func(*run) map[string]bool {
	return func(r *run) map[string]bool {
		input := freePorts(r.t, 1)[0]
		config := r.render("collector.yaml", input)
		text, err := os.ReadFile(config)
		if err == nil {
			text = []byte(strings.NewReplacer("@COMPRESSION@", compression, "@ENCODING@", encoding).Replace(string(text)))
			err = os.WriteFile(config, text, 0o600)
		}
		if err != nil {
			r.t.Fatal(err)
		}
		r.daemon(func() { r.collect("http://" + input + "/v1/logs") }, filepath.Join(shared.tools, "collector", "collector"), "--config", config)
		return nil
	}
}

// collect sends the records to a Collector until it has taken all.
func (r *run) collect(url string) {
	r.t.Helper()
	for i := 0; i < len(r.records); i += 20 {
		body := otlp(r.records[i:min(i+20, len(r.records))])
		for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			resp, err := http.Post(url, "application/json", bytes.NewReader(body))
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					break
				}
			}
			if time.Since(begun) > time.Minute {
				r.t.Fatalf("the Collector takes no records: %v\n%.2000s", err, r.output.String())
			}
		}
		time.Sleep(r.pause())
	}
}

// otlp makes a request of OTLP in JSON.
func otlp(rs []sent) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"%s"}}]},"scopeLogs":[{"scope":{"name":"interop"},"logRecords":[`, service)
	for i, s := range rs {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"timeUnixNano":"%s","severityNumber":%d,"severityText":"%s","body":{"stringValue":%s},"attributes":[{"key":"mark","value":{"stringValue":"%s"}},{"key":"n","value":{"intValue":"%d"}}]}`,
			s.Nano, map[string]int{"debug": 5, "info": 9, "warn": 13, "error": 17}[s.Level], strings.ToUpper(s.Level), quoted(s.Msg), s.Mark, s.N)
	}
	b.WriteString("]}]}]}")
	return b.Bytes()
}

// startStream starts a server of NATS with the stream of the ingester.
func startStream(r *run) string {
	r.stream = testenv.StartNATS(r.t)
	_, js := r.stream.Connect()
	if _, err := js.CreateStream(r.t.Context(), testenv.Stream("LOGS")); err != nil {
		r.t.Fatal(err)
	}
	return fmt.Sprintf("nats: {url: %q, stream: LOGS, consumer: blobtail, ack-wait: 2s}\n", r.stream.URL)
}

// publish publishes the records as messages of 20. It believes a record delivered when the
// stream has it.
func publish(r *run) map[string]bool {
	_, js := r.stream.Connect()
	believed := map[string]bool{}
	for i := 0; i < len(r.records); i += 20 {
		m := nats.NewMsg("logs." + service + ".web-1")
		for _, s := range r.records[i:min(i+20, len(r.records))] {
			m.Data = fmt.Appendf(m.Data, `{"time":%s,"level":"%s","msg":%s,"mark":"%s","n":%d}`+"\n", s.Nano, s.Level, quoted(s.Msg), s.Mark, s.N)
		}
		m.Header.Set("Content-Type", "application/x-ndjson")
		m.Header.Set(nats.MsgIdHdr, fmt.Sprint("interop-", i))
		if _, err := js.PublishMsg(r.t.Context(), m); err != nil {
			r.t.Fatal(err)
		}
		marks := marksIn(m.Data)
		for mark := range marks {
			believed[mark] = true
		}
		r.p.note(r.p.seen, marks)
		time.Sleep(r.pause())
	}
	return believed
}

// goClients are the shippers that are built from Go modules.
func goClients() []*client {
	version := func(t testing.TB) string {
		if _, err := os.Stat(filepath.Join(shared.tools, "collector", "collector")); err != nil {
			missing(t, "the Collector is not built: run make interop")
		}
		return "0.150.0"
	}
	return []*client{
		{name: "OpenTelemetry Collector, gzip", version: version, wire: "OTLP protobuf, gzip", ship: collector("gzip", "proto"), want: exact, slow: true},
		{name: "OpenTelemetry Collector, zstd", version: version, wire: "OTLP protobuf, zstd", ship: collector("zstd", "proto"), want: exact, slow: true},
		{name: "OpenTelemetry Collector, JSON", version: version, wire: "OTLP JSON", ship: collector("none", "json"), want: exact, slow: true},
		{name: "NATS publisher", version: func(testing.TB) string { return nats.Version }, wire: "JetStream, NDJSON", ship: publish, setup: startStream, want: exact,
			without: map[fault]string{lost: "a publisher has its answers from the stream"}},
	}
}
