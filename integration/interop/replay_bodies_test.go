package interop_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"
	"google.golang.org/protobuf/encoding/protowire"
)

// zipped compresses with gzip.
func zipped(text []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(text) // a buffer takes all
	_ = w.Close()
	return b.Bytes()
}

// rfc3339 formats the time of a record, with so many digits of the second.
func (s *sent) rfc3339(digits int) string {
	return time.Unix(0, s.at).UTC().Format("2006-01-02T15:04:05." + strings.Repeat("0", digits) + "Z")
}

// double wants the time as a number with a fraction has it, in µs.
func double(s *sent) want {
	w := exact(s)
	w.from, w.to = s.at-1000, s.at+1000
	return w
}

// fluentFields are the fields of a record of Fluent Bit's tail, without the braces.
func fluentFields(s *sent) string {
	return fmt.Sprintf(`"level":"%s","mark":"%s","n":%d,"log":%s`, s.Level, s.Mark, s.N, quoted(s.Msg))
}

// fluentTime is a time as Fluent Bit writes doubles.
func fluentTime(s *sent) string { return strconv.FormatFloat(float64(s.at)/1e9, 'g', 16, 64) }

// fluentHTTP is the output http: plugins/out_http/http.c. json_stream has no separator.
func fluentHTTP(contentType, before, between, after string) replay {
	return replay{judge: ok, batch: func(rs []sent) exchange {
		var parts []string
		for i := range rs {
			parts = append(parts, fmt.Sprintf(`{"date":%s,%s}`, fluentTime(&rs[i]), fluentFields(&rs[i])))
		}
		return exchange{path: "/ingest/" + service, body: []byte(before + strings.Join(parts, between) + after),
			header: map[string]string{"Content-Type": contentType, "User-Agent": "Fluent-Bit"}}
	}}
}

// fluentLoki is the output loki with label_keys: plugins/out_loki/loki.c. Each record is a
// stream, and a line is the record as JSON.
func fluentLoki() replay {
	return replay{judge: ok, batch: func(rs []sent) exchange {
		var parts []string
		for i := range rs {
			s := &rs[i]
			parts = append(parts, fmt.Sprintf(`{"stream":{"job":"fluent-bit","service_name":"%s","level":"%s"},"values":[["%s",%s]]}`, service, s.Level, s.Nano, quoted("{"+fluentFields(s)+"}")))
		}
		return exchange{path: "/loki/api/v1/push", body: []byte(`{"streams":[` + strings.Join(parts, ",") + `]}`),
			header: map[string]string{"Content-Type": "application/json", "User-Agent": "Fluent-Bit"}}
	}}
}

// fluentLine wants the record as JSON for the message.
func fluentLine(s *sent) want {
	w := exact(s)
	w.msg, w.n = "{"+fluentFields(s)+"}", false
	return w
}

// fluentBulk is the output es: plugins/out_es/es.c.
func fluentBulk() replay {
	return replay{judge: fluentES, batch: func(rs []sent) exchange {
		var b bytes.Buffer
		for i := range rs {
			fmt.Fprintf(&b, `{"create":{"_index":"%s"}}`+"\n"+`{"@timestamp":"%s",%s}`+"\n", service, rs[i].rfc3339(3), fluentFields(&rs[i]))
		}
		return exchange{path: "/_bulk", body: b.Bytes(), header: map[string]string{"Content-Type": "application/x-ndjson", "User-Agent": "Fluent-Bit"}}
	}}
}

// fluentHEC is the output splunk: plugins/out_splunk/splunk.c.
func fluentHEC() replay {
	return replay{judge: fluentSplunk, batch: func(rs []sent) exchange {
		var b bytes.Buffer
		for i := range rs {
			fmt.Fprintf(&b, `{"time":%s,"host":"web-1","source":"%s","sourcetype":"%s","index":"%s","event":{%s}}`, fluentTime(&rs[i]), service, service, service, fluentFields(&rs[i]))
		}
		return exchange{path: "/services/collector/event", body: b.Bytes(),
			header: map[string]string{"Content-Type": "application/json", "Authorization": "Splunk interop.secret", "User-Agent": "Fluent-Bit"}}
	}}
}

// vectorEvent is an event of Vector's source file.
func vectorEvent(s *sent) string {
	return fmt.Sprintf(`{"file":"/var/log/app.log","host":"web-1","level":"%s","mark":"%s","message":%s,"n":%d,"service":"%s","source_type":"file","timestamp":"%s"}`,
		s.Level, s.Mark, quoted(s.Msg), s.N, service, s.rfc3339(9))
}

// vectorHTTP is the sink http with json and newlines: src/sinks/http.
func vectorHTTP() replay {
	return replay{judge: ok, batch: func(rs []sent) exchange {
		var b bytes.Buffer
		for i := range rs {
			b.WriteString(vectorEvent(&rs[i]) + "\n")
		}
		return exchange{path: "/ingest", body: zipped(b.Bytes()),
			header: map[string]string{"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip", "User-Agent": "Vector/0.50.0 (x86_64-unknown-linux-gnu)"}}
	}}
}

// vectorBulk is the sink elasticsearch: src/sinks/elasticsearch.
func vectorBulk() replay {
	version := func(code int, _ http.Header, body []byte) bool {
		return code == http.StatusOK && bytes.Contains(body, []byte(`"number"`))
	}
	return replay{
		probes: []probe{
			{exchange{method: "GET", path: "/"}, version},
			{exchange{method: "GET", path: "/_cluster/health"}, func(code int, _ http.Header, _ []byte) bool { return code == http.StatusOK }},
		},
		judge: ok,
		batch: func(rs []sent) exchange {
			var b bytes.Buffer
			for i := range rs {
				fmt.Fprintf(&b, `{"index":{"_index":"%s"}}`+"\n%s\n", service, vectorEvent(&rs[i]))
			}
			return exchange{path: "/_bulk", body: b.Bytes(), header: map[string]string{"Content-Type": "application/x-ndjson", "User-Agent": "Vector/0.50.0 (x86_64-unknown-linux-gnu)"}}
		},
	}
}

// beats says whether a probe of Beats or Logstash has its answer.
func beats(code int, h http.Header, _ []byte) bool {
	return code < 300 && h.Get("X-Elastic-Product") == "Elasticsearch"
}

// filebeat is its output elasticsearch: libbeat/esleg, licenser, template.
func filebeat() replay {
	header := map[string]string{"Content-Type": "application/json; charset=UTF-8", "Content-Encoding": "gzip", "Accept": "application/json",
		"X-Elastic-Product-Origin": "beats", "User-Agent": "Elastic-filebeat/8.15.0 (linux; amd64)"}
	return replay{
		probes: []probe{
			{exchange{method: "GET", path: "/"}, beats},
			{exchange{method: "GET", path: "/_license?human=false"}, beats},
			{exchange{method: "GET", path: "/_ilm/policy/filebeat"}, beats},
			{exchange{method: "HEAD", path: "/_index_template/filebeat-8.15.0"}, beats},
			{exchange{method: "PUT", path: "/_index_template/filebeat-8.15.0", body: []byte(`{"index_patterns":["filebeat-8.15.0"]}`)}, beats},
		},
		judge: items,
		batch: func(rs []sent) exchange {
			var b bytes.Buffer
			for i := range rs {
				s := &rs[i]
				fmt.Fprintf(&b, `{"create":{"_index":"%s"}}`+"\n"+`{"@timestamp":"%s","message":%s,"log":{"level":"%s","offset":%d,"file":{"path":"/var/log/app.log"}},"mark":"%s","n":%d,"host":{"name":"web-1"},"agent":{"type":"filebeat","version":"8.15.0"},"ecs":{"version":"8.0.0"},"input":{"type":"filestream"}}`+"\n",
					service, s.rfc3339(3), quoted(s.Msg), s.Level, s.N*100, s.Mark, s.N)
			}
			return exchange{path: "/_bulk", body: zipped(b.Bytes()), header: header}
		},
	}
}

// logstash is its output elasticsearch: http_client.rb, http_client/pool.rb.
func logstash() replay {
	return replay{
		probes: []probe{
			{exchange{method: "HEAD", path: "/"}, beats},
			{exchange{method: "GET", path: "/"}, beats},
			{exchange{method: "GET", path: "/_license"}, beats},
			{exchange{method: "GET", path: "/_xpack"}, beats},
		},
		judge: items,
		batch: func(rs []sent) exchange {
			var b bytes.Buffer
			for i := range rs {
				s := &rs[i]
				fmt.Fprintf(&b, `{"index":{"_index":"%s","routing":null}}`+"\n"+`{"@timestamp":"%s","@version":"1","message":%s,"level":"%s","mark":"%s","n":%d,"host":{"name":"web-1"}}`+"\n",
					service, s.rfc3339(3), quoted(s.Msg), s.Level, s.Mark, s.N)
			}
			return exchange{path: "/_bulk?filter_path=errors,items.*.error,items.*.status", body: zipped(b.Bytes()),
				header: map[string]string{"Content-Type": "application/json", "Content-Encoding": "gzip", "User-Agent": "logstash/8.15.0 (OS=Linux; JVM=Eclipse Adoptium)"}}
		},
	}
}

// push makes Loki's PushRequest with a stream for each record, compressed.
func push(rs []sent) []byte {
	bytesField := func(b []byte, n protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
	}
	varint := func(b []byte, n protowire.Number, v int64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(v))
	}
	var all []byte
	for i := range rs {
		s := &rs[i]
		entry := bytesField(nil, 1, varint(varint(nil, 1, s.at/1e9), 2, s.at%1e9))
		entry = bytesField(entry, 2, []byte(s.Msg))
		for _, pair := range [][2]string{{"mark", s.Mark}, {"n", strconv.Itoa(s.N)}} {
			entry = bytesField(entry, 3, bytesField(bytesField(nil, 1, []byte(pair[0])), 2, []byte(pair[1])))
		}
		stream := bytesField(nil, 1, fmt.Appendf(nil, `{level=%q, service_name=%q}`, s.Level, service))
		all = bytesField(all, 1, bytesField(stream, 2, entry))
	}
	return s2.EncodeSnappy(nil, all)
}

// vectorLoki is the sink loki: src/sinks/loki.
func vectorLoki() replay {
	return replay{
		probes: []probe{{exchange{method: "GET", path: "/ready"}, func(code int, _ http.Header, _ []byte) bool { return code == http.StatusOK }}},
		judge:  ok,
		batch: func(rs []sent) exchange {
			return exchange{path: "/loki/api/v1/push", body: push(rs),
				header: map[string]string{"Content-Type": "application/x-protobuf", "User-Agent": "Vector/0.50.0 (x86_64-unknown-linux-gnu)"}}
		},
	}
}

// alloy is loki.write of Grafana Alloy. Its client is that of promtail.
func alloy() replay {
	return replay{judge: ok, batch: func(rs []sent) exchange {
		return exchange{path: "/loki/api/v1/push", body: push(rs), header: map[string]string{"Content-Type": "application/x-protobuf", "User-Agent": "Alloy/v1.11.0 (linux)"}}
	}}
}
