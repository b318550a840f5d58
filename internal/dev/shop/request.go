package shop

import (
	"container/heap"
	"strconv"
	"time"

	"blobtail/record"
)

// The services of the shop.
const (
	gateway  = "gateway"
	web      = "web"
	orders   = "orders"
	payments = "payments"
	stock    = "stock"
)

// Services are the five services, by name.
func Services() []string { return []string{gateway, orders, payments, stock, web} }

// hosts is the number of hosts of each service.
const hosts = 3

// request is a request of a user on its way, or a job of a service.
type request struct {
	g         *Generator
	begun, at int64 // unix ns: of its beginning, and of its last record
	id, trace string
	user, ip  string
	host      int
	order     int
	told      []Told
}

// newRequest begins a request.
func (g *Generator) newRequest() *request {
	r := g.system(time.Unix(0, g.next))
	r.id, r.trace = "req-"+r.hex(12), r.hex(32)
	r.user = "u" + number(1000+g.rand.IntN(400))
	r.ip = "203.0.113." + number(1+g.rand.IntN(250))
	r.host = 1 + g.rand.IntN(hosts)
	return r
}

// system begins the work of a service that no user asked for.
func (g *Generator) system(at time.Time) *request {
	return &request{g: g, begun: at.UnixNano(), at: at.UnixNano(), host: 1 + g.rand.IntN(hosts)}
}

// took is the time since the beginning.
func (r *request) took() time.Duration { return time.Duration(r.at - r.begun) }

// log writes a record some time after the last one of the request. fields are names and values.
func (r *request) log(after time.Duration, service string, level record.Level, msg string, fields ...any) *Record {
	r.at += int64(after) + 1000 + r.g.rand.Int64N(900_000)
	b := make([]byte, 0, 384+len(msg))
	b = append(b, `{"ts":"`...)
	b = record.AppendTime(b, r.at)
	b = append(b, `","level":"`...)
	b = append(b, level.String()...)
	b = append(b, `","service":"`...)
	b = append(b, service...)
	b = append(b, `","msg":"`...)
	b = record.AppendEscaped(b, []byte(msg))
	b = append(b, `","host":"`...)
	b = append(b, service...)
	b = append(b, '-')
	b = strconv.AppendInt(b, int64(r.host), 10)
	b = append(b, '"')
	if len(fields) == 0 || fields[0] != "version" {
		b = field(b, "version", r.g.version(service, r.host, r.at))
	}
	if r.id != "" {
		b = field(b, "request_id", r.id)
		b = field(b, "trace_id", r.trace)
	}
	for i := 0; i < len(fields); i += 2 {
		b = field(b, fields[i].(string), fields[i+1])
	}
	b = append(b, '}', '\n')
	return r.push(&Record{Time: r.at, Service: service, Level: level, Line: b, request: r}, msg)
}

// text writes a line of text, as programs do that know no JSON. word is empty for a line without
// a level.
func (r *request) text(service string, level record.Level, word, msg string) {
	r.at += 1000 + r.g.rand.Int64N(900_000)
	b := record.AppendTime(nil, r.at)
	b = append(b, ' ')
	if word != "" {
		b = append(b, word...)
		b = append(b, ' ')
	}
	b = append(b, msg...)
	r.push(&Record{Time: r.at, Service: service, Level: level, Line: append(b, '\n'), Text: true, request: r}, msg)
}

// as marks the record as one of the incident.
func (r *Record) as(p part) {
	r.part = p
	r.request.told[len(r.request.told)-1].part = p
}

func (r *request) push(rec *Record, msg string) *Record {
	heap.Push(&r.g.pending, rec)
	r.told = append(r.told, Told{Time: string(record.AppendTime(nil, rec.Time)), Service: rec.Service, Level: rec.Level.String(), Msg: msg})
	return rec
}

// raw is JSON as the value of a field.
type raw string

// field appends a field to an object.
func field(b []byte, name string, value any) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	switch v := value.(type) {
	case string:
		b = append(b, '"')
		b = record.AppendEscaped(b, []byte(v))
		b = append(b, '"')
	case int:
		b = strconv.AppendInt(b, int64(v), 10)
	case float64:
		b = strconv.AppendFloat(b, v, 'f', -1, 64)
	case time.Duration:
		b = strconv.AppendFloat(b, float64(v.Microseconds())/1000, 'f', -1, 64)
	case bool:
		b = strconv.AppendBool(b, v)
	case raw:
		b = append(b, v...)
	}
	return b
}

// hex returns n hexadecimal digits.
func (r *request) hex(n int) string {
	const digits = "0123456789abcdef"
	b := make([]byte, n)
	var v uint64
	for i := range b {
		if i%16 == 0 {
			v = r.g.rand.Uint64()
		}
		b[i] = digits[v&15]
		v >>= 4
	}
	return string(b)
}

// ms is a random time of low to high milliseconds.
func (r *request) ms(low, high int) time.Duration {
	return time.Duration(low+r.g.rand.IntN(high-low+1)) * time.Millisecond
}

// one in n is true at random.
func (r *request) oneIn(n int) bool { return r.g.rand.IntN(n) == 0 }

// millis prints a duration in whole milliseconds.
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + " ms" }

func number(n int) string { return strconv.Itoa(n) }
