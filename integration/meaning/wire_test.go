package meaning_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/snappy"
	"go.opentelemetry.io/collector/pdata/plog"
	"google.golang.org/protobuf/encoding/protowire"

	"blobtail/source/carry"
)

// wired are the ways that use all parts of a protocol.
func wired() []way {
	return []way{
		{"loki-labels", lokiLabels},
		{"loki-proto", lokiProto},
		{"otlp-parts", otlpParts},
		{"otlp-proto", otlpProto},
		{"gelf-parts", gelfParts},
		{"datadog-parts", datadogParts},
		{"hec-parts", hecParts},
		{"bulk-parts", bulkParts},
		{"journald-parts", journaldParts},
	}
}

// A member is one of an object.
type member struct {
	name  string
	value json.RawMessage
}

// text is the value as a text.
func (m *member) text() string {
	var s string
	if json.Unmarshal(m.value, &s) == nil {
		return s
	}
	return string(m.value)
}

// membersOf returns the members of an object in their order.
func membersOf(b []byte) (members []member, ok bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil, false
		}
		members = append(members, member{name.(string), value})
	}
	return members, true
}

// words are levels as senders write them.
func words() []string {
	return []string{
		"info", "ERROR", "Warning", "debug", "trace", "critical", "fatal", "E", "W", "notice", "err", "panic", "emerg", "alert", "30",
		"50", "4", "3", "17", "",
		"severe", "FINE", "Information", "verbose", "unknown", "audit", "INFO2", "WARN3", "default", "error;x", "-", "null", "0", "40000",
		"100", "400",
	}
}

func (x *text) word() string { all := words(); return all[x.n%len(all)] }

// parts are the members of an object, or some for a text.
func (x *text) parts() []member {
	if members, ok := membersOf(x.bytes); ok {
		return members
	}
	names := [][]string{
		{"level", "app"}, {"severity", "service_name"}, {"detected_level", "job"}, {"lvl", "container"}, {"app.kubernetes.io/name",
			"level"},
		{"status", "service"}, {"log.level", "k8s.deployment.name"}, {"loglevel", "component"}, {"priority", "unit"}, {"levelname",
			"logger"},
	}[x.n%10]
	return []member{{names[0], encoded(x.word())}, {names[1], []byte(`"Cart"`)}, {"host", []byte(`"web1"`)}, {"n",
		[]byte(strconv.Itoa(x.n))}}
}

// said is the text for the message of a protocol: of objects every second has that of a member.
func (x *text) said() string {
	if x.object && x.n%2 == 0 {
		members, _ := membersOf(x.bytes)
		for _, name := range []string{"message", "msg", "event", "text"} {
			for i := range members {
				if members[i].name == name {
					return members[i].text()
				}
			}
		}
	}
	return string(x.bytes)
}

// lokiLabels has the members as labels or as structured metadata.
func lokiLabels(texts []text) []parcel {
	var streams []any
	for _, x := range texts {
		labels, apart := map[string]string{}, map[string]string{}
		for i, m := range x.parts() {
			if x.n%3 == 0 || x.n%3 == 1 && i%2 == 0 {
				labels[m.name] = m.text()
			} else {
				apart[m.name] = m.text()
			}
		}
		entry := []any{strconv.FormatInt(x.sent().UnixNano(), 10), x.said()}
		if len(apart) > 0 {
			entry = append(entry, apart)
		}
		streams = append(streams, map[string]any{"stream": labels, "values": []any{entry}})
	}
	return []parcel{post("/loki/api/v1/push", jsonType, encoded(map[string]any{"streams": streams}))}
}

// part is a part of a message of protobuf.
func part(number protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), b)
}

func varint(number protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), n)
}

var label = regexp.MustCompile(`[^A-Za-z0-9_]`)

// lokiProto is what promtail and Alloy send.
func lokiProto(texts []text) []parcel {
	var push []byte
	for _, x := range texts {
		var labels []string
		var apart []byte
		for i, m := range x.parts() {
			if i%2 == x.n%2 {
				labels = append(labels, fmt.Sprintf("%s=%q", label.ReplaceAllString(m.name, "_"), m.text()))
			} else {
				apart = append(apart, part(3, append(part(1, []byte(m.name)), part(2, []byte(m.text()))...))...)
			}
		}
		at := append(varint(1, uint64(x.sent().Unix())), varint(2, uint64(x.sent().Nanosecond()))...)
		entry := append(append(part(1, at), part(2, []byte(x.said()))...), apart...)
		push = append(push, part(1, append(part(1, []byte("{"+strings.Join(labels, ", ")+"}")), part(2, entry)...))...)
	}
	return []parcel{post("/loki/api/v1/push", "application/x-protobuf", snappy.Encode(nil, push))}
}

// anyValue is a value in OTLP's JSON.
func anyValue(value json.RawMessage) map[string]any {
	switch value[0] {
	case '"':
		var s string
		_ = json.Unmarshal(value, &s) // it is valid
		return map[string]any{"stringValue": s}
	case 't', 'f':
		return map[string]any{"boolValue": value[0] == 't'}
	case 'n':
		return map[string]any{}
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal(value, &list)
		values := []any{}
		for _, v := range list {
			values = append(values, anyValue(v))
		}
		return map[string]any{"arrayValue": map[string]any{"values": values}}
	case '{':
		members, _ := membersOf(value)
		return map[string]any{"kvlistValue": map[string]any{"values": attributes(members)}}
	}
	if _, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return map[string]any{"intValue": string(value)}
	}
	if f, err := strconv.ParseFloat(string(value), 64); err == nil {
		return map[string]any{"doubleValue": f}
	}
	return map[string]any{"stringValue": string(value)}
}

func attributes(members []member) []any {
	all := []any{}
	for _, m := range members {
		all = append(all, map[string]any{"key": m.name, "value": anyValue(m.value)})
	}
	return all
}

// otlpParts has severities, times, and attributes of the record, the scope and the resource; the
// body is a text or a map.
func otlpParts(texts []text) []parcel {
	var resources []any
	for _, x := range texts {
		one, parts := map[string]any{}, x.parts()
		if x.n%4 > 0 {
			one["timeUnixNano"] = strconv.FormatInt(x.sent().UnixNano(), 10)
		}
		if x.n%3 == 0 {
			one["observedTimeUnixNano"] = strconv.FormatInt(x.sent().Add(time.Second).UnixNano(), 10)
		}
		if x.n%5 < 2 {
			one["severityNumber"] = x.n / 5 % 27
		}
		if x.n%5 == 1 || x.n%5 == 2 {
			one["severityText"] = x.word()
		}
		if x.n%7 == 0 {
			one["eventName"], one["traceId"], one["flags"] = "cart.add", "5b8efff798038103d269b633813fc60c", 1
		}
		cut := len(parts) / 2
		switch x.n % 3 {
		case 0: // a map
			one["body"] = map[string]any{"kvlistValue": map[string]any{"values": attributes(parts)}}
			cut = len(parts)
		case 1:
			one["body"], one["attributes"] = map[string]any{"stringValue": x.said()}, attributes(parts)
			cut = len(parts)
		default:
			one["body"], one["attributes"] = map[string]any{"stringValue": x.said()}, attributes(parts[:cut])
		}
		resources = append(resources, map[string]any{
			"resource": map[string]any{"attributes": attributes(parts[cut:])},
			"scopeLogs": []any{map[string]any{
				"scope":      map[string]any{"name": "com.shop.Cart", "attributes": attributes(parts[:min(cut, x.n%2)])},
				"logRecords": []any{one},
			}},
		})
	}
	return []parcel{post("/v1/logs", jsonType, encoded(map[string]any{"resourceLogs": resources}))}
}

// otlpProto is the same in protobuf, by the library of the Collector.
func otlpProto(texts []text) (all []parcel) {
	for _, p := range otlpParts(texts) {
		logs, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(p.Body)
		if err != nil {
			panic(err)
		}
		b, err := (&plog.ProtoMarshaler{}).MarshalLogs(logs)
		if err != nil {
			panic(err)
		}
		all = append(all, post("/v1/logs", "application/x-protobuf", b))
	}
	return all
}

// seconds is a time in Unix seconds with a fraction.
func seconds(at time.Time) json.RawMessage {
	return fmt.Appendf(nil, "%d.%06d", at.Unix(), at.Nanosecond()/1000)
}

// object is the JSON of members, which may have a name twice.
func object(members []member) []byte {
	b := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, encoded(m.name)...), ':'), bytes.ReplaceAll(m.value, []byte("\n"), []byte(" "))...)
	}
	return append(b, '}')
}

// gelfParts has levels, both messages, and additional fields.
func gelfParts(texts []text) []parcel {
	var b []byte
	for _, x := range texts {
		m := []member{{"version", []byte(`"1.1"`)}, {"host", []byte(`"web1"`)}}
		switch x.n % 4 {
		case 0:
			m = append(m, member{"short_message", encoded(x.said())})
		case 1:
			m = append(m, member{"short_message", encoded("cut")}, member{"full_message", encoded(x.said())})
		case 2:
			m = append(m, member{"message", encoded(x.said())})
		default:
			first, _, _ := strings.Cut(x.said(), "\n")
			m = append(m, member{"short_message", encoded(first)}, member{"full_message", encoded(x.said())})
		}
		if x.n%3 > 0 {
			m = append(m, member{"level", fmt.Append(nil, x.n%10)})
		}
		if x.n%5 > 1 {
			m = append(m, member{"timestamp", seconds(x.sent())})
		}
		for _, p := range x.parts() {
			if x.n%6 > 0 {
				p.name = "_" + p.name
			}
			m = append(m, p)
		}
		b = append(append(b, object(m)...), '\n')
	}
	return []parcel{post("/gelf", jsonType, b)}
}

// datadogParts has a status, tags, and members.
func datadogParts(texts []text) []parcel {
	var items [][]byte
	for _, x := range texts {
		var tags []string
		parts := x.parts()
		for _, p := range parts {
			tags = append(tags, p.name+":"+p.text())
		}
		m := []member{{"message", encoded(x.said())}}
		if x.n%2 == 0 {
			m = append(m, member{"status", encoded(x.word())})
		}
		if x.n%3 > 0 {
			m = append(m, member{"ddtags", encoded(strings.Join(tags, ","))}, member{"ddsource", []byte(`"nginx"`)}, member{"hostname",
				[]byte(`"web1"`)})
		} else {
			m = append(m, parts...)
		}
		if x.n%4 == 0 {
			m = append(m, member{"service", []byte(`"Cart"`)}, member{"timestamp", fmt.Append(nil, x.sent().UnixMilli())})
		}
		items = append(items, object(m))
	}
	array := append(append([]byte("["), bytes.Join(items, []byte(","))...), ']')
	return []parcel{post("/api/v2/logs?ddsource=go&ddtags=env:prod,service:cart", jsonType, array), post("/v1/input", jsonType,
		bytes.Join(items, []byte("\n")))}
}

// hecParts has envelopes with all members, and fields.
func hecParts(texts []text) []parcel {
	var b []byte
	for _, x := range texts {
		m := []member{{"host", []byte(`"web1"`)}}
		switch x.n % 4 {
		case 0:
			m = append(m, member{"event", encoded(x.said())}, member{"fields", object(x.parts())})
		case 1:
			m = append(m, member{"event", object(append(x.parts(), member{"line", encoded(x.said())}))})
		case 2:
			m = append(m, member{"event", object([]member{{"message", encoded(x.said())}, {"severity", encoded(x.word())}})},
				member{"fields", object(x.parts())})
		default:
			m = append(m, member{"event", encoded(string(x.bytes))})
		}
		switch x.n % 5 {
		case 0:
			m = append(m, member{"time", seconds(x.sent())})
		case 1:
			m = append(m, member{"time", encoded(string(seconds(x.sent())))})
		case 2:
			m = append(m, member{"time", encoded(x.word())})
		}
		for i, name := range []string{"source", "sourcetype", "index"} {
			if x.n>>i%2 == 1 {
				m = append(m, member{name, encoded([]string{"/var/log/cart.log", "httpevent", "main", "Cart", "_json"}[(x.n+i)%5])})
			}
		}
		b = append(append(b, object(m)...), '\n')
	}
	return []parcel{post("/services/collector/event", jsonType, b), post("/services/collector/raw?sourcetype=cart&host=web1", plainText,
		b)}
}

// bulkParts has indexes of all kinds, and documents with texts beside members.
func bulkParts(texts []text) []parcel {
	indexes := []string{"logs-cart-default", "filebeat-8.1.2-2026.11.24", ".ds-logs-nginx.access-prod-2026.11.24-000001",
		"<logs-{now/d}-000001>", "Cart", "app-2026.47", ""}
	var b []byte
	for _, x := range texts {
		action := []string{"create", "index"}[x.n%2]
		b = fmt.Appendf(b, `{%q:{"_index":%q}}`+"\n", action, indexes[x.n%len(indexes)])
		doc := x.parts()
		if x.n%3 > 0 || !x.object {
			doc = append(doc, member{"message", encoded(string(x.bytes))})
		}
		if x.n%4 == 0 {
			doc = append([]member{{"@timestamp", encoded(x.sent().Format("2006-01-02T15:04:05.000Z"))}}, doc...)
		}
		b = append(append(b, object(doc)...), '\n')
	}
	return []parcel{post("/_bulk", linesType, b), post("/web/_bulk", linesType, b)}
}

// journaldParts has the members as fields, in capitals.
func journaldParts(texts []text) []parcel {
	var b []byte
	for i, x := range texts {
		b = fmt.Appendf(b, "__CURSOR=s=1;i=%x\n__REALTIME_TIMESTAMP=%d\n", i+1, x.sent().UnixMicro())
		if x.n%3 > 0 {
			b = fmt.Appendf(b, "PRIORITY=%d\n", x.n%9)
		}
		if x.n%4 == 0 {
			b = fmt.Appendf(b, "_SOURCE_REALTIME_TIMESTAMP=%d\n", x.sent().UnixMicro()-7)
		}
		b = append(b, []string{
			"_SYSTEMD_UNIT=cart.service\n", "SYSLOG_IDENTIFIER=Cart\n", "_COMM=cart\n",
			"CONTAINER_NAME=cart\n_SYSTEMD_UNIT=docker.service\n",
			"_SYSTEMD_USER_UNIT=app-cart@7.service\n_SYSTEMD_UNIT=user@7.service\n", "UNIT=x.service\n_SYSTEMD_UNIT=init.scope\n", "",
		}[x.n%7]...)
		for _, p := range x.parts() {
			name := strings.ToUpper(label.ReplaceAllString(p.name, "_"))
			if name != "" && name[0] != '_' && name != "PRIORITY" {
				b = fmt.Appendf(b, "%s=%s\n", name, strings.ReplaceAll(p.text(), "\n", " "))
			}
		}
		said := x.said()
		b = protowireBytes(fmt.Appendf(b, "MESSAGE\n"), said)
		b = append(b, "\n\n"...)
	}
	return []parcel{post("/upload", "application/vnd.fdo.journal", b)}
}

// protowireBytes appends a text behind its length in 64 bits.
func protowireBytes(b []byte, s string) []byte {
	return append(protowire.AppendFixed64(b, uint64(len(s))), s...)
}

// headers are those of syslog, as devices write them. The priority, as %d, is first.
func headers() []string {
	return []string{
		"<%d>Nov 24 10:00:06 web1 cart[7]: ", "<%d>1 2026-11-24T10:00:06.257Z web1 cart 7 ID1 - ", "<%d>", "<%d>1 - - - - - - ",
		"<%d>Nov  4 10:00:06 2026 ap1 stm[812]: ",
		"<%d>812: router1: Nov 24 10:00:06.257 CET: %%LINK-3-UPDOWN: ",
		"<%d>812: router1 RP/0/RP0/CPU0:Nov 24 10:00:06.257 CET: ifmgr[200]: ",
		"<%d>Nov 24 2026 10:00:06 fw2 : %%ASA-4-106023: ", "<%d>:Nov 24 10:00:06 CET: %%ASA-session-4-106023: ",
		"<%d>: 2026 Nov 24 10:00:05 CET: %%ETHPORT-3-IF_DOWN: ",
		"<%d>1 2026-11-24T10:00:06Z gw1 CheckPoint 812 - [action:\"Accept\"; src:\"192.0.2.7\"] ",
		"<%d>device=\"SFW\" date=2026-11-24 time=10:00:06 timezone=\"CET\" msg=",
		"<%d>Nov 24 10:00:06 bigip1 notice tmm1[812]: ",
		"<%d>2026-11-24T10:00:06.257Z esx1 Hostd: info hostd[812] [Originator@6876 sub=x] ",
		"<%d> 11/24/2026:10:00:06 GMT ns1 0-PPE-0 : default TCP x 812 0 : ", "<%d>2026-11-24T10:00:06.257+0100 rb1 system,info,account ",
		"<%d>Nov 24 10:00:06 nas1 Connection: ",
		"<%d>Nov 24 10:00:06 h docker/web.1.abc[812]: ", "<%d>1 1795168806.257312 mx events type=x ",
		"<%d>1 1795168806.257312 mx flows allow src=", "<%d>date=2026-11-24 time=10:00:06 devname=\"fg\" level=\"warning\" msg=",
		"<%d>[    1.234567] usb 1-1: ", "<%d>Nov 24 10:00:06 - cart: ", "<%d>Nov 24 10:00:06 2001:db8::1 v6app: ",
		"<%d>system,error,critical ", "<%d>Nov 24 10:00:06 cart: ", "<%d>2026 Nov 24 10:00:06 TZ-6 h cart[0]: ",
		"", "Nov 24 10:00:06 web1 cart: ", "2026-11-24T10:00:06+01:00 web1 cart: ", "<%d>Nov 24 10:00:06 web1 ",
		"<%d>1 2026-11-24T10:00:06Z web1 - - - - ",
		"<%d>1 2026-11-24T10:00:06Z web1 cart - - [x@1 level=\"error\" msg=\"a\\\"b\"] ", "<%d>*Nov 24 10:00:06.257: %%SYS-5-CONFIG_I: ",
		"<%d>12: *Nov 24 10:00:06: %%SYS-5-CONFIG_I: ", "<%d>LEEF:1.0|x|y|1|z|",
		"<%d>CEF:0|Vendor|Product|1|100|Name|7|msg=", "<%d>Nov 24 10:00:06 UDM CEF:0|Ubiquiti|UniFi|9.3|401|x|5|msg=",
	}
}

// syslogLines has a message a line, with headers of all kinds.
func syslogLines(texts []text) []parcel {
	var b []byte
	all := headers()
	for _, x := range texts {
		for _, line := range x.lines() {
			switch header := all[x.n%len(all)]; {
			case carry.HasPriority(line):
			case strings.HasPrefix(header, "<"):
				b = fmt.Appendf(b, header, x.n%192)
			default:
				b = append(b, header...)
			}
			b = append(append(b, line...), '\n')
		}
	}
	return []parcel{{Parcel: carry.Parcel{By: carry.Syslog, Body: b}}}
}

// syslogData has the members as structured data.
func syslogData(texts []text) []parcel {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `]`, `\]`)
	var b []byte
	for _, x := range texts {
		m := fmt.Appendf(nil, "<%d>1 %s web1 %s %d - [x@32473", 8*(x.n%24)+x.n%8, x.sent().Format("2006-01-02T15:04:05.000Z"),
			[]string{"cart", "-", "Cart.App"}[x.n%3], x.n)
		for _, p := range x.parts() {
			m = fmt.Appendf(m, ` %s="%s"`, p.name, escape.Replace(p.text()))
		}
		m = append(m, "] "...)
		m = append(m, x.said()...)
		b = fmt.Appendf(b, "%d %s", len(m), m)
	}
	return []parcel{{Parcel: carry.Parcel{By: carry.Syslog, Body: b}}}
}
