package interop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// A replay sends the requests of a client that cannot be had here. They are made after the
// client's source. It also treats an answer as the client does.
type replay struct {
	probes []probe
	batch  func(rs []sent) exchange
	judge  func(code int, body []byte) verdict
	size   int // records of a batch, 0: 50
}

// An exchange is a request.
type exchange struct {
	method string // "" is POST
	path   string
	header map[string]string
	body   []byte
}

// A probe is a request that a client makes first. It does not send records before the answer
// is good.
type probe struct {
	exchange
	good func(code int, h http.Header, body []byte) bool
}

// A verdict is the next step of a client with its batch.
type verdict int

const (
	done verdict = iota
	again
	dropped
)

// ship sends all records.
func (p replay) ship(r *run) map[string]bool {
	c := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	for _, probe := range p.probes {
		resp, body, err := probe.send(c, r.url())
		for tries := 0; err != nil && tries < 20; tries++ { // all of them try again
			time.Sleep(200 * time.Millisecond)
			resp, body, err = probe.send(c, r.url())
		}
		if err != nil || !probe.good(resp.StatusCode, resp.Header, body) {
			r.t.Fatalf("%s %s: %v, %v, %.300s; the client would not send records", probe.method, probe.path, resp, err, body)
		}
	}
	believed := map[string]bool{}
	size := max(p.size, 50)
	for i := 0; i < len(r.records); i += size {
		rs := r.records[i:min(i+size, len(r.records))]
		if r.try(c, p.batch(rs), p.judge) {
			for _, s := range rs {
				believed[s.Mark] = true
			}
		}
		time.Sleep(r.pause() * time.Duration(size/10) / 2)
	}
	return believed
}

// try sends a batch until the client is done with it, and reports whether it is delivered.
func (r *run) try(c *http.Client, x exchange, judge func(int, []byte) verdict) bool {
	last := "no answer"
	for range 100 {
		resp, body, err := x.send(c, r.url())
		if err == nil {
			switch judge(resp.StatusCode, body) {
			case done:
				return true
			case dropped:
				fmt.Fprintf(&r.output, "dropped after %d %.300s\n", resp.StatusCode, body)
				return false
			}
			last = fmt.Sprintf("%d %.300s", resp.StatusCode, body)
		}
		time.Sleep(500 * time.Millisecond)
	}
	r.t.Fatalf("a batch is not taken for 50 s: %s", last)
	return false
}

// send sends the request and reads the answer.
func (x exchange) send(c *http.Client, url string) (*http.Response, []byte, error) {
	method := x.method
	if method == "" {
		method = http.MethodPost
	}
	req, err := http.NewRequest(method, url+x.path, bytes.NewReader(x.body))
	if err != nil {
		return nil, nil, err
	}
	for name, v := range x.header {
		req.Header.Set(name, v)
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

// ok is the judgement of most clients: 2xx is success, 429 and 5xx are tried again, and all
// else is dropped.
func ok(code int, _ []byte) verdict {
	switch {
	case code >= 200 && code <= 205:
		return done
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return again
	}
	return dropped
}

// fluentSplunk is that of Fluent Bit's splunk: only 200 is success.
func fluentSplunk(code int, body []byte) verdict {
	if v := ok(code, body); v != done || code == http.StatusOK {
		return v
	}
	return again
}

// fluentES is that of Fluent Bit's es: all but a whole success is tried again, for ever.
func fluentES(code int, body []byte) verdict {
	var answer struct{ Errors *bool }
	if (code == http.StatusOK || code == http.StatusCreated) && json.Unmarshal(body, &answer) == nil && answer.Errors != nil && !*answer.Errors {
		return done
	}
	return again
}

// items is that of Beats: each document has its own outcome.
func items(code int, body []byte) verdict {
	if code >= 300 {
		return again
	}
	var answer struct {
		Items []map[string]struct{ Status int }
	}
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Items) == 0 {
		return again
	}
	for _, item := range answer.Items {
		for _, outcome := range item {
			if outcome.Status >= 300 {
				return dropped
			}
		}
	}
	return done
}

// replayedClients are those that cannot be had here.
func replayedClients() []*client {
	version := func(v string) func(testing.TB) string { return func(testing.TB) string { return "after " + v } }
	var out []*client
	add := func(name, v, wire string, p replay, w func(*sent) want) {
		out = append(out, &client{name: name, version: version(v), wire: wire, ship: p.ship, want: w, replayed: true})
	}
	add("Fluent Bit http, json_lines", "4.1", "`/ingest`, NDJSON", fluentHTTP("application/x-ndjson", "", "\n", "\n"), double)
	add("Fluent Bit http, json", "4.1", "`/ingest`, JSON array", fluentHTTP("application/json", "[", ",", "]"), double)
	add("Fluent Bit http, json_stream", "4.1", "`/ingest`, JSON objects", fluentHTTP("application/json", "", "", ""), double)
	add("Fluent Bit loki", "4.1", "Loki JSON", fluentLoki(), fluentLine)
	add("Fluent Bit es", "4.1", "`_bulk`", fluentBulk(), ms)
	add("Fluent Bit splunk", "4.1", "Splunk HEC", fluentHEC(), double)
	add("Vector http", "0.50", "`/ingest`, NDJSON, gzip", vectorHTTP(), exact)
	add("Vector loki", "0.50", "Loki protobuf, snappy", vectorLoki(), exact)
	add("Vector elasticsearch", "0.50", "`_bulk`", vectorBulk(), exact)
	add("Filebeat", "8.15", "`_bulk`, gzip", filebeat(), ms)
	add("Logstash", "8.15", "`_bulk`, gzip", logstash(), ms)
	add("Grafana Alloy", "1.11", "Loki protobuf, snappy", alloy(), exact)
	return out
}
