package meaning_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"blobtail/internal/azurelogs/formats"
	"blobtail/source/carry"
)

// arrived is when all bodies come.
func arrived() time.Time { return time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC) }

// A text is an input: a line, several that belong together, or an object of JSON.
type text struct {
	bytes  []byte
	object bool
	n      int // its number in the source, by which ways vary what is beside it
}

func newText(n int, b []byte) text {
	return text{bytes: b, n: n, object: len(b) > 0 && b[0] == '{' && json.Valid(b)}
}

// sent is a time of a protocol, a little before the arrival.
func (x *text) sent() time.Time {
	return arrived().Add(-time.Hour + time.Duration(x.n)*time.Second + time.Duration(x.n%7)*time.Microsecond)
}

// A parcel is what a way sends at once.
type parcel struct {
	carry.Parcel
	mapped bool         // the operator has named fields
	far    bool         // guessed times need not be near
	blob   formats.Kind // and one; 0: it is no blob of Azure's own logs
}

// A way packs texts as a shipper does. It may leave out those that it cannot carry.
type way struct {
	name string
	pack func(texts []text) []parcel
}

// ways are those through the doors of package carry, and then those that say in all parts of a
// protocol what a shipper can say there.
func ways() (all []way) {
	for _, d := range carry.Doors() {
		all = append(all, way{d.Name, func(texts []text) []parcel { return carried(&d, texts) }})
	}
	return append(append(all,
		way{"text-alone", textAlone},
		way{"nats-alone", natsAlone},
		way{"docker", docker},
		way{"cri", cri},
		way{"cri-parts", criParts},
		way{"prefixed", prefixed},
		way{"exports", exports},
		way{"asked", asked},
		way{"mapped", mapped},
		way{"logfmt", logfmt},
		way{"urlform", urlForm},
		way{"syslog-lines", syslogLines},
		way{"syslog-data", syslogData},
	), wired()...)
}

// carried packs by a door of package carry, as tests of the table of loggers do.
func carried(d *carry.Door, texts []text) []parcel {
	var c carry.Cargo
	for i := range texts {
		x := &texts[i]
		r := carry.Record{Text: x.bytes, Object: x.object}
		if d.Only && !x.object || len(x.bytes) == 0 {
			continue
		}
		if d.Timed || x.n%4 == 3 && (d.Name == "hec" || d.Name == "gelf" || d.Name == "datadog") {
			r.Time = x.sent()
		}
		switch {
		case strings.HasPrefix(d.Name, "syslog"):
			r.Priority, r.Whole = 16*8+x.n%8, carry.HasPriority(x.bytes)
		case d.Name == "journald" && x.n%3 > 0:
			r.Priority = 8 + x.n%8
		}
		c.Records = append(c.Records, r)
	}
	if !d.Objects || d.Named {
		c.Service = "shop"
	}
	if len(c.Records) == 0 {
		return nil
	}
	p, err := d.Pack(c)
	if err == nil {
		return []parcel{{Parcel: p}}
	}
	var parcels []parcel // one of them cannot be carried
	for _, r := range c.Records {
		if p, err := d.Pack(carry.Cargo{Records: []carry.Record{r}, Service: c.Service}); err == nil {
			parcels = append(parcels, parcel{Parcel: p})
		}
	}
	return parcels
}

// post is a parcel over HTTP.
func post(path, media string, body []byte) parcel {
	return parcel{Parcel: carry.Parcel{Path: path, ContentType: media, Body: body}}
}

const (
	plainText = "text/plain"
	jsonType  = "application/json"
	linesType = "application/x-ndjson"
)

// textAlone sends each text alone, so that nothing is beside it. Every third has no type.
func textAlone(texts []text) (all []parcel) {
	for _, x := range texts {
		all = append(all, post("/ingest/shop", []string{plainText, "", jsonType}[x.n%3], x.bytes))
	}
	return all
}

func natsAlone(texts []text) (all []parcel) {
	for _, x := range texts {
		all = append(all, parcel{Parcel: carry.Parcel{By: carry.NATS, Subject: "logs.shop.x", Body: x.bytes}})
	}
	return all
}

// lines are the lines of a text.
func (x *text) lines() [][]byte { return bytes.Split(bytes.TrimRight(x.bytes, "\n"), []byte("\n")) }

// encoded is the JSON of a value.
func encoded(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// docker are lines in the files of Docker, as shippers send them that read those.
func docker(texts []text) []parcel {
	var b []byte
	for _, x := range texts {
		for i, line := range x.lines() {
			stream := []string{"stdout", "stderr"}[x.n%2]
			switch at := x.sent().Add(time.Duration(i) * time.Millisecond); x.n % 3 {
			case 0:
				b = fmt.Appendf(b, `{"log":%s,"stream":%q,"time":%q}`+"\n", encoded(string(line)+"\n"), stream,
					at.Format(time.RFC3339Nano))
			case 1:
				b = fmt.Appendf(b,
					`{"date":%d.%06d,"log":%s,"stream":%q,"kubernetes":{"container_name":"cart","pod_name":"cart-6d5f7-x2x9z"}}`+"\n",
					at.Unix(), at.Nanosecond()/1000, encoded(string(line)), stream)
			default:
				b = fmt.Appendf(b, `{"@timestamp":%q,"message":%s,"container":{"name":"cart"},"log":{"offset":%d}}`+"\n",
					at.Format("2006-01-02T15:04:05.000Z"), encoded(string(line)), x.n)
			}
		}
	}
	return []parcel{post("/ingest", linesType, b)}
}

// cri are lines in the files of containerd.
func cri(texts []text) []parcel {
	var b []byte
	for _, x := range texts {
		for i, line := range x.lines() {
			at := x.sent().Add(time.Duration(i) * time.Millisecond).Format("2006-01-02T15:04:05.000000000Z07:00")
			b = fmt.Appendf(b, "%s %s F %s\n", at, []string{"stdout", "stderr"}[x.n%2], line)
		}
	}
	return []parcel{post("/ingest/shop", plainText, b)}
}

// criParts cuts long lines into parts, and mixes two streams.
func criParts(texts []text) []parcel {
	var b, m []byte
	for _, x := range texts {
		at := x.sent().Format("2006-01-02T15:04:05.000000000Z07:00")
		line := x.lines()[0]
		half := len(line) / 2
		b = fmt.Appendf(b, "%s stdout P %s\n%s stderr F x\n%s stdout F %s\n", at, line[:half], at, at, line[half:])
		m = fmt.Appendf(m, `{"message":%s,"stream":"stdout"}`+"\n", encoded(fmt.Sprintf("%s stdout F %s", at, line)))
	}
	return []parcel{post("/ingest/shop", plainText, b), post("/ingest", linesType, m)}
}

// prefixes are those that programs put before lines of others. %s is a time.
func prefixes() []string {
	return []string{
		"[pod/web-6d5f7c-x2x9z/web] ", "web-1  | ", "%s ", "%s app[web.1]: ", "%s [web] ", "\x1b[36mweb_1  |\x1b[0m ",
		"web-6d5f7c-x2x9z web ",
		"%s stdout F ", "Nov 24 10:00:06 h web[7]: ", "<11>Nov 24 10:00:06 h web[7]: ", "<11>", "  ", "\xef\xbb\xbf", "[web] ",
		"%s  PID[3096] Error ", "E ",
		"-- %s --\n", "INFO: ", "(null) ", "\t", "[%s] ", "%s\t", "1795168806.257 ", "#",
	}
}

// prefixed has one prefix for four texts one after the other.
func prefixed(texts []text) []parcel {
	var b []byte
	all := prefixes()
	for _, x := range texts {
		prefix := strings.ReplaceAll(all[x.n/4%len(all)], "%s", x.sent().Format("2006-01-02T15:04:05.000Z"))
		for _, line := range x.lines() {
			b = fmt.Appendf(b, "%s%s\n", prefix, line)
		}
	}
	return []parcel{post("/ingest/shop", plainText, b)}
}

// exports are objects around a batch, as platforms deliver them.
func exports(texts []text) (all []parcel) {
	frames := []struct{ before, each, after string }{
		{`{"messageType":"DATA_MESSAGE","owner":"1","logGroup":"/aws/lambda/cart","logEvents":[`,
			`{"id":"%d","timestamp":%d,"message":%s}`, `]}`},
		{`{"events":[`, `{"ingestionTime":%d,"timestamp":%d,"message":%s}`, `],"nextToken":"x"}`},
		{`{"logs":[`, "", `]}`},
		{`{"records":[`, `{"n":%d,"time":%d,"properties":{"message":%s}}`, `]}`},
		{`{"value":[`, `{"Id":%d,"CreationTime":"%d","Operation":%s}`, `],"@odata.nextLink":"x"}`},
		{`{"entries":[`, `{"insertId":"%d","timestamp":"%d","textPayload":%s,"severity":"ERROR"}`, `],"nextPageToken":"x"}`},
		{`{"kind":"EventList","apiVersion":"v1","metadata":{},"items":[`, `{"n":%d,"eventTime":"%d","note":%s}`, `]}`},
		{`[`, "", `]`},
	}
	for from := 0; from < len(texts); from += 20 {
		f := frames[texts[from].n/20%len(frames)]
		b := []byte(f.before)
		for i, x := range texts[from:min(from+20, len(texts))] {
			if i > 0 {
				b = append(b, ',')
			}
			switch {
			case x.object && x.n%2 == 0:
				b = append(b, x.bytes...)
			case f.each == "":
				b = append(b, encoded(string(x.bytes))...)
			default:
				b = fmt.Appendf(b, f.each, x.n, x.sent().UnixMilli(), encoded(string(x.bytes)))
			}
		}
		all = append(all, post("/ingest", jsonType, append(b, f.after...)))
	}
	return all
}

// asked has the names of fields that the sender gives: those of members of each object.
func asked(texts []text) (all []parcel) {
	for _, x := range texts {
		members, ok := membersOf(x.bytes)
		if !ok || len(members) == 0 {
			continue
		}
		query := url.Values{}
		for i, parameter := range []string{"_time", "_level", "_message", "_service"} {
			if x.n>>i%3 > 0 {
				query.Set(parameter, members[(x.n+i)%len(members)].name+",inner.when,level")
			}
		}
		if x.n%5 == 0 {
			query.Set("_time_near", []string{"on", "off"}[x.n/5%2])
		}
		path := []string{"/ingest/shop?", "/ingest?", "/_bulk?", "/services/collector/event?", "/api/v2/logs?", "/gelf?"}[x.n%6]
		b := x.bytes
		switch x.n % 6 {
		case 2:
			b = fmt.Appendf(nil, "{\"create\":{\"_index\":\"logs-shop-default\"}}\n%s\n", bytes.ReplaceAll(b, []byte("\n"), []byte(" ")))
		case 3:
			b = fmt.Appendf(nil, `{"event":%s}`, b)
		}
		all = append(all, post(path+query.Encode(), jsonType, b))
	}
	return all
}

// mapped has the names of fields that the operator gives, in several protocols.
func mapped(texts []text) (all []parcel) {
	for _, d := range carry.Doors() {
		var some []text
		for _, x := range texts {
			if x.n%6 == len(d.Name)%6 {
				some = append(some, x)
			}
		}
		for _, p := range carried(&d, some) {
			p.mapped, p.far = true, len(all)%2 == 1
			all = append(all, p)
		}
	}
	return all
}

// logfmt has the members of objects as pairs, and texts as the message of pairs.
func logfmt(texts []text) []parcel {
	var b []byte
	for _, x := range texts {
		members, ok := membersOf(x.bytes)
		if !ok {
			members = []member{{"time", encoded(x.sent())}, {"level", encoded(x.word())}, {"msg", encoded(string(x.bytes))}}
		}
		for i, m := range members {
			if i > 0 {
				b = append(b, ' ')
			}
			value := m.text()
			if strings.ContainsAny(value, " \"=\n") || x.n%3 == 0 {
				value = string(encoded(value))
			}
			b = fmt.Appendf(b, "%s=%s", m.name, value)
		}
		b = append(b, '\n')
	}
	return []parcel{post("/ingest/shop", plainText, b)}
}

// urlForm has the members of objects as a form of HTML.
func urlForm(texts []text) (all []parcel) {
	for _, x := range texts {
		if members, ok := membersOf(x.bytes); ok && x.n%2 == 0 {
			query := url.Values{}
			for _, m := range members {
				query.Set(m.name, m.text())
			}
			all = append(all, post("/ingest", "application/x-www-form-urlencoded", []byte(query.Encode())))
		}
	}
	return all
}
