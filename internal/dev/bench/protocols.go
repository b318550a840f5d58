package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"blobtail/internal/dev/bench/report"
)

// protocolRecords is the number of records of the reference corpus that are sent by each
// protocol, and protocolBody that of a request.
const (
	protocolRecords = 400_000
	protocolBody    = 1000
)

// A protocol is a way to send the reference corpus.
type protocol struct {
	id, path, contentType string
	// reach is the highest cost, as a multiple of that of NDJSON.
	reach  float64
	encode func(entries []entry) []byte
}

func protocols() []protocol {
	return []protocol{
		{"ndjson", "/ingest", "application/x-ndjson", 0, encodeLines},
		{"protocol-loki", "/loki/api/v1/push", "application/x-protobuf", 1.3, encodeLoki},
		{"protocol-bulk", "/_bulk", "application/x-ndjson", 1.3, encodeBulk},
		{"protocol-otlp", "/v1/logs", "application/x-protobuf", 1.6, encodeOTLP},
	}
}

// protocols compares the cost of the protocols with that of the same records as NDJSON. All go
// through one client, in turn.
func (b *bench) protocols(ctx context.Context) error {
	all := protocols()
	if !b.o.selected(all[1].id, all[2].id, all[3].id) {
		return nil
	}
	entries, err := readEntries(b.reference.file, min(protocolRecords, b.o.records))
	if err != nil {
		return err
	}
	cpu := map[string][]float64{}
	for range b.o.rounds {
		for _, p := range all {
			c, err := b.sendBy(ctx, p, entries)
			if err != nil {
				return fmt.Errorf("%s: %w", p.id, err)
			}
			cpu[p.id] = append(cpu[p.id], c)
		}
	}
	for _, p := range all[1:] {
		var ratios []float64
		for round, c := range cpu[p.id] {
			ratios = append(ratios, c/cpu["ndjson"][round])
		}
		b.add(report.Row{ID: p.id, Name: "ingest by " + strings.TrimPrefix(p.id, "protocol-") + ", of the same records as NDJSON", Unit: "x",
			Reach: p.reach, Records: len(entries),
			Measured: report.Measured{Runs: len(ratios), Figure: report.SpreadOf(ratios), CPUs: spread(cpu[p.id])}})
	}
	return nil
}

// sendBy sends entries to a new ingester, flushes, and returns the CPU seconds of a million.
// All have to be in the store then.
func (b *bench) sendBy(ctx context.Context, p protocol, entries []entry) (cpu float64, err error) {
	store, err := os.MkdirTemp(b.work, "store-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(store)
	g, err := startIngester(ctx, b.sides[0].ingest, b.env, "--store", "dir:"+store)
	if err != nil {
		return 0, err
	}
	defer g.kill()
	idle, _, err := g.usage()
	if err != nil {
		return 0, err
	}
	for from := 0; from < len(entries); from += protocolBody {
		body := p.encode(entries[from:min(from+protocolBody, len(entries))])
		if err := sendBody(ctx, "http://"+g.Listen+p.path, p.contentType, body); err != nil {
			return 0, err
		}
	}
	if err := g.flush(); err != nil {
		return 0, err
	}
	if cpu, _, err = g.usage(); err != nil {
		return 0, err
	}
	if err := g.stop(); err != nil {
		return 0, err
	}
	out, _, _, err := b.runner.run(ctx, b.env, b.sides[0].logquery, "*", "--count", "--store", "dir:"+store, "--from", "2020-01-01")
	if err != nil {
		return 0, err
	}
	if n := strings.TrimSpace(string(out)); n != strconv.Itoa(len(entries)) {
		return 0, fmt.Errorf("the store has %s records, not %d", n, len(entries))
	}
	return (cpu - idle) / float64(len(entries)) * 1e6, nil
}

func sendBody(ctx context.Context, url, contentType string, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", contentType)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %.300s", res.Status, answer)
	}
	return err
}

func encodeLines(entries []entry) (body []byte) {
	for _, e := range entries {
		body = append(append(body, e.line...), '\n')
	}
	return body
}

func encodeBulk(entries []entry) (body []byte) {
	for _, e := range entries {
		body = append(append(append(body, "{\"create\":{}}\n"...), e.line...), '\n')
	}
	return body
}

// appendField appends a field of bytes in protobuf.
func appendField[T ~[]byte | ~string](b []byte, number protowire.Number, value T) []byte {
	b = protowire.AppendTag(b, number, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(value)))
	return append(b, value...)
}

// encodeLoki makes a push request with a stream for each service and level. Its block of
// snappy has all bytes as they are, which no ingester decodes faster.
func encodeLoki(entries []entry) []byte {
	streams := map[string][]byte{}
	var order []string
	for _, e := range entries {
		selector := fmt.Sprintf(`{level=%q, service_name=%q}`, e.level, e.service)
		if streams[selector] == nil {
			order = append(order, selector)
			streams[selector] = appendField(nil, 1, selector)
		}
		var ts, line []byte
		ts = protowire.AppendVarint(protowire.AppendTag(ts, 1, protowire.VarintType), uint64(e.time.Unix()))
		ts = protowire.AppendVarint(protowire.AppendTag(ts, 2, protowire.VarintType), uint64(e.time.Nanosecond()))
		line = appendField(appendField(line, 1, ts), 2, e.msg)
		for _, m := range e.fields {
			line = appendField(line, 3, appendField(appendField(nil, 1, m.name), 2, m.text))
		}
		streams[selector] = appendField(streams[selector], 2, line)
	}
	var push []byte
	for _, selector := range order {
		push = appendField(push, 1, streams[selector])
	}
	return snappyLiterals(push)
}

// snappyLiterals is the format of a block of snappy
// (https://github.com/google/snappy/blob/main/format_description.txt) without copies.
func snappyLiterals(data []byte) []byte {
	const most = 1 << 16
	b := binary.AppendUvarint(nil, uint64(len(data)))
	for len(data) > 0 {
		n := min(len(data), most)
		b = append(b, 61<<2, byte(n-1), byte((n-1)>>8))
		b = append(b, data[:n]...)
		data = data[n:]
	}
	return b
}

// encodeOTLP makes an export request with a resource for each service.
func encodeOTLP(entries []entry) []byte {
	scopes := map[string][]byte{}
	var order []string
	for _, e := range entries {
		if scopes[e.service] == nil {
			order = append(order, e.service)
			scopes[e.service] = appendField(nil, 1, appendField(nil, 1, "bench"))
		}
		var r []byte
		r = protowire.AppendFixed64(protowire.AppendTag(r, 1, protowire.Fixed64Type), uint64(e.time.UnixNano()))
		r = appendField(r, 3, e.level)
		r = appendField(r, 5, appendField(nil, 1, e.msg))
		for _, m := range e.fields {
			r = appendField(r, 6, appendField(appendField(nil, 1, m.name), 2, anyValue(m)))
		}
		scopes[e.service] = appendField(scopes[e.service], 2, r)
	}
	var request []byte
	for _, service := range order {
		resource := appendField(nil, 1, appendField(appendField(nil, 1, "service.name"), 2, appendField(nil, 1, service)))
		request = appendField(request, 1, appendField(appendField(nil, 1, resource), 2, scopes[service]))
	}
	return request
}

// anyValue is the AnyValue of a member: a text, an integer or a number.
func anyValue(m member) []byte {
	var n json.Number
	if !m.string && json.Unmarshal([]byte(m.text), &n) == nil {
		if i, err := n.Int64(); err == nil {
			return protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), uint64(i))
		}
		if f, err := n.Float64(); err == nil {
			return binary.LittleEndian.AppendUint64(protowire.AppendTag(nil, 4, protowire.Fixed64Type), math.Float64bits(f))
		}
	}
	return appendField(nil, 1, m.text)
}
