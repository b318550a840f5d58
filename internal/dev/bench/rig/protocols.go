package rig

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// A Protocol is a way to send records to an ingester.
type Protocol struct {
	ID, Path, ContentType string
	Encode                func(entries []Entry) []byte
}

// Protocols are NDJSON and those of other systems.
func Protocols() []Protocol {
	return []Protocol{
		{"ndjson", "/ingest", "application/x-ndjson", encodeLines},
		{"loki", "/loki/api/v1/push", "application/x-protobuf", encodeLoki},
		{"bulk", "/_bulk", "application/x-ndjson", encodeBulk},
		{"otlp", "/v1/logs", "application/x-protobuf", encodeOTLP},
	}
}

// Bodies are requests with n records each.
func (p Protocol) Bodies(entries []Entry, n int) (bodies [][]byte) {
	for part := range slices.Chunk(entries, n) {
		bodies = append(bodies, p.Encode(part))
	}
	return bodies
}

// Header is that of a request.
func (p Protocol) Header() http.Header { return http.Header{"Content-Type": {p.ContentType}} }

func encodeLines(entries []Entry) (body []byte) {
	for _, e := range entries {
		body = append(append(body, e.Line...), '\n')
	}
	return body
}

func encodeBulk(entries []Entry) (body []byte) {
	for _, e := range entries {
		body = append(append(append(body, "{\"create\":{}}\n"...), e.Line...), '\n')
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
func encodeLoki(entries []Entry) []byte {
	streams := map[string][]byte{}
	var order []string
	for _, e := range entries {
		selector := fmt.Sprintf(`{level=%q, service_name=%q}`, e.Level, e.Service)
		if streams[selector] == nil {
			order = append(order, selector)
			streams[selector] = appendField(nil, 1, selector)
		}
		var ts, line []byte
		ts = protowire.AppendVarint(protowire.AppendTag(ts, 1, protowire.VarintType), uint64(e.Time.Unix()))
		ts = protowire.AppendVarint(protowire.AppendTag(ts, 2, protowire.VarintType), uint64(e.Time.Nanosecond()))
		line = appendField(appendField(line, 1, ts), 2, e.Msg)
		for _, m := range e.Fields {
			line = appendField(line, 3, appendField(appendField(nil, 1, m.Name), 2, m.Text))
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
func encodeOTLP(entries []Entry) []byte {
	scopes := map[string][]byte{}
	var order []string
	for _, e := range entries {
		if scopes[e.Service] == nil {
			order = append(order, e.Service)
			scopes[e.Service] = appendField(nil, 1, appendField(nil, 1, "bench"))
		}
		var r []byte
		r = protowire.AppendFixed64(protowire.AppendTag(r, 1, protowire.Fixed64Type), uint64(e.Time.UnixNano()))
		r = appendField(r, 3, e.Level)
		r = appendField(r, 5, appendField(nil, 1, e.Msg))
		for _, m := range e.Fields {
			r = appendField(r, 6, appendField(appendField(nil, 1, m.Name), 2, anyValue(m)))
		}
		scopes[e.Service] = appendField(scopes[e.Service], 2, r)
	}
	var request []byte
	for _, service := range order {
		resource := appendField(nil, 1, appendField(appendField(nil, 1, "service.name"), 2, appendField(nil, 1, service)))
		request = appendField(request, 1, appendField(appendField(nil, 1, resource), 2, scopes[service]))
	}
	return request
}

// anyValue is the AnyValue of a member: a text, an integer or a number.
func anyValue(m Member) []byte {
	var n json.Number
	if !m.String && json.Unmarshal([]byte(m.Text), &n) == nil {
		if i, err := n.Int64(); err == nil {
			return protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), uint64(i))
		}
		if f, err := n.Float64(); err == nil {
			return binary.LittleEndian.AppendUint64(protowire.AppendTag(nil, 4, protowire.Fixed64Type), math.Float64bits(f))
		}
	}
	return appendField(nil, 1, m.Text)
}
