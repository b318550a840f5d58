package rig

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// A Protocol is a way to send records to an ingester.
type Protocol struct {
	ID, Path, ContentType string
	encode                func([]entry) []byte // nil: lines stay lines
	before                string               // each line
}

// Protocols are NDJSON and those of other systems.
func Protocols() []Protocol {
	return []Protocol{
		{"ndjson", "/ingest", "application/x-ndjson", nil, ""},
		{"loki", "/loki/api/v1/push", "application/x-protobuf", encodeLoki, ""},
		{"bulk", "/_bulk", "application/x-ndjson", nil, "{\"create\":{}}\n"},
		{"otlp", "/v1/logs", "application/x-protobuf", encodeOTLP, ""},
	}
}

// Header is that of a request.
func (p Protocol) Header() http.Header { return http.Header{"Content-Type": {p.ContentType}} }

// Encode makes the body of a request of some lines of a corpus.
func (p Protocol) Encode(lines []byte) ([]byte, error) {
	if p.encode == nil && p.before == "" {
		return lines, nil
	}
	var body []byte
	var all []entry
	for line := range bytes.Lines(lines) {
		if p.encode == nil {
			body = append(append(body, p.before...), line...)
			continue
		}
		var e entry
		err := Members(line, func(name, value []byte, text bool) (err error) {
			switch string(name) {
			case "ts":
				e.at, err = time.Parse(time.RFC3339Nano, string(value))
			case "level":
				e.level = string(value)
			case "service":
				e.service = string(value)
			case "msg":
				e.msg = string(value)
			default:
				e.members = append(e.members, member{string(name), string(value), text})
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	if p.encode != nil {
		body = p.encode(all)
	}
	return body, nil
}

// entry is a record of the corpus, by its parts.
type entry struct {
	at                  time.Time
	level, service, msg string
	members             []member // the others
}

// member has its text, or its JSON if it is none.
type member struct {
	name, value string
	text        bool
}

// message is a message in protobuf.
type message []byte

// add appends a field of bytes.
func (m message) add(number protowire.Number, value []byte) message {
	m = protowire.AppendVarint(protowire.AppendTag(m, number, protowire.BytesType), uint64(len(value)))
	return append(m, value...)
}

func (m message) addText(number protowire.Number, value string) message {
	return m.add(number, []byte(value))
}

func (m message) addInt(number protowire.Number, value uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, number, protowire.VarintType), value)
}

// grouped makes a message for each key of records, in the order in which the keys come.
func grouped(entries []entry, key func(entry) string, begin func(key string) message, add func(message, entry) message) (order []string, of map[string]message) {
	of = map[string]message{}
	for _, e := range entries {
		k := key(e)
		if of[k] == nil {
			order, of[k] = append(order, k), begin(k)
		}
		of[k] = add(of[k], e)
	}
	return order, of
}

// encodeLoki makes a push request with a stream for each service and level. Its block of
// snappy has all bytes as they are, which no ingester decodes faster.
func encodeLoki(entries []entry) []byte {
	selector := func(e entry) string { return fmt.Sprintf(`{level=%q, service_name=%q}`, e.level, e.service) }
	begin := func(selector string) message { return message{}.addText(1, selector) }
	order, streams := grouped(entries, selector, begin, func(stream message, e entry) message {
		line := message{}.add(1, message{}.addInt(1, uint64(e.at.Unix())).addInt(2, uint64(e.at.Nanosecond()))).addText(2, e.msg)
		for _, m := range e.members {
			line = line.add(3, message{}.addText(1, m.name).addText(2, m.value))
		}
		return stream.add(2, line)
	})
	var push message
	for _, selector := range order {
		push = push.add(1, streams[selector])
	}
	// A block of snappy (https://github.com/google/snappy/blob/main/format_description.txt) without copies.
	b := binary.AppendUvarint(nil, uint64(len(push)))
	for len(push) > 0 {
		n := min(len(push), 1<<16)
		b = append(append(b, 61<<2, byte(n-1), byte((n-1)>>8)), push[:n]...)
		push = push[n:]
	}
	return b
}

// encodeOTLP makes an export request with a resource for each service.
func encodeOTLP(entries []entry) []byte {
	begin := func(string) message { return message{}.add(1, message{}.addText(1, "bench")) }
	order, scopes := grouped(entries, func(e entry) string { return e.service }, begin, func(scope message, e entry) message {
		r := message(protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), uint64(e.at.UnixNano())))
		r = r.addText(3, e.level).add(5, message{}.addText(1, e.msg))
		for _, m := range e.members {
			r = r.add(6, message{}.addText(1, m.name).add(2, anyValue(m)))
		}
		return scope.add(2, r)
	})
	var request message
	for _, service := range order {
		resource := message{}.add(1, message{}.addText(1, "service.name").add(2, message{}.addText(1, service)))
		request = request.add(1, message{}.add(1, resource).add(2, scopes[service]))
	}
	return request
}

// anyValue is the AnyValue of a member: a text, an integer or a number.
func anyValue(m member) message {
	var n json.Number
	if !m.text && json.Unmarshal([]byte(m.value), &n) == nil {
		if i, err := n.Int64(); err == nil {
			return message{}.addInt(3, uint64(i))
		}
		if v, err := n.Float64(); err == nil {
			return binary.LittleEndian.AppendUint64(protowire.AppendTag(nil, 4, protowire.Fixed64Type), math.Float64bits(v))
		}
	}
	return message{}.addText(1, m.value)
}
