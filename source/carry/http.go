package carry

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"blobtail/record"
	"blobtail/record/names"
)

const (
	plainText = "text/plain"
	jsonType  = "application/json"
	linesType = "application/x-ndjson"
)

// encode is the JSON of a value, without the escapes for HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// ingestPath is the path of the native protocol.
func ingestPath(service string) string {
	if service == "" {
		return "/ingest"
	}
	return "/ingest/" + url.PathEscape(service)
}

// lines joins records by line feeds.
func lines(c Cargo) []byte {
	var b []byte
	for _, r := range c.Records {
		b = append(append(b, r.Text...), '\n')
	}
	return b
}

func text(c Cargo) (Parcel, error) {
	return Parcel{Path: ingestPath(c.Service), ContentType: plainText, Body: lines(c)}, nil
}

func nats(c Cargo) (Parcel, error) {
	return Parcel{By: NATS, Subject: "logs." + c.Service, Body: lines(c)}, nil
}

func hecRaw(c Cargo) (Parcel, error) {
	path := "/services/collector/raw"
	if c.Service != "" {
		path += "?" + url.Values{"source": {c.Service}}.Encode()
	}
	return Parcel{Path: path, ContentType: plainText, Body: lines(c)}, nil
}

// object is a record as an object of JSON in one line: itself, or a text under a name.
func object(r Record, name string, whole bool) ([]byte, error) {
	if !r.Object || !whole {
		return encode(map[string]string{name: string(r.Text)})
	}
	if bytes.IndexByte(r.Text, '\n') < 0 {
		return r.Text, nil
	}
	var b bytes.Buffer
	err := json.Compact(&b, r.Text)
	return b.Bytes(), err
}

// joined makes objects of the records and joins them.
func joined(c Cargo, name string, whole bool, before, between, behind string) ([]byte, error) {
	b := []byte(before)
	for i, r := range c.Records {
		if i > 0 {
			b = append(b, between...)
		}
		o, err := object(r, name, whole)
		if err != nil {
			return nil, err
		}
		b = append(b, o...)
	}
	return append(b, behind...), nil
}

func ndjson(c Cargo) (Parcel, error) {
	b, err := joined(c, "message", true, "", "\n", "\n")
	return Parcel{Path: ingestPath(c.Service), ContentType: linesType, Body: b}, err
}

func messages(c Cargo) (Parcel, error) {
	b, err := joined(c, "message", false, "", "\n", "\n")
	return Parcel{Path: ingestPath(c.Service), ContentType: linesType, Body: b}, err
}

func array(c Cargo) (Parcel, error) {
	b, err := joined(c, "message", true, "[", ",", "]")
	return Parcel{Path: ingestPath(c.Service), ContentType: jsonType, Body: b}, err
}

func bulk(c Cargo) (Parcel, error) {
	const action = `{"create":{}}` + "\n"
	b, err := joined(c, "message", true, action, "\n"+action, "\n")
	path := "/_bulk"
	if c.Service != "" {
		path = "/" + url.PathEscape(c.Service) + path
	}
	return Parcel{Path: path, ContentType: linesType, Body: b}, err
}

func loki(c Cargo) (Parcel, error) {
	values := make([][2]string, len(c.Records))
	for i, r := range c.Records {
		values[i] = [2]string{strconv.FormatInt(r.Time.UnixNano(), 10), string(r.Text)}
	}
	type stream struct {
		Stream map[string]string `json:"stream"`
		Values [][2]string       `json:"values"`
	}
	labels := map[string]string{}
	if c.Service != "" {
		labels["service_name"] = c.Service
	}
	b, err := encode(map[string][]stream{"streams": {{labels, values}}})
	return Parcel{Path: "/loki/api/v1/push", ContentType: jsonType, Body: b}, err
}

// otlp packs as a collector does with a file that it does not parse, and an SDK with a text.
func otlp(c Cargo) (Parcel, error) {
	records := make([]any, len(c.Records))
	for i, r := range c.Records {
		records[i] = map[string]any{"body": map[string]string{"stringValue": string(r.Text)}}
	}
	return logs(c.Service, records)
}

// logs is the request of log records of one resource.
func logs(service string, records []any) (Parcel, error) {
	resource := map[string]any{}
	if service != "" {
		resource["attributes"] = []any{attribute("service.name", map[string]any{"stringValue": service})}
	}
	b, err := encode(map[string]any{"resourceLogs": []any{map[string]any{
		"resource": resource, "scopeLogs": []any{map[string]any{"logRecords": records}},
	}}})
	return Parcel{Path: "/v1/logs", ContentType: jsonType, Body: b}, err
}

func attribute(key string, value map[string]any) map[string]any {
	return map[string]any{"key": key, "value": value}
}

// otlpAttributes packs as the bridges of loggers in SDKs do, such as otelzap, and a collector that
// parses JSON: the message is the body, each other member an attribute. They have a time, and
// a collector has no severity unless it is told where to look for it.
func otlpAttributes(c Cargo) (Parcel, error) {
	records := make([]any, len(c.Records))
	for i, r := range c.Records {
		if !json.Valid(r.Text) {
			return Parcel{}, errors.New("the text is no object")
		}
		one := map[string]any{"timeUnixNano": strconv.FormatInt(r.Time.UnixNano(), 10)}
		attributes := membersOf(bytes.TrimSpace(r.Text))
		if at := messageOf(attributes); at >= 0 {
			one["body"] = attributes[at]["value"]
			attributes = slices.Delete(attributes, at, at+1)
		}
		one["attributes"] = attributes
		records[i] = one
	}
	return logs(c.Service, records)
}

// membersOf returns the members of an object as attributes, in their order.
func membersOf(object []byte) []map[string]any {
	members := []map[string]any{}
	for key, value := range record.Fields(object) {
		members = append(members, attribute(textOf(fmt.Appendf(nil, `"%s"`, key)), anyValue(value)))
	}
	return members
}

// textOf is the text of a valid string, as a collector decodes it.
func textOf(value []byte) (s string) {
	_ = json.Unmarshal(value, &s)
	return s
}

// messageOf returns the index of the member that a logger's bridge has as its message, -1 for none:
// the first usual name with a text.
func messageOf(members []map[string]any) int {
	return names.Best(len(members), func(i int) int {
		value, _ := members[i]["value"].(map[string]any)
		if text, _ := value["stringValue"].(string); text == "" {
			return 0
		}
		name, _ := members[i]["key"].(string)
		return names.MessagePlace(name)
	})
}

// anyValue is a value of JSON in the form of OTLP.
func anyValue(value []byte) map[string]any {
	switch value[0] {
	case '"':
		return map[string]any{"stringValue": textOf(value)}
	case 't', 'f':
		return map[string]any{"boolValue": value[0] == 't'}
	case 'n':
		return map[string]any{}
	case '[':
		values := []any{}
		for w := record.Walk(value); ; {
			v, more := w.Element()
			if !more {
				return map[string]any{"arrayValue": map[string]any{"values": values}}
			}
			values = append(values, anyValue(v))
		}
	case '{':
		return map[string]any{"kvlistValue": map[string]any{"values": membersOf(value)}}
	}
	if _, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return map[string]any{"intValue": string(value)}
	}
	return map[string]any{"doubleValue": json.RawMessage(value)}
}

func hec(c Cargo) (Parcel, error) {
	return envelopes(c, "/services/collector/event", "source", "time", func(r Record) map[string]any {
		if r.Object {
			return map[string]any{"event": json.RawMessage(r.Text)}
		}
		return map[string]any{"event": string(r.Text)}
	})
}

// envelopes joins objects of records, with their service and time under names.
func envelopes(c Cargo, path, service, time string, envelope func(r Record) map[string]any) (Parcel, error) {
	var b []byte
	for _, r := range c.Records {
		e := envelope(r)
		if c.Service != "" {
			e[service] = c.Service
		}
		if !r.Time.IsZero() {
			e[time] = json.RawMessage(seconds(r))
		}
		one, err := encode(e)
		if err != nil {
			return Parcel{}, err
		}
		b = append(append(b, one...), '\n')
	}
	return Parcel{Path: path, ContentType: jsonType, Body: b}, nil
}

// seconds is the time of a record in Unix seconds, with a fraction.
func seconds(r Record) string {
	return fmt.Sprintf("%d.%09d", r.Time.Unix(), r.Time.Nanosecond())
}

func datadog(c Cargo) (Parcel, error) {
	items := make([]any, len(c.Records))
	for i, r := range c.Records {
		item := map[string]any{"message": string(r.Text)}
		if c.Service != "" {
			item["service"] = c.Service
		}
		if !r.Time.IsZero() {
			item["timestamp"] = r.Time.UnixMilli()
		}
		items[i] = item
	}
	b, err := encode(items)
	return Parcel{Path: "/api/v2/logs", ContentType: jsonType, Body: b}, err
}

func datadogObject(c Cargo) (Parcel, error) {
	path := "/api/v2/logs"
	if c.Service != "" {
		path += "?" + url.Values{"service": {c.Service}}.Encode()
	}
	b, err := joined(c, "message", true, "[", ",", "]")
	return Parcel{Path: path, ContentType: jsonType, Body: b}, err
}

// gelf has the first line of several as the short message, as the libraries of Graylog do.
func gelf(c Cargo) (Parcel, error) {
	return envelopes(c, "/gelf", "_service", "timestamp", func(r Record) map[string]any {
		message := map[string]any{"version": "1.1", "host": "web1", "short_message": string(r.Text)}
		if first, _, more := bytes.Cut(r.Text, []byte("\n")); more && len(first) > 0 && !r.Object {
			message["short_message"], message["full_message"] = string(first), string(r.Text)
		}
		return message
	})
}

func journald(c Cargo) (Parcel, error) {
	var b []byte
	for i, r := range c.Records {
		b = fmt.Appendf(b, "__CURSOR=s=1;i=%x\n__REALTIME_TIMESTAMP=%d\n", i+1, r.Time.UnixMicro())
		if r.Priority > 0 {
			b = fmt.Appendf(b, "PRIORITY=%d\n", r.Priority%8)
		}
		if c.Service != "" {
			b = fmt.Appendf(b, "SYSLOG_IDENTIFIER=%s\n", c.Service)
		}
		b = append(b, "MESSAGE"...)
		if utf8.Valid(r.Text) && !bytes.ContainsFunc(r.Text, func(c rune) bool { return c < ' ' && c != '\t' }) {
			b = append(append(b, '='), r.Text...)
		} else {
			b = binary.LittleEndian.AppendUint64(append(b, '\n'), uint64(len(r.Text)))
			b = append(b, r.Text...)
		}
		b = append(b, "\n\n"...)
	}
	return Parcel{Path: "/upload", ContentType: "application/vnd.fdo.journal", Body: b}, nil
}
